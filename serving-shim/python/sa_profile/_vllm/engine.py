"""EngineCore: arriving requests and steps. The first call of an engine hooks the objects of that engine, whatever their classes."""

import weakref

from .. import async_span, flow, span
from .._sa_profile import is_enabled, open_span
from .._engine import REQUEST, processes
from .._engine.batches import Batches
from .._hooks.chain import argument, chain, chain_if_there, inside, is_chained
from .._hooks.instances import ObjectData
from .._hooks.warnings import quietly, warn_once
from .executor import ExecutorObserver
from .names import engine_name, is_engine
from .requests import Requests
from .scheduler import observe
from .settings import record_engine

MAX_WAITING = 4096  # requests followed at once; vLLM may also drop one before the engine gets it

_observers = ObjectData()  # by engine
# Spans of requests in the engine's input queue, by request id. They are not attributes of vLLM's request: a further attribute, or an access to its `__dict__`,
# makes Python use a slower lookup for all of its attributes, in each of the scheduler's loops.
_waiting = {}


def hook(module):
    """Hooks the classes of `vllm.v1.engine.core`."""
    core = getattr(module, "EngineCore", None)
    if core is None:
        warn_once("this vLLM has no vllm.v1.engine.core.EngineCore: engine spans are missing")
        return
    chain(core, "__init__", construct)
    chain_if_there(core, "_initialize_kv_caches", size_cache)
    chain_if_there(core, "preprocess_add_request", preprocess)
    chain(core, "add_request", add_request)
    chain(core, "step", step)
    chain(core, "step_with_batch_queue", step)
    process = getattr(module, "EngineCoreProc", None)
    for name in ("_process_input_queue", "post_step"):
        chain_if_there(process, name, span(f"EngineCore.{name.lstrip('_')}", cat="engine"), inside)
    if not hasattr(core, "preprocess_add_request"):
        chain_if_there(process, "process_input_sockets", receive)
    if is_engine():  # vLLM loads its plugins after the engine's constructor has started
        begin()


class EngineObserver:
    """The observers of one engine."""

    def __init__(self, engine):
        scheduler = engine.scheduler
        self.requests = Requests(weakref.ref(scheduler))
        self.batches = Batches()
        observe(scheduler, self.requests, self.batches)
        ExecutorObserver(engine.model_executor, self.batches)


def observer(engine):
    """Returns the engine's observer, which is created on the engine's first call. Returns False if that failed."""
    found = _observers.get(id(engine))
    if found is None:
        _observers.set(engine, False)  # try only once if it fails
        found = _observers[id(engine)] = EngineObserver(engine)
        # For a class that overrides the step, or that replaced the method after it was wrapped.
        step_fn = getattr(engine, "step_fn", None)
        if step_fn is not None and not is_chained(step_fn):
            named = weakref.ref(engine)
            chain(engine, "step_fn", lambda *args, **kwargs: step(named(), *args, **kwargs))
    return found


def construct(_engine, *_args, **_kwargs):
    """Observes the constructor of an engine."""
    begin()


def begin():
    """Starts the recorder and names the process."""
    processes.begin(engine_name())


def size_cache(_engine, *args, **kwargs):
    """Records the settings after vLLM has sized the KV cache, when they are final. The constructor, which calls this, may have started before it could be wrapped."""
    config = argument(args, kwargs, 0, "vllm_config")
    return lambda result, error: record_engine(config, result) if error is None else None


def preprocess(_engine, *args, **kwargs):
    """Observes the thread that reads and prepares requests. The request then waits in a queue, usually until the running step ends."""
    if not is_enabled():
        return None
    request_id = argument(args, kwargs, 0, "request").request_id
    opened = open_span("EngineCore.preprocess_add_request", cat="engine", request_id=request_id)
    flow(REQUEST, request_id, "step")

    def leave(_result, error):
        opened.set_end()
        waits = error is not None or _wait(request_id)
        opened.close(error, {} if waits else dict(wait_not_recorded=True))

    return leave


def receive(engine, *_args, **_kwargs):
    """Hooks the input queue in versions before 0.10, where the reading thread puts requests into it unprepared."""
    chain_if_there(getattr(engine, "input_queue", None), "put_nowait", put)


def _is_received(engine):
    """Returns true if the engine's requests wait in a queue before any other hook gets them."""
    return is_chained(getattr(getattr(engine, "input_queue", None), "put_nowait", None))


def put(received, *_args, **_kwargs):
    """Observes a message being put into the queue: a pair of its kind and a request or something else."""
    request_id = getattr(received[1], "request_id", None)
    if request_id is not None and is_enabled():
        _wait(request_id)


def _wait(request_id):
    """Opens the span of a request that waits in the queue. Returns False if too many requests wait."""
    if len(_waiting) >= MAX_WAITING:
        return False
    _waiting[request_id] = async_span("EngineCore.input_queue", cat="engine", lane="input queue", request_id=request_id)
    return True


def add_request(engine, *args, **kwargs):
    """Observes the engine receiving a request."""
    wait = _waiting.pop(argument(args, kwargs, 0, "request").request_id, None) if _waiting else None
    if wait is not None:
        wait.end()
    if not is_enabled():
        return None
    engine_observer = observer(engine)
    if not engine_observer:
        return None
    new = argument(args, kwargs, 0, "request")
    lost = dict(wait_not_recorded=True) if wait is None and _is_received(engine) else {}
    opened = open_span("EngineCore.add_request", cat="engine", request_id=new.request_id, **lost)
    quietly(engine_observer.requests.receive, new)
    flow(REQUEST, new.request_id, "step")

    def leave(_result, error):
        opened.set_end()
        if error is None:
            quietly(engine_observer.requests.enqueue, new.request_id)
        else:
            quietly(engine_observer.requests.finished, new.request_id, "error")
        opened.close(error)

    return leave


def step(engine, *_args, **_kwargs):
    """Observes one iteration of the engine's loop, with or without a batch queue."""
    if not is_enabled():
        return None
    engine_observer = _observers.get(id(engine))
    if engine_observer is None:
        engine_observer = observer(engine)
    if not engine_observer:
        return None
    opened = open_span("EngineCore.step", cat="engine")

    def leave(_result, error):
        if error is not None:
            opened.set_end()
            quietly(engine_observer.batches.fail, error)
        opened.close(error)

    return leave
