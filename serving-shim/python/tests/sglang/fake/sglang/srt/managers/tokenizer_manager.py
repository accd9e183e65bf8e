import asyncio
import dataclasses
import time
from array import array

from sglang.fake_sockets import get_socket
from sglang.srt.disaggregation.utils import DisaggregationMode
from sglang.srt.managers.io_struct import (
    AbortReq,
    BatchStrOutput,
    BatchTokenizedGenerateReqInput,
    BatchTokenIDOutput,
    GenerateReqInput,
    ProfileReqOutput,
    TokenizedGenerateReqInput,
    sock_recv,
    sock_send,
    unwrap_from_pickle,
)
from sglang.srt.managers.tokenizer_control_mixin import TokenizerControlMixin
from sglang.srt.observability.req_time_stats import APIServerReqTimeStats, set_time_batch
from sglang.srt.runtime_context import get_serving
from sglang.srt.sampling.sampling_params import SamplingParams


@dataclasses.dataclass
class ReqState:
    out_list: list
    finished: bool
    event: asyncio.Event
    obj: GenerateReqInput
    time_stats: APIServerReqTimeStats
    last_completion_tokens: int = 1
    ttft_observed: bool = False
    dispatched: bool = False
    abort_sent: bool = False
    text: str = ""
    output_ids: list = dataclasses.field(default_factory=list)


