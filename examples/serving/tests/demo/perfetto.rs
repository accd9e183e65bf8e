//! The merged traces in Perfetto's own trace processor.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::harness::Workplace;

const TPQ: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/perfetto/tpq");
/// What tpq exits with where it cannot be set up.
const NOT_HERE: i32 = 3;

/// A request and a worker's batch that has its id among its args.
const BY_ARGS: &str = "SELECT a.string_value AS request, s.id AS batch FROM slice s JOIN args a ON a.arg_set_id = s.arg_set_id \
    WHERE s.name LIKE 'WorkerProcess.batch_%' AND a.flat_key = 'args.request_ids'";
/// A request and a worker's batch that the request's flow leads through. Both ends of each arrow count: the steps of two workers overlap, and Perfetto
/// turns an arrow round whose spans began in the other order than their flow events came.
const BY_FLOWS: &str = "SELECT DISTINCT r.request AS request, s.id AS batch FROM flow f JOIN slice s ON s.id IN (f.slice_out, f.slice_in) \
    JOIN (SELECT DISTINCT f.trace_id AS flow, extract_arg(h.arg_set_id, 'args.request_id') AS request FROM flow f \
    JOIN slice q ON q.id IN (f.slice_out, f.slice_in) AND q.name = 'AsyncLLMEngine.add_request' \
    JOIN slice h ON h.name = 'http.completions' \
    AND extract_arg(h.arg_set_id, 'args.request_id') = extract_arg(q.arg_set_id, 'args.request_id')) r ON r.flow = f.trace_id \
    WHERE s.name LIKE 'WorkerProcess.batch_%'";

/// Output of tpq, or `None` after saying that the test is skipped.
fn tpq(test: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(TPQ).args(arguments).output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED {test}: {TPQ}: {error}");
            return None;
        }
    };
    let words = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(NOT_HERE) {
        eprintln!("SKIPPED {test}: {words}");
        return None;
    }
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{words}");
    Some(text)
}

/// The rows of each query.
fn rows(test: &str, trace: &Path, queries: &[&str]) -> Option<Vec<Value>> {
    let mut arguments = vec![trace.to_str().unwrap()];
    arguments.extend(queries);
    let text = tpq(test, &arguments)?;
    Some(
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    )
}

/// Checks that Perfetto has no complaint and shows as many of everything as the merge reports.
fn shows_all(test: &str, workplace: &Workplace, processes: usize) -> Option<()> {
    let directory = workplace.path("profile_out");
    let report = trace_merge::merge(&trace_merge::Options::new([directory])).unwrap();
    let count = |phases: &[char]| {
        phases
            .iter()
            .filter_map(|phase| report.events.by_phase.get(phase))
            .sum::<u64>()
    };
    let joined = report.links.as_ref().unwrap().events_joined;
    let trace = workplace.trace();
    let is_arrow = |event: &&Value| event["cat"] == "sa_link" && event["ph"] != "s";
    let own = trace.events.iter().filter(is_arrow).count() as u64;
    let counters = trace.events.iter().filter(|event| event["ph"] == "C");
    let series: usize = counters
        .map(|event| event["args"].as_object().unwrap().len())
        .sum();
    let expected = [
        format!("slices={}", count(&['X', 'B', 'i'])),
        // Each step and end of a flow draws one arrow; the merge adds steps to the program's flows, and flows of its own.
        format!("flows={}", count(&['t', 'f']) + joined + own),
        format!("counters={series}"),
        format!("processes={processes}"),
    ];
    let trace = workplace.path("profile_out/trace.json");
    let mut arguments = vec!["--check", trace.to_str().unwrap()];
    arguments.extend(expected.iter().map(String::as_str));
    tpq(test, &arguments).map(|_| ())
}

#[test]
fn perfetto_shows_every_event_and_the_flow_of_every_request() {
    let test = "perfetto_shows_every_event_and_the_flow_of_every_request";
    let workplace = Workplace::new();
    workplace
        .run("--requests 12 --concurrency 6 --tokens 10")
        .expect(0);
    if shows_all(test, &workplace, 7).is_none() {
        return;
    }
    let queries = [
        &format!("SELECT count(*), count(DISTINCT request) FROM ({BY_ARGS})"),
        &format!("SELECT count(*), count(DISTINCT request) FROM ({BY_FLOWS})"),
        &format!("SELECT count(*) FROM ({BY_ARGS} EXCEPT {BY_FLOWS})"),
        &format!("SELECT count(*) FROM ({BY_FLOWS} EXCEPT {BY_ARGS})"),
        "SELECT count(*) FROM slice WHERE name = 'http.completions'",
    ];
    let Some(answers) = rows(
        test,
        &workplace.path("profile_out/trace.json"),
        &queries.map(|query| query as &str),
    ) else {
        return;
    };
    let [by_args, by_flows, missing, foreign, http] = answers.as_slice() else {
        panic!("{answers:?}")
    };
    assert_eq!(by_args, by_flows);
    assert_eq!(
        by_args[0][1], 12,
        "every request was in a worker's batch: {by_args}"
    );
    assert!(
        by_args[0][0].as_u64() > Some(12 * 2 * 5),
        "two workers, at least five steps each: {by_args}"
    );
    assert_eq!(
        (&missing[0][0], &foreign[0][0], &http[0][0]),
        (&0.into(), &0.into(), &12.into())
    );
}

/// The SQL statements of docs/first-trace.md.
fn documented_statements() -> Vec<&'static str> {
    let page = include_str!("../../../../docs/first-trace.md");
    let blocks = page.split("```sql\n").skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap())
        .collect()
}

#[test]
fn every_statement_of_the_first_trace_page_has_an_answer() {
    let test = "every_statement_of_the_first_trace_page_has_an_answer";
    let statements = documented_statements();
    assert!(statements.len() > 5);
    let workplace = Workplace::new();
    workplace
        .run("--requests 9 --concurrency 4 --tokens 8 --kill-worker")
        .expect(0);
    let trace = workplace.path("profile_out/trace.json");
    let Some(answers) = rows(test, &trace, &statements) else {
        return;
    };
    assert_eq!(answers.len(), statements.len());
    for (statement, answer) in statements.iter().zip(&answers) {
        assert!(!answer.as_array().unwrap().is_empty(), "{statement}");
    }
}
