class GrammarManager:
    """A grammar is ready on the second poll, or at once if the same one was compiled before."""

    def __init__(self, scheduler):
        self.scheduler, self.server_args = scheduler, scheduler.server_args
        self.grammar_queue, self.compiled, self.polls = [], set(), {}

    def __len__(self):
        return len(self.grammar_queue)

    def has_waiting_grammars(self):
        return len(self.grammar_queue) > 0

    def abort_requests(self, recv_req):
        for req in self.grammar_queue:
            if recv_req.abort_all or req.rid.startswith(recv_req.rid):
                req.set_finish_with_abort("Aborted by AbortReq.")

    def process_req_with_grammar(self, req):
        schema = req.sampling_params.json_schema
        if schema is None:
            return False
        req.grammar = schema
        if schema in self.compiled:
            return False
        req.grammar_key = ("json", schema)
        self.grammar_queue.append(req)
        return True

    def get_ready_grammar_requests(self):
        ready = []
        for req in self.grammar_queue:
            self.polls[req.rid] = self.polls.get(req.rid, 0) + 1
            if self.polls[req.rid] == 2 or req.to_finish:
                ready.append(req)
                self.compiled.add(req.grammar)
                del self.polls[req.rid]
        self.grammar_queue = [req for req in self.grammar_queue if req not in ready]
        return ready
