//! Loads the merged traces in Perfetto's own trace processor.

use std::process::Command;

use serde_json::Value;

use crate::harness::Workplace;

const TPQ: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/perfetto/tpq");
/// Exit status of tpq if it cannot be set up.
const UNAVAILABLE: i32 = 3;

/// Returns the output of tpq. If it is not available, prints that the test is skipped and returns `None`.
fn tpq(test: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(TPQ).args(arguments).output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED {test}: {TPQ}: {error}");
            return None;
        }
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(UNAVAILABLE) {
        eprintln!("SKIPPED {test}: {errors}");
        return None;
    }
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{errors}");
    Some(text)
}

/// Returns the arguments with which tpq checks that it shows the numbers of events that the merge reports.
fn counts(workplace: &Workplace, processes: usize) -> [String; 4] {
    let directory = workplace.path("profile_out");
    let report = trace_merge::merge(&trace_merge::Options::new([directory])).unwrap();
    let by_phase = |phases: &[char]| {
        let counts = phases
            .iter()
            .filter_map(|phase| report.events.by_phase.get(phase));
        counts.sum::<u64>()
    };
    let joined = report.links.as_ref().unwrap().events_joined;
    let trace = workplace.trace();
    let is_arrow = |event: &&Value| event["cat"] == "sa_link" && event["ph"] != "s";
    let own = trace.events.iter().filter(is_arrow).count() as u64;
    let counters = trace.events.iter().filter(|event| event["ph"] == "C");
    let series: usize = counters
        .map(|event| event["args"].as_object().unwrap().len())
        .sum();
    [
        format!("slices={}", by_phase(&['X', 'B', 'i'])),
        // Each step and end of a flow is one arrow. The merge adds steps to the program's flows, and its own flows.
        format!("flows={}", by_phase(&['t', 'f']) + joined + own),
        format!("counters={series}"),
        format!("processes={processes}"),
    ]
}

/// Returns the SQL statements of docs/first-trace.md.
fn documented_statements() -> Vec<&'static str> {
    let page = include_str!("../../../../docs/first-trace.md");
    let blocks = page.split("```sql\n").skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap())
        .collect()
}

#[test]
fn perfetto_shows_every_event_and_answers_every_statement_of_the_first_trace_page() {
    let test = "perfetto_shows_every_event_and_answers_every_statement_of_the_first_trace_page";
    let workplace = Workplace::new();
    workplace
        .run("--requests 9 --concurrency 4 --tokens 8 --kill-worker")
        .expect(0);
    let counts = counts(&workplace, 7);
    let trace = workplace.path("profile_out/trace.json");
    let trace = trace.to_str().unwrap();
    let check = ["--check", trace].into_iter();
    let check: Vec<&str> = check.chain(counts.iter().map(String::as_str)).collect();
    let statements = documented_statements();
    assert!(statements.len() > 5);
    let questions: Vec<&str> = [trace]
        .into_iter()
        .chain(statements.iter().copied())
        .collect();
    let (Some(_), Some(answers)) = (tpq(test, &check), tpq(test, &questions)) else {
        return;
    };
    assert_eq!(answers.lines().count(), statements.len());
    for (statement, answer) in statements.iter().zip(answers.lines()) {
        assert_ne!(answer, "[]", "{statement}");
    }
}
