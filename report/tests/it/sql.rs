//! The statements of `report/sql` over the tables of a run, which must agree with the report in each engine.

mod agreement;

use crate::events::events;
use crate::growth::growing_load;
use crate::idle::{PLANTED, Server};
use crate::oracle::Numbers;
use crate::page::served;
use crate::reports::{fixture, report, report_with};
use crate::tool::printed;
use crate::traces::case;
use agreement::{agree, all_agree, live_agrees};
use format_oracle::writer::{Fragment, Process as FragmentProcess};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use trace_merge::{Options, Output, Progress};
use trace_report::live::LiveReader;
use trace_report::{ReportOptions, RunReport, STATEMENTS};
use trace_tables::{TablesOptions, write_tables};

const ENGINES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/sql");
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sql/engine.py");
/// Statements that read whole tables.
const WHOLE: [(&str, &str); 6] = [
    ("every request", "SELECT * FROM request"),
    ("every step", "SELECT * FROM step"),
    (
        "mean TTFT",
        "SELECT COUNT(*) AS n, AVG(ttft_us) AS ttft_us FROM request",
    ),
    ("every interval", "SELECT * FROM idle"),
    ("every device", "SELECT * FROM device"),
    ("every name", "SELECT * FROM name"),
];

/// Traces on which the statements must agree with the report.
const CASES: [&str; 5] = [
    "the last rank is named",
    "steps and queues",
    "phases follow each other",
    "twelve gaps of equal length",
    "a worker that is an engine",
];

/// Rows of each statement.
type Rows = BTreeMap<&'static str, Vec<Value>>;

/// A trace in a file, and its tables.
pub(crate) struct Run {
    folder: TempDir,
}

impl Run {
    fn new() -> Run {
        let folder = TempDir::new().unwrap();
        Run { folder }
    }

    /// Writes the trace that a merge creates from an input.
    fn with_merged(self, input: PathBuf) -> Run {
        let options = Options {
            output: Output::File(self.trace()),
            ..Options::new([input])
        };
        trace_merge::merge(&options).unwrap();
        self
    }

    pub(crate) fn from_events(lines: &[Value]) -> Run {
        let run = Run::new();
        std::fs::write(run.trace(), json!({ "traceEvents": lines }).to_string()).unwrap();
        run
    }

    /// Uses the merged trace of a fixture. Perfetto drops overlapping spans, which have tracks of their own in a merged
    /// trace.
    pub(crate) fn from_fixture(name: &str) -> Run {
        Run::new().with_merged(fixture(name))
    }

    /// Uses the recording of a program, or a trace.
    fn from_path(run: &Path) -> Run {
        let found = Run::new();
        if run.is_file() {
            std::os::unix::fs::symlink(run.canonicalize().unwrap(), found.trace()).unwrap();
            return found;
        }
        let to = found.folder.path().join("fragments");
        std::fs::create_dir(&to).unwrap();
        for fragment in std::fs::read_dir(run.join("fragments")).unwrap() {
            let fragment = fragment.unwrap();
            std::fs::copy(fragment.path(), to.join(fragment.file_name())).unwrap();
        }
        let folder = found.folder.path().to_owned();
        found.with_merged(folder)
    }

    /// Uses fragments of recorders, and their merged trace.
    pub(crate) fn from_fragments(fragments: impl IntoIterator<Item = Fragment>) -> Run {
        let run = Run::new();
        let to = run.folder.path().join("fragments");
        std::fs::create_dir(&to).unwrap();
        for fragment in fragments {
            fragment.write_here(&to);
        }
        let folder = run.folder.path().to_owned();
        run.with_merged(folder)
    }

    /// Uses the fragments that recorders would write for these events.
    pub(crate) fn recorded(lines: &[Value]) -> Run {
        Run::from_fragments(fragments(lines).into_values())
    }

    /// Uses the same fragments, but with every second process on another host.
    fn on_two_hosts(lines: &[Value]) -> Run {
        let mut fragments = fragments(lines);
        let others = fragments.values_mut().skip(1).step_by(2);
        others.for_each(|fragment| move_to_host(fragment, "node-4"));
        Run::from_fragments(fragments.into_values())
    }

