//! Traces of one program in several files: its ranks get different names, and pieces of a process are one again.

use crate::invocation::{Merged, trace_merge};
use crate::perfetto;
use crate::usage::merges;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const BASE_NS: i64 = 1_751_410_836_000_000_000;

/// Writes files into a folder of their own and returns their paths.
pub(crate) fn write<P: AsRef<Path>>(files: &[(P, Value)]) -> (TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let write = |(name, document): &(P, Value)| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, document.to_string()).unwrap();
        path
    };
    let paths = files.iter().map(write).collect();
    (folder, paths)
}

pub(crate) fn merged(options: &[&str], paths: &[PathBuf]) -> Merged {
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    Merged::of(options, &paths)
}

/// A host process and a GPU as Kineto writes them.
fn kineto(rank: Option<u64>) -> Value {
    let mut events = Vec::new();
    for (pid, labels) in [(41_000, "CPU"), (0, "GPU 0")] {
        events.extend([
            json!({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0, "args": {"name": "python3"}}),
            json!({"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "ts": 0, "args": {"labels": labels}}),
            json!({"ph": "X", "name": "work", "pid": pid, "tid": 7, "ts": 10, "dur": 5}),
        ]);
    }
    let mut document = json!({"baseTimeNanoseconds": BASE_NS, "traceEvents": events});
    if let Some(rank) = rank {
        document["distributedInfo"] = json!({"backend": "nccl", "rank": rank, "world_size": 16});
    }
    document
}

/// Asserts that a merge shows these processes, and with an option only some of them, which have a span each.
fn assert_names(paths: &[PathBuf], names: &[&str], (option, some): (&str, &[&str])) {
    let shown = |merged: &Merged| BTreeSet::from_iter(merged.trace.process_names().into_values());
    let set = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    let all: BTreeSet<String> = set(names);
    assert_eq!(shown(&merged(&[], paths)), all);
    let filtered = merged(&[option], paths);
    assert_eq!(shown(&filtered), set(some), "{option}");
    assert_eq!(filtered.trace.phase("X").len(), some.len(), "{option}");
}

#[test]
fn processes_of_several_files_have_names_of_their_own() {
    let ranks = [1, 12].map(|rank| kineto(Some(rank)));
    let (_folder, paths) = write(&[("0.json", ranks[0].clone()), ("1.json", ranks[1].clone())]);
    let expected = [
        "python3 · rank 1",
        "GPU 0 · python3 · rank 1",
        "python3 · rank 12",
        "GPU 0 · python3 · rank 12",
    ];
    assert_names(&paths, &expected, ("--process=rank 1", &expected[..2]));
    // Without ranks, the path distinguishes the processes.
    let files = ["run/node-a/trace.json", "run/node-b/trace.json"].map(|name| (name, kineto(None)));
    let (_folder, paths) = write(&files);
    let expected = [
        "python3 · node-a",
        "GPU 0 · python3 · node-a",
        "python3 · node-b",
        "GPU 0 · python3 · node-b",
    ];
    // A process that is shown alone needs no distinction.
    assert_names(&paths, &expected, ("--process=GPU 0 *node-b", &["python3"]));
}

/// SGLang merges its ranks so.
#[test]
fn texts_in_place_of_pids_and_tids_stay_in_the_names() {
    let pids = ["[TP00-DP00] 41000", "[TP01-DP00] 41000"];
    let events: Vec<Value> = pids
        .into_iter()
        .flat_map(|pid| {
            let record = |name: &str, value: &str| json!({"ph": "M", "name": name, "pid": pid, "tid": "stream 7", "args": {"name": value}});
            [
                record("process_name", "python3"),
                record("thread_name", "compute"),
                json!({"ph": "X", "name": "work", "pid": pid, "tid": "stream 7", "ts": 10, "dur": 5}),
            ]
        })
        .collect();
    let (_folder, paths) = write(&[("merged.json", json!({"traceEvents": events}))]);
    let expected = pids.map(|pid| format!("python3 · {pid}"));
    let expected = expected.each_ref().map(String::as_str);
    assert_names(&paths, &expected, ("--process=[TP01-DP00]", &expected[1..]));
    let threads = merged(&[], &paths).trace.thread_names();
    assert_eq!(threads.len(), 2);
    assert!(threads.values().all(|name| name == "compute · stream 7"));
}

/// Node begins a new file from time to time: a span and an arrow go from the first to the second.
fn node(shift_us: i64) -> [(&'static str, Value); 2] {
    let event = |ph: &str, name: &str, ts: i64| json!({"ph": ph, "name": name, "cat": "node", "pid": 7, "tid": 8, "ts": ts});
    let mut first = vec![event("B", "outer", 100)];
    let mut second = Vec::new();
    for nth in 0..10 {
        let span = |ts: i64| json!({"ph": "X", "name": "tick", "cat": "node", "pid": 7, "tid": 8, "ts": ts, "dur": 50});
        first.push(span(200 + nth * 100));
        second.push(span(shift_us + 1_300 + nth * 100));
    }
    let flow = |ph: &str, ts: i64| json!({"ph": ph, "name": "next", "cat": "node", "id": 5, "bp": "e", "pid": 7, "tid": 8, "ts": ts});
    first.push(flow("s", 1_110));
    second.insert(0, flow("f", shift_us + 1_310));
    second.push(event("E", "outer", shift_us + 2_400));
    [
        ("node_trace.1.log", json!({"traceEvents": first})),
        ("node_trace.2.log", json!({"traceEvents": second})),
    ]
}

#[test]
fn pieces_of_a_process_are_one_again() {
    let (_folder, paths) = write(&node(0));
    let found = merged(&[], &paths);
    let processes = found.report.0["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 1, "{processes:?}");
    assert_eq!(processes[0]["threads"], 1);
    let foreign = found.report.0["foreign"].as_array().unwrap();
    assert_eq!(foreign[1]["continues"], foreign[0]["path"]);
    // As Perfetto reads it, and whatever the order of the inputs.
    let backwards: Vec<PathBuf> = paths.into_iter().rev().collect();
    for merged in [&found, &merged(&[], &backwards)] {
        let queries = [
            "select dur as number from slice where name = 'outer'",
            "select count(*) as number from flow",
        ];
        let test = "pieces_of_a_process_are_one_again";
        if let Some(rows) = perfetto::query_bytes(test, &merged.bytes, &queries) {
            let numbers: Vec<u64> = rows.iter().map(|rows| perfetto::number(rows)).collect();
            assert_eq!(numbers, [2_300_000, 1]);
        }
        let rows: BTreeSet<String> = ["outer", "tick", "next"]
            .iter()
            .flat_map(|name| merged.trace.all_named(name))
            .map(|event| format!("{} {}", event["pid"], event["tid"]))
            .collect();
        assert_eq!(rows.len(), 1, "{rows:?}");
    }
}

#[test]
fn pieces_whose_times_do_not_fit_stay_apart() {
    let (folder, paths) = write(&node(-1_000));
    let mut command = trace_merge();
    for path in paths.iter().rev() {
        let offset = format!("{}=0s", path.display());
        command.args(["--offset", &offset]);
    }
    command.arg("-o").arg(folder.path().join("out.json"));
    let ended = merges(command.args(&paths));
    let continued = paths[0].display();
    let doubt = format!("may continue {continued}, but their times overlap: they stay apart");
    assert!(ended.stderr.contains(&doubt), "{}", ended.stderr);
}
