//! Tracks: events that a process records for its devices' streams are shown in processes of their own.

use crate::{host, script};
use e2e::host_support::{Merged, row, scratch};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The last value that metadata records of this name give each process.
fn metadata(merged: &Merged, name: &str, key: &str) -> BTreeMap<u64, Value> {
    merged
        .of_name(name)
        .map(|event| (row(event).0, event["args"][key].clone()))
        .collect()
}

/// Names of processes in the order in which the viewer shows them.
fn shown(merged: &Merged) -> Vec<String> {
    let places = metadata(merged, "process_sort_index", "sort_index");
    let names = metadata(merged, "process_name", "name").into_iter();
    let rows = names.map(|(pid, name)| (places[&pid].as_u64(), name));
    let rows = rows.map(|(place, name)| (place, name.as_str().unwrap().to_owned()));
    let rows: BTreeSet<_> = rows.collect();
    rows.into_iter().map(|(_, name)| name).collect()
}

/// Kernels of each row, by the names of its process and thread.
fn kernels(merged: &Merged) -> BTreeMap<String, u64> {
    let processes = metadata(merged, "process_name", "name");
    let threads = merged.row_names();
    let mut kernels = BTreeMap::new();
    for row in merged.of_name("matmul").map(row) {
        let (process, thread) = (&processes[&row.0], threads[&row]);
        *kernels.entry(format!("{process} {thread}")).or_default() += 1;
    }
    kernels
}

/// The first segments of the first worker are removed, so its later segments must repeat the names.
#[test]
fn each_device_of_each_process_is_a_process_below_them_all() {
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
    for (row, count) in kernels {
        assert_eq!(row.contains("worker-1"), count == 25, "{row} {count}");
        assert!(row.ends_with(" Stream 0") || row.ends_with(" Stream 1"));
    }
    let mut labels = metadata(&merged, "process_labels", "labels").into_values();
    assert!(labels.any(|label| label.as_str().unwrap().starts_with("NPU 1,")));
    let flows = |phase: &str| -> BTreeMap<String, u64> {
        let flows = merged.events().iter().filter(|event| event["ph"] == phase);
        flows
            .map(|event| (event["id"].to_string(), row(event).0))
            .collect()
    };
    let (from, to) = (flows("s"), flows("f"));
    let names = metadata(&merged, "process_name", "name").into_iter();
    let whole: BTreeSet<u64> = names
        .filter(|(_, name)| *name == "worker-1")
        .map(|(pid, _)| pid)
        .collect();
    let from: Vec<_> = from.iter().filter(|(_, pid)| whole.contains(pid)).collect();
    assert_eq!(from.len(), 100);
    let leads_away = |id: &String, pid: &u64| to.get(id).is_some_and(|to| to != pid);
    assert!(
        from.iter().all(|(id, pid)| leads_away(id, pid)),
        "to the tracks"
    );
}
