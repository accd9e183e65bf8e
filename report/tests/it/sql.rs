//! The statements of `report/sql` over the tables of a run: they say what the report says, in each engine.

mod agreement;

use crate::golden::fixture;
use crate::growth::{preempted, swept};
use crate::idle::{PLANTED, Server, four_ranks};
use crate::oracle::Numbers;
use crate::page::served;
use crate::random_server::{at_random, begin};
use crate::tool::printed;
use agreement::{agree, all_agree};
use format_oracle::writer::Process as FragmentProcess;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use trace_merge::{Options, Output, Progress};
use trace_report::{ReportOptions, RunReport, STATEMENTS, read};
use trace_tables::{TablesOptions, write_tables};

const ENGINES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/sql");
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sql/engine.py");
/// Whole tables, apart from the statements.
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

/// The rows of each statement.
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

    /// Writes the merge's trace of an input.
    fn with_merged(self, input: PathBuf) -> Run {
        let options = Options {
            output: Output::File(self.trace()),
            ..Options::new([input])
        };
        trace_merge::merge(&options).unwrap();
        self
    }

    pub(crate) fn of_lines(lines: &[Value]) -> Run {
        let run = Run::new();
        std::fs::write(run.trace(), json!({ "traceEvents": lines }).to_string()).unwrap();
        run
    }

    /// The merge's trace of a fixture: Perfetto drops overlapping spans, which there have rows of their own.
    pub(crate) fn of_fixture(name: &str) -> Run {
        Run::new().with_merged(fixture(name))
    }

    /// What a program recorded, or a trace.
    pub(crate) fn of_run(run: &Path) -> Run {
        if run.is_file() {
            let found = Run::new();
            std::os::unix::fs::symlink(run.canonicalize().unwrap(), found.trace()).unwrap();
            return found;
        }
        let fragments = std::fs::read_dir(run.join("fragments")).unwrap();
        Run::of_files(fragments.map(|fragment| {
            let path = fragment.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            (name.to_owned(), std::fs::read(&path).unwrap())
        }))
    }

    /// What recorders left, and the merge's trace of it.
    pub(crate) fn of_fragments(fragments: impl IntoIterator<Item = (u32, Vec<u8>)>) -> Run {
        let fragments = fragments.into_iter();
        Run::of_files(fragments.map(|(pid, bytes)| (format!("trace.{pid}.jsonl"), bytes)))
    }

    fn of_files(fragments: impl Iterator<Item = (String, Vec<u8>)>) -> Run {
        let run = Run::new();
        let to = run.folder.path().join("fragments");
        std::fs::create_dir(&to).unwrap();
        for (name, bytes) in fragments {
            std::fs::write(to.join(name), bytes).unwrap();
        }
        let folder = run.folder.path().to_owned();
        run.with_merged(folder)
    }

    /// A process whose async spans lie on lanes with a number and with a name, and whose samples lie on another. A thread is called much like the first.
    fn of_lanes() -> Run {
        const LANE: u32 = 1 << 22;
        let process = FragmentProcess::new(41);
        let mut fragment = process.fragment();
        fragment.line(&process.anchor(1_000_000));
        for (tid, name, ns) in [
            (41, "async io", 1_000_000),
            (LANE, "async 0", 2_000_000),
            (LANE + 1, "Task-2 (async)", 3_000_000),
            ((1 << 28) - (1 << 20), "samples MainThread", 4_000_000),
        ] {
            let on = process.thread(tid);
            fragment.line(&on.metadata("thread_name", &format!("\"name\":\"{name}\"")));
            for (nth, span) in (0..).zip(["request", "worker.execute_model"]) {
                let begin = ns + 500_000 * nth;
                let id = format!(r#""request_id":"a{ns}""#);
                fragment.line(&on.span(begin, 400_000, span, &id));
            }
        }
        fragment.line(&process.anchor(9_000_000));
        Run::of_fragments([(41, fragment.bytes)])
    }

    /// Two processes that lost events, as recorders leave them.
    fn of_losses() -> Run {
        let lost = [
            (41, &[("ring_full", 7), ("busy", 2), ("ring_full", 5)][..]),
            (42, &[("ring_full", 1)]),
        ];
        Run::of_fragments(lost.map(|(pid, lost)| {
            let process = FragmentProcess {
                main: pid == 41,
                ..FragmentProcess::new(pid)
            };
            let on = process.main_thread();
            let mut fragment = process.fragment();
            fragment.line(&process.anchor(1_000_000));
            fragment.line(&on.span(2_000_000, 900_000, "step", r#""step":1"#));
            for (ns, (cause, events)) in (3_000_000..).step_by(1_000_000).zip(lost) {
                fragment.line(&on.loss(ns, cause, *events, ""));
            }
            fragment.line(&process.anchor(9_000_000));
            (pid, fragment.bytes)
        }))
    }

    /// The processes of some lines, as recorders on two hosts leave them: the processes take turns.
    fn on_two_hosts(lines: &[Value]) -> Run {
        let mut by_pid: BTreeMap<u32, Vec<&Value>> = BTreeMap::new();
        for line in lines {
            let pid = u32::try_from(line["pid"].as_u64().unwrap()).unwrap();
            by_pid.entry(pid).or_default().push(line);
        }
        Run::of_fragments((0..).zip(by_pid).map(|(nth, (pid, lines))| {
            let process = FragmentProcess {
                main: nth == 0,
                ..FragmentProcess::new(pid)
            };
            let mut fragment = process.fragment();
            fragment.line(&process.anchor(0));
            for line in lines {
                fragment.line(&line.to_string());
            }
            let mut text = String::from_utf8(fragment.bytes).unwrap();
            if nth % 2 == 1 {
                text = text
                    .replace("node-3", "node-4")
                    .replace("0b1f7a3e", "1c2f7a3e");
            }
            (pid, text.into_bytes())
        }))
    }

    /// Returns the same run after a merge of its trace.
    fn merged(&self) -> Run {
        Run::new().with_merged(self.trace())
    }

    /// What is read: what recorders left, or else the trace.
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
            ..ReportOptions::default()
        };
        let input = Options::new([self.input()]);
        read(&input, &options, &Progress::default()).unwrap()
    }

    /// Returns the rows of the statements, in an engine; nothing (said loudly) where it cannot be had.
    fn in_engine(&self, engine: &str) -> Option<Rows> {
        let statements = || STATEMENTS.iter().chain(&WHOLE);
        let texts: Vec<&str> = statements().map(|(_, text)| *text).collect();
        let answers = answers(&self.tables(), engine, &texts)?;
        Some(statements().map(|(name, _)| *name).zip(answers).collect())
    }

    /// Checks that DuckDB finds what the report says.
    pub(crate) fn check(&self, report: &RunReport) {
        if let Some(rows) = self.in_engine("duckdb") {
            all_agree(&rows, report);
        }
    }
}

