//! Requests that share an id, events in an impossible order, arrival times, and outputs of steps.

use crate::reports::report_from_events;
use crate::sql::Run;
use crate::traces::case;
use format_oracle::writer::Process as FragmentProcess;
use tempfile::TempDir;
use trace_merge::{Options, Progress, Runs};
use trace_report::{ReportOptions, SeriesKind, read};

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
    assert_eq!(found.recorded.cautions, [""; 0]);
}

/// Checks the report, the live figures and the SQL.
#[test]
fn requests_are_the_same_everywhere() {
    for name in [
        "requests that use one id",
        "each request is counted if clients",
        "each request is counted if an engine",
        "a pause in recording",
        "times between tokens",
        "a streamed response",
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
    let found = report_from_events(&case("times between tokens").events);
    let mut series = found.timeline.series.iter();
    let tokens = series.find(|series| series.of == SeriesKind::OutputTokensPerS);
    let per_s: f64 = tokens.unwrap().values.iter().flatten().sum();
    let tokens = per_s * found.timeline.part_ns as f64 / 1e9;
    assert!((tokens - 10.0).abs() < 1e-6, "{tokens}");
}
