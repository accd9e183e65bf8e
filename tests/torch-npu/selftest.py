"""Shows that what is right passes and what is wrong is found: `python3 tests/torch-npu/selftest.py`. `run` begins with it."""

import copy
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import abi
import compare
import declarations
import merged
import truth

BASE_NS = 1_000_000


def log(stream: int, names: list[str]) -> list[dict]:
    """What the simulator writes of kernels, each between two events."""
    entries = []
    for at, name in enumerate(names):
        start = BASE_NS + 100_000 + 50_000 * at
        common = {"device": 0, "stream": stream, "tid": 7, "launch_ns": BASE_NS + 10_000 * at + 1_000}
        times = [("event_record", "", 0, 0), ("kernel", name, 1_000, 9_000), ("event_record", "", 10_000, 10_000)]
        entries += [{**common, "kind": kind, "name": what, "seq": 3 * at + part + 1, "start_ns": start + begin, "end_ns": start + end} for part, (kind, what, begin, end) in enumerate(times)]
    return entries


def trace(names: list[str]) -> dict:
    """What the merge makes of them."""
    events = [
        {"ph": "M", "pid": 1, "tid": 1, "name": "process_labels", "args": {"labels": "SIMULATED NPU 0, pid 42"}},
        {"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "Stream 5"}},
        {"ph": "C", "pid": 42, "tid": 9, "ts": 999, "name": "launches", "args": {"timed": len(names)}},
    ]
    for at, name in enumerate(names):
        host, device = 10.0 * at, 100.0 + 50 * at
        events += [
            {"ph": "X", "pid": 42, "tid": 7, "ts": host, "dur": 5.0, "name": name, "args": {"launch": at}},
            {"ph": "X", "pid": 1, "tid": 2, "ts": device, "dur": 10.0, "name": name, "args": {"launch": at, "uncertainty_us": 1.0}},
            {"ph": "s", "cat": "HostToDevice", "name": "HostToDevice", "id": at, "pid": 42, "tid": 7, "ts": host + 1},
            {"ph": "f", "cat": "HostToDevice", "name": "HostToDevice", "id": at, "pid": 1, "tid": 2, "ts": device},
        ]
    return {"traceEvents": events, "otherData": {"base_ns": BASE_NS, "lost_events": 0, "damage": {}}}


def compared(entries: list[dict], content: dict) -> compare.Result:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "truth.42").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        (folder / "trace.json").write_text(json.dumps(content))
        return compare.compare(merged.Trace(folder / "trace.json"), truth.read(folder))


class Compare(unittest.TestCase):
    names = ["Matmul", "Add", "Relu"]

    def broken(self, change) -> list[str]:
        content = copy.deepcopy(trace(self.names))
        slices = [event for event in content["traceEvents"] if "uncertainty_us" in event.get("args", {})]
        change(content["traceEvents"], slices)
        return compared(log(5, self.names), content).wrong

    def test_what_is_right_passes(self):
        result = compared(log(5, self.names), trace(self.names))
        self.assertEqual((result.wrong, result.slices, result.tasks), ([], 3, 3))
        self.assertEqual(max(result.start_errors_ns + result.end_errors_ns), 0)

    def test_a_slice_outside_its_uncertainty_is_found(self):
        for key, by, problem in [("ts", 1.5, "starts 1.500 µs off"), ("dur", 1.5, "ends 1.500 µs off")]:
            with self.subTest(key):
                found = self.broken(lambda events, slices: slices[1].update({key: slices[1][key] + by}))
                self.assertTrue(any(problem in line for line in found), found)
                within = self.broken(lambda events, slices: slices[1].update({"dur": slices[1]["dur"] + 0.9}))
                self.assertEqual(within, [])

    def test_a_slice_that_does_not_hold_its_task_is_found(self):
        entries = log(5, self.names)
        entries[4]["end_ns"] += 3_000  # 2 µs after the event behind it
        self.assertEqual([line for line in compared(entries, trace(self.names)).wrong if "does not hold its task" not in line], [])
        self.assertEqual(len(compared(entries, trace(self.names)).wrong), 1)

    def test_a_slice_that_is_not_of_its_task_is_found(self):
        self.assertIn("is really Add", self.broken(lambda events, slices: slices[1].update(name="Mul"))[0])
        self.assertIn("is really", self.broken(lambda events, slices: events[1]["args"].update(name="Stream 6"))[0])
        self.assertIn("its graph has", self.broken(lambda events, slices: slices[1]["args"].update(kernels=["Add"]))[0])

    def test_a_slice_without_its_launch_or_its_arrow_is_found(self):
        self.assertIn("no span on the host", self.broken(lambda events, slices: slices[0]["args"].update(launch=9))[0])
        self.assertIn("no arrow", self.broken(lambda events, slices: events.__delitem__(slice(5, 7)))[0])

    def test_slices_of_another_order_and_twice_the_same_are_found(self):
        def swap(events, slices):
            slices[0]["args"]["launch"], slices[1]["args"]["launch"] = 1, 0

        def twice(events, slices):
            slices[1]["args"]["launch"] = 0

        self.assertTrue(any("another order" in line for line in self.broken(swap)))
        self.assertTrue(any("two slices of one task" in line for line in self.broken(twice)))

    def test_kernels_of_a_graph_come_by_name(self):
        self.assertEqual(compare._repeated("Add ×3"), ["Add"] * 3)
        self.assertEqual(compare._grouped(("Add", "Relu", "Add")), ["Add", "Add", "Relu"])


