//! Ids that several requests use, moments in an order that cannot be, when a request arrived, and the outputs of steps.

use crate::events::events;
use crate::reports::of_lines;
use crate::sql::Run;
use crate::traces::case;
use format_oracle::writer::Process as FragmentProcess;
use serde_json::Value;
use tempfile::TempDir;
use trace_merge::{Options, Progress, Runs};
use trace_report::{ReportOptions, RunReport, SeriesKind, read};

/// A request of 10 ms with two tokens, 1 ms apart.
fn request(from: u64, id: &str) -> Vec<Value> {
    let thread = from + 1;
    let [queued, scheduled, token, seen, last, ended] =
        [100, 300, 5_000, 5_100, 6_000, 6_100].map(|us| from + us);
    events(&format!(
        "X 9/{thread} {from}+10000 http.request request_id={id}
        i 10 {queued} request.queued request_id={id}
        i 10 {scheduled} request.scheduled request_id={id}
        i 10 {token} request.token request_id={id}
        i 9 {seen} request.token request_id={id}
        i 10 {last} request.token request_id={id}
        i 9 {ended} request.token request_id={id}
        i 10 {ended} request.finished request_id={id}"
    ))
}

fn cautions(report: &RunReport) -> Vec<&str> {
    let cautions = report.recorded.cautions.iter();
    cautions.map(String::as_str).collect()
}

/// A server whose clients all send the same `X-Request-Id`, one right after the other. Its engine records no HTTP.
#[test]
fn a_constant_id_is_as_many_requests_as_there_were() {
    let lines: Vec<Value> = (0..30)
        .flat_map(|nth| request(10_000 * nth, "same"))
        .collect();
    let of_engine = |line: &&Value| line["pid"] == 10;
    let engine: Vec<Value> = lines.iter().filter(of_engine).cloned().collect();
    // The last token is the frontend's, where there is one.
    for (lines, decode_ns) in [(lines, 1_100_000), (engine, 1_000_000)] {
        let run = Run::recorded(&lines);
        let found = run.report();
        run.check_live(&found);
        assert_eq!(found.requests.n, 30);
        assert_eq!(found.requests.queue.max_ns, 200_000);
        assert_eq!(found.requests.decode.max_ns, decode_ns);
        assert_eq!(cautions(&found), [""; 0]);
    }
}

#[test]
fn the_same_id_in_another_run_is_another_request() {
    let folder = TempDir::new().unwrap();
    for (pid, run) in [(41, "one"), (42, "two"), (43, "three")] {
        let process = FragmentProcess {
            run: run.to_owned(),
            ..FragmentProcess::new(pid)
        };
        let on = process.main_thread();
        let mut fragment = process.fragment();
        fragment.line(&process.anchor(1_000_000));
        fragment.line(&on.span(2_000_000, 900_000, "http.request", r#""request_id":"same""#));
        fragment.line(&process.anchor(9_000_000));
        fragment.write_here(folder.path());
    }
    let options = Options {
        runs: Runs::All,
        ..Options::new([folder.path().to_owned()])
    };
    let found = read(&options, &ReportOptions::default(), &Progress::default()).unwrap();
    assert_eq!((found.requests.n, found.requests.ok), (3, 3));
    assert_eq!(cautions(&found), [""; 0]);
}

/// In the report, live, and in SQL.
#[test]
fn requests_are_the_same_everywhere() {
    for name in [
        "requests that share an id",
        "a pause in recording",
        "times between tokens",
        "a streamed answer",
    ] {
        let case = case(name);
        let run = Run::recorded(&case.events);
        let report = run.report();
        case.check(&report);
        run.check(&report);
        run.check_live(&report);
    }
}

#[test]
fn tokens_of_outputs_are_counted_once() {
    let found = of_lines(&case("times between tokens").events);
    let mut series = found.timeline.series.iter();
    let tokens = series.find(|of| of.of == SeriesKind::OutputTokensPerS);
    let per_s: f64 = tokens.unwrap().values.iter().flatten().sum();
    let tokens = per_s * found.timeline.part_ns as f64 / 1e9;
    assert!((tokens - 10.0).abs() < 1e-6, "{tokens}");
}
