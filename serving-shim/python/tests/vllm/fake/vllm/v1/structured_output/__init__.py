class StructuredOutputManager:
    """Compiles in the calling thread."""

    def grammar_init(self, request):
        create = getattr(self, "_create_grammar", None) or self._async_create_grammar
        request.grammar = create(request)

    def _create_grammar(self, request):
        return f"grammar of {request.request_id}"

    def _async_create_grammar(self, request):
        return f"grammar of {request.request_id}"

    def grammar_bitmask(self, requests, structured_output_request_ids, scheduled_spec_decode_tokens):
        return [requests[one].grammar for one in structured_output_request_ids]
