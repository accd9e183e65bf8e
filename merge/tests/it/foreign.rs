//! Traces of other profilers beside fragments: each where its clock says, and with ids of its own.

use crate::invocation::{Ended, Merged, RunDir, one_block, trace_merge};
use crate::perfetto::{ERRORS, query_bytes};
use crate::trace::{Trace, ns};
use format_oracle::writer::Process;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What the wall clock shows at the monotonic clock's 0, in the fragments that tests write.
pub(crate) const WALL_NS: i64 = 1_795_248_902_000_000_000;

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/foreign")
        .join(name)
}

/// A run of one process with one span from `start_ns` on.
pub(crate) fn run(pid: u32, start_ns: u64) -> RunDir {
    let mut process = Process::new(pid);
    process.main = true;
    let on = process.main_thread();
    let span = on.span(start_ns, 9_000_000_000, "recorded", "");
    RunDir::of_block(&process, &[process.anchor(start_ns), span])
}

/// A trace written beside the run.
pub(crate) fn put(dir: &RunDir, name: &str, text: &[u8]) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// From the start of the recorded span to that of the other one, in ns.
pub(crate) fn apart(trace: &Trace, other: &Value) -> i64 {
    ns(&other["ts"]) - ns(&trace.named("recorded")["ts"])
}

fn refused(dir: &RunDir, arguments: &[&str], paths: &[&Path]) -> String {
    let ended = Ended::of(trace_merge().arg(dir.path()).args(paths).args(arguments));
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    ended.stderr
}

/// Their bases, from the documents, and when the event begins after that.
#[test]
fn real_traces_lie_where_their_bases_say() {
    for (file, event, base_ns, begin_ns) in [
        (
            "kineto.json",
            "aten::randn",
            1_790_857_026_000_000_000,
            4_495_678_308_975_203,
        ),
        (
            "viztracer.json",
            "mark",
            1_795_316_055_282_764_255,
            36_663_805_241_451,
        ),
    ] {
        let dir = run(7, (base_ns + begin_ns - WALL_NS).unsigned_abs());
        let merged = Merged::of(&[], &[dir.path(), &fixture(file)]);
        assert_eq!(apart(&merged.trace, merged.trace.named(event)), 0);
        assert_eq!(merged.report.0["foreign"][0]["method"], "wall_clock");
        // Kineto writes a name with quotes as it is; that event is lost, and no other.
        let bad_name = ("kineto.json".to_owned(), 1432, "bad_json".to_owned());
        let damage = [bad_name].into_iter().filter(|bad| bad.0 == file);
        assert!(damage.eq(merged.report.damage()), "{file}");
    }
}

/// Times as texts, pids that are packed, flow ids beyond 2⁵³.
#[test]
fn a_trace_view_of_an_npu_lies_where_its_epoch_says() {
    let dir = run(7, 5_000_000_000);
    let merged = Merged::of(&[], &[dir.path(), &fixture("trace_view.json")]);
    let kernels = merged.trace.all_named("MatMulV2");
    assert_eq!(apart(&merged.trace, kernels[0]), 160_125);
    assert!(kernels.iter().all(|kernel| kernel["ts"].is_number()));
    let foreign = &merged.report.0["foreign"][0];
    assert_eq!(foreign["clock"], "placed by its times since 1970");
    // Each arrow has an id of its own, the same at both of its ends.
    let mut ends = merged.trace.phase("s");
    ends.extend(merged.trace.phase("f"));
    let key = |end: &&Value| (end["id"].to_string(), end["cat"].to_string());
    let mut keys: Vec<_> = ends.iter().map(key).collect();
    keys.sort();
    assert_eq!(keys.len(), 12);
    assert!(keys.chunks(2).all(|pair| pair[0] == pair[1]));
    assert!(
        keys.chunks(2)
            .is_sorted_by(|one, next| one[0].0 < next[0].0)
    );
    // Its processes stand as it says, behind those that were recorded.
    let names = merged.trace.process_names();
    let mut order = BTreeMap::new();
    for record in merged.trace.all_named("process_sort_index") {
        let index = record["args"]["sort_index"].as_u64().unwrap();
        order.insert(record["pid"].to_string(), index);
    }
    let mut order: Vec<_> = order
        .into_iter()
        .map(|(pid, at)| (at, &names[&pid]))
        .collect();
    order.sort();
    let order: Vec<_> = order.iter().map(|(_, name)| name.as_str()).collect();
    let expected = "serve.py, Python, CANN, Ascend Hardware, Overlap Analysis";
    assert_eq!(order.join(", "), expected);
}

