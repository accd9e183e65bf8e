//! Tracks: events that a process records for its devices' streams are shown in processes of their own.

use crate::{host, script};
use e2e::host_support::{Host, Merged, scratch};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

fn launches(dir: &Path, name: &str, count: u64) -> Host {
    host(dir, &["tracks", name, &count.to_string()])
}

fn number(event: &Value, key: &str) -> u64 {
    event[key].as_u64().expect("a number")
}

/// The last value that metadata records of this name give each process.
fn metadata(merged: &Merged, name: &str, key: &str) -> BTreeMap<u64, Value> {
    merged
        .of_name(name)
        .map(|event| (number(event, "pid"), event["args"][key].clone()))
        .collect()
}

/// Names of processes in the order in which the viewer shows them.
fn shown(merged: &Merged) -> Vec<Value> {
    let names = metadata(merged, "process_name", "name");
    let places = metadata(merged, "process_sort_index", "sort_index");
    let mut rows: Vec<_> = names.into_iter().collect();
    rows.sort_by_key(|(pid, name)| (places[pid].as_u64(), name.to_string()));
    rows.into_iter().map(|(_, name)| name).collect()
}

/// Kernels of each row, by the names of its process and thread.
fn kernels(merged: &Merged) -> BTreeMap<String, u64> {
    let processes = metadata(merged, "process_name", "name");
    let row = |event: &Value| (number(event, "pid"), number(event, "tid"));
    let threads: BTreeMap<_, _> = merged
        .of_name("thread_name")
        .map(|event| (row(event), &event["args"]["name"]))
        .collect();
    let mut kernels = BTreeMap::new();
    for event in merged.of_name("matmul") {
        let (process, thread) = (&processes[&row(event).0], threads[&row(event)]);
        *kernels.entry(format!("{process} {thread}")).or_default() += 1;
    }
    kernels
}

#[test]
fn each_device_of_each_process_is_a_process_below_them_all() {
    let dir = scratch();
    let mut main = script(dir.path());
    main.ask("spans main 1");
    for name in ["worker-0", "worker-1"] {
        let _ = launches(dir.path(), name, 100).run().quiet();
    }
    let _ = main.end().quiet();
    let merged = Merged::newest(dir.path());
    let devices = shown(&merged).split_off(3);
    let expected = [
        "Ascend Hardware NPU 0 · worker-0",
        "Ascend Hardware NPU 0 · worker-1",
        "Ascend Hardware NPU 1 · worker-0",
        "Ascend Hardware NPU 1 · worker-1",
    ];
    assert_eq!(devices, expected);
    let kernels = kernels(&merged);
    assert_eq!(kernels.len(), 8, "{kernels:?}");
    assert!(kernels.values().all(|count| *count == 25), "{kernels:?}");
    let mut labels = metadata(&merged, "process_labels", "labels").into_values();
    assert!(labels.any(|label| label.as_str().unwrap().starts_with("NPU 1,")));
    let flows = |phase: &str| -> BTreeMap<String, u64> {
        let flows = merged.events().iter().filter(|event| event["ph"] == phase);
        flows
            .map(|event| (event["id"].to_string(), number(event, "pid")))
            .collect()
    };
    let (from, to) = (flows("s"), flows("f"));
    assert_eq!((from.len(), to.len()), (200, 200));
    let lead_elsewhere = from.iter().all(|(id, pid)| to[id] != *pid);
    assert!(lead_elsewhere, "from the threads to the tracks");
}

#[test]
fn names_of_tracks_outlive_removed_segments() {
    let dir = scratch();
    let host = launches(dir.path(), "worker", 40_000);
    let _ = host.variable("SA_PROFILE_MAX_MB", "4").run().quiet();
    let merged = Merged::newest(dir.path());
    assert!(merged.lost() > 0, "segments were removed");
    let rows: Vec<_> = kernels(&merged).into_keys().collect();
    let row =
        |device, stream| format!(r#""Ascend Hardware NPU {device} · worker" "Stream {stream}""#);
    assert_eq!(rows, [row(0, 0), row(0, 1), row(1, 0), row(1, 1)]);
}