/// Returns the rows of some statements, in an engine; nothing (said loudly) where it cannot be had.
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

/// Arrays of rows, one after the other.
fn arrays(text: &str) -> Vec<Vec<Value>> {
    let arrays = serde_json::Deserializer::from_str(text).into_iter();
    let arrays = arrays.map(Result::unwrap);
    let array = |rows: Vec<BTreeMap<String, &RawValue>>| rows.into_iter().map(exact).collect();
    arrays.map(array).collect()
}

/// A row whose doubles have all digits of its text: serde_json's own may be off by one in the last.
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

/// A served run. A moment is one of its process. Requests came with two spans at one time: of one thread, and of two processes.
fn served_with_ties() -> Vec<Value> {
    let mut lines = served().finished();
    let token = |pid: u64, ts: u64, id: &str| json!({"ph": "i", "pid": pid, "tid": 1, "ts": ts, "s": "p", "name": "request.token", "args": {"request_id": id}});
    let span = |pid: u64, ts: u64, dur: u64, name: &str, id: &str| json!({"ph": "X", "pid": pid, "tid": 70, "ts": ts, "dur": dur, "name": name, "args": {"request_id": id}});
    for (nth, id) in ["tie-0", "tie-1", "tie-2", "tie-3"].into_iter().enumerate() {
        let ts = 100 * nth as u64;
        let (other, dur) = if nth % 2 == 0 { (10, 40) } else { (11, 50) };
        lines.push(span(10, ts, 50, "http.completions", id));
        lines.push(span(other, ts, dur, "http.chat", id));
        lines.extend([
            token(10, ts + 3, id),
            token(10, ts + 9, id),
            token(other, ts + 11, id),
        ]);
    }
    lines
}