/// The offset that words name.
fn offset_in(words: &str) -> &str {
    let (_, rest) = words.split_once("--offset '").unwrap();
    rest.split_once('\'').unwrap().0
}

#[test]
fn what_has_no_clock_is_refused_until_somebody_says_where_it_belongs() {
    let dir = run(7, 5_000_000_000);
    let path = fixture("tracing-chrome.json");
    let words = refused(&dir, &[], &[&path]);
    let found = "found no baseTimeNanoseconds, and times from 0.000012345s to 0.00200075s";
    assert!(words.contains(found), "{words}");
    // The offset it names lets both begin together.
    let later = format!("{}=+5.25s", path.display());
    for (offset, ns) in [(offset_in(&words), 0), (&later, 250_012_345)] {
        let merged = Merged::of(&["--offset", offset], &[dir.path(), &path]);
        let serve = merged.trace.all_named("serve");
        assert_eq!(apart(&merged.trace, serve[0]), ns);
        assert_eq!(merged.report.0["foreign"][0]["method"], "offset");
    }
    // An offset moves what has a clock, too.
    let view = fixture("trace_view.json");
    let offset = format!("{}=-100us", view.display());
    let merged = Merged::of(&["--offset", &offset], &[dir.path(), &view]);
    let kernels = merged.trace.all_named("MatMulV2");
    assert_eq!(apart(&merged.trace, kernels[0]), 60_125);
    for (offset, why) in [
        ("other.json=1s", "other.json"),
        ("trace_view.json", "expected FILE="),
    ] {
        assert!(refused(&dir, &["--offset", offset], &[&view]).contains(why));
    }
    // Alone it needs none.
    let alone = Merged::of(&[], &[&path]);
    assert_eq!(alone.trace.all_named("request")[0]["ph"], "b");
}

/// Fragments of other recorders do not say what time it was.
#[test]
fn a_wall_clock_is_no_clock_where_nobody_else_has_one() {
    let dir = RunDir::new();
    let line = br#"{"ph":"i","pid":7,"ts":5000000,"name":"recorded"}"#;
    dir.put("7", line);
    let path = fixture("trace_view.json");
    let words = refused(&dir, &[], &[&path]);
    let why = "no other input says what time it was";
    assert!(words.contains(why), "{words}");
    let merged = Merged::of(&["--offset", offset_in(&words)], &[dir.path(), &path]);
    let first = merged.trace.all_named("aten::mm")[0];
    assert_eq!(apart(&merged.trace, first), 0);
}

