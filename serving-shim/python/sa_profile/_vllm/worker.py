"""The workers: when a step arrives, what the model runner does, and how the output is sent back."""

import functools
import sys

from .. import flow, set_process_name, span
from .._sa_profile import attach, is_enabled, open_span
from .._engine import REQUEST
from .._hooks.chain import argument, chain, chain_if_there, inside
from .._hooks.warnings import quietly, warn_once
from . import batch, scopes
from .names import worker_name

ATTRIBUTE = "_sa_profile"
WRAPPER = "WorkerWrapperBase"
OLDER = "vllm.worker.worker_base"


def hook(module):
    """Hooks the class of `vllm.v1.worker.worker_base` through which every executor calls its workers. Before 0.13 it was in `OLDER`."""
    wrapper = getattr(module, WRAPPER, None)
    if wrapper is None:
        if not hasattr(sys.modules.get(OLDER), WRAPPER):
            warn_once(f"this vLLM has no {WRAPPER}: worker spans are missing")
        return
    chain(wrapper, "init_worker", init_worker)
    chain(wrapper, "initialize_from_config", initialize)
    chain_if_there(wrapper, "execute_model", execute)


def hook_process(module):
    """Hooks the class of `vllm.v1.executor.multiproc_executor`."""
    process = getattr(module, "WorkerProc", None)
    if process is not None:
        # With async scheduling, this call first waits for the device.
        chain_if_there(process, "enqueue_output", span("WorkerProc.enqueue_output", cat="worker"), inside)


class RunnerObserver:
    """Observers of a model runner instance."""

    def __init__(self, runner):
        self.inside = False  # true inside the worker's span, which already has the step's args
        self.step = None  # the last step; the next call samples its tokens
        chain(runner, "execute_model", self.execute)
        chain_if_there(runner, "sample_tokens", self.sample)
        scopes.hook_runner(runner)

    def execute(self, *args, **kwargs):
        if not is_enabled():
            self.step = None
            return None
        output = argument(args, kwargs, 0, "scheduler_output")
        if self.inside or not hasattr(output, "num_scheduled_tokens"):
            return open_span("model_runner.execute_model", cat="worker").leave
        opened, self.step = open_step("model_runner.execute_model", output)
        return opened.leave

    def sample(self, *_args, **_kwargs):
        step, self.step = self.step, None
        if not is_enabled():
            return None
        if step is None:
            return open_span("model_runner.sample_tokens", cat="worker").leave
        return step.open_part("model_runner.sample_tokens", "worker").leave


def observer(wrapper):
    """Returns the observer of the wrapper's model runner. It is created once the runner exists. Returns False if that failed."""
    found = wrapper.__dict__.get(ATTRIBUTE)
    worker = wrapper.__dict__.get("worker")
    runner = getattr(worker, "model_runner", None)
    if found is None and runner is not None:
        wrapper.__dict__[ATTRIBUTE] = False
        found = wrapper.__dict__[ATTRIBUTE] = RunnerObserver(runner)
        if not hasattr(type(wrapper), "execute_model"):  # before 0.13 the wrapper passed the call on to the worker
            chain(worker, "execute_model", functools.partial(execute, wrapper))
        name_process(worker)
    return found


def name_process(worker):
    """Names the process after the worker's ranks. Its title contains them only after it has connected to the other workers."""
    name = worker_name(worker)
    if name:
        set_process_name(name)


def open_step(name, output):
    """Opens a span with a step's args, linked to the engine's call and to the requests that start with the step."""
    step = batch.describe(output)  # the ids of the step before are other objects here, from another message
    request_ids = () if step.decodes_only else batch.new_or_resumed_ids(output)
    # Last of the calls that may fail, so that no span stays open.
    opened = step.open_span(name, "worker")
    step.flow("step")
    for request_id in request_ids:
        flow(REQUEST, request_id, "step")
    return opened, step


def init_worker(wrapper, *_args, **_kwargs):
    """Observes the construction of the worker."""
    attach()  # a paused process must already have a recorder, so that it can be switched on
    opened = open_span("WorkerWrapperBase.init_worker", cat="worker")

    def leave(_result, error):
        opened.close(error)
        quietly(name_process, wrapper.__dict__.get("worker"))

    return leave


def initialize(wrapper, *_args, **_kwargs):
    """Observes the point at which the model is loaded. From here on there is a runner, even if Ray calls it directly."""
    observer(wrapper)
    if not is_enabled():
        return None
    return open_span("WorkerWrapperBase.initialize_from_config", cat="worker").leave


def execute(wrapper, *args, **kwargs):
    """Observes a step that reaches the worker."""
    if not is_enabled():
        return None
    runner_observer = observer(wrapper)
    opened, step = open_step("WorkerWrapperBase.execute_model", argument(args, kwargs, 0, "scheduler_output"))
    if runner_observer:
        runner_observer.inside, runner_observer.step = True, step

    def leave(_result, error):
        if runner_observer:
            runner_observer.inside = False
        opened.close(error)

    return leave
