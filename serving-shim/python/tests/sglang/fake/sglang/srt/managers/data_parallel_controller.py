import setproctitle
from sglang.fake_sockets import get_socket
from sglang.srt.managers.io_struct import (
    BatchTokenizedGenerateReqInput,
    TokenizedGenerateReqInput,
    sock_recv,
    sock_send,
    unwrap_from_pickle,
    wrap_as_pickle,
)
from sglang.srt.managers.scheduler import run_scheduler_process
from sglang.srt.observability.req_time_stats import DPControllerReqTimeStats
from sglang.srt.plugins import load_plugins
from sglang.srt.runtime_context import publish


class DataParallelController:
    """Sends each request to one scheduler, in turn. `turn` handles the messages that have arrived."""

    def __init__(self, server_args, port_args, run_scheduler_process_func, prelaunched_schedulers=None):
        self.server_args, self.port_args = server_args, port_args
        self.recv_from_tokenizer = get_socket(port_args.scheduler_input_ipc_name)
        self.workers = [get_socket(f"{port_args.scheduler_input_ipc_name}-{rank}") for rank in range(server_args.dp_size)]
        self.round_robin_counter = 0
        self.dispatching = self.round_robin_scheduler
        self.init_dispatcher()

    def init_dispatcher(self):
        self._request_dispatcher = {
            TokenizedGenerateReqInput: self.dispatching_with_trace,
            BatchTokenizedGenerateReqInput: self.dispatch_batch_generate,
        }

    def event_loop(self):
        while True:
            self.turn()

    def turn(self):
        while len(self.recv_from_tokenizer):
            req = sock_recv(self.recv_from_tokenizer)
            self._request_dispatcher.get(type(req), self.send_to_all_workers)(req)

    def send_to_all_workers(self, obj):
        for worker in self.workers:
            sock_send(worker, obj)

    def dispatching_with_trace(self, req, refresh_load_budget=True):
        time_stats = DPControllerReqTimeStats.new_from_obj(unwrap_from_pickle(req.time_stats))
        time_stats.set_dp_dispatch_time()
        req.time_stats = wrap_as_pickle(time_stats)
        self.dispatching(req)
        req.time_stats = time_stats
        req.time_stats.set_dp_dispatch_finish_time()

    def dispatch_batch_generate(self, batch_req):
        for req in batch_req:
            self.dispatching_with_trace(req, refresh_load_budget=False)

    def maybe_external_dp_rank_routing(self, req):
        if req.routed_dp_rank is None:
            return False
        sock_send(self.workers[req.routed_dp_rank], req)
        return True

    def round_robin_scheduler(self, req):
        if not self.maybe_external_dp_rank_routing(req):
            sock_send(self.workers[self.round_robin_counter], req)
            self.round_robin_counter = (self.round_robin_counter + 1) % len(self.workers)


def run_data_parallel_controller_process(server_args, port_args, pipe_writer, run_scheduler_process_func=run_scheduler_process, prelaunched_schedulers=None):
    setproctitle.setproctitle("sglang::data_parallel_controller")
    load_plugins()
    publish(server_args, role="dp_controller")
    return DataParallelController(server_args, port_args, run_scheduler_process_func)
