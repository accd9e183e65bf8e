//! Traces of other profilers beside fragments: each where its clock says, and with ids of its own.

use crate::invocation::{Ended, Merged, RunDir, trace_merge};
use crate::perfetto::{ERRORS, SLICES, number, query};
use crate::trace::{Trace, ns};
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
use serde_json::{Value, json};
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
    let (dir, process) = (
        RunDir::new(),
        Process {
            main: true,
            ..Process::new(pid)
        },
    );
    let mut fragment = process.fragment();
    let span = process
        .main_thread()
        .span(start_ns, 9_000_000_000, "recorded", "");
    fragment.block(0, 0, &stream(&[process.anchor(start_ns), span]));
    fragment.write_here(&dir.fragments());
    dir
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

#[test]
fn a_real_kineto_trace_lies_where_its_base_says() {
    // Its base is 1790857026 s, and its first operation begins 4495678.308975203 s later.
    let begin_ns = 1_790_857_026_000_000_000 + 4_495_678_308_975_203_i64;
    let dir = run(7, (begin_ns - WALL_NS).unsigned_abs());
    let merged = Merged::of(&[], &[dir.path(), &fixture("kineto.json")]);
    assert_eq!(apart(&merged.trace, merged.trace.named("aten::randn")), 0);
    let foreign = &merged.report.0["foreign"][0];
    assert_eq!(
        (&foreign["tool"], &foreign["method"]),
        (&json!("kineto"), &json!("wall_clock"))
    );
    // It writes a name with quotes as it is; that event is lost, and no other.
    assert_eq!(
        merged.report.damage(),
        [("kineto.json".to_owned(), 1432, "bad_json".to_owned())]
    );
    let mut names: Vec<_> = merged.trace.process_names().into_values().collect();
    names.sort();
    assert_eq!(
        names,
        ["Spans", "Traces", "python", "serve.py"].map(String::from)
    );
}

#[test]
fn a_real_viztracer_trace_lies_where_its_base_says() {
    let begin_ns = 1_795_316_055_282_764_255 + 36_663_805_241_451_i64;
    let dir = run(7, (begin_ns - WALL_NS).unsigned_abs());
    let merged = Merged::of(&[], &[dir.path(), &fixture("viztracer.json")]);
    assert_eq!(apart(&merged.trace, merged.trace.named("mark")), 0);
    assert!(merged.report.number("damage_total") == 0);
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
    let mut ends: Vec<(String, Value)> = Vec::new();
    for end in merged
        .trace
        .phase("s")
        .iter()
        .chain(&merged.trace.phase("f"))
    {
        ends.push((end["id"].to_string(), end["cat"].clone()));
    }
    ends.sort_by_key(|(id, cat)| (id.clone(), cat.to_string()));
    assert_eq!(ends.len(), 12);
    assert!(ends.chunks(2).all(|pair| pair[0] == pair[1]));
    assert!(
        ends.chunks(2)
            .is_sorted_by(|one, next| one[0].0 < next[0].0)
    );
    // Its processes stand as it says, behind those that were recorded.
    let order = merged.trace.phase("M").into_iter().rev();
    let orders = order.filter(|record| record["name"] == "process_sort_index");
    let mut last: Vec<(u64, String)> = Vec::new();
    let names = merged.trace.process_names();
    for record in orders {
        let name = names[&record["pid"].to_string()].clone();
        if !last.iter().any(|(_, other)| *other == name) {
            last.push((record["args"]["sort_index"].as_u64().unwrap(), name));
        }
    }
    last.sort();
    let names: Vec<_> = last.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "serve.py",
            "Python",
            "CANN",
            "Ascend Hardware",
            "Overlap Analysis"
        ]
    );
}

#[test]
fn what_has_no_clock_is_refused_until_somebody_says_where_it_belongs() {
    let dir = run(7, 5_000_000_000);
    let path = fixture("tracing-chrome.json");
    let words = refused(&dir, &[], &[&path]);
    assert!(
        words.contains("found no baseTimeNanoseconds, and times from 0.000012345s to 0.00200075s"),
        "{words}"
    );
    // The offset it names lets both begin together.
    let (_, rest) = words.split_once("--offset '").unwrap();
    let (offset, _) = rest.split_once('\'').unwrap();
    let merged = Merged::of(&["--offset", offset], &[dir.path(), &path]);
    let serve = merged.trace.all_named("serve");
    assert_eq!(apart(&merged.trace, serve[0]), 0);
    assert_eq!(merged.report.0["foreign"][0]["method"], "offset");
    let later = format!("{}=+5.25s", path.display());
    let merged = Merged::of(&["--offset", &later], &[dir.path(), &path]);
    let serve = merged.trace.all_named("serve");
    assert_eq!(apart(&merged.trace, serve[0]), 250_012_345);
    // Alone it needs none.
    let alone = Merged::of(&[], &[&path]);
    assert_eq!(alone.trace.all_named("request")[0]["ph"], "b");
}

