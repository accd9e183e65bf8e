//! The statements of `report/sql`, in Perfetto's trace processor and in engines on the tables of the same trace: all give the same rows, and say what the report says.

use crate::golden::{fixture, report};
use crate::growth::{preempted, swept};
use crate::idle::{PLANTED, Server, four_ranks};
use crate::oracle::Numbers;
use crate::page::served;
use crate::prefixes::{by_chance, in_common, of_nothing};
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
use trace_report::{
    ConfidenceOf, DeviceIdle, IdleCause, LoadKind, Quantiles, ReportOptions, RunReport, STATEMENTS,
    SeriesKind, read,
};
use trace_tables::{TablesOptions, write_tables};

const TPQ: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/perfetto/tpq");
const ENGINES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/sql");
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sql/engine.py");
/// What scripts exit with where something cannot be set up.
const NOT_HERE: i32 = 3;
/// Statements over tables that Perfetto lacks.
const TABLES_ALONE: [&str; 1] = ["losses"];
/// Columns whose numbers each engine counts by itself.
const IDS: [&str; 2] = ["track_id", "slice_id"];

/// Columns of sums of doubles, which each engine adds in an order of its own: of `sizing`, and of `confidence`.
const ROUNDED: [&str; 9] = [
    "slope_ns",
    "intercept_ns",
    "r_squared",
    "p90_from_ns",
    "p90_to_ns",
    "p95_from_ns",
    "p95_to_ns",
    "p99_from_ns",
    "p99_to_ns",
];

/// Statements whose rows (or those of one time) are in the order of processes, which each engine numbers by itself.
const BY_PROCESS: [&str; 10] = [
    "batching",
    "concurrency",
    "devices",
    "gaps",
    "idle",
    "launch_delay",
    "load",
    "recorded",
    "streams",
    "windows",
];

/// The rows of each statement.
pub(crate) type Rows = BTreeMap<&'static str, Vec<Value>>;

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

    /// In Perfetto's trace processor; nothing (said loudly) where there is none.
    fn in_perfetto(&self, test: &str) -> Option<Rows> {
        let statements = STATEMENTS.iter();
        let statements: Vec<_> = statements
            .filter(|(name, _)| !TABLES_ALONE.contains(name))
            .collect();
        let mut command = Command::new(TPQ);
        command.arg("--objects").arg(self.trace());
        command.args(statements.iter().map(|(_, text)| text));
        let lines = printed(test, &mut command, "")?;
        let names = statements.into_iter().map(|(name, _)| *name);
        Some(names.zip(arrays(&lines)).collect())
    }

    /// In an engine, on the tables; nothing (said loudly) where it cannot be had.
    fn in_engine(&self, test: &str, engine: &str) -> Option<Rows> {
        rows_of(&self.tables(), test, engine)
    }

    /// Wherever it can run, with the same rows everywhere.
    pub(crate) fn rows(&self, test: &str) -> Vec<Rows> {
        let found = [self.in_perfetto(test), self.in_engine(test, "duckdb")];
        if let [Some(perfetto), Some(duckdb)] = &found {
            agree(perfetto, duckdb);
        }
        found.into_iter().flatten().collect()
    }
}

