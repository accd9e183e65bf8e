//! Tracks: what a process tells of its devices' streams stands in processes of its own.

use e2e::host_support::{Host, Merged, scratch};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const HOST: &str = env!("CARGO_BIN_EXE_host");

fn host(dir: &Path, name: &str, count: u64, ending: &str) -> Host {
    Host::new(HOST)
        .arguments(&["tracks", name, &count.to_string(), ending])
        .recorded_in(dir)
}

fn number(event: &Value, key: &str) -> u64 {
    event[key].as_u64().expect("a number")
}

/// The last value that metadata records of this name give each process.
fn metadata(merged: &Merged, name: &str, key: &str) -> BTreeMap<u64, Value> {
    let records = merged.events().iter();
    let records = records.filter(|event| event["ph"] == "M" && event["name"] == name);
    records
        .map(|event| (number(event, "pid"), event["args"][key].clone()))
        .collect()
}

/// Names of processes in the order in which the viewer shows them.
fn shown(merged: &Merged) -> Vec<String> {
    let names = metadata(merged, "process_name", "name");
    let places = metadata(merged, "process_sort_index", "sort_index");
    let mut rows: Vec<_> = names
        .into_iter()
        .map(|(pid, name)| {
            (
                places[&pid].as_u64(),
                name.as_str().unwrap_or_default().to_owned(),
            )
        })
        .collect();
    rows.sort();
    rows.into_iter().map(|(_, name)| name).collect()
}

/// Kernels of each (process name, thread name).
fn kernels(merged: &Merged) -> BTreeMap<(String, String), u64> {
    let names = metadata(merged, "process_name", "name");
    let threads: BTreeMap<(u64, u64), &Value> = merged
        .events()
        .iter()
        .filter(|event| event["name"] == "thread_name")
        .map(|event| {
            (
                (number(event, "pid"), number(event, "tid")),
                &event["args"]["name"],
            )
        })
        .collect();
    let mut kernels = BTreeMap::new();
    for event in merged
        .events()
        .iter()
        .filter(|event| event["name"] == "matmul")
    {
        let (pid, tid) = (number(event, "pid"), number(event, "tid"));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let row = (text(&names[&pid]), text(threads[&(pid, tid)]));
        *kernels.entry(row).or_default() += 1;
    }
    kernels
}

#[test]
fn each_device_of_each_process_is_a_process_below_them_all() {
    let dir = scratch();
    let mut main = Host::new(HOST)
        .arguments(&["script"])
        .recorded_in(dir.path())
        .start();
    main.ask("spans main 1");
    for name in ["worker-0", "worker-1"] {
        let _ = host(dir.path(), name, 100, "exit").run().quiet();
    }
    let _ = main.end().quiet();
    let merged = Merged::newest(dir.path());
    let devices: Vec<String> = shown(&merged).split_off(3);
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
    let labels: BTreeSet<String> = metadata(&merged, "process_labels", "labels")
        .into_values()
        .map(|label| label.as_str().unwrap_or_default().chars().take(6).collect())
        .collect();
    assert!(labels.contains("NPU 1,"), "{labels:?}");
}

#[test]
fn flows_lead_from_the_threads_to_the_tracks() {
    let dir = scratch();
    let _ = host(dir.path(), "worker", 50, "exit").run().quiet();
    let merged = Merged::newest(dir.path());
    let flows = |phase: &str| -> BTreeMap<String, u64> {
        let flows = merged.events().iter().filter(|event| event["ph"] == phase);
        flows
            .map(|event| (event["id"].to_string(), number(event, "pid")))
            .collect()
    };
    let (from, to) = (flows("s"), flows("f"));
    assert_eq!(from.len(), 50);
    assert_eq!(
        from.keys().collect::<Vec<_>>(),
        to.keys().collect::<Vec<_>>()
    );
    assert!(
        from.iter().all(|(id, pid)| to[id] != *pid),
        "to another process"
    );
}

#[test]
fn a_killed_process_keeps_its_tracks() {
    let dir = scratch();
    let _ = host(dir.path(), "worker", 4000, "killed")
        .run()
        .was_killed();
    let merged = Merged::newest(dir.path());
    let kernels = kernels(&merged);
    assert_eq!(kernels.len(), 4);
    assert_eq!(kernels.values().sum::<u64>(), 4000);
}

#[test]
fn names_of_tracks_outlive_removed_segments() {
    let dir = scratch();
    let _ = host(dir.path(), "worker", 40_000, "exit")
        .variable("SA_PROFILE_MAX_MB", "4")
        .run()
        .quiet();
    let merged = Merged::newest(dir.path());
    assert!(merged.lost() > 0, "segments were removed");
    let rows: Vec<_> = kernels(&merged).into_keys().collect();
    let row = |device, stream| {
        let process = format!("Ascend Hardware NPU {device} · worker");
        (process, format!("Stream {stream}"))
    };
    assert_eq!(rows, [row(0, 0), row(0, 1), row(1, 0), row(1, 1)]);
}