#[test]
fn ids_of_two_traces_stay_apart_and_those_of_one_together() {
    let dir = run(7, 5_000_000_000);
    let event = |ph: &str, pid: u32, name: &str, id: &str| {
        let ts = 1_795_248_907_000_001_u64 + u64::from("feF".contains(ph));
        format!(
            r#"{{"ph":"{ph}","pid":{pid},"tid":{pid},"ts":{ts},"name":"{name}","cat":"c",{id}}}"#
        )
    };
    let [local, global] = ["local", "global"].map(|of| format!(r#""id2":{{"{of}":"0x5"}}"#));
    let events = [
        event("s", 7, "a", r#""id":5"#),
        event("f", 9, "a", r#""id":5"#),
        event("b", 7, "b", &local),
        event("b", 9, "b", &local),
        event("b", 7, "g", &global),
        event("e", 9, "g", &global),
        event("S", 7, "o", r#""id":5,"scope":"s""#),
        event("F", 7, "o", r#""id":5,"scope":"s""#),
    ];
    let text = format!("[{}]", events.join(","));
    let paths = ["a.json", "b.json"].map(|name| put(&dir, name, text.as_bytes()));
    let merged = Merged::of(&[], &[dir.path(), &paths[0], &paths[1]]);
    let all = |name: &str, key: &str| {
        let all = merged.trace.all_named(name).into_iter();
        all.map(|event| event[key].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    for (name, is_paired) in [("a", true), ("b", false), ("g", true), ("o", true)] {
        let ids = all(name, "id");
        assert_eq!(ids.len(), 4);
        assert_eq!([ids[0] == ids[1], ids[2] == ids[3]], [is_paired; 2]);
        assert!(ids[0] != ids[2] && ids[1] != ids[3]);
    }
    assert_ne!(all("a", "id")[0], all("o", "id")[0]);
    assert_eq!(all("o", "ph"), ["b", "e", "b", "e"]);
    // A pid of a trace is nobody else's, though it is the same number.
    let pids: BTreeSet<_> = merged.trace.shown().map(|e| e["pid"].to_string()).collect();
    assert_eq!(pids.len(), 5);
}

#[test]
fn sampled_slices_step_aside_for_the_kernels_of_the_same_device() {
    // The trace's rows are of NPU 0 of process 4711, from 5.00016 s on.
    let dir = run(7, 5_000_000_000);
    for (pid, npu) in [(4711, 0), (4712, 0), (4713, 1)] {
        let process = Process::new(pid);
        let row = process.thread(1 << 28);
        let args = format!(
            r#""process":"Ascend Hardware NPU {npu}","label":"NPU {npu}","sort_index":{npu},"thread":"Stream 2""#
        );
        let span = row.span(5_000_200_000, 50_000, "sampled", r#""stands_for":64"#);
        one_block(&process, &[row.metadata("sa_track", &args), span]).write_here(&dir.fragments());
    }
    let merged = Merged::of(&[], &[dir.path(), &fixture("trace_view.json")]);
    let processes = merged.report.0["processes"].as_array().unwrap().iter();
    let aside = "Ascend Hardware NPU 0 (sampled) · serve.py";
    for (process, other) in processes.clone().zip(processes.skip(2)) {
        let is_before = process["name"].as_str().unwrap().starts_with("CANN");
        assert_eq!(is_before, other["name"] == aside, "{process} {other}");
        assert_eq!(is_before, other["aside_for"] == "trace_view.json");
        assert!(!is_before || other["pid"] == 4711);
    }
    // Nothing is left out for it.
    assert_eq!(merged.trace.all_named("sampled").len(), 3);
}

/// Many a profiler calls its own trace `trace.json`.
#[test]
fn nothing_is_written_beside_a_trace_unless_asked_for() {
    let dir = RunDir::new();
    let text = std::fs::read(fixture("kineto.json")).unwrap();
    let path = put(&dir, "kineto.json", &text);
    let words = Ended::of(trace_merge().arg(&path));
    assert_eq!(words.code, 2);
    assert!(words.stderr.contains("name one with -o"), "{words:?}");
    assert!(!dir.path().join("trace.json").exists());
}

/// The clocks of host and GPU differ: the kernel of launch 2 and the first kernel of launch 3 begin before their launches.
#[test]
fn issue_48_perfetto_keeps_the_arrow_of_a_kernel_that_begins_before_its_launch() {
    let dir = RunDir::new();
    let mut events = Vec::new();
    for (id, launch, kernels) in [
        (1, 100, &[150][..]),
        (2, 300, &[290]),
        (3, 500, &[480, 530]),
    ] {
        let mut put = |ph: &str, pid: u32, ts: u32, name: &str| {
            events.push(json!({"ph": ph, "id": id, "pid": pid, "tid": pid, "ts": ts, "cat": "ac2g", "name": "ac2g", "bp": "e"}));
            events
                .push(json!({"ph": "X", "pid": pid, "tid": pid, "ts": ts, "dur": 5, "name": name}));
        };
        put("s", 7, launch, &format!("launch {id}"));
        for kernel in kernels {
            put("f", 9, *kernel, &format!("kernel {id} at {kernel}"));
        }
    }
    let path = put(&dir, "k.json", &serde_json::to_vec(&json!(events)).unwrap());
    let merged = Merged::of(&[], &[&path]);
    let report = &merged.report.0["foreign"][0];
    assert_eq!(report["early_arrows"], json!(2), "{report}");
    let arrows = "select a.name, b.name from flow join slice a on slice_out = a.id join slice b on slice_in = b.id order by a.ts, b.ts";
    let test = "issue_48_perfetto_keeps_the_arrow";
    let Some(rows) = query_bytes(test, &merged.bytes, &[ERRORS, arrows]) else {
        return;
    };
    assert!(rows[0].is_empty(), "{:?}", rows[0]);
    let expected = json!([
        ["launch 1", "kernel 1 at 150"],
        ["kernel 2 at 290", "launch 2"],
        ["kernel 3 at 480", "launch 3"],
        ["launch 3", "kernel 3 at 530"],
    ]);
    assert_eq!(json!(rows[1]), expected);
}