class Records(unittest.TestCase):
    """A replay of two kernels, both with a record of MSPTI."""

    entries = [
        {"device": 0, "stream": 5, "tid": 7, "launch_ns": BASE_NS + 1_000, "kind": kind, "name": name, "seq": seq, "start_ns": BASE_NS + begin, "end_ns": BASE_NS + end, **graph}
        for kind, name, seq, begin, end, graph in [
            ("event_record", "", 1, 100_000, 100_000, {}),
            ("kernel", "Add", 2, 101_000, 104_000, {"graph": 1, "graph_stream": 6, "correlation": 3}),
            ("kernel", "Relu", 2, 105_000, 108_000, {"graph": 1, "graph_stream": 6, "correlation": 4}),
            ("replay", "", 2, 101_000, 108_000, {"graph": 1}),
            ("event_record", "", 3, 110_000, 110_000, {}),
        ]
    ]

    def problems(self, change=lambda events, records: None, device: str = "sim,mspti", entries=entries) -> list[str]:
        content = trace(["aclmdlRIExecuteAsync"])
        events = content["traceEvents"]
        events[4]["args"]["kernels"] = ["Add", "Relu"]
        events += [{"ph": "M", "pid": 1, "tid": tid, "name": "thread_name", "args": {"name": name}} for tid, name in [(3, "Stream 6 (MSPTI)"), (4, "Stream 6 (MSPTI) (overlapping 1)")]]
        records = [
            {"ph": "X", "pid": 1, "tid": 3 + at, "ts": 130.0 + at, "dur": 3.0, "name": name, "args": {"correlation": 3 + at, "stream": 6, "device_method": "mspti"}}
            for at, name in enumerate(["Add", "Relu"])
        ]
        events += records
        change(events, records)
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            (folder / "truth.42").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
            (folder / "trace.json").write_text(json.dumps(content))
            shown = merged.Trace(folder / "trace.json")
            self.assertEqual(compare.compare(shown, truth.read(folder)).wrong, [])
            return compare.problems_of_records(shown, truth.records(folder), device)

    def test_what_is_right_passes(self):
        self.assertEqual(self.problems(), [])

    def test_a_record_elsewhere_or_missing_or_twice_is_found(self):
        for change, problem in [
            (lambda events, records: records[0].update(name="Mul"), "Mul 3 of (42, 0, 6): 1 slices by records of MSPTI, not 0"),
            (lambda events, records: records[0].update(tid=2), "Add 3 of (42, 0, 5): 1 slices"),
            (lambda events, records: events.pop(), "Relu 4 of (42, 0, 6): 0 slices by records of MSPTI, not 1"),
            (lambda events, records: records[0]["args"].update(correlation=8), "Add 8 of (42, 0, 6): 1 slices"),
            (lambda events, records: events.append(records[1]), "Relu 4 of (42, 0, 6): 2 slices by records of MSPTI, not 1"),
        ]:
            found = self.problems(change)
            self.assertTrue(any(problem in line for line in found), (problem, found))

    def test_records_that_nobody_asked_for_are_found(self):
        self.assertEqual(self.problems(device="sim"), ["2 slices by records of MSPTI"])

    def test_where_mspti_has_no_records_that_is_said(self):
        without = [{key: value for key, value in entry.items() if key != "correlation"} for entry in self.entries]
        none = lambda events, records: [events.remove(record) for record in records]
        self.assertEqual(self.problems(none, entries=without), ["MSPTI has no records"])


