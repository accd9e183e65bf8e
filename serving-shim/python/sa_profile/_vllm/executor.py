"""The engine's calls of its executor."""

from .._sa_profile import is_enabled, open_span
from .._hooks.chain import argument, chain, chain_if_there


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
