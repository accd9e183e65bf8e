"""The scheduler of each rank: arriving requests, batches and their results, queues and caches. It also computes the batches, in the same process.

The time between two recorded calls in a turn of its loop is `Scheduler.schedule`: the scheduler receives requests and chooses a batch. No function is wrapped for it.
"""

from .. import counter, flow, now_ns
from .._sa_profile import is_enabled, open_span, record_since, record_step_counters
from .._engine import REQUEST
from .._engine.batches import Batches
from .._hooks.chain import argument, chain, chain_if_there, find_class
from .._hooks.instances import ObjectData, chain_class
from .._hooks.warnings import quietly
from . import batch
from .prefix_cache import PrefixCache
from .ranks import rank, receives_requests
from .requests import Requests, is_health_check
from .settings import record_scheduler

STEPS_BETWEEN_CACHE_COUNTS = 8  # while the requests stay the same, the use of the KV cache grows slowly
# Queues of servers that compute either prompts or outputs, if the scheduler has them.
DISAGGREGATED_QUEUES = (
    "disagg_prefill_bootstrap_queue", "disagg_prefill_inflight_queue", "disagg_decode_prealloc_queue", "disagg_decode_transfer_queue",
)  # fmt: skip

_observers = ObjectData()  # by scheduler; False if an observer could not be created


def hook(module):
    """Hooks the class of `sglang.srt.managers.scheduler`."""
    owner = find_class(module, "Scheduler")
    if owner is None:
        return
    chain(owner, "__init__", construct)
    for name in ("handle_generate_request", "handle_embedding_request"):
        chain_if_there(owner, name, receive)
    chain(owner, "_add_request_to_queue", enqueue)
    for name in ("on_idle", "self_check_during_idle", "_record_scheduler_state_for_paused_engine"):  # the second before 0.5.12
        chain_if_there(owner, name, idle)
    chain(owner, "run_batch", run_batch)
    chain(owner, "process_batch_result", process_batch_result)
    chain_if_there(owner, "send_abort_output", send_abort_output)