try:
    import stubs
except ModuleNotFoundError:  # pyelftools is in the environments of torch_npu
    stubs = None


@unittest.skipUnless(stubs, "no pyelftools")
class Stubs(unittest.TestCase):
    def test_operators_whose_names_lie_side_by_side_are_all_found(self):
        with tempfile.TemporaryDirectory() as scratch:
            library = Path(scratch) / "lib.so"
            library.write_bytes(b"\0aclnnAddGetWorkspaceSize\0aclnnMulGetWorkspaceSize\0aclnnMul\0xaclnnSubGetWorkspaceSize\0")
            self.assertEqual(stubs.operators([library]), ["aclnnAdd", "aclnnMul"])

    def test_an_operation_that_nothing_makes_is_refused(self):
        self.assertIn("NewParam", str(self.refused({"_ZN3atb15CreateOperationINS_5infer8NewParamE": None})))
        self.assertIn("long other(void)", stubs.source({"other": None}))

    def refused(self, symbols) -> SystemExit:
        with self.assertRaises(SystemExit) as caught:
            stubs.source(symbols)
        return caught.exception


class Abi(unittest.TestCase):
    header = """
        #include <stddef.h>
        #include <stdint.h>
        typedef void *aclrtStream;
        typedef enum { ACL_MEMCPY_HOST_TO_HOST, ACL_MEMCPY_HOST_TO_DEVICE } aclrtMemcpyKind;
        typedef struct aclrtPlaceHolderInfo { uint32_t addrOffset; uint32_t dataOffset; } aclrtPlaceHolderInfo;
        #define ACL_ERROR_FAILURE 500001
        extern "C" int aclrtMemcpyAsync(void *dst, size_t room, const void *src, size_t count, aclrtMemcpyKind kind, aclrtStream stream);
    """

    def errors(self, text: str) -> list[str]:
        with tempfile.TemporaryDirectory() as scratch:
            (Path(scratch) / "theirs.h").write_text(text)
            ours = declarations.read()
            return abi.compile_errors(abi.program(ours, ["theirs.h"], abi.checks(ours, text)), [Path(scratch)])

    def test_what_is_declared_alike_passes(self):
        self.assertEqual(self.errors(self.header), [])

    def test_what_is_declared_otherwise_is_named(self):
        for right, wrong, named in [
            ("500001", "500002", "constant ACL_ERROR_FAILURE"),
            ("ACL_MEMCPY_HOST_TO_HOST,", "ACL_MEMCPY_HOST_TO_HOST = 1,", "constant ACL_MEMCPY_HOST_TO_HOST"),
            ("uint32_t dataOffset", "uint64_t dataOffset", "size of aclrtPlaceHolderInfo"),
            ("uint32_t addrOffset; uint32_t dataOffset", "uint32_t dataOffset; uint32_t addrOffset", "field aclrtPlaceHolderInfo.addr_offset"),
            ("size_t room", "uint32_t room", "function aclrtMemcpyAsync"),
            ("const void *src", "void *src", "function aclrtMemcpyAsync"),
            (", aclrtStream stream", "", "function aclrtMemcpyAsync"),
        ]:
            found = self.errors(self.header.replace(right, wrong))
            self.assertTrue(any(named in line for line in found), (wrong, found))

    def test_each_declaration_is_read(self):
        tables = "".join(path.read_text() for path in (declarations.SOURCE / "table").glob("*.rs"))
        ours = declarations.read()
        self.assertEqual(len(ours.functions), tables.count(" fn ") - tables.count("[] fn "))
        layout = (declarations.SOURCE / "types" / "layout.rs").read_text()
        self.assertEqual(len(ours.structs), layout.count("pub struct "))
        self.assertEqual(ours.constants["ACL_ERROR_FAILURE"], 500001)


if __name__ == "__main__":
    unittest.main(verbosity=0)