/// Those of the statements on tables, in an engine; nothing (said loudly) where it cannot be had.
fn rows_of(tables: &Path, test: &str, engine: &str) -> Option<Rows> {
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
    let statements: Vec<&str> = STATEMENTS.iter().map(|(_, text)| *text).collect();
    let lines = printed(test, &mut command, &statements.join("\0"))?;
    let names = STATEMENTS.iter().map(|(name, _)| *name);
    Some(names.zip(arrays(&lines)).collect())
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

/// A row without numbers that each engine counts by itself. Numbers are doubles, to the last digit.
fn comparable(row: &Value) -> String {
    let row = row.as_object().unwrap().iter();
    let kept = row.filter(|(name, _)| !IDS.contains(&name.as_str()));
    let plain = kept.map(|(name, value)| match value.as_f64() {
        Some(number) if ROUNDED.contains(&name.as_str()) => format!("{name}: {number:.9e}"),
        Some(number) => format!("{name}: {number:?}"),
        None => format!("{name}: {value}"),
    });
    plain.collect::<Vec<_>>().join(", ")
}

/// The same rows in the same order, where it is not that of ids.
fn agree(one: &Rows, other: &Rows) {
    for (name, rows) in one {
        let comparable = |rows: &[Value]| {
            let mut rows: Vec<String> = rows.iter().map(comparable).collect();
            if BY_PROCESS.contains(name) {
                rows.sort();
            }
            rows
        };
        assert_eq!(comparable(rows), comparable(&other[name]), "{name}");
    }
}

/// Numbers that differ by no more than the rounding of a double.
fn near(found: &Value, expected: f64) -> bool {
    let found = found.as_f64().unwrap_or(f64::NAN);
    (found - expected).abs() <= 1e-9 * expected.abs().max(1.0)
}

/// The same number to the last digit.
fn is(found: &Value, expected: f64) -> bool {
    found.as_f64() == Some(expected)
}

fn row(rows: &[Value], is_wanted: impl Fn(&Value) -> bool) -> &Value {
    let found = rows.iter().find(|row| is_wanted(row));
    found.unwrap_or_else(|| panic!("not in {rows:?}"))
}

/// Mean, extremes and percentiles, to the last digit.
fn quantiles_agree(row: &Value, of: &Quantiles) {
    let figures = [
        ("min_ns", of.min_ns as f64),
        ("p50_ns", of.p50_ns),
        ("p90_ns", of.p90_ns),
        ("p99_ns", of.p99_ns),
        ("max_ns", of.max_ns as f64),
    ];
    for (name, expected) in figures {
        assert!(is(&row[name], expected), "{name} {expected:?}: {row}");
    }
    let mean = row.get("mean_ns");
    assert!(
        mean.is_none_or(|mean| is(mean, of.mean_ns)),
        "{of:?}: {row}"
    );
}

fn requests_agree(rows: &Rows, report: &RunReport) {
    let of_id = |row: &Value| row["request_id"].as_str().unwrap().to_owned();
    let found: BTreeMap<String, &Value> = rows["requests"]
        .iter()
        .map(|row| (of_id(row), row))
        .collect();
    assert_eq!(found.len(), report.request.len());
    for request in &report.request {
        let row = found[request.request_id()];
        let mut expected = serde_json::to_value(request).unwrap();
        let expected = expected.as_object_mut().unwrap();
        expected.remove("preempted_ns"); // no statement has it
        expected.insert("queue_ns".to_owned(), json!(request.queue_ns()));
        expected.insert("prefill_ns".to_owned(), json!(request.prefill_ns()));
        expected.insert("decode_ns".to_owned(), json!(request.decode_ns()));
        expected.insert("engine_ttft_ns".to_owned(), json!(request.engine_ttft_ns()));
        expected.insert("ttft_ns".to_owned(), json!(request.ttft_ns()));
        expected.insert("tpot_ns".to_owned(), json!(request.tpot_ns()));
        expected.insert("e2e_ns".to_owned(), json!(request.e2e_ns()));
        let of_application = [
            ("application_ttft_ns", request.application_ttft_ns()),
            ("application_e2e_ns", request.application_e2e_ns()),
        ];
        for (name, ns) in of_application {
            expected.insert(name.to_owned(), json!(ns));
        }
        assert_eq!(row.as_object().unwrap(), &*expected);
    }
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
        assert_eq!(row["n"], json!(of.n), "{row}");
        assert!(is(&row["p95_ns"], of.p95_ns), "{row}");
        quantiles_agree(row, of);
    }
    let itl = &rows["between_tokens"][0];
    assert_eq!(itl["n"], json!(summary.itl.n));
    if summary.itl.n > 0 {
        quantiles_agree(itl, &summary.itl);
    }
    let parts = rows["request_parts"].iter();
    let expected = report.request_parts.parts.iter();
    let names = expected.clone().map(|part| part.name.as_str());
    let found_names = parts.clone().map(|row| row["name"].as_str().unwrap());
    assert!(found_names.eq(names), "{:?}", rows["request_parts"]);
    for (row, part) in parts.zip(expected) {
        assert!(is(&row["mean_ns"], part.mean_ns), "{row} {part:?}");
    }
}

/// Names with time of their own: calls and sums of threads and devices, exactly, and percentiles; how many there were at once.
fn names_agree(rows: &Rows, report: &RunReport) {
    let mut known = 0;
    for name in report.names.iter().filter(|name| name.ttot_ns > 0) {
        known += 1;
        let kind = json!(name.row_kind);
        let is_wanted = |row: &Value| {
            row["name"] == json!(name.name)
                && row["row_kind"] == kind
                && row["category"].as_str().unwrap_or("") == name.category
        };
        let found = row(&rows["names"], is_wanted);
        let counts = ["ncall", "ncall_outermost", "ttot_ns", "tsub_ns"].map(|key| &found[key]);
        let expected = [
            json!(name.ncall),
            json!(name.ncall_outermost),
            json!(name.ttot_ns),
            json!(name.tsub_ns),
        ];
        assert_eq!(counts, expected.each_ref(), "{name:?}");
        assert!(is(&found["tavg_ns"], name.tavg_ns), "{name:?} {found}");
        quantiles_agree(found, &name.duration);
        let found = row(&rows["bottlenecks"], is_wanted);
        assert_eq!(
            found["max_concurrency"],
            json!(name.max_concurrency),
            "{name:?}"
        );
        assert!(is(&found["mean_ns"], name.duration.mean_ns), "{found}");
    }
    assert_eq!(rows["names"].len(), known);
    assert_eq!(rows["bottlenecks"].len(), known);
}