    /// Returns the same run after a merge of its trace.
    fn merged(&self) -> Run {
        Run::new().with_merged(self.trace())
    }

    /// Returns the path to read: the fragments, or else the trace.
    fn input(&self) -> PathBuf {
        let folder = self.folder.path();
        match folder.join("fragments").exists() {
            true => folder.to_owned(),
            false => self.trace(),
        }
    }

    pub(crate) fn trace(&self) -> PathBuf {
        self.folder.path().join("trace.json")
    }

    pub(crate) fn tables(&self) -> PathBuf {
        let to = self.folder.path().join("tables");
        if !to.exists() {
            let tables = TablesOptions {
                to: to.clone(),
                ..TablesOptions::default()
            };
            write_tables(&Options::new([self.input()]), &tables, &Progress::default()).unwrap();
        }
        to
    }

    pub(crate) fn report(&self) -> RunReport {
        let options = ReportOptions {
            concurrency: true,
            whole: true,
            ..ReportOptions::default()
        };
        report_with(self.input(), &options)
    }

    /// Checks that a live reader of the run has the same request figures as the report.
    pub(crate) fn check_live(&self, report: &RunReport) {
        let mut reader = LiveReader::new(&self.input().join("fragments"));
        reader.poll();
        live_agrees(&reader.stats(), report);
    }

    /// Returns the rows of the statements in an engine, or `None` (with a message) if the engine cannot be installed.
    fn in_engine(&self, engine: &str) -> Option<Rows> {
        let statements = || STATEMENTS.iter().chain(&WHOLE);
        let texts: Vec<&str> = statements().map(|(_, text)| *text).collect();
        let answers = answers(&self.tables(), engine, &texts)?;
        Some(statements().map(|(name, _)| *name).zip(answers).collect())
    }

    /// Checks that DuckDB agrees with the report.
    pub(crate) fn check(&self, report: &RunReport) {
        if let Some(rows) = self.in_engine("duckdb") {
            all_agree(&rows, report);
        }
    }
}

/// Changes a fragment as if another host, and another boot of it, had written it.
pub(crate) fn move_to_host(fragment: &mut Fragment, host: &str) {
    let text = String::from_utf8(std::mem::take(&mut fragment.bytes)).unwrap();
    let text = text.replace("node-3", host).replace("0b1f7a3e", host);
    fragment.bytes = text.into_bytes();
}

/// Returns the fragments of the processes of some events.
pub(crate) fn fragments(lines: &[Value]) -> BTreeMap<u32, Fragment> {
    let mut by_pid: BTreeMap<u32, Fragment> = BTreeMap::new();
    for line in lines {
        let pid = u32::try_from(line["pid"].as_u64().unwrap()).unwrap();
        let process = FragmentProcess {
            main: by_pid.is_empty(),
            ..FragmentProcess::new(pid)
        };
        let fragment = by_pid.entry(pid).or_insert_with(|| {
            let mut fragment = process.fragment();
            fragment.line(&process.anchor(0));
            fragment
        });
        fragment.line(&line.to_string());
    }
    by_pid
}

/// Returns the rows of some statements in an engine, or `None` (with a message) if the engine cannot be installed.
pub(crate) fn answers(tables: &Path, engine: &str, statements: &[&str]) -> Option<Vec<Vec<Value>>> {
    let python = printed(Command::new(format!("{ENGINES}/python")).arg(engine), "")?;
    let mut command = match engine {
        "spark" => Command::new(format!("{ENGINES}/spark-cluster")),
        _ => Command::new("env"),
    };
    let words = "exec \"$0\" \"$@\" ${SPARK_MASTER:+--master \"$SPARK_MASTER\"}";
    command.args(["sh", "-c", words, python.trim(), PROGRAM]);
    command
        .args(["--engine", engine, "--format", "json"])
        .arg(tables);
    let lines = printed(&mut command, &statements.join("\0"))?;
    Some(arrays(&lines))
}

/// Parses arrays of rows that follow each other.
fn arrays(text: &str) -> Vec<Vec<Value>> {
    let arrays = serde_json::Deserializer::from_str(text).into_iter();
    let arrays = arrays.map(Result::unwrap);
    let array = |rows: Vec<BTreeMap<String, &RawValue>>| rows.into_iter().map(exact).collect();
    arrays.map(array).collect()
}

