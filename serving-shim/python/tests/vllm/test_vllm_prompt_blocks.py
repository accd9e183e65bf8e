"""The hashes of prompts' blocks: recorded only at level verbose, with a key, up to a limit, and only if vLLM's data looks as expected."""

import json
import re
import shutil
import sys

import stand_ins as fake
from sa_profile.vllm import register

VERBOSE = dict(SA_PROFILE_LEVEL="verbose")


def hand_in(prompts, change=lambda one: None, scheduler=None):
    """Adds requests with these prompts to an engine, after changing each request."""
    core = fake.engine(scheduler=scheduler)
    for name, tokens in prompts.items():
        one = fake.Request(fake.EngineCoreRequest(name, tokens, 2))
        change(one)
        core.add_request(one)
    fake.turn(core)


def alike():
    same = [70001] * 8
    hand_in({"a-1": same + [70002] * 6, "b-2": same + [70003] * 4, "c-3": [70004] * 4, "short": [70001] * 3})


def test_prompts_that_begin_alike_have_the_same_first_hashes(record):
    trace = record(alike, **VERBOSE)
    recorded = {one["request_id"]: one for one in trace.args("request.prompt_blocks")}
    assert list(recorded) == ["a-1", "b-2", "c-3"]
    sizes = {name: (one["prompt_tokens"], one["block_tokens"], one["blocks"]) for name, one in recorded.items()}
    assert sizes == {"a-1": (14, 4, 3), "b-2": (12, 4, 3), "c-3": (4, 4, 1)}
    a, b, c = (one["hashes"] for one in recorded.values())
    assert (len(a), len(b), len(c)) == (48, 48, 16)
    assert a[:32] == b[:32] and a[32:] != b[32:] and c not in a + b
    # They have the time of the queued event.
    queued = {one["args"]["request_id"]: one["ts"] for one in trace.named("request.queued")}
    assert all(one["ts"] == queued[one["args"]["request_id"]] for one in trace.named("request.prompt_blocks"))
    assert trace.stderr == ""
    written = "".join(path.read_text() for path in trace.fragments)
    assert not re.search(r"\b7000\d\b", written)


def hashed_twice():
    """Prints vLLM's hashes to stderr, for the test."""
    def show(one):
        print(*(each.hex() for each in one.block_hashes), file=sys.stderr)

    hand_in({"a-1": [70001] * 8, "b-2": [70001] * 8}, show)


def test_no_hash_is_the_engines_own(record):
    trace = record(hashed_twice, **VERBOSE)
    theirs = trace.stderr.split()
    assert len(theirs) == 4 and all(len(one) == 64 for one in theirs)
    written = "".join(path.read_text() for path in trace.fragments)
    # The trace must not even contain a part of one, in either byte order.
    for one in theirs:
        for begin in range(0, 64, 16):
            part = one[begin : begin + 16]
            assert part not in written and bytes.fromhex(part)[::-1].hex() not in written
    a, b = (one["hashes"] for one in trace.args("request.prompt_blocks"))
    assert a == b and a[:16] != a[16:]
    # Another process has another key.
    shutil.rmtree(trace.folder)
    assert record(hashed_twice, **VERBOSE).args("request.prompt_blocks")[0]["hashes"] != a


def test_the_first_512_blocks_of_a_long_prompt_are_recorded(record):
    recorded = record(hand_in, {"long": list(range(4 * 5000))}, **VERBOSE).one("request.prompt_blocks")
    assert (recorded["blocks"], len(recorded["hashes"]), recorded["prompt_tokens"]) == (5000, 512 * 16, 20000)
    assert len(json.dumps(recorded)) < 8500


def odd():
    """Uses data of other versions, settings and schedulers."""
    register()
    prompt = {"a-1": list(range(9))}
    hand_in(prompt, lambda one: delattr(one, "block_hashes"))
    for hashes in ([], [7, 8], ["text", "text"], None):
        hand_in(prompt, lambda one: setattr(one, "block_hashes", hashes))
    other_size = fake.Scheduler()
    other_size.hash_block_size = 2
    hand_in(prompt, scheduler=other_size)
    older = fake.Scheduler()
    del older.hash_block_size
    hand_in({"of an older scheduler": prompt["a-1"]}, scheduler=older)
    del older.block_size
    hand_in(prompt, scheduler=older)


def test_unexpected_hashes_are_not_recorded(record):
    trace = record(odd, **VERBOSE)
    found = trace.one("request.prompt_blocks")
    assert (found["request_id"], found["blocks"]) == ("of an older scheduler", 2)
    assert len(trace.named("request.queued")) == 8 and trace.stderr == ""
    assert record(alike, SA_PROFILE_LEVEL="e2e,kernel").named("request.prompt_blocks") == []
