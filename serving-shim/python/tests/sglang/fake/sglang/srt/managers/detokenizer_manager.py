import setproctitle
from sglang.fake_sockets import get_socket
from sglang.srt.managers.io_struct import BatchStrOutput, sock_recv, sock_send
from sglang.srt.plugins import load_plugins
from sglang.srt.runtime_context import publish


class DetokenizerManager:
    """Decodes output tokens. `turn` handles the messages that have arrived."""

    def __init__(self, server_args, port_args):
        self.recv_from_scheduler = get_socket(port_args.detokenizer_ipc_name)
        self.send_to_tokenizer = get_socket(port_args.tokenizer_ipc_name)
        self.decode_status = {}
        self.init_request_dispatcher()

    def init_request_dispatcher(self):
        self._request_dispatcher = self.handle_batch_token_id_out

    def event_loop(self):
        while True:
            self.turn()

    def turn(self):
        while len(self.recv_from_scheduler):
            output = self._request_dispatcher(sock_recv(self.recv_from_scheduler))
            if output is not None:
                sock_send(self.send_to_tokenizer, output)

    def _decode_batch_token_id_output(self, recv_obj):
        return ["x" * len(ids) for ids in recv_obj.decode_ids]

    def handle_batch_token_id_out(self, recv_obj):
        return BatchStrOutput(
            rids=recv_obj.rids,
            http_worker_ipcs=recv_obj.http_worker_ipcs,
            finished_reasons=recv_obj.finished_reasons,
            output_strs=self._decode_batch_token_id_output(recv_obj) if recv_obj.rids else [],
            output_ids=recv_obj.output_ids,
            prompt_tokens=recv_obj.prompt_tokens,
            reasoning_tokens=recv_obj.reasoning_tokens,
            completion_tokens=recv_obj.completion_tokens,
            cached_tokens=recv_obj.cached_tokens,
            cached_tokens_details=recv_obj.cached_tokens_details,
            retraction_counts=recv_obj.retraction_counts,
            dp_ranks=recv_obj.dp_ranks,
            time_stats=recv_obj.time_stats,
            spec_verify_ct=recv_obj.spec_verify_ct,
            spec_num_correct_drafts=recv_obj.spec_num_correct_drafts,
        )


def run_detokenizer_process(server_args, port_args, detokenizer_manager_class=DetokenizerManager):
    setproctitle.setproctitle("sglang::detokenizer")
    load_plugins()
    publish(server_args, role="detokenizer")
    return detokenizer_manager_class(server_args, port_args)
