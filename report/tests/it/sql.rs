//! The statements of `report/sql` over the tables of a run: they say what the report says, in each engine.

use crate::golden::{fixture, report};
use crate::growth::{preempted, swept};
use crate::idle::{PLANTED, Server, four_ranks};
use crate::oracle::Numbers;
use crate::page::served;
use crate::random_server::{at_random, begin};
use crate::request_lives::request;
use crate::writer::Process as FragmentProcess;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use trace_merge::{Options, Output, Progress};
use trace_report::{IdleCause, Quantiles, ReportOptions, RunReport, STATEMENTS, read};
use trace_tables::{TablesOptions, write_tables};

const ENGINES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/sql");
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sql/engine.py");
/// What scripts exit with where something cannot be set up.
const NOT_HERE: i32 = 3;
/// Whole tables, apart from the statements.
const WHOLE: [(&str, &str); 4] = [
    ("every request", "SELECT * FROM request"),
    ("every step", "SELECT * FROM step"),
    (
        "mean TTFT",
        "SELECT COUNT(*) AS n, AVG(ttft_us) AS ttft_us FROM request",
    ),
    ("every interval", "SELECT * FROM idle"),
];

/// The rows of each statement.
type Rows = BTreeMap<&'static str, Vec<Value>>;

/// A trace in a file, and its tables.
pub(crate) struct Run {
    folder: TempDir,
}

impl Run {
    pub(crate) fn of_lines(lines: &[Value]) -> Run {
        let folder = TempDir::new().unwrap();
        let trace = folder.path().join("trace.json");
        std::fs::write(&trace, json!({ "traceEvents": lines }).to_string()).unwrap();
        Run { folder }
    }

    /// The merge's trace of a fixture: Perfetto drops overlapping spans, which there have rows of their own.
    fn of_fixture(name: &str) -> Run {
        let folder = TempDir::new().unwrap();
        let mut options = Options::new([fixture(name)]);
        options.output = Output::File(folder.path().join("trace.json"));
        trace_merge::merge(&options).unwrap();
        Run { folder }
    }

    /// What a program recorded, or a trace.
    pub(crate) fn of_run(run: &Path) -> Run {
        let folder = TempDir::new().unwrap();
        if run.is_file() {
            let trace = run.canonicalize().unwrap();
            std::os::unix::fs::symlink(trace, folder.path().join("trace.json")).unwrap();
            return Run { folder };
        }
        let to = folder.path().join("fragments");
        std::fs::create_dir(&to).unwrap();
        for fragment in std::fs::read_dir(run.join("fragments")).unwrap() {
            let fragment = fragment.unwrap();
            std::fs::copy(fragment.path(), to.join(fragment.file_name())).unwrap();
        }
        let mut options = Options::new([folder.path().to_owned()]);
        options.output = Output::File(folder.path().join("trace.json"));
        trace_merge::merge(&options).unwrap();
        Run { folder }
    }

    /// A process whose async spans lie on lanes with a number and with a name, and whose samples lie on another. A thread is called much like the first.
    fn of_lanes() -> Run {
        const LANE: u32 = 1 << 22;
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join("fragments")).unwrap();
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
        let path = folder.path().join("fragments/trace.41.jsonl");
        std::fs::write(path, fragment.bytes).unwrap();
        let mut options = Options::new([folder.path().to_owned()]);
        options.output = Output::File(folder.path().join("trace.json"));
        trace_merge::merge(&options).unwrap();
        Run { folder }
    }

    /// Two processes that lost events, as recorders leave them.
    fn of_losses() -> Run {
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join("fragments")).unwrap();
        for (pid, lost) in [
            (41, &[("ring_full", 7), ("busy", 2), ("ring_full", 5)][..]),
            (42, &[("ring_full", 1)]),
        ] {
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
            let path = folder.path().join(format!("fragments/trace.{pid}.jsonl"));
            std::fs::write(path, fragment.bytes).unwrap();
        }
        let mut options = Options::new([folder.path().to_owned()]);
        options.output = Output::File(folder.path().join("trace.json"));
        trace_merge::merge(&options).unwrap();
        Run { folder }
    }

    /// Returns the same run after a merge of its trace.
    fn merged(&self) -> Run {
        let folder = TempDir::new().unwrap();
        let mut options = Options::new([self.trace()]);
        options.output = Output::File(folder.path().join("trace.json"));
        trace_merge::merge(&options).unwrap();
        Run { folder }
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

    fn tables(&self) -> PathBuf {
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
        read(
            &Options::new([self.input()]),
            &options,
            &Progress::default(),
        )
        .unwrap()
    }

    /// Returns the rows of the statements, in an engine; nothing (said loudly) where it cannot be had.
    fn in_engine(&self, test: &str, engine: &str) -> Option<Rows> {
        rows_of(&self.tables(), test, engine)
    }

    /// Checks that DuckDB finds what the report says.
    pub(crate) fn check(&self, test: &str, report: &RunReport) {
        if let Some(rows) = self.in_engine(test, "duckdb") {
            all_agree(&rows, report);
        }
    }
}