fn devices_agree(rows: &Rows, report: &RunReport) {
    let devices = report.device.iter().filter(|device| !device.is_runner);
    assert_eq!(rows["devices"].len(), devices.clone().count());
    for device in devices {
        let name = report.recorded.process_name(device.process);
        let found = row(&rows["devices"], |row| row["name"] == name.as_str());
        let figures = [
            ("slices", device.slices.cast_signed()),
            ("from_ns", device.from_ns),
            ("wall_ns", device.wall_ns),
            ("busy_ns", device.busy_ns),
            ("communication_ns", device.communication_ns),
            ("exposed_communication_ns", device.exposed_communication_ns),
            ("longest_gap_ns", device.longest_gap_ns),
        ];
        for (key, expected) in figures {
            assert_eq!(found[key], json!(expected), "{key} of {found}");
        }
        if device.launch_delay.n > 0 {
            let found = row(&rows["launch_delay"], |row| row["name"] == name.as_str());
            let counts = [&found["n"], &found["short_slices"]];
            let expected = [json!(device.launch_delay.n), json!(device.short_slices)];
            assert_eq!(counts, expected.each_ref());
            quantiles_agree(found, &device.launch_delay);
        }
    }
    let longest = report.long_gaps.iter().filter(|gap| {
        let mut devices = report.device.iter();
        devices.any(|device| device.process == gap.process && !device.is_runner)
    });
    let longest: Vec<i64> = longest.map(|gap| gap.dur_ns).collect();
    let found = rows["gaps"].iter().map(|row| row["dur"].as_i64().unwrap());
    assert_eq!(found.take(longest.len()).collect::<Vec<_>>(), longest);
}

/// When unusually many requests were under way.
fn spikes_agree(rows: &Rows, report: &RunReport) {
    let expected: Vec<Value> = report
        .spikes
        .longest
        .iter()
        .map(|spike| json!({"ts": spike.start_ns, "dur": spike.dur_ns, "peak": spike.peak, "requests": spike.requests}))
        .collect();
    assert_eq!(rows["spikes"], expected);
}

/// How busy streams were, to the last digit.
fn streams_agree(rows: &Rows, report: &RunReport) {
    let mut expected: Vec<Value> = report
        .stream
        .iter()
        .map(|stream| {
            json!({
                "name": report.recorded.process_name(stream.process), "stream": stream.name, "slices": stream.slices, "replays": stream.replays,
                "busy_ns": stream.busy_ns, "mean_queue": stream.mean_queue, "max_queue": stream.max_queue,
            })
        })
        .collect();
    let mut found: Vec<Value> = rows["streams"].clone();
    for row in &mut found {
        let tid = row.as_object_mut().unwrap().remove("tid").unwrap();
        row.as_object_mut().unwrap().remove("pid");
        if row["stream"].is_null() {
            row["stream"] = json!(format!("tid {tid}"));
        }
        // Whole numbers come as such.
        row["mean_queue"] = json!(row["mean_queue"].as_f64());
    }
    let key = |row: &Value| format!("{} {}", row["name"], row["stream"]);
    found.sort_by_key(key);
    expected.sort_by_key(key);
    assert_eq!(found, expected);
}

/// What engines put into their steps, to the last digit.
fn batching_agrees(rows: &Rows, report: &RunReport) {
    let with_steps = report.batching.iter().filter(|of| of.steps > 0);
    assert_eq!(rows["batching"].len(), with_steps.clone().count());
    for of in with_steps {
        let name = report.recorded.process_name(of.process);
        let found = row(&rows["batching"], |row| row["name"] == name.as_str());
        let counts = [
            ("steps", of.steps),
            ("prefill_tokens", of.prefill_tokens),
            ("decode_tokens", of.decode_tokens),
            ("mixed_steps", of.mixed_steps),
            ("decode_steps", of.decode_steps),
            ("drafted_tokens", of.drafted_tokens),
            ("accepted_tokens", of.accepted_tokens),
        ];
        for (key, expected) in counts {
            assert_eq!(found[key], json!(expected), "{key} of {found}");
        }
        let means = [
            ("decode_step_ns", of.decode_step_ns),
            ("mixed_step_ns", of.mixed_step_ns),
        ];
        for (key, expected) in means {
            let found = found[key].as_f64();
            assert_eq!(found.unwrap_or(0.0), expected, "{key}: {of:?}");
        }
    }
}

/// The longest steps, and the names in them.
fn steps_agree(rows: &Rows, report: &RunReport) {
    let steps = rows["steps"].iter().map(|row| row["dur"].as_i64().unwrap());
    let expected = report.slow_steps.iter().map(|step| step.dur_ns);
    assert!(steps.eq(expected), "{:?}", rows["steps"]);
    let found: Vec<(i64, i64)> = rows["step_parts"]
        .iter()
        .map(|row| {
            (
                row["ts"].as_i64().unwrap(),
                row["tsub_ns"].as_i64().unwrap(),
            )
        })
        .collect();
    let mut expected: Vec<(i64, i64)> = Vec::new();
    for step in &report.slow_steps {
        expected.extend(step.inside.iter().map(|part| (step.start_ns, part.tsub_ns)));
    }
    assert_eq!(found, expected);
}

