"""The engine's calls of its executor, and the batches that the workers are computing."""

from .._sa_profile import Step, is_enabled, open_span
from .._hooks.chain import argument, chain, chain_if_there
from . import batch

IN_FLIGHT = 64  # more than any pipeline has; if there are more, an error lost the oldest one


class Batches:
    """The batches of one engine that were scheduled and have not come back."""

    def __init__(self):
        self._made = 0
        self._flying = {}
        self._request_ids = None  # of the last batch; a step with the same requests has the same arg, which is encoded only once

    def made(self, output):
        """Adds a batch for the scheduler's output."""
        self._made += 1
        if len(self._flying) >= IN_FLIGHT:
            self._flying.pop(next(iter(self._flying))).end(lost=True)
        one = self._flying[id(output)] = Step(output, self._request_ids, batch.prefill, self._made)
        self._request_ids = one.request_ids
        return one

    def of(self, output):
        """Returns the batch of this scheduler output, or `None` if the batch is empty or was created while recording was off."""
        return self._flying.get(id(output))

    def done(self, output):
        """Ends and returns the batch, which has come back."""
        one = self._flying.pop(id(output), None)
        if one is not None:
            one.end()
        return one

    def failed(self, error):
        """Ends all batches, because none of them will come back."""
        for one in self._flying.values():
            one.end(error=type(error).__name__)
        self._flying.clear()


class ExecutorObserver:
    """Observers of an executor instance."""

    def __init__(self, executor, batches):
        self._batches = batches
        self._given = None  # the batch of the last call; the next call samples its tokens
        chain(executor, "execute_model", self.execute)
        chain_if_there(executor, "sample_tokens", self.sample)

    def execute(self, *args, **kwargs):
        self._given = None
        if not is_enabled():
            return None
        one = self._given = self._batches.of(argument(args, kwargs, 0, "scheduler_output"))
        if one is None:
            return open_span("executor.execute_model", cat="executor").leave
        # If the call returns a Future, the workers continue after it. Their answer arrives with update_from_output.
        return one.open_call("executor.execute_model", "executor")

    def sample(self, *_args, **_kwargs):
        given, self._given = self._given, None
        if not is_enabled():
            return None
        if given is None:
            return open_span("executor.sample_tokens", cat="executor").leave
        return given.open_part("executor.sample_tokens", "executor").leave
