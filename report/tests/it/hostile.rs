//! Traces with very little or very much content.

use crate::events::{event, events};
use crate::reports::{fixture, report, report_from_events, report_from_text};
use serde_json::{Value, json};
use trace_merge::{Options, Output, Progress};
use trace_report::{ReportOptions, RunReport, merge_and_read, screen};

#[test]
fn many_names_and_deep_nesting_are_counted() {
    let names = (0..20_000).map(|nth| event(&format!("X 1/{nth} 1+1 'name {nth}'")));
    assert_eq!(
        report_from_events(&names.collect::<Vec<_>>()).names.len(),
        20_000
    );
    let deep = (0..20_000).map(|nth| event(&format!("X 1 {nth}+{} deep", 100_000 - 2 * nth)));
    let found = report_from_events(&deep.collect::<Vec<_>>());
    let name = &found.names[0];
    let times = (name.ncall, name.ncall_outermost, name.tsub_ns);
    assert_eq!(times, (20_000, 1, 100_000_000));
}

#[test]
fn texts_of_a_trace_cannot_control_the_terminal() {
    let text = screen::text(&report_from_text("X 1 1+1 a\u{1b}[2J\u{202e}b"));
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
}

#[test]
fn the_trace_is_written_even_if_the_report_fails() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    let options = Options {
        output: Output::File(trace.clone()),
        ..Options::new([fixture("serving.json")])
    };
    let few = ReportOptions {
        most_events: Some(3),
        ..ReportOptions::default()
    };
    let (found, merged) = merge_and_read(&options, &few, &Progress::default()).unwrap();
    let why = found.unwrap_err().to_string();
    assert_eq!(why, "expected 3 events at most, found 26");
    assert!(trace.exists());
    assert_eq!(merged.output.path, Some(trace));
}

#[test]
fn findings_are_added_to_the_trace_but_not_to_its_report() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    let options = Options {
        output: Output::File(trace.clone()),
        ..Options::new([fixture("serving.json")])
    };
    let all = ReportOptions::default();
    let (found, _) = merge_and_read(&options, &all, &Progress::default()).unwrap();
    let found = found.unwrap();
    let text = std::fs::read_to_string(&trace).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let events = document["traceEvents"].as_array().unwrap().iter();
    let added = events.filter(|event| event["cat"] == "sa_findings" && event["ph"] == "X");
    let evidence = added.map(|event| event["args"]["evidence"].clone());
    let evidence: Vec<Value> = evidence.collect();
    let findings = found.findings.iter().map(|finding| json!(finding.evidence));
    assert!(evidence.ends_with(&findings.collect::<Vec<_>>()) && !evidence.is_empty());
    let expanded = &document["otherData"]["view"]["expanded"];
    assert_eq!(expanded[0], "sa-profile: findings", "{expanded}");
    let again = report(trace);
    let names = |report: &RunReport| -> Vec<_> {
        let processes = report.recorded.processes.iter();
        processes.map(|process| process.name.clone()).collect()
    };
    assert_eq!(names(&again), names(&found));
    assert_eq!(again.recorded.wall_ns, found.recorded.wall_ns);
}

/// The cost of each id depends on its own length, not on the length of all ids.
#[test]
fn an_event_with_many_requests_is_read_once() {
    let ids: Vec<String> = (0..20_000).map(|nth| format!("request-{nth}")).collect();
    let ids = json!(ids);
    let found = report_from_text(&format!("X 1 1+9 http.batch request_ids={ids} reason=stop"));
    assert_eq!((found.requests.n, found.requests.ok), (20_000, 20_000));
}

#[test]
fn sums_saturate() {
    let long = (1..=600).map(|tid| format!("X 1/{tid} 1+20000000000000 long\n"));
    let found = report_from_events(&events(&long.collect::<String>()));
    let name = &found.names[0];
    assert_eq!([name.ttot_ns, name.tsub_ns], [i64::MAX; 2]);
}