/// Levels weighted by time: each figure but the mean to the last digit.
fn load_agrees(rows: &Rows, report: &RunReport) {
    for level in &report.load {
        let found = match level.process {
            None => &rows["under_way"][0],
            Some(process) => {
                let name = report.recorded.process_name(process);
                let kind = match level.of {
                    LoadKind::Running => "running",
                    LoadKind::Waiting => "waiting",
                    _ => "kv_used_percent",
                };
                row(&rows["load"], |row| {
                    row["level"] == kind && row["name"] == name.as_str()
                })
            }
        };
        assert_eq!(found["wall_ns"], json!(level.wall_ns), "{found} {level:?}");
        assert!(near(&found["mean"], level.mean), "{found} {level:?}");
        let figures = [
            ("p50", level.p50),
            ("p90", level.p90),
            ("p99", level.p99),
            ("max", level.max),
        ];
        for (name, expected) in figures {
            assert!(is(&found[name], expected), "{name} of {found} {level:?}");
        }
    }
}

/// Points to the last digit, and lines but for the rounding of their sums.
fn sizing_agrees(rows: &Rows, report: &RunReport) {
    let points = report
        .sizing
        .iter()
        .flat_map(|of| of.points.iter().map(move |point| (of, point)));
    let expected: Vec<_> = points.collect();
    assert_eq!(rows["sizing"].len(), expected.len());
    for (row, (of, point)) in rows["sizing"].iter().zip(expected) {
        assert_eq!(row["metric"], json!(of.of), "{row}");
        assert_eq!(row["requests"], json!(point.requests), "{row} {point:?}");
        assert!(
            is(&row["concurrency"], point.concurrency),
            "{row} {point:?}"
        );
        assert!(is(&row["p95_ns"], point.p95_ns), "{row} {point:?}");
        match of.fit {
            Some(fit) => {
                assert!(near(&row["slope_ns"], fit.slope_ns), "{row} {fit:?}");
                assert!(
                    near(&row["intercept_ns"], fit.intercept_ns),
                    "{row} {fit:?}"
                );
                assert!(near(&row["r_squared"], fit.r_squared), "{row} {fit:?}");
            }
            None => assert!(
                ["slope_ns", "intercept_ns", "r_squared"]
                    .iter()
                    .all(|name| row[*name].is_null()),
                "{row}"
            ),
        }
    }
}

/// Each order of phases, to the last digit.
fn phases_agree(rows: &Rows, report: &RunReport) {
    let sequences = &report.phases.sequences;
    assert_eq!(
        rows["phases"].len(),
        sequences.len(),
        "{:?}",
        rows["phases"]
    );
    for (row, of) in rows["phases"].iter().zip(sequences) {
        assert_eq!(row["sequence"], json!(of.sequence), "{row}");
        let counts = (&row["requests"], &row["total_ns"]);
        assert_eq!(
            counts,
            (&json!(of.requests), &json!(of.total_ns)),
            "{row} {of:?}"
        );
        assert!(is(&row["share"], of.share), "{row} {of:?}");
        assert!(is(&row["mean_ns"], of.mean_ns), "{row} {of:?}");
        for nth in 1..=8 {
            let (found, expected) = (
                &row[format!("mean_{nth}_ns")],
                of.phase_mean_ns.get(nth - 1),
            );
            assert_eq!(found.as_f64(), expected.copied(), "{row} {of:?}");
        }
    }
}

/// What prompts have in common, to the last digit.
fn prefixes_agree(rows: &Rows, report: &RunReport) {
    let of = &report.prefixes;
    assert_eq!(rows["prefixes"].len(), of.prefixes.len());
    for (row, of) in rows["prefixes"].iter().zip(&of.prefixes) {
        let process = &report.recorded.processes[of.engine];
        let expected = json!({
            "engine": process.name, "pid": process.pid, "prefix": of.prefix, "requests": of.requests, "tokens": of.tokens, "own_tokens": of.own_tokens,
            "saved_tokens": of.saved_tokens, "hit_tokens": of.hit_tokens, "saved_share": row["saved_share"],
        });
        assert_eq!(row, &expected);
        assert!(is(&row["saved_share"], of.saved_share), "{row} {of:?}");
    }
    let Some(row) = rows["prefix_summary"].first() else {
        assert_eq!(of.n, 0);
        return;
    };
    let counts = [
        ("n", of.n),
        ("prompt_tokens", of.prompt_tokens),
        ("shared_tokens", of.shared_tokens),
        ("cached_tokens", of.cached_tokens),
        ("requests", of.requests),
        ("tokens_without_hash", of.tokens_without_hash),
        ("unique_max", of.unique.max),
    ];
    for (name, expected) in counts {
        assert_eq!(row[name], json!(expected), "{name}: {row}");
    }
    let shares = [
        ("shared_share", Some(of.shared_share)),
        ("cached_share", of.cached_share),
        ("unique_mean", Some(of.unique.mean)),
        ("unique_p50", Some(of.unique.p50)),
        ("unique_p90", Some(of.unique.p90)),
        ("unique_p95", Some(of.unique.p95)),
        ("unique_p99", Some(of.unique.p99)),
    ];
    for (name, expected) in shares {
        assert_eq!(row[name].as_f64(), expected, "{name}: {row}");
    }
}