#[test]
fn an_offset_moves_what_has_a_clock() {
    let dir = run(7, 5_000_000_000);
    let path = fixture("trace_view.json");
    let offset = format!("{}=-100us", path.display());
    let merged = Merged::of(&["--offset", &offset], &[dir.path(), &path]);
    let kernels = merged.trace.all_named("MatMulV2");
    assert_eq!(apart(&merged.trace, kernels[0]), 60_125);
    assert!(refused(&dir, &["--offset", "other.json=1s"], &[&path]).contains("other.json"));
    assert!(refused(&dir, &["--offset", "trace_view.json"], &[&path]).contains("expected FILE="));
}

/// Fragments of other recorders do not say what time it was.
#[test]
fn a_wall_clock_is_no_clock_where_nobody_else_has_one() {
    let dir = RunDir::new();
    dir.put(
        "7",
        b"{\"ph\":\"i\",\"pid\":7,\"ts\":5000000,\"name\":\"recorded\"}\n",
    );
    let path = fixture("trace_view.json");
    let words = refused(&dir, &[], &[&path]);
    assert!(
        words.contains("no other input says what time it was"),
        "{words}"
    );
    let (_, rest) = words.split_once("--offset '").unwrap();
    let (offset, _) = rest.split_once('\'').unwrap();
    let merged = Merged::of(&["--offset", offset], &[dir.path(), &path]);
    assert_eq!(
        apart(&merged.trace, merged.trace.all_named("aten::mm")[0]),
        0
    );
}

