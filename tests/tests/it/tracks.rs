//! Tracks: events that a process records for its devices' streams are shown under separate processes.

use crate::{host, script};
use e2e::host_support::{Merged, scratch, track};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the last value in the metadata events of this name for each process.
fn metadata(merged: &Merged, name: &str, key: &str) -> BTreeMap<u64, Value> {
    merged
        .events_named(name)
        .map(|event| (track(event).0, event["args"][key].clone()))
        .collect()
}

/// Returns the names of the processes in viewer order.
fn shown(merged: &Merged) -> Vec<String> {
    let sort_indexes = metadata(merged, "process_sort_index", "sort_index");
    let names = metadata(merged, "process_name", "name").into_iter();
    let processes = names.map(|(pid, name)| (sort_indexes[&pid].as_u64(), name));
    let processes = processes.map(|(index, name)| (index, name.as_str().unwrap().to_owned()));
    let processes: BTreeSet<_> = processes.collect();
    processes.into_iter().map(|(_, name)| name).collect()
}

/// Returns the number of kernels on each track, by the names of process and thread.
fn kernels(merged: &Merged) -> BTreeMap<String, u64> {
    let processes = metadata(merged, "process_name", "name");
    let threads = merged.track_names();
    let mut kernels = BTreeMap::new();
    for track in merged.events_named("matmul").map(track) {
        let (process, thread) = (&processes[&track.0], threads[&track]);
        *kernels.entry(format!("{process} {thread}")).or_default() += 1;
    }
    kernels
}

/// The first segments of the first worker are removed, so its later segments must repeat the names.
#[test]
fn devices_are_shown_as_processes_below_all_host_processes() {
    let dir = scratch();
    let mut main = script(dir.path());
    main.ask("spans main 1");
    for (name, count, bound) in [("worker-0", "40000", "4"), ("worker-1", "100", "")] {
        let host = host(dir.path(), &["tracks", name, count]);
        let _ = host.variable("SA_PROFILE_MAX_MB", bound).run().quiet();
    }
    let _ = main.end().quiet();
    let merged = Merged::newest(dir.path());
    assert!(merged.lost() > 0, "segments were removed");
    let device = |at: usize| format!("Ascend Hardware NPU {} · worker-{}", at / 2, at % 2);
    assert_eq!(shown(&merged).split_off(3), [0, 1, 2, 3].map(device));
    let kernels = kernels(&merged);
    assert_eq!(kernels.len(), 8, "{kernels:?}");
    for (track, count) in kernels {
        assert_eq!(track.contains("worker-1"), count == 25, "{track} {count}");
        assert!(track.ends_with(" Stream 0") || track.ends_with(" Stream 1"));
    }
    let mut labels = metadata(&merged, "process_labels", "labels").into_values();
    assert!(labels.any(|label| label.as_str().unwrap().starts_with("NPU 1,")));
    let flows = |phase: &str| -> BTreeMap<String, u64> {
        let flows = merged.events().iter().filter(|event| event["ph"] == phase);
        flows
            .map(|event| (event["id"].to_string(), track(event).0))
            .collect()
    };
    let (from, to) = (flows("s"), flows("f"));
    let names = metadata(&merged, "process_name", "name").into_iter();
    let second_worker: BTreeSet<u64> = names
        .filter(|(_, name)| *name == "worker-1")
        .map(|(pid, _)| pid)
        .collect();
    let from: Vec<_> = from
        .iter()
        .filter(|(_, pid)| second_worker.contains(pid))
        .collect();
    assert_eq!(from.len(), 100);
    let leads_to_other_process = |id: &String, pid: &u64| to.get(id).is_some_and(|to| to != pid);
    assert!(
        from.iter().all(|(id, pid)| leads_to_other_process(id, pid)),
        "flows end on the tracks"
    );
}