/// Where the means of all requests lie, but for the rounding of their sums.
fn confidence_agrees(rows: &Rows, report: &RunReport) {
    let of_means = report.confidence.iter();
    let of_means: Vec<_> = of_means
        .filter(|of| of.of != ConfidenceOf::RequestsPerS)
        .collect();
    assert_eq!(rows["confidence"].len(), of_means.len());
    for (row, of) in rows["confidence"].iter().zip(of_means) {
        assert_eq!(row["metric"], json!(of.of), "{row}");
        assert_eq!(row["n"], json!(of.n), "{row}");
        assert!(is(&row["mean_ns"], of.mean), "{row} {of:?}");
        let Some(intervals) = of.intervals else {
            assert!(row["p90_from_ns"].is_null(), "{row} {of:?}");
            continue;
        };
        for (name, [from, to]) in [
            ("p90", intervals.p90),
            ("p95", intervals.p95),
            ("p99", intervals.p99),
        ] {
            let found = [
                &row[format!("{name}_from_ns")],
                &row[format!("{name}_to_ns")],
            ];
            assert!(near(found[0], from) && near(found[1], to), "{row} {of:?}");
        }
    }
}

/// The causes of idle time, to the ns; of how many devices. Where a device's name does not say who feeds it, they are not the report's, and their sum is.
fn idle_agrees(rows: &Rows, report: &RunReport) -> usize {
    let mut found: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
    for row in &rows["idle"] {
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        let causes = found.entry(text("name")).or_default();
        causes.insert(text("cause"), row["ns"].as_i64().unwrap());
    }
    let is_recorded = |idle: &&DeviceIdle| {
        let mut devices = report.device.iter();
        devices.any(|device| device.process == idle.process && !device.is_runner)
    };
    let mut compared = 0;
    for idle in report.idle.iter().filter(is_recorded) {
        let name = report.recorded.process_name(idle.process);
        let causes = found.remove(&name).unwrap_or_default();
        let worker = report.recorded.process_name(idle.worker);
        if name.ends_with(&format!(" · {worker}")) {
            let expected = idle.causes.iter().map(|time| {
                let cause = json!(time.cause).as_str().unwrap().to_owned();
                (cause, time.ns)
            });
            assert_eq!(causes, expected.collect(), "{name}");
            compared += 1;
        }
        assert_eq!(causes.values().sum::<i64>(), idle.idle_ns, "{name}");
    }
    assert!(found.is_empty(), "{found:?}");
    compared
}

/// Everything that a report says in SQL.
pub(crate) fn all_agree(rows: &Rows, report: &RunReport) {
    requests_agree(rows, report);
    names_agree(rows, report);
    devices_agree(rows, report);
    streams_agree(rows, report);
    batching_agrees(rows, report);
    steps_agree(rows, report);
    load_agrees(rows, report);
    spikes_agree(rows, report);
    sizing_agrees(rows, report);
    phases_agree(rows, report);
    prefixes_agree(rows, report);
    confidence_agrees(rows, report);
    let _ = idle_agrees(rows, report);
    let wall = rows["recorded"]
        .iter()
        .all(|row| row["wall_ns"] == json!(report.recorded.wall_ns));
    assert!(wall, "{:?}", rows["recorded"]);
    losses_agree(rows, report);
}

fn losses_agree(rows: &Rows, report: &RunReport) {
    let Some(rows) = rows.get("losses") else {
        return;
    };
    let mut expected: BTreeMap<(i64, &str), u64> = BTreeMap::new();
    for loss in &report.recorded.losses {
        *expected.entry((loss.pid, &loss.cause)).or_default() += loss.events;
    }
    let of = |row: &Value| {
        (
            row["pid"].as_i64().unwrap(),
            row["cause"].as_str().unwrap().to_owned(),
        )
    };
    let found: BTreeMap<_, _> = rows
        .iter()
        .map(|row| (of(row), row["events"].as_i64().unwrap()))
        .collect();
    let expected: BTreeMap<_, _> = expected
        .into_iter()
        .map(|((pid, cause), events)| ((pid, cause.to_owned()), events.cast_signed()))
        .collect();
    assert_eq!(found, expected);
    let lost: i64 = found.values().sum();
    assert_eq!(lost, report.recorded.lost_events.cast_signed());
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
    let report = run.report();
    for rows in run.rows("statements_say_what_the_report_says") {
        all_agree(&rows, &report);
    }
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
    for (run, is_merged) in [(raw.merged(), true), (raw, false)] {
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
        // Perfetto drops `step` from a trace that was not merged.
        let rows = match is_merged {
            true => run.rows(test),
            false => run.in_engine(test, "duckdb").into_iter().collect(),
        };
        for rows in rows {
            names_agree(&rows, &report);
        }
    }
}

/// Bursts of requests over 40 minutes: within a second, over several, and over the end of the first 1,000. Some are told in the same µs, and one never ends.
fn bursts() -> Vec<Value> {
    const MS: u64 = 1_000;
    let mut lines = Vec::new();
    let mut ask = |ts: u64, dur: u64| {
        let id = format!("burst-{}", lines.len());
        lines.push(json!({"ph": "X", "pid": 21, "tid": 100 + lines.len(), "ts": ts, "dur": dur, "name": "http.request", "args": {"request_id": id}}));
    };
    for nth in 0..2_400 {
        ask(1_000 * MS * nth, 1_000 * MS);
    }
    for burst in 0..24 {
        let from = 97_003 * MS * burst;
        let lasts = [300, 1_700, 4_000, 5][usize::try_from(burst % 4).unwrap()] * MS;
        for nth in 0..3 + burst % 5 {
            // Each begins as another one ends.
            ask(from + nth * lasts / 2, lasts);
            ask(from + nth * lasts / 2, lasts / 2);
        }
    }
    for nth in 0..4 {
        ask(930_000 * MS + nth, 150_000 * MS);
    }
    lines.push(json!({"ph": "B", "pid": 21, "tid": 99, "ts": 2_300_000 * MS, "name": "http.request", "args": {"request_id": "open"}}));
    lines
}

