"""Does the work of each of SGLang's processes, with the tests' fake SGLang. Each role runs requests and returns the thread CPU ns. Import this after the plugin is registered."""

import asyncio
import pickle
import time
from array import array

from sglang.srt.managers.detokenizer_manager import DetokenizerManager
from sglang.srt.managers.io_struct import BatchStrOutput, BatchTokenIDOutput, GenerateReqInput, TokenizedGenerateReqInput
from sglang.srt.managers.scheduler import Scheduler as SGLangScheduler
from sglang.srt.managers.scheduler_components.output_sender import SenderWrapper
from sglang.srt.managers.tokenizer_manager import TokenizerManager as SGLangTokenizerManager
from sglang.srt.observability.req_time_stats import APIServerReqTimeStats, SchedulerReqTimeStats
from sglang.srt.runtime_context import publish
from sglang.srt.sampling.sampling_params import SamplingParams
from sglang.srt.server_args import PortArgs, ServerArgs

PROMPT = list(range(20))
now_ns = time.thread_time_ns

SETTINGS = ServerArgs(max_running_requests=1024, max_total_tokens=1_000_000, chunked_prefill_size=100_000)
PORTS = PortArgs("to tokenizer", "to scheduler", "to detokenizer", 0, "", "", None, None)
publish(SETTINGS, role="scheduler")


def messages(ids, tokens):
    """Returns what the scheduler and the detokenizer send in each step."""
    return [(pickle.dumps(token_ids(ids, step, step == tokens)), pickle.dumps(texts(ids, step, step == tokens))) for step in range(1, tokens + 1)]


def columns(ids, step, is_last):
    return dict(
        rids=ids,
        http_worker_ipcs=[None] * len(ids),
        finished_reasons=[{"type": "length", "length": step} if is_last else None for _ in ids],
        output_ids=[array("q", [7]) for _ in ids],
        prompt_tokens=[len(PROMPT)] * len(ids),
        reasoning_tokens=[0] * len(ids),
        completion_tokens=[step] * len(ids),
        cached_tokens=[0] * len(ids),
        cached_tokens_details=[None] * len(ids),
        retraction_counts=[0] * len(ids),
        time_stats=[SchedulerReqTimeStats() for _ in ids],
    )


def token_ids(ids, step, is_last):
    yes, no = [True] * len(ids), [False] * len(ids)
    decoded = dict(decoded_texts=[""] * len(ids), decode_ids=[array("q", [7]) for _ in ids], read_offsets=[0] * len(ids))
    flags = dict(skip_special_tokens=yes, spaces_between_special_tokens=yes, no_stop_trim=no)
    return BatchTokenIDOutput(**columns(ids, step, is_last), **decoded, **flags)


def texts(ids, step, is_last):
    return BatchStrOutput(**columns(ids, step, is_last), output_strs=["x"] * len(ids))


class Scheduler:
    """Rank 0 of a scheduler, with its overlap loop. It sends nothing."""

    def __init__(self):
        self._scheduler = SGLangScheduler(SETTINGS, PORTS)
        self._scheduler.output_streamer.send_to_detokenizer = SenderWrapper(None)

    def run(self, ids, _messages, tokens):
        """Receives requests, and runs turns until all of them have their tokens."""
        for one in ids:
            self._scheduler.request_receiver.recv_from_tokenizer.send(
                TokenizedGenerateReqInput(
                    rid=one, input_text="", input_ids=array("q", PROMPT), sampling_params=SamplingParams(max_new_tokens=tokens), stream=True,
                    time_stats=APIServerReqTimeStats(),
                )  # fmt: skip
            )
        began = now_ns()
        self._scheduler.turn()
        while not self._scheduler.is_fully_idle():
            self._scheduler.turn()
        return now_ns() - began


class TokenizerManager:
    """The tokenizer manager in a task, with the requests' own tasks and the turn of the event loop in which they send a step's outputs."""

    def __init__(self):
        self._manager = SGLangTokenizerManager(SETTINGS, PORTS)
        self._loop = self._manager.event_loop = asyncio.new_event_loop()  # it starts no task for messages if it has a loop

    def run(self, ids, messages, tokens):
        """Sends requests, and handles the outputs that the detokenizer sends."""
        return self._loop.run_until_complete(self._run(ids, messages, tokens))

    async def _run(self, ids, messages, tokens):
        began = now_ns()
        tasks = [self._loop.create_task(self._consume(one, tokens)) for one in ids]
        while len(self._manager.send_to_scheduler) < len(ids):
            await asyncio.sleep(0)
        took = now_ns() - began
        for _, message in messages:
            output = pickle.loads(message)
            began = now_ns()
            await self._manager._handle_batch_output(output)
            await asyncio.sleep(0)
            took += now_ns() - began
        await asyncio.gather(*tasks)
        self._manager.send_to_scheduler.messages.clear()
        return took

    async def _consume(self, rid, tokens):
        request = GenerateReqInput(rid=rid, input_ids=PROMPT, sampling_params=dict(max_new_tokens=tokens), stream=True)
        async for _ in self._manager.generate_request(request):
            pass


class Detokenizer:
    """The detokenizer. It sends nothing."""

    def __init__(self):
        self._manager = DetokenizerManager(SETTINGS, PORTS)

    def run(self, _ids, messages, _tokens):
        """Decodes the outputs that the scheduler sends."""
        took = 0
        for message, _ in messages:
            output = pickle.loads(message)
            began = now_ns()
            self._manager.handle_batch_token_id_out(output)
            took += now_ns() - began
        return took


ROLES = {"scheduler": Scheduler, "tokenizer_manager": TokenizerManager, "detokenizer": Detokenizer}
