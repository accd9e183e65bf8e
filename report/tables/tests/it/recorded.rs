//! Runs that recorders left: several hosts, losses, damage, spans that a process died in.

use crate::perfetto::agrees;
use crate::tables::{Row, Tables, trace};
use format_oracle::writer::Process;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use trace_merge::{Options, Progress};
use trace_tables::{TablesOptions, write_tables};

/// A run of two processes on hosts of their own.
fn run(folder: &Path) {
    run_on(
        folder,
        &[(41, "node-3", "0b1f7a3e"), (42, "node/4", "1c2f7a3e")],
    );
}

fn run_on(folder: &Path, processes: &[(u32, &str, &str)]) {
    write_run(folder, processes, |process| {
        let on = process.main_thread();
        vec![
            on.span(
                2_000_000,
                900_000,
                "step",
                r#""step":1,"request_ids":["a","b"]"#,
            ),
            on.span(2_100_000, 100_000, "inner", r#""queue_us":1.25"#),
            on.instant(2_150_000, "request.token", r#""request_id":"a""#),
            on.counter(2_200_000, "kv", r#""used":3"#),
            on.loss(2_500_000, "ring_full", 7, ""),
            on.begin(3_000_000, "died in"),
            "{\"torn".to_owned(),
        ]
    });
}

/// A trace of another profiler.
fn foreign(name: &str) -> PathBuf {
    let merge = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../merge");
    merge.join("tests/fixtures/foreign").join(name)
}

/// Writes the fragments of some processes, each with its pid, host and boot, and the lines between its anchors.
pub(crate) fn write_run(
    folder: &Path,
    processes: &[(u32, &str, &str)],
    lines: impl Fn(&Process) -> Vec<String>,
) {
    let fragments = folder.join("fragments");
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
}

fn longs(rows: &[Row], column: &str) -> BTreeSet<i64> {
    let cells = rows.iter().map(|row| row[column].as_i64());
    cells.map(Option::unwrap).collect()
}

#[test]
fn a_run_of_two_hosts_has_a_partition_for_each() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path());
    let tables = Tables::of(&[folder.path().to_owned()]);
    let paths: BTreeSet<String> = tables
        .bytes()
        .iter()
        .map(|(path, _)| path.parent().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert!(paths.contains("slice/host=node-3"), "{paths:?}");
    assert!(paths.contains("slice/host=node%2F4"), "{paths:?}");
    let processes = tables.rows("process");
    assert_eq!(processes.len(), 2);
    assert!(processes.iter().all(|row| row["boot_id"].is_string()));
    let clocks = tables.rows("clock");
    assert_eq!(clocks.len(), 2);
    for clock in &clocks {
        assert_eq!(clock["offset_ns"], 0);
        assert!(clock["uncertainty_ns"].is_i64(), "{clock:?}");
        assert_eq!(
            clock["base_unix_ns"],
            json!(1_795_248_902_000_000_000_i64 + 2_000_000)
        );
    }
    let ids = longs(&tables.rows("slice"), "id");
    let host_ids: BTreeSet<i64> = ids.iter().map(|id| id >> 39).collect();
    assert_eq!(host_ids, longs(&clocks, "host_id"));
}

/// The clocks of two boots of one host are joined by their wall clocks, and may be off.
#[test]
fn each_boot_of_a_host_has_a_clock() {
    let folder = tempfile::tempdir().unwrap();
    let boots = [(41, "node-3", "0b1f7a3e"), (42, "node-3", "1c2f7a3e")];
    run_on(folder.path(), &boots);
    let tables = Tables::of(&[folder.path().to_owned()]);
    let clocks = tables.rows("clock");
    let boot = |row: &Row| row["boot_id"].as_str().unwrap().to_owned();
    let off = |clock: &Row| (boot(clock), clock["uncertainty_ns"].as_i64().unwrap());
    let off: BTreeMap<String, i64> = clocks.iter().map(off).collect();
    let processes = tables.rows("process");
    let boots: BTreeSet<String> = processes.iter().map(boot).collect();
    assert_eq!(off.keys().cloned().collect::<BTreeSet<_>>(), boots);
    assert_eq!((off.len(), clocks.len()), (2, 2));
    let (least, most) = (off.values().min(), off.values().max());
    assert_eq!(least, Some(&0), "the reference");
    assert!(most >= Some(&1_000), "{off:?}");
}

#[test]
fn losses_and_damage_are_tables() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path());
    let tables = Tables::of(&[folder.path().to_owned()]);
    let losses = tables.rows("loss");
    assert_eq!(losses.len(), 2, "{losses:?}");
    let upids = longs(&tables.rows("process"), "upid");
    for loss in &losses {
        assert_eq!(
            (&loss["cause"], &loss["events"]),
            (&json!("ring_full"), &json!(7))
        );
        assert!(upids.contains(&loss["upid"].as_i64().unwrap()));
    }
    let damage = tables.rows("damage");
    assert_eq!(damage.len(), 2, "{damage:?}");
    assert!(
        damage
            .iter()
            .all(|row| row["kind"] == "bad_json" && row["count"] == 1)
    );
    let metadata = tables.rows("metadata");
    let of = |name: &str| {
        let row = metadata.iter().find(|row| row["name"] == name).unwrap();
        (row["str_value"].clone(), row["int_value"].clone())
    };
    assert_eq!(of("run"), (json!("run-a"), json!(null)));
    assert_eq!(of("schema_version"), (json!(null), json!(2)));
    assert_eq!(of("lost_events"), (json!(null), json!(14)));
    assert_eq!(of("damage"), (json!(null), json!(2)));
}