#[test]
fn statements_on_bursts_say_what_the_report_says() {
    let run = Run::of_lines(&bursts());
    let report = run.report();
    let spikes = &report.spikes;
    assert!(spikes.n > 15 && spikes.longest.len() == 10, "{spikes:?}");
    let is_long = |ns: i64| spikes.longest.iter().any(|spike| spike.dur_ns > ns);
    assert!(is_long(140_000_000_000), "{spikes:?}");
    for rows in run.rows("statements_on_bursts_say_what_the_report_says") {
        all_agree(&rows, &report);
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
    for rows in run.rows("statements_on_steps_and_queues_say_what_the_report_says") {
        all_agree(&rows, &report);
    }
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
    for rows in run.rows("statements_on_devices_say_what_the_report_says") {
        all_agree(&rows, &report);
    }
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
        for rows in run.rows("statements_on_idle_devices_say_what_the_report_says") {
            let devices = report.device.iter().filter(|device| !device.is_runner);
            assert_eq!(idle_agrees(&rows, &report), devices.count());
            confidence_agrees(&rows, &report);
        }
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
    for rows in run.rows("statements_on_ends_of_requests_say_what_the_report_says") {
        idle_agrees(&rows, &report);
    }
}

/// Several numbers of requests at once, and requests that were preempted.
#[test]
fn statements_on_growth_say_what_the_report_says() {
    for lines in [swept(), preempted()] {
        let run = Run::of_lines(&lines);
        let report = run.report();
        let points: usize = report.sizing.iter().map(|of| of.points.len()).sum();
        assert!(points == 24 || report.phases.sequences.len() == 6);
        for rows in run.rows("statements_on_growth_say_what_the_report_says") {
            all_agree(&rows, &report);
        }
    }
}

/// Prompts of two engines that begin alike, and prompts without tokens.
#[test]
fn statements_on_prompts_say_what_the_report_says() {
    for (lines, prefixes) in [(in_common(), 3), (by_chance(), 100), (of_nothing(), 1)] {
        let run = Run::of_lines(&lines);
        let report = run.report();
        assert_eq!(report.prefixes.prefixes.len(), prefixes);
        for rows in run.rows("statements_on_prompts_say_what_the_report_says") {
            all_agree(&rows, &report);
        }
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
    for rows in run.rows("statements_on_lanes_say_what_the_report_says") {
        all_agree(&rows, &report);
    }
}

/// What recorders lost, several times for one cause: a row of the table has all that a process lost for one.
#[test]
fn statements_on_losses_say_what_the_report_says() {
    let run = Run::of_losses();
    let report = run.report();
    assert_eq!(report.recorded.lost_events, 15);
    let test = "statements_on_losses_say_what_the_report_says";
    for rows in run.rows(test) {
        all_agree(&rows, &report);
    }
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
        let mut report = run.report();
        if name.starts_with("hta") {
            forget_launches(&mut report);
        }
        for rows in run.rows("statements_on_golden_data_say_what_the_report_says") {
            all_agree(&rows, &report);
        }
    }
}

/// Takes out what launches say in traces of other profilers: the statements only know `queue_us` (docs/sql.md).
fn forget_launches(report: &mut RunReport) {
    for device in &mut report.device {
        device.launch_delay = Quantiles::default();
    }
    for stream in &mut report.stream {
        (stream.mean_queue, stream.max_queue) = (None, None);
    }
}

/// Samples of any size, with ties and with long tails: percentiles by rank are those of the report to the last digit.
#[test]
fn percentiles_have_the_same_last_digit() {
    let (mut numbers, mut lines, mut now_us) = (Numbers::new(7), Vec::new(), 0);
    for name in 0..120_u64 {
        let spread = 10_u64.pow(1 + u32::try_from(name % 6).unwrap());
        for _ in 0..1 + numbers.below(1 + name) {
            let dur = 1 + numbers.below(spread);
            let id = format!("r{}", name % 40);
            lines.push(json!({"ph": "X", "pid": 1, "tid": 1, "ts": now_us, "dur": dur, "name": format!("n{name}")}));
            lines.push(json!({"ph": "i", "pid": 1, "tid": 1, "ts": now_us, "s": "t", "name": "request.token", "args": {"request_id": id}}));
            now_us += dur + numbers.below(3);
        }
    }
    for request in 0..40 {
        lines.push(json!({"ph": "X", "pid": 1, "tid": 10 + request, "ts": 0, "dur": now_us + request, "name": "http.request", "args": {"request_id": format!("r{request}")}}));
    }
    let run = Run::of_lines(&lines);
    let report = run.report();
    assert!(report.requests.itl.n > 1_000);
    for rows in run.rows("percentiles_have_the_same_last_digit") {
        names_agree(&rows, &report);
        requests_agree(&rows, &report);
        load_agrees(&rows, &report);
    }
}

/// How often each rank came last, and by how much.
#[test]
fn collectives_are_those_of_the_report() {
    let run = Run::of_lines(&four_ranks());
    let report = report(run.trace());
    for rows in run.rows("collectives_are_those_of_the_report") {
        let found: BTreeMap<String, (u64, i64)> = rows["collectives"]
            .iter()
            .map(|row| {
                let name = row["last_device"].as_str().unwrap().to_owned();
                let of = (&row["device_last"], &row["device_late_ns"]);
                (name, (of.0.as_u64().unwrap(), of.1.as_i64().unwrap()))
            })
            .collect();
        let last = report.rank.iter().filter(|rank| rank.last > 0);
        let expected = last.map(|rank| {
            let name = report.recorded.process_name(rank.process);
            (name, (rank.last, rank.late_ns))
        });
        assert_eq!(found, expected.collect());
        devices_agree(&rows, &report);
    }
}

/// A run of 500 s: the report's 500 parts are the windows of a second.
fn long_run() -> Vec<Value> {
    let mut lines = served().finished();
    for line in &mut lines {
        for key in ["ts", "dur"] {
            if let Some(us) = line[key].as_u64() {
                line[key] = json!(1_000 * us);
            }
        }
    }
    let at = |us: u64| json!({"ph": "i", "pid": 10, "tid": 1, "ts": us, "s": "t", "name": "edge"});
    lines.extend([at(0), at(500_000_000)]);
    lines.push(json!({"ph": "C", "pid": 10, "tid": 1, "ts": 2_000_500, "name": "kv_cache", "args": {"used_percent": 33.34}}));
    lines.push(json!({"ph": "C", "pid": 10, "tid": 1, "ts": 2_700_000, "name": "kv_cache", "args": {"used_percent": 50.06}}));
    lines.push(json!({"ph": "C", "pid": 10, "tid": 1, "ts": 7_900_000, "name": "kv_cache", "args": {"used_percent": 0}}));
    lines
}

#[test]
fn windows_are_the_parts_of_the_timeline() {
    let run = Run::of_lines(&long_run());
    let report = run.report();
    let timeline = &report.timeline;
    assert_eq!((timeline.from_ns, timeline.part_ns), (0, 1_000_000_000));
    for rows in run.rows("windows_are_the_parts_of_the_timeline") {
        let mut series: BTreeSet<&str> = BTreeSet::new();
        for of in &timeline.series {
            let name = of
                .process
                .map(|process| report.recorded.process_name(process));
            let kind = match of.of {
                SeriesKind::UnderWay => "under_way",
                SeriesKind::Running => "running",
                SeriesKind::Waiting => "waiting",
                SeriesKind::KvUsedPercent => "kv_used_percent",
                SeriesKind::OutputTokensPerS => "output_tokens_per_s",
                SeriesKind::BusyPercent => "busy_percent",
                SeriesKind::LongestStepNs => continue, // steps.sql has the longest
            };
            series.insert(kind);
            let is_wanted = |row: &&Value| row["series"] == kind && row["name"] == json!(name);
            let found: BTreeMap<i64, &Value> = rows["windows"]
                .iter()
                .filter(is_wanted)
                .map(|row| (row["ts"].as_i64().unwrap() / 1_000_000_000, &row["amount"]))
                .collect();
            for (nth, value) in of.values.iter().enumerate() {
                let found = found.get(&i64::try_from(nth).unwrap());
                match value {
                    Some(value) if *value != 0.0 || found.is_some() => {
                        assert!(
                            near(found.unwrap(), *value),
                            "{kind} {nth}: {found:?} {value}"
                        );
                    }
                    Some(_) => {}
                    None => assert_eq!(found, None, "{kind} {nth}"),
                }
            }
        }
        assert_eq!(series.len(), 6, "{series:?}");
    }
}

/// The same, counted second by second without SQL: how many spans that lie in no other one are at work at once.
#[test]
fn concurrency_is_that_of_a_naive_count() {
    let mut lines = long_run();
    // A span without an end does not count, and what lies in it does.
    lines.push(json!({"ph": "B", "pid": 10, "tid": 1, "ts": 0, "name": "serve"}));
    let run = Run::of_lines(&lines);
    let found = run.rows("concurrency_is_that_of_a_naive_count");
    let mut of_threads: BTreeMap<(u64, u64), Vec<(i64, i64)>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line["ph"] == "X") {
        let ns = |key: &str| 1_000 * line[key].as_i64().unwrap();
        let thread = (line["pid"].as_u64().unwrap(), line["tid"].as_u64().unwrap());
        let span = (ns("ts"), ns("ts") + ns("dur"));
        of_threads.entry(thread).or_default().push(span);
    }
    let (mut levels, mut of_process) = (BTreeMap::new(), BTreeMap::new());
    for ((pid, _), mut spans) in of_threads {
        spans.sort_by_key(|(from, to)| (*from, std::cmp::Reverse(*to)));
        let mut end = i64::MIN;
        for (from, to) in spans {
            // One that lies in another has depth.
            if from >= end && from < to {
                end = to;
                for (at, change) in [(from, 1), (to, -1)] {
                    *levels.entry(at).or_insert(0) += change;
                    *of_process
                        .entry(pid)
                        .or_insert_with(BTreeMap::new)
                        .entry(at)
                        .or_insert(0) += change;
                }
            }
        }
    }
    let expected = time_at(&levels);
    assert!(expected.len() > 3);
    let of_process: BTreeMap<u64, BTreeMap<i64, i64>> = of_process
        .iter()
        .map(|(pid, changes)| (*pid, time_at(changes)))
        .collect();
    for rows in found {
        let number = |row: &Value, key: &str| row[key].as_i64().unwrap();
        let all = rows["concurrency_global"].iter();
        let all = all.map(|row| (number(row, "spans"), number(row, "ns")));
        assert_eq!(all.collect::<BTreeMap<_, _>>(), expected);
        let mut each: BTreeMap<u64, BTreeMap<i64, i64>> = BTreeMap::new();
        for row in &rows["concurrency"] {
            let pid = row["pid"].as_u64().unwrap();
            let of = each.entry(pid).or_default();
            of.insert(number(row, "spans"), number(row, "ns"));
        }
        assert_eq!(each, of_process);
    }
}

