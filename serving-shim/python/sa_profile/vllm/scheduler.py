"""The scheduler of one engine: its calls as spans, what they decided as args, its queues and cache as counters."""

from .. import counter, flow, now_ns
from .._sa_profile import is_enabled
from ..hooks.chain import argument, chain, chain_if_there
from ..hooks.spans import OpenSpan
from . import batch
from .prefix_cache import PrefixCache
from .requests import reason


class SchedulerObserver:
    """Observers of a scheduler instance."""

    def __init__(self, scheduler, requests, batches):
        self._scheduler = scheduler
        self._requests = requests
        self._batches = batches
        self._prefix_cache = PrefixCache(scheduler)
        self._freed = None  # ids of requests whose blocks were taken in the step that is being made up
        chain(scheduler, "schedule", self.schedule)
        chain(scheduler, "update_from_output", self.update)
        chain(scheduler, "finish_requests", self.finish)
        chain_if_there(getattr(scheduler, "kv_cache_manager", None), "free", self.free)

    def schedule(self, *_args, **_kwargs):
        if not is_enabled():
            return None
        opened = OpenSpan("scheduler.schedule", cat="scheduler")
        # Flows are told when all is decided, but at this time: the viewer binds them to the span that began last before it.
        began_ns = now_ns()
        self._freed = []
        return lambda output, error: self._scheduled(opened, began_ns, output, error)

    def _scheduled(self, opened, began_ns, output, error):
        opened.returned()
        freed, self._freed = self._freed, None
        facts = {}
        try:
            if output is not None:
                facts = self._decided(output, getattr(output, "preempted_req_ids", freed), began_ns)
        finally:
            opened.close(error, **facts)

    def free(self, request):
        """A request loses its blocks. While a step is made up that is preemption, which outputs before 0.13 do not tell."""
        if self._freed is not None:
            self._freed.append(request.request_id)

    def _decided(self, output, preempted, began_ns):
        self._requests.scheduled(output, preempted or (), began_ns)
        facts = dict(tokens=output.total_num_scheduled_tokens)
        if output.total_num_scheduled_tokens:
            made = self._batches.made(output)
            facts.update(batch=made.number, **made.composition, request_ids=batch.request_ids(output))
        if preempted:
            facts["preempted_ids"] = list(preempted)
        return facts

    def update(self, *args, **kwargs):
        output = argument(args, kwargs, 0, "scheduler_output")
        if not is_enabled() and not self._requests:
            return None
        model_output = argument(args, kwargs, 1, "model_runner_output")
        speculated = batch.speculation(output, model_output)
        made = self._batches.done(output)
        opened = OpenSpan("scheduler.update_from_output", cat="scheduler", **(dict(batch=made.number) if made else {}))
        if made and made.key:
            flow("batch", made.key, "end", cat="batch")
        return lambda result, error: self._updated(opened, result, error, made, speculated)

    def _updated(self, opened, result, error, made, speculated):
        opened.returned()
        facts = {}
        try:
            groups = (result or {}).values()
            tokens = sum([self._requests.produced(group.outputs, getattr(group, "timestamp", None)) for group in groups])
            facts = dict(outputs=sum([len(group.outputs) for group in groups]), output_tokens=tokens)
            self._count(made, speculated, groups)
        finally:
            opened.close(error, **facts, **(speculated.args() if speculated else {}))

    def _count(self, made, speculated, groups):
        if not is_enabled():
            return
        self._prefix_cache.count(groups)
        running, waiting = self._queues()
        counter("requests", running=running, waiting=waiting)
        usage = self._cache_usage()
        if usage is not None:
            counter("kv_cache", used_percent=100.0 * usage)
        if made:
            composition = made.composition
            counter("tokens", prefill=composition["prefill_tokens"], decode=composition["decode_tokens"])
        if speculated:
            counter("speculation", **speculated.args())
            places = enumerate(speculated.by_position, 1)
            counter("accepted_by_position", **{str(place): accepted for place, accepted in places})
        if len(self._requests) > 2 * (running + waiting) + 64:
            self._requests.forget_strangers(self._scheduler.requests)

    def _queues(self):
        counts = getattr(self._scheduler, "get_request_counts", None)
        if counts is not None:
            return counts()
        return len(self._scheduler.running), len(self._scheduler.waiting)

    def _cache_usage(self):
        usage = getattr(self._scheduler, "get_kv_cache_usage", None)
        if usage is not None:
            return usage()
        return getattr(getattr(self._scheduler, "kv_cache_manager", None), "usage", None)

    def finish(self, *args, **kwargs):
        ids = argument(args, kwargs, 0, "request_ids")
        if not self._requests or (ids is not None and not isinstance(ids, (str, list, tuple, set, frozenset))):
            return None
        why = reason(argument(args, kwargs, 1, "finished_status"))
        # Copied now: the scheduler may take the caller's collection apart.
        ids = None if ids is None else [ids] if isinstance(ids, str) else list(ids)
        return lambda result, error: self._finished(ids, why, error)

    def _finished(self, ids, why, error):
        if error is not None:
            return
        if ids is None:
            self._requests.all_finished(why)
        for request_id in ids or ():
            self._requests.finished(request_id, why)
