class StructuredOutputManager:
    """Compiles in the calling thread."""

    def grammar_init(self, request):
        request.grammar = self._create_grammar(request)

    def _create_grammar(self, request):
        return f"grammar of {request.request_id}"

    def grammar_bitmask(self, requests):
        return [request.grammar for request in requests]