/// How much each process recorded of what, counted line by line.
#[test]
fn recorded_events_are_those_of_a_naive_count() {
    for lines in [served_with_ties(), steps_and_queues(), at_random(5)] {
        let mut expected: BTreeMap<u64, [u64; 4]> = BTreeMap::new();
        for line in &lines {
            let args = line["args"].as_object().map_or(0, |args| args.len() as u64);
            let counts = match line["ph"].as_str() {
                Some("X") => [1, 0, 0, 0],
                Some("i") => [0, 1, 0, 0],
                Some("C") => [0, 0, args, 0],
                Some("B") => [0, 0, 0, 1],
                _ => continue,
            };
            let of = expected.entry(line["pid"].as_u64().unwrap()).or_default();
            for (sum, count) in of.iter_mut().zip(counts) {
                *sum += count;
            }
        }
        let run = Run::of_lines(&lines);
        for rows in run.rows("recorded_events_are_those_of_a_naive_count") {
            let found = rows["recorded"].iter().map(|row| {
                let of = |key: &str| row[key].as_u64().unwrap();
                let counts = ["slices", "instants", "counter_values", "unfinished"].map(of);
                (of("pid"), counts)
            });
            assert_eq!(found.collect::<BTreeMap<_, _>>(), expected);
        }
    }
}