/// The statements read tables that the report itself writes, row by row, so a few kinds of runs show all columns and sums.
#[test]
fn statements_say_what_the_report_says() {
    let runs = [
        served_with_ties(),
        four_ranks(),
        steps_and_queues(),
        swept(),
        preempted(),
        planted(),
        at_random(1),
        at_random(2),
    ];
    for lines in runs {
        let run = Run::of_lines(&lines);
        run.check(&run.report());
    }
}

/// A begin and an end at one time, the end without a name, and spans that clash. Expected: ALLREDUCE 60 µs, WAIT 0, self time of `forward` 30 µs.
#[test]
fn statements_on_spans_of_others_say_what_the_report_says() {
    let span = |name: &str, ts: f64, end: f64| json!({"ph":"X","name":name,"ts":ts,"dur":end - ts,"pid":1,"tid":2});
    let raw = Run::of_lines(&[
        json!({"ph":"B","name":"ALLREDUCE","ts":10,"pid":1}),
        json!({"ph":"B","name":"WAIT","ts":12,"pid":1}),
        json!({"ph":"E","ts":12,"pid":1}),
        json!({"ph":"E","ts":70,"pid":1}),
        json!({"ph":"B","name":"WAIT","ts":80,"pid":1}),
        json!({"ph":"E","ts":81,"pid":1}),
        span("forward", 0.0, 1_000.0),
        span("__enter__", 10.0, 20.5),
        span("step", 20.0, 990.0),
    ]);
    for run in [raw.merged(), raw] {
        let report = run.report();
        let of = |name: &str| {
            let found = report.names.iter().find(|found| found.name == name);
            found.map(|found| (found.ncall, found.ttot_ns, found.tsub_ns))
        };
        assert_eq!(of("ALLREDUCE"), Some((1, 60_000, 60_000)));
        assert_eq!(of("WAIT"), Some((2, 1_000, 1_000)));
        assert_eq!(of("forward"), Some((1, 1_000_000, 30_000)));
        assert_eq!(of("__enter__"), Some((1, 10_500, 10_500)));
        assert_eq!(of("step"), Some((1, 970_000, 970_000)));
        run.check(&report);
    }
}

/// Steps with prompts, with answers and with both, one after a pause; streams whose launches wait in turn.
fn steps_and_queues() -> Vec<Value> {
    let mut lines = vec![
        json!({"ph": "M", "pid": 7, "name": "process_name", "args": {"name": "EngineCore"}}),
        json!({"ph": "M", "pid": 8, "name": "process_name", "args": {"name": "NPU 0"}}),
        json!({"ph": "M", "pid": 8, "tid": 2, "name": "thread_name", "args": {"name": "Stream 2"}}),
        json!({"ph": "M", "pid": 8, "tid": 3, "name": "thread_name", "args": {"name": "Stream 3"}}),
    ];
    for (ts, prefill, decode) in [
        (0, 9, 0),
        (100, 0, 2),
        (220, 0, 2),
        (500, 7, 2),
        (600, 0, 3),
        (11_000_000, 0, 3),
        (11_000_130, 0, 3),
        (11_000_400, 1, 3),
    ] {
        lines.push(json!({"ph": "C", "pid": 7, "tid": 1, "ts": ts, "name": "tokens", "args": {"prefill": prefill, "decode": decode}}));
    }
    lines.push(json!({"ph": "C", "pid": 7, "tid": 1, "ts": 40, "name": "speculation", "args": {"accepted": 4}}));
    for (ts, drafted, accepted) in [(50, 8, 5), (260, 4, 0)] {
        lines.push(json!({"ph": "C", "pid": 7, "tid": 1, "ts": ts, "name": "speculation", "args": {"drafted": drafted, "accepted": accepted}}));
    }
    // The third was launched before the second; the last two begin as they are launched, one behind the other.
    let queues = [
        (10, 9.5),
        (25, 13.0),
        (40, 28.5),
        (60, 46.0),
        (75, 0.0),
        (90, 20.0),
        (99, 0.25),
    ];
    for (tid, scale) in [(2, 1), (3, 3)] {
        for (nth, (ts, queue_us)) in queues.into_iter().enumerate() {
            let category = if nth % 4 == 1 { "graph" } else { "kernel" };
            lines.push(json!({"ph": "X", "pid": 8, "tid": tid, "ts": ts * scale, "dur": 9 * scale, "cat": category, "name": "k", "args": {"queue_us": queue_us}}));
        }
    }
    lines.push(json!({"ph": "X", "pid": 8, "tid": 3, "ts": 900, "dur": 5, "name": "nobody knows when it was launched"}));
    lines
}

