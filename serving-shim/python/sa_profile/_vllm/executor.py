"""The engine's calls of its executor, and the batches that the workers are computing."""

from .._sa_profile import Step, is_enabled, open_span
from .._hooks.chain import argument, chain, chain_if_there
from . import batch

MAX_IN_FLIGHT = 64  # more than any pipeline has; if there are more, an error lost the oldest one


class Batches:
    """The batches of one engine that were scheduled and have not come back."""

    def __init__(self):
        self._count = 0
        self._in_flight = {}
        self._request_ids = None  # of the last batch; a step with the same requests has the same arg, which is encoded only once

    def add(self, output):
        """Adds a batch for the scheduler's output."""
        self._count += 1
        if len(self._in_flight) >= MAX_IN_FLIGHT:
            self._in_flight.pop(next(iter(self._in_flight))).end(lost=True)
        step = self._in_flight[id(output)] = Step(output, self._request_ids, batch.prefill_ids, self._count)
        self._request_ids = step.request_ids
        return step

    def get(self, output):
        """Returns the batch of this scheduler output, or `None` if the batch is empty or was created while recording was off."""
        return self._in_flight.get(id(output))

    def remove(self, output):
        """Ends and returns the batch, which has come back."""
        step = self._in_flight.pop(id(output), None)
        if step is not None:
            step.end()
        return step

    def fail(self, error):
        """Ends all batches, because none of them will come back."""
        for step in self._in_flight.values():
            step.end(error=type(error).__name__)
        self._in_flight.clear()


class ExecutorObserver:
    """Observers of an executor instance."""

    def __init__(self, executor, batches):
        self._batches = batches
        self._last_step = None  # the batch of the last call; the next call samples its tokens
        chain(executor, "execute_model", self.execute)
        chain_if_there(executor, "sample_tokens", self.sample)

    def execute(self, *args, **kwargs):
        self._last_step = None
        if not is_enabled():
            return None
        step = self._last_step = self._batches.get(argument(args, kwargs, 0, "scheduler_output"))
        if step is None:
            return open_span("executor.execute_model", cat="executor").leave
        # If the call returns a Future, the workers continue after it. Their answer arrives with update_from_output.
        return step.open_call("executor.execute_model", "executor")

    def sample(self, *_args, **_kwargs):
        step, self._last_step = self._last_step, None
        if not is_enabled():
            return None
        if step is None:
            return open_span("executor.sample_tokens", cat="executor").leave
        return step.open_part("executor.sample_tokens", "executor").leave
