"""Tokens become text, in a process of its own."""

import setproctitle


class DetokenizerManager:
    def __init__(self, from_scheduler, to_tokenizer):
        self.from_scheduler, self.to_tokenizer = from_scheduler, to_tokenizer
        self.handlers = {list: self.handle_batch_token_id_out}

    def event_loop(self):
        while (received := self.from_scheduler.recv()) is not None:
            self.handlers[type(received)](received)

    def handle_batch_token_id_out(self, received):
        for one in received:
            self.to_tokenizer.send(one)


def run_detokenizer_process(*pipes):
    setproctitle.setproctitle("sglang::detokenizer")
    DetokenizerManager(*pipes).event_loop()
