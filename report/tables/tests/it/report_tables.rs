//! Tests of the tables that come from the report: the host of each row, runs without some kinds of rows, row groups, and hostile request ids.

use crate::events::{event, events, trace};
use crate::recorded::run;
use crate::tables::{Row, Tables, rows};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use trace_merge::{Options, Progress};
use trace_report::ReportOptions;
use trace_tables::{TablesOptions, write_tables};

const REPORT_TABLES: [&str; 5] = ["request", "step", "device", "idle", "name"];
const OTHERS: [&str; 11] = [
    "metadata", "clock", "process", "thread", "track", "slice", "args", "counter", "flow", "loss",
    "damage",
];
/// Maximum number of rows in a row group.
const MAX_ROWS: usize = 32_768;
/// Environment variable with the path of the run in a child process.
const RUN: &str = "TABLES_TEST_RUN";

/// Checks that no file has a row group without rows, which some readers refuse.
fn row_groups_have_rows(tables: &Tables) {
    for table in REPORT_TABLES.iter().chain(&OTHERS) {
        let (_, groups) = tables.layout(table);
        assert!(!groups.contains(&0), "{table}: {groups:?}");
    }
}

/// Returns the values of a column in each host's rows, sorted.
fn by_host<'r>(
    rows: &'r BTreeMap<String, Vec<Row>>,
    column: &str,
) -> BTreeMap<&'r str, Vec<&'r str>> {
    let values = |rows: &'r Vec<Row>| {
        let values = rows.iter().map(|row| row[column].as_str().unwrap());
        let mut values: Vec<&str> = values.collect();
        values.sort_unstable();
        values
    };
    let hosts = rows
        .iter()
        .map(|(host, rows)| (host.as_str(), values(rows)));
    hosts.collect()
}