class SchedulerObserver:
    """What is recorded of one scheduler."""

    def __init__(self, scheduler):
        self.has_ranks = rank(scheduler, "tp_size") > 1 or rank(scheduler, "pp_size") > 1
        self.is_pipelined = rank(scheduler, "pp_size") > 1
        self.overlaps = bool(getattr(scheduler, "enable_overlap", False)) or self.is_pipelined
        # Requests and results are recorded only by the rank that receives requests. The others are workers.
        self.cache = PrefixCache(scheduler) if receives_requests(scheduler) else None
        self.speculates = batch.speculates(scheduler)
        self.requests = None if self.cache is None else Requests(self.cache, self.speculates)
        self.batches = Batches()
        self._last_step = None
        # State for the methods that run at the end of a call. Closures would cost more, because each call would create one.
        self.turn_ns = 0  # end of the last recorded call in the scheduler's loop, or 0 after a turn without a batch
        # Batch, step and span of each batch that is being launched. A batch of a decode server may run an idle one.
        self._launched = []
        self._processed = None  # scheduler, result, requests, step and span of the batch whose result is being processed
        self._grammar_queue = 0
        self._queues = None  # running and waiting requests when they were last recorded
        if self.requests is not None:
            quietly(_observe_ends, scheduler)

    def launch(self, scheduler, launched):
        """Opens the span of a batch that is being launched. Returns the function to call when the call ends."""
        began_ns, self.turn_ns = self.turn_ns, 0
        if began_ns and self.requests is not None:
            record_since("Scheduler.schedule", "scheduler", began_ns)
        step, kind = batch.describe(launched, self._last_step, scheduler.forward_ct + 1, self.has_ranks)
        self._last_step = step
        opened = step.open_span("Scheduler.run_batch", "scheduler")
        if self.has_ranks:
            step.flow("step" if self.requests is None else "start")
        if kind != "decode" and self.requests is not None:
            quietly(self.requests.schedule, launched)
            quietly(self._count_requests, scheduler)
        self._launched.append((launched, step, opened, bool(launched.reqs)))
        return self.leave_launch

    def leave_launch(self, result, error):
        """Ends the span of a launched batch. In the overlap loop, each rank processes its result after the next launch."""
        launched, step, opened, has_requests = self._launched.pop()
        opened.close(error)
        if error is None and has_requests:
            if self.overlaps:
                step.begin()
            self.batches.add(self._owner(launched, result), step)
        self.turn_ns = now_ns()

    def _owner(self, launched, result):
        """Returns the object that a launched batch and its result have in common. In a pipeline, the rank that processes a result creates another object for it."""
        return launched if self.is_pipelined else result

    def come_back(self, processed, result):
        """Ends and returns the step of a batch whose result is being processed, or returns `None` if its launch was not recorded."""
        return self.batches.remove(self._owner(processed, result))

    def process(self, scheduler, processed, result):
        """Opens the span of a batch whose result is being processed. Returns the function to call when the call ends."""
        step = self.come_back(processed, result)
        if not processed.reqs or not (is_enabled() or self.requests):
            return None
        if step is None:
            opened = open_span("Scheduler.process_batch_result", cat="scheduler")
        else:
            opened = step.open_result("Scheduler.process_batch_result", "scheduler")
            if self.has_ranks:
                step.flow("end")
        self._processed = scheduler, result, processed.reqs[:], step, opened
        return self.leave_process

    def leave_process(self, _result, error):
        """Ends the span of a processed batch: counts its outputs, and records queues and caches."""
        (scheduler, result, requests, step, opened), self._processed = self._processed, None
        opened.set_end()
        tokens, speculated = 0, None
        try:
            tokens = self.requests.produced(requests)
            speculated = batch.speculation(result) if self.speculates else None
            if speculated is not None:
                speculated.record()
            if is_enabled():
                self._count(scheduler, step)
        finally:
            graph = bool(getattr(result, "can_run_cuda_graph", False))
            opened.close_outputs(error, len(requests), tokens, graph, None if speculated is None else speculated.args())
            self.turn_ns = now_ns()

    def produce_outside(self, requests):
        """Counts outputs that are not those of a batch's result, and ends requests."""
        if self._processed is None and self.requests:
            self.requests.produced(requests)

    def _count_requests(self, scheduler, step=None):
        """Records the numbers of requests if they have changed, and the tokens of a step whose result was processed. Records the use of the KV cache with them, or after some steps. Returns the number of waiting requests."""
        running, waiting = queues = self.requests.running, len(scheduler.waiting_queue)
        if queues == self._queues and step is not None:
            used = None if step.number % STEPS_BETWEEN_CACHE_COUNTS else _used_percent(scheduler)
            record_step_counters(None, None, used, step)
        else:
            self._queues = queues
            record_step_counters(running, waiting, _used_percent(scheduler), step)
        return waiting

    def _count(self, scheduler, step):
        waiting = self._count_requests(scheduler, step)
        self.cache.record()
        queued = len(_grammar_queue(scheduler))
        if queued != self._grammar_queue:
            self._grammar_queue = queued
            counter("grammar_queue", waiting=queued)
        if len(self.requests.open) > 2 * (self.requests.running + waiting) + 64:
            self.requests.end_unknown(_alive(scheduler))


def _used_percent(scheduler):
    """Returns how much of the KV cache is used by requests, in percent, or `None` for a cache of another kind. Prefixes that may be evicted do not count, as in SGLang's `token_usage`."""
    tokens = scheduler.max_total_num_tokens
    try:
        available, evictable = scheduler.token_to_kv_pool_allocator.available_size(), scheduler.tree_cache.evictable_size()
    except NotImplementedError:  # a cache with several kinds of memory
        return None
    if type(available) is not int or type(evictable) is not int or not tokens:
        return None
    return 100.0 * (tokens - available - evictable) / tokens


def _grammar_queue(scheduler):
    return getattr(getattr(scheduler, "grammar_manager", scheduler), "grammar_queue", ())


def _alive(scheduler):
    """Returns the ids of all requests that wait or run."""
    batches = scheduler.running_batch, getattr(scheduler, "last_batch", None), *getattr(scheduler, "mbs", ()), *getattr(scheduler, "running_mbs", ())
    queues = [getattr(scheduler, name, None) for name in DISAGGREGATED_QUEUES]
    found = [scheduler.waiting_queue, _grammar_queue(scheduler)]
    found.extend(one.reqs for one in batches if one is not None)
    found.extend(getattr(queue, name, ()) for queue in queues for name in ("queue", "retracted_queue"))
    found.extend(queue for queue in queues if isinstance(queue, list))
    return {getattr(one, "req", one).rid for requests in found for one in requests}