/// For how long a level was how high.
fn time_at(changes: &BTreeMap<i64, i64>) -> BTreeMap<i64, i64> {
    let (mut level, mut since, mut times) = (0, None, BTreeMap::new());
    for (at, change) in changes {
        if let Some(since) = since {
            *times.entry(level).or_insert(0) += at - since;
        }
        (level, since) = (level + change, Some(*at));
    }
    times
}

/// With `SA_PROFILE_FULL=1` also in DataFusion, and in a standalone Spark cluster on the loopback.
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
        in_common(),
        swept(),
        preempted(),
        steps_and_queues(),
        bursts(),
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
    // Perfetto holds a trace in memory, and on longer ones takes minutes for all statements.
    const PERFETTOS_BYTES: u64 = 50_000_000;
    let test = "statements_on_recorded_runs_say_what_the_report_says";
    let runs = std::env::var_os("SA_TEST_RUNS").unwrap();
    for run in std::env::split_paths(&runs) {
        let run = Run::of_run(&run);
        let report = run.report();
        assert!(!report.names.is_empty());
        let found = match std::fs::metadata(run.trace()).unwrap().len() {
            ..PERFETTOS_BYTES => run.rows(test),
            _ => run.in_engine(test, "duckdb").into_iter().collect(),
        };
        for rows in found {
            all_agree(&rows, &report);
        }
    }
}

/// The tables of `trace.json` as version 0.1.0 wrote them (`sa-profile tables trace.json --to tables --host-id 1`). Later versions read them.
#[test]
fn tables_of_schema_1_are_read() {
    let test = "tables_of_schema_1_are_read";
    let old = fixture("tables-schema-1");
    let Some(rows) = rows_of(&old.join("tables"), test, "duckdb") else {
        return;
    };
    assert_eq!(rows["requests"].len(), 4);
    let now = Run {
        folder: TempDir::new().unwrap(),
    };
    std::fs::copy(old.join("trace.json"), now.trace()).unwrap();
    agree(&rows, &now.in_engine(test, "duckdb").unwrap());
}

/// Checks ids whose requests differ in their spans, an id that only an engine queued, and an id of a single request.
#[test]
fn ids_that_are_used_again_are_listed() {
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
    let expected = [("often", 3), ("queued", 2), ("twice", 2)];
    let expected = expected.map(|(id, n)| json!({"request_id": id, "requests": n}));
    for rows in run.rows("ids_that_are_used_again_are_listed") {
        assert_eq!(rows["ids_used_again"], expected);
    }
    assert_eq!(run.report().requests.n, 8);
}