/// Writes a run of two hosts. The main process is on the last host and receives the requests `a` and `b`. The other process has only `c`, and the queue of `a`.
fn two_hosts() -> tempfile::TempDir {
    let hosts = [(41, "node/4", "0b1f7a3e"), (42, "node-3", "1c2f7a3e")];
    run(&hosts, |process| {
        let on = process.main_thread();
        let step = |ns: u64| on.span(ns, 200_000, "model_runner.execute_model", r#""step":1"#);
        let id = |id: &str| format!("\"request_id\":\"{id}\"");
        let request = |tid: u32, name: &str| {
            let on = process.thread(tid);
            on.span(2_000_000, 5_000_000, "http.request", &id(name))
        };
        let queued = |name: &str| on.instant(2_500_000, "request.queued", &id(name));
        let tokens = |ns: u64| on.counter(ns, "tokens", r#""decode":2,"prefill":0"#);
        let mut lines = match process.pid {
            41 => vec![request(5, "a"), request(6, "b")],
            _ => vec![queued("a"), queued("c")],
        };
        if process.pid == 41 {
            lines.extend([2_100_000, 3_100_000].map(step));
        } else {
            lines.extend([2_100_000, 4_100_000, 6_100_000].map(step));
            lines.extend([4_300_000, 6_300_000].map(tokens));
        }
        lines
    })
}

#[test]
fn each_row_is_on_the_host_of_its_process_and_names_are_on_the_first_host() {
    let folder = two_hosts();
    let tables = Tables::write(&[folder.path().to_owned()]);
    let (options, report_options) = (
        Options::new([folder.path().to_owned()]),
        ReportOptions::default(),
    );
    let report = trace_report::read(&options, &report_options, &Progress::default()).unwrap();
    let (first, last) = ("host=node-3", "host=node%2F4");

    let first_roles = vec!["engine", "engine", "worker", "worker", "worker"];
    let [last_name, first_name] = ["serve.py · node/4", "serve.py · node-3"];
    for (table, column, on_last, on_first) in [
        ("request", "request_id", vec!["a", "b"], vec!["c"]),
        ("step", "role", vec!["worker"; 2], first_roles),
        ("device", "process", vec![last_name], vec![first_name]),
        ("idle", "process", vec![last_name], vec![first_name; 2]),
    ] {
        let expected = BTreeMap::from([(last, on_last), (first, on_first)]);
        assert_eq!(by_host(&tables.rows_by_host(table), column), expected);
    }
    assert_eq!(report.worker.len(), 2);

    let names = tables.rows_by_host("name");
    assert_eq!(names[last], [], "names belong to no process");
    let mut expected: Vec<&str> = report.names.iter().map(|row| row.name.as_str()).collect();
    expected.sort_unstable();
    assert_eq!(by_host(&names, "name")[first], expected);
    row_groups_have_rows(&tables);
}

#[test]
fn tables_without_rows_have_their_columns() {
    let with_rows = two_hosts();
    let with_rows = Tables::write(&[with_rows.path().to_owned()]);
    let file = trace(&[]);
    let nothing = Tables::with(Options {
        allow_empty: true,
        ..Options::new([file.path().to_owned()])
    });
    let no_requests = Tables::of_lines(&events("X 1 1+1 'no request'"));
    for table in REPORT_TABLES {
        let (columns, groups) = with_rows.layout(table);
        assert!(!groups.is_empty(), "{table}");
        assert_eq!(nothing.layout(table), (columns.clone(), vec![]), "{table}");
        assert_eq!(nothing.rows(table), [], "{table}");
        assert_eq!(no_requests.layout(table).0, columns, "{table}");
    }
    for table in OTHERS.iter().skip(2) {
        assert_eq!(nothing.rows(table), [], "{table}");
    }
    assert_eq!(nothing.rows("clock").len(), 1);
    assert_eq!(nothing.written.slices, 0);
    assert_eq!(no_requests.rows("request"), []);
    assert_eq!(no_requests.layout("request").1, [0; 0]);
    assert_eq!(no_requests.rows("name").len(), 1);
    let (columns, _) = no_requests.layout("request");
    for column in ["request_id BYTE_ARRAY", "arrival_ns INT64", "e2e_us DOUBLE"] {
        assert!(columns.iter().any(|found| found == column), "{column}");
    }
    row_groups_have_rows(&nothing);
    row_groups_have_rows(&no_requests);
}

/// There is an idle interval between any two steps.
#[test]
fn steps_of_several_row_groups_are_written() {
    let cases: [(usize, &[i64], &[i64]); 3] = [
        (MAX_ROWS, &[32_768], &[32_767]),
        (MAX_ROWS + 1, &[32_768, 1], &[32_768]),
        (70_000, &[32_768, 32_768, 4_464], &[32_768, 32_768, 4_463]),
    ];
    for (count, step_groups, idle_groups) in cases {
        let step = |nth: usize| event(&format!("X 1 {}+10 model_runner.execute_model", 20 * nth));
        let tables = Tables::of_lines(&(0..count).map(step).collect::<Vec<_>>());
        assert_eq!(tables.layout("step").1, step_groups);
        assert_eq!(tables.layout("idle").1, idle_groups);
        row_groups_have_rows(&tables);
        let found = tables.rows("step");
        assert_eq!(found.len(), count);
        for (nth, step) in found.iter().enumerate() {
            assert_eq!(step["start_ns"], 20_000 * nth);
            assert_eq!(step["dur_us"], 10.0);
        }
        let found = tables.rows("idle");
        assert_eq!(found.len(), count - 1);
        for (nth, interval) in found.iter().enumerate() {
            assert_eq!(interval["start_ns"], 20_000 * nth + 10_000);
        }
    }
}

/// Clients choose the ids of requests. The report stores them in pieces of 43 bytes, so lengths around multiples of 43 are tested.
#[test]
fn hostile_request_ids_are_written_unchanged() {
    let letter = |nth: usize| char::from(b"abcdefghijklmnopqrstuvw"[nth % 23]);
    let long: String = (0..70 << 10).map(letter).collect();
    let odd = "| |it's \"so\"|'; DROP TABLE request; --|\0|a\0b|tab\tline\nreturn\r|\u{1b}[2J\u{202e}|\u{feff}ü 请求 🦀 e\u{301}|\\u0000|=1+1|null";
    let mut ids: Vec<String> = odd.split('|').map(str::to_owned).collect();
    ids.extend([42, 43, 44, 86, 87].map(|len| "x".repeat(len)));
    ids.push("é".repeat(40));
    ids.push(long);
    let mut lines = Vec::new();
    for (nth, id) in ids.iter().enumerate() {
        let mut line = event(&format!("X 1/{nth} {}+5 http.request", 10 * nth));
        line["args"]["request_id"] = json!(id);
        lines.push(line);
    }
    let most = u64::MAX.to_string();
    lines.push(event(&format!(
        "X 1/99 900+5 http.request request_id={most}"
    )));
    ids.push(most);
    let rows = Tables::of_lines(&lines).rows("request");
    // Requests are sorted by arrival.
    let found = rows.iter().map(|row| row["request_id"].as_str().unwrap());
    assert!(found.eq(&ids), "{rows:?}");
}

/// Writes tables next to a run in a child process of another test. Does nothing as a separate test.
#[test]
fn child() {
    let Some(run) = std::env::var_os(RUN).map(PathBuf::from) else {
        return;
    };
    let tables = TablesOptions {
        to: run.join("tables"),
        ..TablesOptions::default()
    };
    write_tables(&Options::new([run]), &tables, &Progress::default()).unwrap();
}

/// The report sorts 9 MB of ids with a temporary file. Without a folder for temporary files, it is in the folder of the tables.
#[test]
fn a_large_report_needs_no_folder_for_temporary_files() {
    let folder = run(&[(41, "a", "0b1f7a3e")], |process| {
        let on = process.main_thread();
        let queued = |nth: u64| {
            let id = format!("\"request_id\":\"{nth} {}\"", "x".repeat(1_000));
            on.instant(2_000_000 + nth, "request.queued", &id)
        };
        (0..9_000).map(queued).collect()
    });
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "report_tables::child"])
        .env("TMPDIR", "/nonexistent")
        .env(RUN, folder.path())
        .output()
        .unwrap();
    assert!(child.status.success(), "{child:?}");
    let to = folder.path().join("tables");
    assert_eq!(rows(&to, "request").len(), 9_000);
}