def _observe_ends(scheduler):
    """Hooks what sends outputs and aborts, because requests also end outside of a batch."""
    streamer = getattr(scheduler, "output_streamer", scheduler)
    sender = getattr(getattr(scheduler, "ipc_channels", scheduler), "send_to_tokenizer", None)
    if callable(getattr(streamer, "stream_output", None)):
        chain_class(streamer, "stream_output", stream_output)
    chain_if_there(sender, "send_output", send_output)  # only this object, because its class also sends the outputs of each step


def observer(scheduler):
    """Returns the scheduler's observer, which is created on the first call. Returns False if that failed."""
    found = _observers.get(id(scheduler))
    if found is None:
        _observers.set(scheduler, False)  # try only once if it fails
        found = _observers[id(scheduler)] = SchedulerObserver(scheduler)
    return found


def construct(scheduler, *args, **kwargs):
    """Observes the construction of a scheduler, which loads its model, and records the settings."""
    opened = open_span("Scheduler.__init__", cat="scheduler") if is_enabled() else None
    settings = argument(args, kwargs, 0, "server_args")

    def leave(_result, error):
        if opened is not None:
            opened.close(error)
        if error is None:
            quietly(record_scheduler, settings, scheduler)

    return leave


def receive(scheduler, *args, **kwargs):
    """Observes the scheduler getting a request."""
    found = observer(scheduler) if is_enabled() else False
    message = argument(args, kwargs, 0, "recv_req")
    if not found or found.requests is None or is_health_check(message.rid):
        return None
    opened = open_span("Scheduler.handle_generate_request", cat="scheduler", request_id=message.rid)
    quietly(found.requests.receive, message)
    flow(REQUEST, message.rid, "step")

    def leave(_result, error):
        opened.close(error)
        if not found.turn_ns:  # the loop was idle until now
            found.turn_ns = now_ns()

    return leave


def enqueue(scheduler, *args, **kwargs):
    """Observes a request entering the queue."""
    found = _observers.get(id(scheduler))
    if not found or not found.requests:
        return None
    theirs = argument(args, kwargs, 0, "req")
    was_running = argument(args, kwargs, 1, "is_retracted", False)
    return lambda _result, error: found.requests.enqueue(theirs, was_running) if error is None else None


def idle(scheduler, *_args, **_kwargs):
    """Observes a turn of the scheduler's loop that finds no batch. The loop turns without a pause while there is none, and such turns record nothing."""
    found = _observers.get(id(scheduler))
    if found:
        found.turn_ns = 0


def run_batch(scheduler, batch, *_args, **_kwargs):
    """Observes a batch being launched."""
    found = _observers.get(id(scheduler))
    if not is_enabled():
        if found:
            found.turn_ns = 0
        return None
    if found is None:
        found = observer(scheduler)
    return found.launch(scheduler, batch) if found else None


def process_batch_result(scheduler, batch, result, *_args, **_kwargs):
    """Observes the result of a batch being passed to its requests."""
    found = _observers.get(id(scheduler))
    if not found:
        return None
    if found.requests is None:
        found.come_back(batch, result)
        return None
    return found.process(scheduler, batch, result)


def stream_output(_streamer, *args, **kwargs):
    """Observes outputs being sent. Those that are not of a batch's result are a first token that another server has computed, or the end of a request whose KV cache was transferred or that failed."""
    requests = argument(args, kwargs, 0, "reqs")
    for found in _observers.values():
        if found:
            found.produce_outside(requests)


def send_output(*args, **kwargs):
    """Observes a message to the tokenizer manager. An abort is the end of a request that has no more outputs: it was aborted while it waited, or was refused."""
    message = argument(args, kwargs, 0, "output")
    if type(message).__name__ == "AbortReq":
        _aborted(message.rid)


def _aborted(request_id):
    for found in _observers.values():
        if found and found.requests:
            found.requests.finished(request_id, "abort")


def send_abort_output(_scheduler, *args, **kwargs):
    """Observes an abort being sent, which goes to another object if SGLang's server is written in Rust."""
    _aborted(getattr(argument(args, kwargs, 1, "req"), "rid", None))
