"""The scheduler of one engine: its calls as spans with its decisions as args, and its queues and cache as counters."""

from .. import now_ns
from .._sa_profile import from_monotonic, record_step_counters, is_enabled, open_span
from .._hooks.chain import argument
from .._hooks.instances import ObjectData, chain_class
from .._hooks.warnings import quietly
from . import batch
from .prefix_cache import PrefixCache
from .requests import reason

_observers = ObjectData()  # by scheduler
_observers_of_managers = ObjectData()  # the same observers, by their schedulers' block managers


def observe(scheduler, requests, batches):
    """Hooks a scheduler."""
    observer = _observers.set(scheduler, SchedulerObserver(requests, batches, PrefixCache(scheduler)))
    chain_class(scheduler, "schedule", schedule)
    chain_class(scheduler, "update_from_output", update)
    chain_class(scheduler, "finish_requests", finish)
    quietly(_observe_manager, getattr(scheduler, "kv_cache_manager", None), observer)


def _observe_manager(manager, observer):
    if callable(getattr(manager, "free", None)):
        _observers_of_managers.set(manager, observer)
        chain_class(manager, "free", free)


def schedule(scheduler, *_args, **_kwargs):
    """Observes a step being scheduled. A method that calls the same method of its base class counts as one call."""
    observer = _observers.get(id(scheduler))
    if observer is None or observer.freed is not None or not is_enabled():
        return None
    observer.opened = open_span("scheduler.schedule", cat="scheduler")
    # Flow events are recorded at the end of the call, but with this time. The viewer attaches them to the last span that began before it.
    observer.began_ns = now_ns()
    observer.freed, observer.updating = {}, False
    return observer.scheduled


def free(manager, request, *_args, **_kwargs):
    """Observes a request losing its blocks. While a step is being scheduled this is a preemption, which outputs before 0.13 do not report."""
    observer = _observers_of_managers.get(id(manager))
    if observer is not None and observer.freed is not None:
        observer.freed[request.request_id] = None


def update(scheduler, *args, **kwargs):
    """Observes the results of a step being passed to its requests."""
    observer = _observers.get(id(scheduler))
    if observer is None or observer.updating or not (is_enabled() or observer.requests):
        return None
    output = argument(args, kwargs, 0, "scheduler_output")
    drafts = getattr(output, "scheduled_spec_decode_tokens", None)
    speculated = batch.speculation(drafts, argument(args, kwargs, 1, "model_runner_output")) if drafts else None
    step = observer.batches.remove(output)
    if step is None:
        opened = open_span("scheduler.update_from_output", cat="scheduler")
    else:
        opened = open_span("scheduler.update_from_output", cat="scheduler", batch=step.number)
        step.flow("end")
    observer.freed, observer.updating = None, True
    return lambda result, error: observer.updated(scheduler, opened, result, step, speculated, error)


def finish(scheduler, *args, **kwargs):
    """Observes the scheduler finishing requests on command, for example because their clients have disconnected."""
    observer = _observers.get(id(scheduler))
    ids = argument(args, kwargs, 0, "request_ids")
    if observer is None or not observer.requests or (ids is not None and not isinstance(ids, (str, list, tuple, set, frozenset))):
        return None
    why = reason(argument(args, kwargs, 1, "finished_status"))
    # A copy, because the scheduler may empty the caller's collection.
    ids = None if ids is None else [ids] if isinstance(ids, str) else list(ids)
    return lambda _result, error: observer.finished(ids, why, error)


class SchedulerObserver:
    """The state of one scheduler's hooks."""

    def __init__(self, requests, batches, prefix_cache):
        self.requests = requests
        self.batches = batches
        # A signal may interrupt a call and leave this state behind. The next call of the other kind clears it, because a scheduler is only in one of the two at a time.
        self.opened = None  # the span of the current call
        self.began_ns = 0  # when the current call of `schedule` began
        self.freed = None  # ids of requests that lost their blocks in the step that is being scheduled, as keys
        self.updating = False  # true while it handles a step's results
        self._prefix_cache = prefix_cache
        self._last_step = None
        self._steps = 0

    def scheduled(self, output, error):
        """Ends the span of a scheduled step."""
        opened, freed = self.opened, self.freed
        self.opened = self.freed = None
        if opened is None:
            return  # a step's results were handled in between, and the base class's method has ended the call
        opened.set_end()
        step = args = None
        try:
            if output is not None:
                preempted = getattr(output, "preempted_req_ids", freed)
                if preempted:
                    args = {"preempted_ids": list(preempted)}
                try:
                    step = self._add(output) if output.total_num_scheduled_tokens else None
                finally:
                    if preempted or step is None or not step.decodes_only:
                        self.requests.scheduled(output, preempted or (), self.began_ns)
                if step is None:
                    args = {"tokens": 0, **(args or {})}
        finally:
            opened.close(error, args, step)

    def _add(self, output):
        self._steps += 1
        step = self._last_step = batch.describe(output, self._last_step, self._steps)
        self.batches.add(output, step)
        return step

    def updated(self, scheduler, opened, result, step, speculated, error):
        """Ends the span of a step whose results were passed to its requests."""
        opened.set_end()
        self.updating = False
        outputs = tokens = 0
        try:
            groups = (result or {}).values()
            for group in groups:
                tokens += self.requests.produced(group.outputs, from_monotonic(getattr(group, "timestamp", None)))
                outputs += len(group.outputs)
            self._count(scheduler, step, speculated, groups)
        finally:
            opened.close_outputs(error, outputs, tokens, None, speculated.args() if speculated else None)

    def _count(self, scheduler, step, speculated, groups):
        if not is_enabled():
            return
        self._prefix_cache.count(groups)
        counts = getattr(scheduler, "get_request_counts", None)
        running, waiting = (len(scheduler.running), len(scheduler.waiting)) if counts is None else counts()
        usage = getattr(scheduler, "get_kv_cache_usage", None)
        usage = getattr(getattr(scheduler, "kv_cache_manager", None), "usage", None) if usage is None else usage()
        record_step_counters(running, waiting, None if usage is None else 100.0 * usage, step)
        if speculated:
            speculated.record()
        if len(self.requests) > 2 * (running + waiting) + 64:
            self.requests.end_unknown(scheduler.requests)

    def finished(self, ids, why, error):
        """Ends requests that were finished on command."""
        if error is not None:
            return
        if ids is None:
            self.requests.all_finished(why)
        for request_id in ids or ():
            self.requests.finished(request_id, why)