/// CPU time of a thread that waits, a span without an end, and an async span that ends after the one in which it begins.
#[test]
fn statements_on_rare_figures_of_names_say_what_the_report_says() {
    let on_cpu = |ts: u64, dur: u64, tdur: u64, name: &str| json!({"ph": "X", "pid": 1, "tid": 1, "ts": ts, "dur": dur, "tts": 0, "tdur": tdur, "name": name});
    let task = |ph: &str, ts: u64, name: &str| json!({"ph": ph, "pid": 1, "tid": 2, "ts": ts, "id2": {"local": "0x1"}, "cat": "task", "name": name});
    let run = Run::of_lines(&[
        on_cpu(0, 100, 30, "outer"),
        on_cpu(10, 60, 5, "waits"),
        on_cpu(80, 3, 1, "waits"),
        json!({"ph": "B", "pid": 1, "tid": 3, "ts": 50, "name": "open"}),
        task("b", 0, "first"),
        task("b", 5, "last"),
        task("e", 10, "first"),
        task("e", 15, "last"),
    ]);
    let report = run.report();
    let of = |name: &str| report.names.iter().find(|of| of.name == name).unwrap();
    let outer = of("outer");
    assert_eq!(
        (outer.ttot_cpu_ns, outer.tsub_cpu_ns),
        (Some(30_000), Some(24_000))
    );
    assert_eq!((of("last").crossing, of("open").unfinished), (1, 1));
    run.check(&report);
}

/// Steps of a process that is worker and engine: those of the worker are the first ones in the table.
#[test]
fn statements_on_a_worker_that_is_an_engine_say_what_the_report_says() {
    let mut lines = Vec::new();
    for ts in (0..4_000_u64).step_by(100) {
        let args = json!({"request_ids": ["a", "b"]});
        lines.push(json!({"ph": "X", "pid": 7, "tid": 1, "ts": ts, "dur": 20 + ts / 200, "cat": "worker", "name": "model_runner.execute_model", "args": args}));
        lines.push(json!({"ph": "C", "pid": 7, "tid": 1, "ts": ts + 30, "name": "tokens", "args": {"prefill": 0, "decode": 2}}));
    }
    let run = Run::of_lines(&lines);
    let report = run.report();
    assert_eq!(
        (report.slow_steps.len(), report.batching[0].steps),
        (10, 40)
    );
    run.check(&report);
}

/// Rows of two hosts, whose `upid`s are in another order than the processes.
#[test]
fn statements_on_two_hosts_say_what_the_report_says() {
    for lines in [served_with_ties(), at_random(5)] {
        let run = Run::on_two_hosts(&lines);
        let report = run.report();
        let processes = report.recorded.processes.iter();
        let hosts: BTreeSet<_> = processes.map(|process| &process.host).collect();
        assert_eq!(hosts.len(), 2);
        assert!(!report.request.is_empty() && !report.long_gaps.is_empty());
        run.check(&report);
    }
}

/// Delays of each kind on devices whose names say who feeds them, and collectives that the host took longer to launch.
fn planted() -> Vec<Value> {
    let (mut server, mut numbers) = (Server::new(), Numbers::new(31));
    for nth in 0..4 * PLANTED.len() {
        server.idle(PLANTED[nth % PLANTED.len()], 5 + numbers.below(2_000));
    }
    let mut lines = server.finished();
    for line in &mut lines {
        let name = &mut line["args"]["name"];
        if let Some(number) = name.as_str().and_then(|name| name.strip_prefix("NPU ")) {
            *name = json!(format!("NPU {number} · w{number}"));
        }
    }
    lines.push(begin());
    for (nth, host_us) in [(0_u64, 5.0), (1, 11.5), (2, 90.125)] {
        lines.push(json!({"ph": "X", "pid": 101, "tid": 2, "ts": 20 * nth, "dur": 10, "name": "hcom_allGather_", "args": {"host_wall_us": host_us, "queue_us": 3.0625 + host_us}}));
    }
    lines
}

/// What lies on lanes is async work in fragments, in the trace of them, and in the tables.
#[test]
fn statements_on_lanes_say_what_the_report_says() {
    let run = Run::of_lanes();
    let report = run.report();
    let kinds = |report: &RunReport| -> Vec<_> {
        let names = report
            .names
            .iter()
            .map(|name| (name.name.clone(), name.row_kind, name.ncall));
        names.collect()
    };
    let of_trace = crate::golden::report(run.trace());
    assert_eq!(kinds(&of_trace), kinds(&report));
    assert_eq!(kinds(&report).len(), 4, "{:?}", report.names);
    run.check(&report);
}

