"""Batches of requests, in a process of its own."""

import setproctitle


class Request:
    def __init__(self, rid, left):
        self.rid, self.left = rid, left


class Batch:
    def __init__(self, reqs):
        self.reqs = reqs


class Scheduler:
    def __init__(self, from_tokenizer, to_detokenizer):
        self.from_tokenizer, self.to_detokenizer = from_tokenizer, to_detokenizer
        self.running = []

    def event_loop(self):
        while True:
            received = [self.from_tokenizer.recv()] if not self.running or self.from_tokenizer.poll() else []
            if None in received:
                return self.to_detokenizer.send(None)
            self.process_input_requests(received)
            batch = self.get_next_batch_to_run(running_batch=None, last_batch=None)
            self.process_batch_result(batch, self.run_batch(batch))

    def process_input_requests(self, received):
        self.running += [Request(*one) for one in received]

    def get_next_batch_to_run(self, running_batch, last_batch):
        return Batch(list(self.running))

    def run_batch(self, batch, pp_proxy_tensors=None):
        return [f"token of {one.rid}" for one in batch.reqs]

    def process_batch_result(self, batch, result):
        for one in batch.reqs:
            one.left -= 1
        self.running = [one for one in self.running if one.left]
        self.to_detokenizer.send(result)


def run_scheduler_process(*pipes):
    setproctitle.setproctitle("sglang::scheduler")
    Scheduler(*pipes).event_loop()