class TokenizerManager(TokenizerControlMixin):
    """Tokenises requests, sends them to the scheduler and waits for their outputs. `receive` handles the messages that have arrived."""

    def __init__(self, server_args, port_args):
        self.server_args = server_args
        self.served_model_name, self.model_path = get_serving().served_model_name, server_args.model_path
        self.enable_metrics = server_args.enable_metrics
        self.disaggregation_mode = DisaggregationMode.NULL
        self.send_to_scheduler = get_socket(port_args.scheduler_input_ipc_name)
        self.recv_from_detokenizer = get_socket(port_args.tokenizer_ipc_name)
        self.rid_to_state, self.event_loop, self.asyncio_tasks = {}, None, set()
        self.init_communicators()
        self._result_dispatcher = {AbortReq: self._handle_abort_req, ProfileReqOutput: self.profile_communicator.handle_recv}

    def _dispatch_to_scheduler(self, obj):
        sock_send(self.send_to_scheduler, obj)

    # Requests

    async def generate_request(self, obj, request=None):
        self.auto_create_handle_loop()
        obj.normalize_batch_and_arguments()
        self._init_req_state(obj, request)
        rids = [obj.rid] if obj.is_single else obj.rid
        request_states = {rid: self.rid_to_state[rid] for rid in rids}
        try:
            if obj.is_single:
                tokenized_obj = await self._tokenize_one_request(obj)
                await self._send_one_request(tokenized_obj)
                async for response in self._wait_one_response(obj, request):
                    yield response
            else:
                async for response in self._handle_batch_request(obj, request, request_states):
                    yield response
        except BaseException:
            self._release_req_states_on_failure(request_states)
            raise

    def _init_req_state(self, obj, request=None):
        items = [obj] if obj.is_single else [obj[i] for i in range(len(obj.rid))]
        for item in items:
            if item.rid in self.rid_to_state:
                raise ValueError(f"Duplicate request ID detected: {item.rid}")
            time_stats = APIServerReqTimeStats(disagg_mode=self.disaggregation_mode)
            self.rid_to_state[item.rid] = ReqState([], False, asyncio.Event(), item, time_stats)
            time_stats.set_created_time(obj.received_time)

    async def _tokenize_texts(self, texts, is_cross_encoder=False):
        await asyncio.sleep(0)
        return [ord(letter) for letter in texts], None

    async def _tokenize_one_request(self, obj):
        input_ids = obj.input_ids
        if input_ids is None:
            if not obj.text:
                raise ValueError("The prompt is empty.")
            input_ids, _ = await self._tokenize_texts(obj.text)
        return self._create_tokenized_object(obj, obj.text, input_ids)

    def _create_tokenized_object(self, obj, input_text, input_ids, input_embeds=None, mm_inputs=None, token_type_ids=None):
        tokenized_obj = TokenizedGenerateReqInput(
            rid=obj.rid, input_text=input_text, input_ids=array("q", input_ids), sampling_params=SamplingParams(**obj.sampling_params),
            stream=obj.stream, lora_id=obj.lora_id, bootstrap_room=obj.bootstrap_room, routed_dp_rank=obj.routed_dp_rank, priority=obj.priority,
        )  # fmt: skip
        tokenized_obj.time_stats = self.rid_to_state[obj.rid].time_stats
        self.rid_to_state[obj.rid].time_stats.set_tokenize_finish_time()
        return tokenized_obj

    async def _send_one_request(self, tokenized_obj):
        tokenized_obj.time_stats.set_api_server_dispatch_time()
        time_stats = tokenized_obj.time_stats
        tokenized_obj.wrap_pickle_fields()
        self._dispatch_to_scheduler(tokenized_obj)
        self._mark_state_dispatched(tokenized_obj.rid)
        tokenized_obj.time_stats = time_stats
        tokenized_obj.time_stats.set_api_server_dispatch_finish_time()

    async def _send_batch_request(self, tokenized_objs):
        set_time_batch(tokenized_objs, "set_api_server_dispatch_time")
        self._dispatch_to_scheduler(BatchTokenizedGenerateReqInput(batch=tokenized_objs))
        for tokenized_obj in tokenized_objs:
            self._mark_state_dispatched(tokenized_obj.rid)
        set_time_batch(tokenized_objs, "set_api_server_dispatch_finish_time")

    async def _handle_batch_request(self, obj, request, request_states):
        parts = [obj[i] for i in range(len(obj.rid))]
        await self._send_batch_request([await self._tokenize_one_request(part) for part in parts])
        waiting = [self._wait_one_response(part, request) for part in parts]
        for one in waiting:
            async for response in one:
                yield response

    def _mark_state_dispatched(self, rid):
        self.rid_to_state[rid].dispatched = True

    def _wait_one_response(self, obj, request=None):
        return self._stream_one_response(obj=obj, state=self.rid_to_state[obj.rid], request=request)

    async def _stream_one_response(self, obj, state, request=None):
        while True:
            await state.event.wait()
            out_list, state.out_list = state.out_list, []
            finished = state.finished
            state.event.clear()
            out = out_list[-1]
            if not state.time_stats.response_sent_to_client_time:
                state.time_stats.set_response_sent_to_client_time()
            yield out
            if finished:
                break

    def _release_req_states_on_failure(self, request_states):
        for rid, state in request_states.items():
            if self.rid_to_state.get(rid) is not state:
                continue
            if state.dispatched:
                self.abort_request(rid)
            else:
                del self.rid_to_state[rid]

    def abort_request(self, rid="", abort_all=False):
        state = None if abort_all else self.rid_to_state.get(rid)
        if not abort_all:
            if state is None or state.abort_sent:
                return
            state.abort_sent = True
        self._dispatch_to_scheduler(AbortReq(rid=rid, abort_all=abort_all))

    # Outputs

    def auto_create_handle_loop(self):
        if self.event_loop is None:
            self.event_loop = asyncio.get_running_loop()
            self.asyncio_tasks.add(self.event_loop.create_task(self.handle_loop()))

    async def handle_loop(self):
        while True:
            await self.receive()
            await asyncio.sleep(0)

    async def receive(self):
        while len(self.recv_from_detokenizer):
            recv_obj = sock_recv(self.recv_from_detokenizer)
            if isinstance(recv_obj, (BatchStrOutput, BatchTokenIDOutput)):
                await self._handle_batch_output(recv_obj)
            else:
                self._result_dispatcher[type(recv_obj)](recv_obj)

    async def _handle_batch_output(self, recv_obj):
        recv_obj.time_stats = unwrap_from_pickle(recv_obj.time_stats)
        pending_notify = {}
        for i, rid in enumerate(recv_obj.rids):
            state = self.rid_to_state.get(rid, None)
            if state is None:
                continue
            meta_info = {
                "id": rid,
                "finish_reason": recv_obj.finished_reasons[i],
                "prompt_tokens": recv_obj.prompt_tokens[i],
                "completion_tokens": recv_obj.completion_tokens[i],
                "cached_tokens": recv_obj.cached_tokens[i],
            }
            state.finished = recv_obj.finished_reasons[i] is not None
            state.text += recv_obj.output_strs[i]
            state.output_ids.extend(recv_obj.output_ids[i])
            is_stream = state.obj.stream
            out_dict = {"text": state.text, "output_ids": state.output_ids, "meta_info": meta_info} if is_stream or state.finished else None
            first_output_time = None
            if state.time_stats.first_token_time == 0.0:
                first_output_time = time.perf_counter()
                state.time_stats.set_first_token_time(ts=self._get_scheduler_first_token_time(state, recv_obj, i) or first_output_time)
                state.time_stats.set_last_time(ts=first_output_time)
            if state.finished:
                state.time_stats.set_finished_time(ts=first_output_time, span_attrs=None)
                meta_info["e2e_latency"] = state.time_stats.get_e2e_latency()
                del self.rid_to_state[rid]
            if out_dict is not None:
                state.out_list.append(out_dict)
                pending_notify[rid] = state
            if self.enable_metrics and state.obj.log_metrics:
                self.collect_metrics(state, recv_obj, i)
        for state in pending_notify.values():
            state.event.set()

    @staticmethod
    def _get_scheduler_first_token_time(state, recv_obj, i):
        if state.obj.stream or recv_obj.time_stats is None:
            return None
        ts = recv_obj.time_stats[i].prefill_finished_time
        return ts if state.time_stats.created_time < ts <= time.perf_counter() else None

    def collect_metrics(self, state, recv_obj, i):
        state.last_completion_tokens = recv_obj.completion_tokens[i]

    def _handle_abort_req(self, recv_obj):
        state = self.rid_to_state.get(recv_obj.rid)
        if state is None:
            return
        state.finished = True
        state.time_stats.set_finished_time()
        finish_reason = recv_obj.finished_reason or {"type": "abort", "message": recv_obj.abort_message or "Abort in waiting queue"}
        meta_info = {"id": recv_obj.rid, "finish_reason": finish_reason, "completion_tokens": len(state.output_ids)}
        del self.rid_to_state[recv_obj.rid]
        state.out_list.append({"text": state.text, "output_ids": state.output_ids, "meta_info": meta_info})
        state.event.set()
