//! Traces of one program in several files: its ranks get different names, and pieces of a process are one again.

use crate::invocation::{Ended, Merged, trace_merge};
use crate::perfetto;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const BASE_NS: i64 = 1_751_410_836_000_000_000;

fn write(folder: &Path, files: &[(&str, Value)]) -> Vec<PathBuf> {
    let write = |(name, document): &(&str, Value)| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, document.to_string()).unwrap();
        path
    };
    files.iter().map(write).collect()
}

fn merged(options: &[&str], paths: &[PathBuf]) -> Merged {
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

/// The names that Perfetto shows.
fn process_names(merged: &Merged) -> BTreeSet<String> {
    let mut names = std::collections::BTreeMap::new();
    for event in merged.trace.all_named("process_name") {
        let name = event["args"]["name"].as_str().unwrap();
        names.insert(event["pid"].as_u64(), name.to_owned());
    }
    names.into_values().collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn ranks_have_names_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let files = [0, 1, 12].map(|rank| (format!("{rank}.json"), kineto(Some(rank))));
    let files = files
        .each_ref()
        .map(|(name, document)| (name.as_str(), document.clone()));
    let paths = write(folder.path(), &files);
    let expected = [
        "python3 · rank 0",
        "GPU 0 · python3 · rank 0",
        "python3 · rank 1",
        "GPU 0 · python3 · rank 1",
        "python3 · rank 12",
        "GPU 0 · python3 · rank 12",
    ];
    assert_eq!(process_names(&merged(&[], &paths)), set(&expected));
    let one = merged(&["--process", "rank 1"], &paths);
    assert_eq!(one.trace.phase("X").len(), 2);
    assert_eq!(process_names(&one), set(&expected[2..4]));
}

#[test]
fn without_ranks_the_path_tells_processes_apart() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["node-a", "node-b"].map(|host| (format!("run/{host}/trace.json"), kineto(None)));
    let files = files
        .each_ref()
        .map(|(name, document)| (name.as_str(), document.clone()));
    let paths = write(folder.path(), &files);
    let expected = [
        "python3 · node-a",
        "GPU 0 · python3 · node-a",
        "python3 · node-b",
        "GPU 0 · python3 · node-b",
    ];
    assert_eq!(process_names(&merged(&[], &paths)), set(&expected));
    let one = merged(&["--process", "GPU 0 *node-b"], &paths);
    assert_eq!(one.trace.phase("X").len(), 1);
}

/// SGLang merges its ranks so.
#[test]
fn texts_in_place_of_pids_and_tids_stay_in_the_names() {
    let folder = tempfile::tempdir().unwrap();
    let mut events = Vec::new();
    for pid in ["[TP00-DP00] 41000", "[TP01-DP00] 41000"] {
        events.push(json!({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0, "args": {"name": "python3"}}));
        events.push(json!({"ph": "M", "name": "thread_name", "pid": pid, "tid": "stream 7", "ts": 0, "args": {"name": "compute"}}));
        events.push(
            json!({"ph": "X", "name": "work", "pid": pid, "tid": "stream 7", "ts": 10, "dur": 5}),
        );
    }
    let paths = write(
        folder.path(),
        &[("merged.json", json!({"traceEvents": events}))],
    );
    let found = merged(&[], &paths);
    let expected = ["python3 · [TP00-DP00] 41000", "python3 · [TP01-DP00] 41000"];
    assert_eq!(process_names(&found), set(&expected));
    let threads = found.trace.all_named("thread_name");
    let named = |event: &&Value| event["args"]["name"] == "compute · stream 7";
    assert_eq!(threads.into_iter().filter(named).count(), 2);
    let one = merged(&["--process", "[TP01-DP00]"], &paths);
    assert_eq!(one.trace.phase("X").len(), 1);
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
    let folder = tempfile::tempdir().unwrap();
    let paths = write(folder.path(), &node(0));
    let found = merged(&[], &paths);
    let processes = found.report.0["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 1, "{processes:?}");
    assert_eq!(processes[0]["threads"], 1);
    let foreign = found.report.0["foreign"].as_array().unwrap();
    assert_eq!(foreign[1]["continues"], foreign[0]["path"]);
    let row = |name: &str| {
        let events = found.trace.all_named(name);
        let rows = events
            .iter()
            .map(|event| (event["pid"].as_u64(), event["tid"].as_u64()));
        rows.collect::<BTreeSet<_>>()
    };
    assert_eq!(row("outer").len(), 1);
    assert_eq!(row("outer"), row("tick"));
    let ids: BTreeSet<String> = found
        .trace
        .all_named("next")
        .iter()
        .map(|event| event["id"].to_string())
        .collect();
    assert_eq!(ids.len(), 1, "one arrow");
    // As Perfetto reads it, and whatever the order of the inputs.
    let backwards: Vec<PathBuf> = paths.into_iter().rev().collect();
    for merged in [&found, &merged(&[], &backwards)] {
        let trace = folder.path().join("out.json");
        std::fs::write(&trace, &merged.bytes).unwrap();
        let queries = [
            "select dur as number from slice where name = 'outer'",
            "select count(*) as number from flow",
        ];
        if let Some(rows) = perfetto::query("pieces_of_a_process_are_one_again", &trace, &queries) {
            let numbers: Vec<u64> = rows.iter().map(|rows| perfetto::number(rows)).collect();
            assert_eq!(numbers, [2_300_000, 1]);
        }
    }
}

#[test]
fn pieces_whose_times_do_not_fit_stay_apart() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write(folder.path(), &node(-1_000));
    let output = folder.path().join("out.json");
    let options = [
        "--offset".to_owned(),
        format!("{}=0s", paths[1].display()),
        "--offset".to_owned(),
        format!("{}=0s", paths[0].display()),
    ];
    let ended = Ended::of(
        trace_merge()
            .args(options)
            .args(&paths)
            .arg("-o")
            .arg(&output),
    );
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let doubt = format!(
        "may continue {}, but their times overlap: they stay apart",
        paths[0].display()
    );
    assert!(ended.stderr.contains(&doubt), "{}", ended.stderr);
}
