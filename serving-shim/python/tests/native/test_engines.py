"""Runs the file in docs/engines.md with stand-ins for the SGLang classes that it wraps."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[4] / "docs" / "engines.md"
SGLANG = """
import asyncio, sys, types

class TokenizerManager:
    async def generate_request(self, obj, request=None):
        yield 1
        yield 2

class Scheduler:
    def process_input_requests(self, received): ...
    def get_next_batch_to_run(self, running_batch, last_batch):
        return types.SimpleNamespace(reqs=[types.SimpleNamespace(rid="request-0")])
    def run_batch(self, batch, pp_proxy_tensors=None):
        return batch.reqs
    def process_batch_result(self, batch, result):
        assert result is batch.reqs

class DetokenizerManager:
    def handle_batch_token_id_out(self, received): ...

def run_server(arguments):
    scheduler = Scheduler()
    scheduler.process_input_requests([])
    batch = scheduler.get_next_batch_to_run(running_batch=None, last_batch=None)
    scheduler.process_batch_result(batch, scheduler.run_batch(batch))
    DetokenizerManager().handle_batch_token_id_out([])
    async def serve():
        return [item async for item in TokenizerManager().generate_request({})]
    print(arguments, asyncio.run(serve()))

prepare_server_args = " ".join
getproctitle = lambda: "sglang::scheduler"
managers = [f"managers.{name}" for name in ("detokenizer_manager", "scheduler", "tokenizer_manager")]
for name in ("setproctitle", "sglang", "sglang.launch_server", "sglang.srt", "sglang.srt.managers", *(f"sglang.srt.{name}" for name in managers)):
    module = sys.modules[name] = types.ModuleType(name)
    vars(module).update(vars(sys.modules["__main__"]), __name__=name)
"""


@pytest.mark.skipif(not PAGE.exists(), reason="SKIPPED the example of docs/engines.md: the page is not beside the package")
def test_the_file_of_the_page_records_what_each_process_does(program):
    (example,) = re.findall(r"```python\n(# serve\.py.*?)```", PAGE.read_text(), re.DOTALL)
    assert program.run(SGLANG + example, ["--requests", "4"]) == "--requests 4 [1, 2]\n"
    trace = program.merge()
    assert trace.counts() == dict.fromkeys(
        ["TokenizerManager.generate_request", "DetokenizerManager.handle_batch_token_id_out"]
        + [f"Scheduler.{name}" for name in ("process_input_requests", "get_next_batch_to_run", "run_batch", "process_batch_result")], 1
    )
    assert trace.args("Scheduler.run_batch") == {"request_ids": ["request-0"]}
    assert {event["args"]["name"] for event in trace.events if event["name"] == "process_name"} == {"sglang::scheduler"}