#[test]
fn ids_of_two_traces_stay_apart_and_those_of_one_together() {
    let dir = run(7, 5_000_000_000);
    let one = r#"[{"ph":"s","pid":7,"tid":7,"ts":1795248907000001,"id":5,"name":"a","cat":"c"},{"ph":"f","pid":9,"tid":9,"ts":1795248907000002,"id":5,"name":"a","cat":"c"},
        {"ph":"b","pid":7,"ts":1795248907000001,"id2":{"local":"0x5"},"name":"b","cat":"c"},{"ph":"b","pid":9,"ts":1795248907000001,"id2":{"local":"0x5"},"name":"b","cat":"c"},
        {"ph":"b","pid":7,"ts":1795248907000001,"id2":{"global":"0x5"},"name":"g","cat":"c"},{"ph":"e","pid":9,"ts":1795248907000001,"id2":{"global":"0x5"},"name":"g","cat":"c"},
        {"ph":"S","pid":7,"ts":1795248907000001,"id":5,"scope":"s","name":"o","cat":"c"},{"ph":"F","pid":7,"ts":1795248907000009,"id":5,"scope":"s","name":"o","cat":"c"}]"#;
    let paths = ["a.json", "b.json"].map(|name| put(&dir, name, one.as_bytes()));
    let merged = Merged::of(&[], &[dir.path(), &paths[0], &paths[1]]);
    let ids = |name: &str| {
        let all = merged.trace.all_named(name).into_iter();
        all.map(|event| event["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let (flows, locals, globals, old) = (ids("a"), ids("b"), ids("g"), ids("o"));
    for (ids, pairs) in [
        (&flows, true),
        (&locals, false),
        (&globals, true),
        (&old, true),
    ] {
        assert_eq!(ids.len(), 4);
        assert_eq!((ids[0] == ids[1], ids[2] == ids[3]), (pairs, pairs));
        assert!(ids[0] != ids[2] && ids[1] != ids[3]);
    }
    assert_ne!(flows[0], old[0]);
    let phases: Vec<_> = merged
        .trace
        .all_named("o")
        .iter()
        .map(|e| e["ph"].clone())
        .collect();
    assert_eq!(phases, ["b", "e", "b", "e"]);
    // A pid of a trace is nobody else's, though it is the same number.
    let pids: std::collections::BTreeSet<_> =
        merged.trace.shown().map(|e| e["pid"].to_string()).collect();
    assert_eq!(pids.len(), 5);
}

#[test]
fn sampled_slices_step_aside_for_the_kernels_of_the_same_device() {
    let track = |pid: u32, tid: u32, npu: u32, at_ns: u64| {
        let process = Process::new(pid);
        let row = process.thread(tid);
        let args = format!(
            r#""process":"Ascend Hardware NPU {npu}","label":"NPU {npu}","sort_index":{npu},"thread":"Stream 2""#
        );
        let span = row.span(at_ns, 50_000, "sampled", r#""stands_for":64"#);
        (process, [row.metadata("sa_track", &args), span])
    };
    // The trace's rows are of NPU 0 of process 4711, from 5.00016 s on.
    let dir = run(7, 5_000_000_000);
    for (pid, npu, at_ns) in [
        (4711, 0, 5_000_200_000),
        (4712, 0, 5_000_200_000),
        (4713, 1, 5_000_200_000),
    ] {
        let (process, lines) = track(pid, 1 << 28, npu, at_ns);
        let mut fragment = process.fragment();
        fragment.block(1, 0, &stream(&lines));
        fragment.write_here(&dir.fragments());
    }
    let merged = Merged::of(&[], &[dir.path(), &fixture("trace_view.json")]);
    let processes = merged.report.0["processes"].as_array().unwrap();
    let asides: Vec<_> = processes
        .iter()
        .filter(|process| process["aside_for"].is_string())
        .map(|process| (&process["name"], &process["pid"], &process["aside_for"]))
        .collect();
    assert_eq!(
        asides,
        [(
            &json!("Ascend Hardware NPU 0 (sampled) · serve.py"),
            &json!(4711),
            &json!("trace_view.json")
        )]
    );
    let names: Vec<_> = processes
        .iter()
        .map(|process| process["name"].as_str().unwrap())
        .collect();
    let at = |name: &str| {
        names
            .iter()
            .position(|other| other.starts_with(name))
            .unwrap()
    };
    assert_eq!(at("Ascend Hardware NPU 0 (sampled)"), at("CANN") + 2);
    // Nothing is left out for it.
    assert_eq!(merged.trace.all_named("sampled").len(), 3);
}

/// Many a profiler calls its own trace `trace.json`.
#[test]
fn nothing_is_written_beside_a_trace_unless_asked_for() {
    let dir = RunDir::new();
    let path = put(
        &dir,
        "kineto.json",
        &std::fs::read(fixture("kineto.json")).unwrap(),
    );
    let ended = Ended::of(trace_merge().arg(&path));
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.contains("name one with -o"),
        "{}",
        ended.stderr
    );
    assert!(!dir.path().join("trace.json").exists());
}

#[test]
fn perfetto_shows_all_of_them() {
    let dir = run(7, 5_000_000_000);
    let paths = [
        "kineto.json",
        "viztracer.json",
        "trace_view.json",
        "simpler.log",
        "tracing-chrome.json",
    ]
    .map(fixture);
    let mut all: Vec<&Path> = vec![dir.path()];
    all.extend(paths.iter().map(PathBuf::as_path));
    let offset = format!("{}=5s", paths[4].display());
    let merged = Merged::of(&["--offset", &offset], &all);
    let output = put(&dir, "all.json", &merged.bytes);
    let flows = "select count(*) from flow";
    let named = "select count(*) from thread where name = 'PyTorch Profiler'";
    let Some(rows) = query(
        "perfetto_shows_all_of_them",
        &output,
        &[ERRORS, SLICES, flows, named],
    ) else {
        return;
    };
    assert!(rows[0].is_empty(), "{:?}", rows[0]);
    let report = &merged.report;
    let slices = report.phase("X") + report.phase("i") + report.phase("B") + report.phase("b");
    assert_eq!((number(&rows[1]), number(&rows[2])), (slices, 6));
    assert_eq!(number(&rows[3]), 1);
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
        let mut put = |ph: &str, pid: u32, ts: u32| {
            events.push(json!({"ph": ph, "id": id, "pid": pid, "tid": pid, "ts": ts, "cat": "ac2g", "name": "ac2g", "bp": "e"}));
        };
        put("s", 7, launch);
        kernels.iter().for_each(|kernel| put("f", 9, *kernel));
        events.push(json!({"ph": "X", "pid": 7, "tid": 7, "ts": launch, "dur": 5, "cat": "cuda_runtime", "name": format!("launch {id}")}));
        events.extend(kernels.iter().map(|kernel| {
            json!({"ph": "X", "pid": 9, "tid": 9, "ts": kernel, "dur": 8, "cat": "kernel", "name": format!("kernel {id} at {kernel}")})
        }));
    }
    let path = put(&dir, "k.json", &serde_json::to_vec(&json!(events)).unwrap());
    let merged = Merged::of(&[], &[&path]);
    let report = &merged.report.0["foreign"][0];
    assert_eq!(report["early_arrows"], json!(2), "{report}");
    let output = put(&dir, "merged.json", &merged.bytes);
    let arrows = "select a.name, b.name from flow join slice a on slice_out = a.id join slice b on slice_in = b.id order by a.ts, b.ts";
    let Some(rows) = query(
        "issue_48_perfetto_keeps_the_arrow",
        &output,
        &[ERRORS, arrows],
    ) else {
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
