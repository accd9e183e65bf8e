//! Tables of recorded runs with several hosts, losses, damage, and spans that were open when a process died.

use crate::events::{event, events, trace};
use crate::perfetto::assert_agrees;
use crate::tables::{Row, Tables};
use format_oracle::writer::Process;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use trace_merge::{Options, Progress};
use trace_tables::{TablesOptions, write_tables};

/// Writes a run of two processes on different hosts.
fn two_hosts() -> TempDir {
    run_on(&[(41, "node-3", "0b1f7a3e"), (42, "node/4", "1c2f7a3e")])
}

fn run_on(processes: &[(u32, &str, &str)]) -> TempDir {
    run(processes, |process| {
        let on = process.main_thread();
        let ids = r#""step":1,"request_ids":["a","b"]"#;
        vec![
            on.span(2_000_000, 900_000, "step", ids),
            on.span(2_100_000, 100_000, "inner", r#""queue_us":1.25"#),
            on.instant(2_150_000, "request.token", r#""request_id":"a""#),
            on.counter(2_200_000, "kv", r#""used":3"#),
            on.loss(2_500_000, "ring_full", 7, ""),
            on.begin(3_000_000, "died in"),
            "{\"torn".to_owned(),
        ]
    })
}

fn tables_of(folder: &TempDir) -> Tables {
    Tables::write(&[folder.path().to_owned()])
}

/// Returns the path of another profiler's trace.
fn foreign(name: &str) -> PathBuf {
    let merge = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../merge");
    merge.join("tests/fixtures/foreign").join(name)
}

/// Writes the fragments of processes. Each has a pid, host and boot. `lines` returns the lines between its anchors.
pub(crate) fn run(
    processes: &[(u32, &str, &str)],
    lines: impl Fn(&Process) -> Vec<String>,
) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let fragments = folder.path().join("fragments");
    std::fs::create_dir(&fragments).unwrap();
    for (nth, (pid, host, boot)) in processes.iter().copied().enumerate() {
        let process = Process {
            main: nth == 0,
            ..Process::new(pid)
        };
        let mut fragment = process.fragment();
        fragment.line(&process.anchor(1_000_000));
        for line in lines(&process) {
            fragment.line(&line);
        }
        fragment.line(&process.anchor(9_000_000));
        let text = String::from_utf8(fragment.bytes).unwrap();
        let text = text.replace("node-3", host).replace("0b1f7a3e", boot);
        std::fs::write(fragments.join(format!("trace.{pid}{nth}.jsonl")), text).unwrap();
    }
    folder
}

fn longs(rows: &[Row], column: &str) -> BTreeSet<i64> {
    let cells = rows.iter().map(|row| row[column].as_i64());
    cells.map(Option::unwrap).collect()
}

#[test]
fn a_run_of_two_hosts_has_a_partition_for_each() {
    let folder = two_hosts();
    let tables = tables_of(&folder);
    let hosts = tables.rows_by_host("slice").into_keys();
    assert_eq!(hosts.collect::<Vec<_>>(), ["host=node%2F4", "host=node-3"]);
    let processes = tables.rows("process");
    assert_eq!(processes.len(), 2);
    assert!(processes.iter().all(|row| row["boot_id"].is_string()));
    let clocks = tables.rows("clock");
    assert_eq!(clocks.len(), 2);
    for clock in &clocks {
        assert_eq!(clock["offset_ns"], 0);
        assert!(clock["uncertainty_ns"].is_i64(), "{clock:?}");
        assert_eq!(clock["base_unix_ns"], 1_795_248_902_002_000_000_i64);
    }
    let ids = longs(&tables.rows("slice"), "id");
    let host_ids: BTreeSet<i64> = ids.iter().map(|id| id >> 39).collect();
    assert_eq!(host_ids, longs(&clocks, "host_id"));
    assert_agrees(&[folder.path().to_owned()]);
}

/// The clocks of two boots of one host are aligned by their wall clocks, with some uncertainty.
#[test]
fn each_boot_of_a_host_has_a_clock() {
    let boots = [(41, "node-3", "0b1f7a3e"), (42, "node-3", "1c2f7a3e")];
    let tables = tables_of(&run_on(&boots));
    let clocks = tables.rows("clock");
    let boot = |row: &Row| row["boot_id"].as_str().unwrap().to_owned();
    let uncertainty = |clock: &Row| (boot(clock), clock["uncertainty_ns"].as_i64().unwrap());
    let uncertainties: BTreeMap<String, i64> = clocks.iter().map(uncertainty).collect();
    let boots: BTreeSet<String> = tables.rows("process").iter().map(boot).collect();
    assert_eq!(
        uncertainties.keys().cloned().collect::<BTreeSet<_>>(),
        boots
    );
    assert_eq!((uncertainties.len(), clocks.len()), (2, 2));
    let (least, most) = (uncertainties.values().min(), uncertainties.values().max());
    assert_eq!(least, Some(&0), "the reference");
    assert!(most >= Some(&1_000), "{uncertainties:?}");
}

/// Processes on different hosts may have the same pid. A loss belongs to the process that reported it.
#[test]
fn losses_and_damage_have_tables() {
    let hosts = [(41, "a", "0b1f7a3e"), (41, "b", "1c2f7a3e")];
    let tables = tables_of(&run_on(&hosts));
    let losses = tables.rows("loss");
    let damage = tables.rows("damage");
    for (rows, columns, expected) in [
        (&losses, ["cause", "events"], json!(["ring_full", 7])),
        (&damage, ["kind", "count"], json!(["bad_json", 1])),
    ] {
        let cells = rows
            .iter()
            .map(|row| json!(columns.map(|column| &row[column])));
        assert_eq!(cells.collect::<Vec<_>>(), [expected.clone(), expected]);
    }
    let upids = longs(&tables.rows("process"), "upid");
    assert_eq!((upids.len(), longs(&losses, "upid")), (2, upids));
    let metadata = tables.rows("metadata");
    for (name, text, int) in [
        ("run", json!("run-a"), json!(null)),
        ("schema_version", json!(null), json!(2)),
        ("lost_events", json!(null), json!(14)),
        ("damage", json!(null), json!(2)),
    ] {
        let row = metadata.iter().find(|row| row["name"] == name).unwrap();
        assert_eq!(
            [&row["str_value"], &row["int_value"]],
            [&text, &int],
            "{name}"
        );
    }
}

#[test]
fn a_process_without_a_host_belongs_to_the_only_named_host() {
    let folder = run_on(&[(41, "a", "0b1f7a3e")]);
    // Times since 1970.
    let other = trace(&[event("X 9 1795248902003000+1 x")]);
    let tables = Tables::write(&[folder.path().to_owned(), other.path().to_owned()]);
    assert_eq!(tables.rows("process").len(), 2);
    let is_of_host = |(path, _): &(PathBuf, Vec<u8>)| path.parent().unwrap().ends_with("host=a");
    assert!(tables.bytes().iter().all(is_of_host));
}

#[test]
fn a_host_id_is_refused_for_several_hosts() {
    let folder = two_hosts();
    let to = tempfile::tempdir().unwrap();
    let tables = TablesOptions {
        to: to.path().to_owned(),
        host_id: Some(3),
        ..TablesOptions::default()
    };
    let options = Options::new([folder.path().to_owned()]);
    let refused = write_tables(&options, &tables, &Progress::default());
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("node-3, node/4"), "{refused}");
    assert_eq!(to.path().read_dir().unwrap().count(), 0);
}

#[test]
fn the_tables_do_not_depend_on_the_number_of_threads() {
    let folder = two_hosts();
    // Another profiler's trace has devices, for which the report finds the launches.
    let paths = [folder.path().to_owned(), foreign("trace_view.json")];
    let with = |threads: usize| {
        let options = Options {
            threads,
            ..Options::new(paths.clone())
        };
        Tables::with(options).bytes()
    };
    assert!(with(1) == with(7));
}

/// The report finds the same devices.
#[test]
fn issue_48_a_process_is_a_device_if_its_tracks_show_work() {
    let devices = |tables: &Tables| -> Vec<String> {
        let rows = tables.rows("process").into_iter();
        let rows = rows.filter(|row| row["is_device"] == json!(1));
        rows.map(|row| row["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let tables = Tables::write(&[foreign("trace_view.json")]);
    assert_eq!(devices(&tables), ["Ascend Hardware"]);
    let tables = Tables::of_lines(&events(
        "P 1/0 busy 'GPU 1'
        P 2/0 idle 'GPU 2'
        P 9/0 host CPU
        P 4/0 /device:TPU:0
        X 1 1+2 a cat=kernel
        X 2 1+2 a cat=python_function
        X 9 1+2 a cat=cpu_op
        X 4 1+2 a",
    ));
    assert_eq!(devices(&tables), ["busy", "/device:TPU:0"]);
}
