"""Starts the processes and, in the place of a server, sends requests one after another."""

import asyncio
import multiprocessing

from sglang.srt.managers.detokenizer_manager import run_detokenizer_process
from sglang.srt.managers.scheduler import run_scheduler_process
from sglang.srt.managers.tokenizer_manager import TokenizerManager


def prepare_server_args(argv):
    return int(argv[argv.index("--requests") + 1])


def run_server(requests):
    multiprocessing.set_start_method("spawn", force=True)
    (from_main, to_scheduler), (from_scheduler, to_detokenizer), (from_detokenizer, to_main) = (
        multiprocessing.Pipe(duplex=False) for _ in range(3)
    )
    processes = [
        multiprocessing.Process(target=run_scheduler_process, args=(from_main, to_detokenizer)),
        multiprocessing.Process(target=run_detokenizer_process, args=(from_scheduler, to_main)),
    ]
    for process in processes:
        process.start()
    asyncio.run(serve(TokenizerManager(to_scheduler, from_detokenizer), requests))
    to_scheduler.send(None)
    for process in processes:
        process.join()
        assert process.exitcode == 0


async def serve(manager, requests):
    for number in range(requests):
        async for text in manager.generate_request(dict(rid=f"request-{number}", tokens=3)):
            print(text)