#[test]
fn a_recorded_run_is_as_in_perfetto() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path());
    agrees(&[folder.path().to_owned()]);
}

/// Process ids and names of hosts may be equal.
#[test]
fn a_loss_is_of_the_process_that_lost() {
    let folder = tempfile::tempdir().unwrap();
    let hosts = [(41, "a", "0b1f7a3e"), (41, "b", "1c2f7a3e")];
    run_on(folder.path(), &hosts);
    let losses = Tables::of(&[folder.path().to_owned()]).rows("loss");
    let upids = longs(&losses, "upid");
    assert_eq!((losses.len(), upids.len()), (2, 2), "{losses:?}");
}

#[test]
fn what_names_no_host_belongs_to_the_only_one_with_a_name() {
    let folder = tempfile::tempdir().unwrap();
    run_on(folder.path(), &[(41, "a", "0b1f7a3e")]);
    let since_1970_us = 1_795_248_902_003_000_i64;
    let other = trace(&[
        json!({"ph": "X", "pid": 9, "tid": 1, "ts": since_1970_us, "dur": 1, "name": "x"}),
    ]);
    let tables = Tables::of(&[folder.path().to_owned(), other.path().to_owned()]);
    assert_eq!(tables.rows("process").len(), 2);
    let is_of_host = |(path, _): &(PathBuf, Vec<u8>)| path.parent().unwrap().ends_with("host=a");
    assert!(tables.bytes().iter().all(is_of_host));
}

#[test]
fn one_id_is_not_for_several_hosts() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path());
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
    let folder = tempfile::tempdir().unwrap();
    run(folder.path());
    // With the devices of another profiler's trace, whose launches are found in the report.
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

/// The report finds the same ones.
#[test]
fn issue_48_a_process_is_a_device_if_its_rows_show_work() {
    let devices = |tables: &Tables| -> Vec<String> {
        let rows = tables.rows("process").into_iter();
        let rows = rows.filter(|row| row["is_device"] == json!(1));
        rows.map(|row| row["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let tables = Tables::of(&[foreign("trace_view.json")]);
    assert_eq!(devices(&tables), ["Ascend Hardware"]);
    let named = |pid: u64, name: &str, labels: &str| {
        [
            json!({"ph": "M", "pid": pid, "tid": 0, "name": "process_name", "args": {"name": name}}),
            json!({"ph": "M", "pid": pid, "tid": 0, "name": "process_labels", "args": {"labels": labels}}),
        ]
    };
    let span = |pid: u64, category: &str| json!({"ph": "X", "pid": pid, "tid": 1, "ts": 1, "dur": 2, "name": "a", "cat": category});
    let mut lines = named(1, "busy", "GPU 1").to_vec();
    lines.extend(named(2, "idle", "GPU 2"));
    lines.extend(named(9, "host", "CPU"));
    lines.extend(named(4, "/device:TPU:0", ""));
    lines.extend([
        span(1, "kernel"),
        span(2, "python_function"),
        span(9, "cpu_op"),
        span(4, ""),
    ]);
    assert_eq!(
        devices(&Tables::of_lines(&lines)),
        ["busy", "/device:TPU:0"]
    );
}