/// Converts a row, parsing floating-point numbers exactly. serde_json may be off in the last digit.
fn exact(row: BTreeMap<String, &RawValue>) -> Value {
    let members = row.into_iter().map(|(name, raw)| {
        let value: Value = serde_json::from_str(raw.get()).unwrap();
        match value.is_f64() {
            true => (name, json!(raw.get().parse::<f64>().unwrap())),
            false => (name, value),
        }
    });
    Value::Object(members.collect())
}

/// Returns a served run with ties: requests that arrive with two spans at the same time, either on one thread or in two
/// processes.
fn served_with_ties() -> Vec<Value> {
    let mut lines = served().finished();
    for (ts, other, dur) in [(0, 10, 40), (100, 11, 50), (200, 10, 40), (300, 11, 50)] {
        let [first, second, third] = [3, 9, 11].map(|us| ts + us);
        lines.extend(events(&format!(
            "X 10/70 {ts}+50 http.completions request_id=tie-{ts}
            X {other}/70 {ts}+{dur} http.chat request_id=tie-{ts}
            i 10 {first} request.token s=p request_id=tie-{ts}
            i 10 {second} request.token s=p request_id=tie-{ts}
            i {other} {third} request.token s=p request_id=tie-{ts}"
        )));
    }
    lines
}

/// The statements read tables that the report itself writes, so a few kinds of runs cover all columns and sums.
#[test]
fn statements_agree_with_the_report() {
    let runs = [served_with_ties(), growing_load(), planted_delays()];
    let cases = CASES.map(|name| case(name).events);
    for lines in runs.into_iter().chain(cases) {
        let run = Run::from_events(&lines);
        run.check(&run.report());
    }
}

/// The merge moves overlapping spans to tracks of their own.
#[test]
fn statements_on_names_agree_with_the_report() {
    for name in ["spans of other tools", "rare figures of names"] {
        let case = case(name);
        let raw = Run::from_events(&case.events);
        for run in [raw.merged(), raw] {
            let report = run.report();
            case.check(&report);
            run.check(&report);
        }
    }
}

/// Uses tables of two hosts, whose `upid`s are in another order than the processes.
#[test]
fn statements_on_two_hosts_agree_with_the_report() {
    for lines in [served_with_ties(), planted_delays()] {
        let run = Run::on_two_hosts(&lines);
        let report = run.report();
        let processes = report.recorded.processes.iter();
        let hosts: BTreeSet<_> = processes.map(|process| &process.host).collect();
        assert_eq!(hosts.len(), 2);
        assert!(!report.request.is_empty() && !report.long_gaps.is_empty());
        run.check(&report);
    }
}

/// Returns delays of each kind on devices whose names contain the workers that feed them, and collectives that took
/// longer to launch than to run.
fn planted_delays() -> Vec<Value> {
    let (mut server, mut numbers) = (Server::new(), Numbers::new(31));
    for nth in 0..4 * PLANTED.len() {
        server.idle(PLANTED[nth % PLANTED.len()], 5 + numbers.below(2_000));
    }
    server.add(
        "i 9 0 begin
        X 101/2 0+10 hcom_allGather_ host_wall_us=5 queue_us=8.0625
        X 101/2 20+10 hcom_allGather_ host_wall_us=11.5 queue_us=14.5625
        X 101/2 40+10 hcom_allGather_ host_wall_us=90.125 queue_us=93.1875",
    );
    let mut lines = server.finished();
    for line in &mut lines {
        let name = &mut line["args"]["name"];
        if let Some(number) = name.as_str().and_then(|name| name.strip_prefix("NPU ")) {
            *name = json!(format!("NPU {number} · w{number}"));
        }
    }
    lines
}