/// Those of the statements on tables, in an engine; nothing (said loudly) where it cannot be had.
fn rows_of(tables: &Path, test: &str, engine: &str) -> Option<Rows> {
    let statements = || STATEMENTS.iter().chain(&WHOLE);
    let texts: Vec<&str> = statements().map(|(_, text)| *text).collect();
    let names = statements().map(|(name, _)| *name);
    Some(names.zip(answers(tables, test, engine, &texts)?).collect())
}

/// Returns the rows of some statements, in an engine; nothing (said loudly) where it cannot be had.
fn answers(
    tables: &Path,
    test: &str,
    engine: &str,
    statements: &[&str],
) -> Option<Vec<Vec<Value>>> {
    let python = printed(
        test,
        Command::new(format!("{ENGINES}/python")).arg(engine),
        "",
    )?;
    let mut command = match engine {
        "spark" => Command::new(format!("{ENGINES}/spark-cluster")),
        _ => Command::new("env"),
    };
    let words = "exec \"$0\" \"$@\" ${SPARK_MASTER:+--master \"$SPARK_MASTER\"}";
    command.args(["sh", "-c", words, python.trim(), PROGRAM]);
    command
        .args(["--engine", engine, "--format", "json"])
        .arg(tables);
    let lines = printed(test, &mut command, &statements.join("\0"))?;
    Some(arrays(&lines))
}

