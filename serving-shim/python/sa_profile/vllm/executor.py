"""The engine's calls of its executor, and the batches that the workers still compute."""

from .. import async_span, flow, span
from .._sa_profile import ids_of, is_enabled, open_span
from ..hooks.chain import argument, chain, chain_if_there, inside
from . import batch

IN_FLIGHT = 64  # more than any pipeline has; beyond it the oldest was lost by an error


class Batch:
    """One step's work on its way through the workers."""

    __slots__ = ("number", "output", "request_ids", "composition", "key", "span")

    def __init__(self, number, output, request_ids):
        self.number = number
        self.output = output  # held: its address names the batch
        self.request_ids = request_ids
        self.composition = batch.composition(output, request_ids)
        self.key = batch.key(output)
        self.span = None

    def end(self, **args):
        """The batch is back, or lost."""
        if self.span is not None:
            self.span.end(**args)
            self.span = None


class Batches:
    """The batches of one engine that were scheduled and are not yet back."""

    def __init__(self):
        self._made = 0
        self._flying = {}
        self._request_ids = None  # of the last one: a step that has the same requests has the same arg, which is encoded once

    def made(self, output):
        """A new batch for what the scheduler has put together."""
        self._made += 1
        if len(self._flying) >= IN_FLIGHT:
            self._flying.pop(next(iter(self._flying))).end(lost=True)
        self._request_ids = ids_of(output.num_scheduled_tokens, self._request_ids)
        one = self._flying[id(output)] = Batch(self._made, output, self._request_ids)
        return one

    def of(self, output):
        """The batch of this scheduler output, or `None` if it was made while recording was off, or is empty."""
        return self._flying.get(id(output))

    def done(self, output):
        """The same, which is back now."""
        one = self._flying.pop(id(output), None)
        if one is not None:
            one.end()
        return one

    def failed(self, error):
        """Nothing that is under way will come back."""
        for one in self._flying.values():
            one.end(error=type(error).__name__)
        self._flying.clear()


class ExecutorObserver:
    """Observers of an executor instance."""

    def __init__(self, executor, batches):
        self._batches = batches
        chain(executor, "execute_model", self.execute)
        chain_if_there(executor, "sample_tokens", span("executor.sample_tokens", cat="executor"), inside)

    def execute(self, *args, **kwargs):
        if not is_enabled():
            return None
        one = self._batches.of(argument(args, kwargs, 0, "scheduler_output"))
        if one is None:
            return open_span("executor.execute_model", cat="executor").leave
        opened = open_span("executor.execute_model", cat="executor", batch=one.number)
        if one.key:
            flow("batch", one.key, "start", cat="batch")
        return lambda result, error: self._executed(opened, result, error, one)

    def _executed(self, opened, result, error, one):
        opened.close(error)
        # A Future: the workers go on after the call. What they answer comes with update_from_output.
        if hasattr(result, "add_done_callback"):
            one.span = async_span("batch", cat="executor", lane="batches", batch=one.number, **one.composition)
