"""The fakes have the shape of SGLang's classes: of the newest version in signatures.json, which was read from wheels."""

import json
import os

import pytest
import signatures
from sa_profile._hooks.sources import Sources

WHEELS = [path for path in os.environ.get("SGLANG_WHEELS", "").split(os.pathsep) if path]
# Names that only the fakes have. They replace SGLang's queues, memory pools and socket loops.
OWN = {
    *("Scheduler.turn", "Scheduler._turn_normal", "Scheduler._turn_overlap", "Scheduler._next_batch"),
    *("Scheduler._admit", "Scheduler._extend", "Scheduler._prefill_stats"),
    *("DataParallelController.turn", "DetokenizerManager.turn", "TokenizerManager.receive"),
    *("TokenToKVPoolAllocator.available_size", "TokenToKVPoolAllocator.alloc", "ScheduleBatch._has_room", "BasePrefixCache._remove"),
    *("SchedulerBatchResultProcessor._release", "SchedulerOutputStreamer._is_due", "SchedulerOutputStreamer._row"),
    *("SchedulerDPAttnAdapter.has_busy_peers", "ModelRunner._token", "Tensor.tolist"),
}
SETTINGS = {"ServerArgs", "SpawnRanks"}  # have defaults of their own


def test_the_fakes_have_the_shape_of_sglang():
    """A constructor may take other parameters. A class may lack fields and methods."""
    stored, fake = json.loads(signatures.FILE.read_text()), Sources(signatures.FAKE)
    own, others = set(), []
    for owner in signatures.fake_owners():
        if owner[1] in SETTINGS:
            continue
        for name, found in signatures.members(fake, *owner).items():
            expected = signatures.current(stored, owner, name, stored["versions"][-1])
            if name != "__init__" and expected is None:
                own.add(f"{owner[1]}.{name}")
            elif name != "__init__" and expected != found:
                others.append((*owner, name, found, expected))
    assert others == [] and own == OWN


def test_signatures_are_stored_by_version():
    stored = json.loads(signatures.FILE.read_text())

    def scheduler(name, version):
        return signatures.current(stored, ("sglang.srt.managers.scheduler", "Scheduler"), name, version)

    assert scheduler("get_next_batch_to_run", "0.5.12.post1") == "(self)" != scheduler("get_next_batch_to_run", "0.5.23")
    assert scheduler("turn", "0.5.23") is None


@pytest.mark.skipif(not WHEELS, reason="SKIPPED the signatures in SGLang's wheels: SGLANG_WHEELS names none")
def test_the_stored_signatures_are_those_of_the_wheels():
    assert signatures.main(WHEELS) == 0
