from concurrent.futures import Future

from vllm.v1.core.sched.output import ModelRunnerOutput


def answer(output):
    """Returns one token for each request, and accepts half of its draft."""
    drafts = output.scheduled_spec_decode_tokens
    ids = list(output.num_scheduled_tokens)
    sampled = [[5] * (1 + len(drafts.get(one, ())) // 2) for one in ids]
    return ModelRunnerOutput(ids, {one: at for at, one in enumerate(ids)}, sampled)


class Executor:
    """Answers with a Future that is already done. If `fail` is set, the Future fails."""

    def __init__(self, futures=True, samples=False):
        self.futures, self.samples = futures, samples
        self.fail = None
        self._last = None

    def execute_model(self, scheduler_output, non_block=False):
        self._last = scheduler_output
        result = None if self.samples else answer(scheduler_output)
        if not self.futures:
            return result
        future = Future()
        if self.fail is not None:
            future.set_exception(self.fail)
        else:
            future.set_result(result)
        return future

    def sample_tokens(self, grammar_output, non_block=False):
        future = Future()
        future.set_result(answer(self._last))
        return future if non_block else future.result()