/// What a command prints; nothing (said loudly) where it cannot be set up.
#[expect(clippy::print_stderr, reason = "it says where it does not run")]
fn printed(test: &str, command: &mut Command, input: &str) -> Option<String> {
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = pipes.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let _ = writer.join(); // a command that needs none may have ended before
    let words = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(NOT_HERE) {
        eprint!("SKIPPED {test}: {words}");
        return None;
    }
    assert!(output.status.success(), "{command:?}: {words}");
    Some(String::from_utf8(output.stdout).unwrap())
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

/// Returns a row for a comparison of engines. They add doubles in orders of their own.
fn comparable(row: &Value) -> String {
    let row = row.as_object().unwrap().iter();
    let plain = row.map(|(name, value)| match value.as_f64() {
        Some(number) => format!("{name}: {number:.9e}"),
        None => format!("{name}: {value}"),
    });
    plain.collect::<Vec<_>>().join(", ")
}

/// Checks that two engines have the same rows.
fn agree(one: &Rows, other: &Rows) {
    for (name, rows) in one {
        let comparable = |rows: &[Value]| {
            let mut rows: Vec<String> = rows.iter().map(comparable).collect();
            if WHOLE.iter().any(|(whole, _)| whole == name) {
                rows.sort();
            }
            rows
        };
        assert_eq!(comparable(rows), comparable(&other[name]), "{name}");
    }
}

/// Returns true for numbers that differ by no more than the rounding of their sums.
fn near(found: &Value, expected: f64) -> bool {
    let found = found.as_f64().unwrap_or(f64::NAN);
    (found - expected).abs() <= 1e-9 * expected.abs().max(1.0)
}

/// Returns a time in µs as whole ns.
#[expect(clippy::cast_possible_truncation, reason = "times of a trace")]
fn ns(us: &Value) -> i64 {
    (us.as_f64().unwrap_or(f64::NAN) * 1e3).round() as i64
}

fn row(rows: &[Value], is_wanted: impl Fn(&Value) -> bool) -> &Value {
    let found = rows.iter().find(|row| is_wanted(row));
    found.unwrap_or_else(|| panic!("not in {rows:?}"))
}

fn quantiles_agree(row: &Value, of: &Quantiles) {
    assert_eq!(ns(&row["max_us"]), of.max_ns, "{of:?}: {row}");
    for (name, expected) in [
        ("p50_us", of.p50_ns),
        ("p90_us", of.p90_ns),
        ("p99_us", of.p99_ns),
    ] {
        assert!(near(&row[name], expected / 1e3), "{name} {of:?}: {row}");
    }
}

/// Checks every column of every request, the figures of all, and where their time goes.
fn requests_agree(rows: &Rows, report: &RunReport) {
    let plain = |row: &Value, process: Option<String>| {
        let mut row = row.as_object().unwrap().clone();
        row.retain(|name, _| !matches!(name.as_str(), "upid" | "host"));
        row.insert("process".to_owned(), json!(process));
        let cells = row.into_iter().map(|(name, value)| match value.as_f64() {
            Some(number) => format!("{name} {number:?}"),
            None => format!("{name} {value}"),
        });
        cells.collect::<Vec<_>>()
    };
    let found = rows["every request"].iter();
    let mut found: Vec<_> = found
        .map(|row| plain(row, row["process"].as_str().map(str::to_owned)))
        .collect();
    let mut expected: Vec<_> = report
        .request
        .iter()
        .map(|request| {
            let process = request.process();
            let process = process.map(|process| report.recorded.process_name(process));
            plain(&serde_json::to_value(request).unwrap(), process)
        })
        .collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    let summary = &report.requests;
    let metrics = [
        ("queue", summary.queue),
        ("prefill", summary.prefill),
        ("decode", summary.decode),
        ("engine_ttft", summary.engine_ttft),
        ("ttft", summary.ttft),
        ("tpot", summary.tpot),
        ("e2e", summary.e2e),
        ("application_ttft", summary.application_ttft),
        ("application_e2e", summary.application_e2e),
    ];
    let known = metrics.iter().filter(|(_, of)| of.n > 0);
    assert_eq!(rows["request_summary"].len(), known.clone().count());
    for (name, of) in known {
        let row = row(&rows["request_summary"], |row| row["metric"] == *name);
        assert_eq!(
            (&row["n"], ns(&row["min_us"])),
            (&json!(of.n), of.min_ns),
            "{row}"
        );
        assert!(near(&row["mean_us"], of.mean_ns / 1e3), "{row} {of:?}");
        quantiles_agree(row, of);
    }
    let parts = &rows["request_parts"][0];
    let mut expected: BTreeMap<String, f64> = BTreeMap::new();
    for part in &report.request_parts.parts {
        let last = part.name.rsplit(" + ").next().unwrap().to_lowercase();
        *expected.entry(format!("{last}_us")).or_default() += part.mean_ns / 1e3;
    }
    assert_eq!(parts["n"], json!(report.request_parts.n));
    for (name, mean_us) in expected {
        assert!(near(&parts[&name], mean_us), "{name} {mean_us}: {parts}");
    }
}

/// Checks the calls and times of every name.
fn names_agree(rows: &Rows, report: &RunReport) {
    assert_eq!(rows["names"].len(), report.names.len());
    for name in &report.names {
        let found = row(&rows["names"], |row| {
            row["name"] == json!(name.name)
                && row["row_kind"] == json!(name.row_kind)
                && row["category"] == json!(name.category)
        });
        let counts = [&found["ncall"], &found["ncall_outermost"]];
        let expected = [json!(name.ncall), json!(name.ncall_outermost)];
        assert_eq!(counts, expected.each_ref(), "{name:?}");
        let times = (ns(&found["ttot_us"]), ns(&found["tsub_us"]));
        assert_eq!(times, (name.ttot_ns, name.tsub_ns), "{name:?}");
        if name.duration.n > 0 {
            quantiles_agree(found, &name.duration);
        }
    }
}

/// Checks how busy devices were, why they were idle, and their longest gaps.
fn devices_agree(rows: &Rows, report: &RunReport) {
    let devices = || report.device.iter().chain(&report.worker);
    assert_eq!(rows["devices"].len(), devices().count());
    for (found, device) in rows["devices"].iter().zip(devices()) {
        let name = report.recorded.process_name(device.process);
        let counts = [&found["process"], &found["slices"], &found["launches"]];
        let expected = [
            json!(name),
            json!(device.slices),
            json!(device.launch_delay.n),
        ];
        assert_eq!(counts, expected.each_ref());
        for (key, expected) in [
            ("wall_us", device.wall_ns),
            ("busy_us", device.busy_ns),
            ("communication_us", device.communication_ns),
            ("exposed_communication_us", device.exposed_communication_ns),
            ("longest_gap_us", device.longest_gap_ns),
        ] {
            assert_eq!(ns(&found[key]), expected, "{key} of {found}");
        }
    }
    let mut found: BTreeMap<(String, String), i64> = BTreeMap::new();
    let (mut expected, mut intervals) = (found.clone(), found.clone());
    let key = |row: &Value| ["process", "cause"].map(|key| row[key].as_str().unwrap().to_owned());
    for row in &rows["idle"] {
        *found.entry(key(row).into()).or_default() += ns(&row["idle_us"]);
    }
    for row in &rows["every interval"] {
        *intervals.entry(key(row).into()).or_default() += ns(&row["dur_us"]);
        assert!(row["gap_start_ns"].as_i64() <= row["start_ns"].as_i64());
    }
    for idle in &report.idle {
        for time in &idle.causes {
            let name = report.recorded.process_name(idle.process);
            let cause = time.cause.name().to_owned();
            *expected.entry((name, cause)).or_default() += time.ns;
        }
    }
    assert_eq!((&found, &intervals), (&expected, &expected));
    let gaps = rows["gaps"].iter().map(|row| {
        let times = (ns(&row["gap_us"]), ns(&row["cause_us"]));
        (row["gap_start_ns"].as_i64().unwrap(), times)
    });
    let longest = report.long_gaps.iter();
    let longest = longest.map(|gap| (gap.start_ns, (gap.dur_ns, gap.cause_ns)));
    assert_eq!(gaps.collect::<Vec<_>>(), longest.collect::<Vec<_>>());
}

/// Checks what engines put into their steps, and the longest steps of workers.
fn steps_agree(rows: &Rows, report: &RunReport) {
    let engines = report.batching.iter().filter(|of| of.steps > 0);
    assert_eq!(rows["batching"].len(), engines.clone().count());
    for of in engines {
        let name = report.recorded.process_name(of.process);
        let found = row(&rows["batching"], |row| row["process"] == name.as_str());
        for (key, expected) in [
            ("steps", of.steps),
            ("prefill_tokens", of.prefill_tokens),
            ("decode_tokens", of.decode_tokens),
            ("mixed_steps", of.mixed_steps),
            ("decode_steps", of.decode_steps),
        ] {
            assert_eq!(found[key], json!(expected), "{key} of {found}");
        }
        for (key, expected) in [
            ("decode_step_us", of.decode_step_ns),
            ("mixed_step_us", of.mixed_step_ns),
        ] {
            let is_none = found[key].is_null() && expected == 0.0;
            assert!(
                is_none || near(&found[key], expected / 1e3),
                "{found} {of:?}"
            );
        }
    }
    let steps = rows["steps"].iter().map(|row| {
        let requests = row["requests"].as_u64().unwrap_or(0);
        (
            row["start_ns"].as_i64().unwrap(),
            ns(&row["dur_us"]),
            requests,
        )
    });
    let expected = report.slow_steps.iter();
    let expected = expected.map(|step| (step.start_ns, step.dur_ns, step.requests as u64));
    assert_eq!(steps.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

/// Checks the events of each process, and what was lost.
fn recorded_agrees(rows: &Rows, report: &RunReport) {
    let processes = &report.recorded.processes;
    let found = rows["recorded"].iter().map(|row| row["events"].as_u64());
    let expected = processes.iter().map(|process| Some(process.events));
    let (mut found, mut expected) = (found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    let mut lost: BTreeMap<(i64, &str), u64> = BTreeMap::new();
    for loss in &report.recorded.losses {
        *lost.entry((loss.pid, &loss.cause)).or_default() += loss.events;
    }
    let found = rows["losses"].iter().map(|row| {
        let of = (row["pid"].as_i64().unwrap(), row["cause"].as_str().unwrap());
        (of, row["events"].as_u64().unwrap())
    });
    assert_eq!(found.collect::<BTreeMap<_, _>>(), lost);
}

/// Checks everything that a report says in SQL.
fn all_agree(rows: &Rows, report: &RunReport) {
    requests_agree(rows, report);
    names_agree(rows, report);
    devices_agree(rows, report);
    steps_agree(rows, report);
    recorded_agrees(rows, report);
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

#[test]
fn statements_say_what_the_report_says() {
    let run = Run::of_lines(&served_with_ties());
    run.check("statements_say_what_the_report_says", &run.report());
}

/// Devices of four workers of one engine, on one host.
#[test]
fn statements_on_ranks_say_what_the_report_says() {
    let run = Run::of_lines(&four_ranks());
    run.check(
        "statements_on_ranks_say_what_the_report_says",
        &report(run.trace()),
    );
}

/// A begin and an end at one time, the end without a name, and spans that clash. Expected: ALLREDUCE 60 µs, WAIT 0, self time of `forward` 30 µs.
#[test]
fn statements_on_spans_of_others_say_what_the_report_says() {
    let test = "statements_on_spans_of_others_say_what_the_report_says";
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
        run.check(test, &report);
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

#[test]
fn statements_on_steps_and_queues_say_what_the_report_says() {
    let run = Run::of_lines(&steps_and_queues());
    let report = run.report();
    let queue = report.stream.iter().filter_map(|stream| stream.max_queue);
    assert_eq!(queue.collect::<Vec<_>>(), [3, 1]);
    let steps = &report.batching[0];
    assert_eq!((steps.steps, steps.decode_steps), (8, 4));
    run.check(
        "statements_on_steps_and_queues_say_what_the_report_says",
        &report,
    );
}

/// Launch delays, slices shorter than their launch, and more than one cause of idle time.
#[test]
fn statements_on_devices_say_what_the_report_says() {
    let mut server = Server::new();
    for nth in 0..11 {
        server.idle(IdleCause::LaunchDelay, 100 + 37 * nth * nth);
        server.idle(IdleCause::KvTransfer, 20 + nth);
    }
    let mut lines = server.finished();
    for (nth, host_us) in [(0_u64, 5.0), (1, 11.5), (2, 90.125)] {
        lines.push(json!({"ph": "X", "pid": 101, "tid": 2, "ts": 20 * nth, "dur": 10, "name": "hcom_allGather_", "args": {"host_wall_us": host_us, "queue_us": 3.0625 + host_us}}));
    }
    let run = Run::of_lines(&lines);
    let report = run.report();
    assert!(report.device[0].short_slices == 2 && report.device[0].launch_delay.n == 14);
    assert!(report.device[0].communication_ns > 0);
    run.check("statements_on_devices_say_what_the_report_says", &report);
}

/// Delays of each kind on devices whose names say who feeds them.
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
    lines
}

#[test]
fn statements_on_idle_devices_say_what_the_report_says() {
    let of_seeds = [1, 2, 3, 4].map(at_random);
    for lines in [planted()].into_iter().chain(of_seeds) {
        let run = Run::of_lines(&lines);
        let report = run.report();
        let causes: BTreeSet<IdleCause> = report
            .idle
            .iter()
            .flat_map(|of| of.causes.iter().map(|time| time.cause))
            .collect();
        assert!(causes.len() >= 10, "{causes:?}");
        run.check(
            "statements_on_idle_devices_say_what_the_report_says",
            &report,
        );
    }
}

/// Of a request of which only the end is there nobody knows when it was under way: it is none.
#[test]
fn statements_on_ends_of_requests_say_what_the_report_says() {
    let mut lines = planted();
    let is_request = |line: &Value| line["name"] == "http.request";
    lines.retain(|line| !is_request(line));
    let args = json!({"request_id": "a"});
    lines.push(json!({"ph": "i", "pid": 9, "tid": 1, "ts": 9_000, "s": "t", "name": "request.finished", "args": args}));
    let run = Run::of_lines(&lines);
    let report = run.report();
    assert!(report.request.is_empty());
    run.check(
        "statements_on_ends_of_requests_say_what_the_report_says",
        &report,
    );
}

/// Several numbers of requests at once, and requests that were preempted.
#[test]
fn statements_on_growth_say_what_the_report_says() {
    for lines in [swept(), preempted()] {
        let run = Run::of_lines(&lines);
        let report = run.report();
        let points: usize = report.sizing.iter().map(|of| of.points.len()).sum();
        assert!(points == 24 || report.phases.sequences.len() == 6);
        run.check("statements_on_growth_say_what_the_report_says", &report);
    }
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
    run.check("statements_on_lanes_say_what_the_report_says", &report);
}

/// What recorders lost, several times for one cause: a row of the table has all that a process lost for one.
#[test]
fn statements_on_losses_say_what_the_report_says() {
    let run = Run::of_losses();
    let report = run.report();
    assert_eq!(report.recorded.lost_events, 15);
    let test = "statements_on_losses_say_what_the_report_says";
    run.check(test, &report);
    let Some(duckdb) = run.in_engine(test, "duckdb") else {
        return;
    };
    let first = &duckdb["losses"][0];
    assert_eq!(first["cause"], "ring_full");
    assert_eq!(
        (&first["events"], &first["losses"]),
        (&json!(12), &json!(1))
    );
}

/// Reference inputs whose figures others computed.
#[test]
fn statements_on_golden_data_say_what_the_report_says() {
    for name in [
        "serving.json",
        "hta-rank-0.json",
        "hta-rank-1.json",
        "nat-nested.json",
    ] {
        let run = Run::of_fixture(name);
        run.check(
            "statements_on_golden_data_say_what_the_report_says",
            &run.report(),
        );
    }
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
    let test = "every_engine_has_the_same_rows";
    for run in [Run::of_lines(&lines.collect::<Vec<_>>()), Run::of_losses()] {
        let Some(duckdb) = run.in_engine(test, "duckdb") else {
            return;
        };
        for engine in ["datafusion", "spark"] {
            if let Some(found) = run.in_engine(&format!("{test} ({engine})"), engine) {
                agree(&duckdb, &found);
            }
        }
    }
}

/// Runs that programs recorded, whose directories `SA_TEST_RUNS` names, with a colon between them; and traces. A full run of `check.sh` names the demo's and vLLM's.
#[test]
#[ignore = "SA_TEST_RUNS names its runs"]
fn statements_on_recorded_runs_say_what_the_report_says() {
    let test = "statements_on_recorded_runs_say_what_the_report_says";
    let runs = std::env::var_os("SA_TEST_RUNS").unwrap();
    for run in std::env::split_paths(&runs) {
        let run = Run::of_run(&run);
        let report = run.report();
        assert!(!report.names.is_empty());
        run.check(test, &report);
    }
}

/// The tables of `trace.json` as version 0.1.0 wrote them (`sa-profile tables trace.json --to tables --host-id 1`). Later versions read them.
#[test]
fn tables_of_schema_1_are_read() {
    let test = "tables_of_schema_1_are_read";
    let count = "SELECT COUNT(*) AS n, SUM(dur) AS dur FROM slice";
    let of = |tables: &Path| answers(tables, test, "duckdb", &[count]);
    let old = fixture("tables-schema-1");
    let Some(rows) = of(&old.join("tables")) else {
        return;
    };
    let now = Run {
        folder: TempDir::new().unwrap(),
    };
    std::fs::copy(old.join("trace.json"), now.trace()).unwrap();
    assert_eq!(rows, of(&now.tables()).unwrap());
}

/// Requests that used one id, one after the other, are rows of their own.
#[test]
fn ids_that_are_used_again_are_rows_of_their_own() {
    let test = "ids_that_are_used_again_are_rows_of_their_own";
    let mut lines: Vec<Value> = [(0, "twice"), (20_000, "twice"), (40_000, "once")]
        .into_iter()
        .chain((0..3).map(|nth| (60_000 + 10_000 * nth, "often")))
        .flat_map(|(from, id)| request(from, id))
        .collect();
    let of_engine = (0..2).flat_map(|nth| request(200_000 + 20_000 * nth, "queued"));
    lines.extend(of_engine.filter(|line| line["pid"] == 10));
    for (line, tid) in lines.iter_mut().zip(1..) {
        line["tid"] = json!(tid);
    }
    let run = Run::of_lines(&lines);
    let report = run.report();
    assert_eq!(report.requests.n, 8);
    run.check(test, &report);
    let counted = "SELECT request_id, COUNT(*) AS n FROM request GROUP BY request_id HAVING COUNT(*) > 1 ORDER BY request_id";
    if let Some(rows) = answers(&run.tables(), test, "duckdb", &[counted]) {
        let expected = [("often", 3), ("queued", 2), ("twice", 2)];
        let expected = expected.map(|(id, n)| json!({"request_id": id, "n": n}));
        assert_eq!(rows[0], expected);
    }
}