/// Spans on lanes are async work in fragments, in the merged trace, and in the tables. One lane has a number, one has a
/// name, and one has samples. The name of the thread resembles the name of the first lane.
#[test]
fn statements_on_lanes_agree_with_the_report() {
    let run = Run::recorded(&events(
        "T 41/41 'async io'
        X 41/41 1000+400 request request_id=a
        X 41/41 1500+400 worker.execute_model request_id=a
        T 41/4194304 'async 0'
        X 41/4194304 2000+400 request request_id=b
        X 41/4194304 2500+400 worker.execute_model request_id=b
        T 41/4194305 'Task-2 (async)'
        X 41/4194305 3000+400 request request_id=c
        X 41/4194305 3500+400 worker.execute_model request_id=c
        T 41/267386880 'samples MainThread'
        X 41/267386880 4000+400 request request_id=d
        X 41/267386880 4500+400 worker.execute_model request_id=d",
    ));
    let found = run.report();
    let kinds = |report: &RunReport| -> Vec<_> {
        let names = report.names.iter();
        let names = names.map(|name| (name.name.clone(), name.row_kind, name.ncall));
        names.collect()
    };
    assert_eq!(kinds(&report(run.trace())), kinds(&found));
    assert_eq!(kinds(&found).len(), 4, "{:?}", found.names);
    run.check(&found);
}

/// Returns a run with two processes that lost events, one of them several times for the same cause.
fn lossy() -> Run {
    Run::recorded(&events(
        "X 41/41 2000+900 step step=1
        i 41/41 3000 sa_loss cat=sa_profile s=p cause=ring_full events=7
        i 41/41 4000 sa_loss cat=sa_profile s=p cause=busy events=2
        i 41/41 5000 sa_loss cat=sa_profile s=p cause=ring_full events=5
        X 42/42 2000+900 step step=1
        i 42/42 3000 sa_loss cat=sa_profile s=p cause=ring_full events=1",
    ))
}

/// A row of the table contains all events that a process lost for one cause.
#[test]
fn statements_on_losses_agree_with_the_report() {
    let run = lossy();
    let report = run.report();
    assert_eq!(report.recorded.lost_events, 15);
    run.check(&report);
    let Some(duckdb) = run.in_engine("duckdb") else {
        return;
    };
    let first = &duckdb["losses"][0];
    let found = [&first["cause"], &first["events"], &first["losses"]];
    assert_eq!(json!(found), json!(["ring_full", 12, 1]));
}

#[test]
fn every_engine_has_the_same_rows() {
    let is_full = std::env::var_os("SA_PROFILE_FULL").is_some_and(|value| value == "1");
    if !is_full {
        return;
    }
    // All traces are joined, because a cluster takes a minute to answer at all.
    let parts = [served().finished(), growing_load(), planted_delays()];
    let cases = CASES.map(|name| case(name).events);
    let lines = (0..)
        .step_by(1_000)
        .zip(parts.into_iter().chain(cases))
        .flat_map(|(first_pid, lines)| {
            lines.into_iter().map(move |mut line| {
                line["pid"] = json!(line["pid"].as_u64().unwrap() + first_pid);
                line
            })
        });
    for run in [Run::from_events(&lines.collect::<Vec<_>>()), lossy()] {
        let Some(duckdb) = run.in_engine("duckdb") else {
            return;
        };
        for engine in ["datafusion", "spark"] {
            if let Some(found) = run.in_engine(engine) {
                agree(&duckdb, &found);
            }
        }
    }
}

/// Checks recorded runs and traces, whose paths are in `SA_TEST_RUNS`, separated by colons. A full run of `check.sh`
/// uses the demo's and vLLM's.
#[test]
#[ignore = "SA_TEST_RUNS names its runs"]
fn statements_on_recorded_runs_agree_with_the_report() {
    let runs = std::env::var_os("SA_TEST_RUNS").unwrap();
    for run in std::env::split_paths(&runs) {
        let run = Run::from_path(&run);
        let report = run.report();
        assert!(!report.names.is_empty());
        run.check(&report);
    }
}

/// Tables of `trace.json` as version 0.1.0 wrote them (`sa-profile tables trace.json --to tables --host-id 1`) can
/// still be read.
#[test]
fn tables_of_schema_1_are_read() {
    let count = "SELECT COUNT(*) AS n, SUM(dur) AS dur FROM slice";
    let rows_of = |tables: &Path| answers(tables, "duckdb", &[count]);
    let old = fixture("tables-schema-1");
    let Some(rows) = rows_of(&old.join("tables")) else {
        return;
    };
    let now = Run::new();
    std::fs::copy(old.join("trace.json"), now.trace()).unwrap();
    assert_eq!(rows, rows_of(&now.tables()).unwrap());
}