/// What recorders lost, several times for one cause: a row of the table has all that a process lost for one.
#[test]
fn statements_on_losses_say_what_the_report_says() {
    let run = Run::of_losses();
    let report = run.report();
    assert_eq!(report.recorded.lost_events, 15);
    run.check(&report);
    let Some(duckdb) = run.in_engine("duckdb") else {
        return;
    };
    let first = &duckdb["losses"][0];
    assert_eq!(first["cause"], "ring_full");
    assert_eq!(
        (&first["events"], &first["losses"]),
        (&json!(12), &json!(1))
    );
}

#[test]
fn every_engine_has_the_same_rows() {
    let is_full = std::env::var_os("SA_PROFILE_FULL").is_some_and(|value| value == "1");
    if !is_full {
        return;
    }
    // One trace of all: a cluster takes a minute to say anything.
    let parts = [
        served().finished(),
        four_ranks(),
        swept(),
        preempted(),
        steps_and_queues(),
        planted(),
    ];
    let lines = (0..)
        .step_by(1_000)
        .zip(parts)
        .flat_map(|(first_pid, lines)| {
            lines.into_iter().map(move |mut line| {
                line["pid"] = json!(line["pid"].as_u64().unwrap() + first_pid);
                line
            })
        });
    for run in [Run::of_lines(&lines.collect::<Vec<_>>()), Run::of_losses()] {
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

/// Runs that programs recorded, whose directories `SA_TEST_RUNS` names, with a colon between them; and traces. A full run of `check.sh` names the demo's and vLLM's.
#[test]
#[ignore = "SA_TEST_RUNS names its runs"]
fn statements_on_recorded_runs_say_what_the_report_says() {
    let runs = std::env::var_os("SA_TEST_RUNS").unwrap();
    for run in std::env::split_paths(&runs) {
        let run = Run::of_run(&run);
        let report = run.report();
        assert!(!report.names.is_empty());
        run.check(&report);
    }
}

/// The tables of `trace.json` as version 0.1.0 wrote them (`sa-profile tables trace.json --to tables --host-id 1`). Later versions read them.
#[test]
fn tables_of_schema_1_are_read() {
    let count = "SELECT COUNT(*) AS n, SUM(dur) AS dur FROM slice";
    let of = |tables: &Path| answers(tables, "duckdb", &[count]);
    let old = fixture("tables-schema-1");
    let Some(rows) = of(&old.join("tables")) else {
        return;
    };
    let now = Run::new();
    std::fs::copy(old.join("trace.json"), now.trace()).unwrap();
    assert_eq!(rows, of(&now.tables()).unwrap());
}

/// Twelve gaps of one length. The first one waits for its cause, which comes when the others are over.
#[test]
fn gaps_of_one_length_are_those_of_the_report() {
    let labels = |pid: u64, labels: &str| json!({"ph": "M", "pid": pid, "tid": 1, "name": "process_labels", "args": {"labels": labels}});
    let mut lines = vec![labels(11, "pid 11"), labels(101, "NPU 0, pid 11")];
    lines.push(json!({"ph": "X", "pid": 11, "tid": 1, "ts": 0, "dur": 3000, "name": "WorkerWrapperBase.execute_model", "cat": "worker"}));
    let kernel = |ts: u64, args: Value| json!({"ph": "X", "pid": 101, "tid": 1, "ts": ts, "dur": 10, "name": "matmul", "cat": "kernel", "args": args});
    let launch = |ts: u64| json!({"ph": "X", "pid": 11, "tid": 1, "ts": ts, "dur": 1, "name": "matmul", "cat": "kernel"});
    lines.extend([kernel(10, json!({"queue_us": 0})), launch(10)]);
    let mut now = 20;
    for nth in 0..12 {
        if nth > 0 {
            lines.push(json!({"ph": "X", "pid": 11, "tid": 2, "ts": now, "dur": 50, "name": "gc.collect", "cat": "python"}));
        }
        now += 50;
        lines.push(kernel(now, json!({})));
        now += 10;
    }
    now += 5;
    lines.extend([kernel(now, json!({"queue_us": 0})), launch(now)]);
    let run = Run::of_lines(&lines);
    run.check(&run.report());
}
