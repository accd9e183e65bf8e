//! Requests linked, case by case: which ids are the same request, and who links it.

use crate::invocation::{Ended, Merged, RunDir, trace_merge};
use crate::links::{chain, chains, check, ms, run_of, span};
use crate::oracle::links::found;
use crate::trace::ns;
use format_oracle::writer::line::On;
use format_oracle::writer::{Fragment, Process};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

#[test]
fn what_the_client_knows_leads_to_what_the_engine_knows() {
    let (api, engine) = (Process::new(10), Process::new(20));
    let (on, far) = (api.main_thread(), engine.main_thread());
    let dir = run_of(&[
        (
            api,
            vec![
                span(on, 0, "http", r#""external_id":"abc""#),
                span(
                    on,
                    2,
                    "arrived",
                    r#""request_id":"i-1","external_id":"abc""#,
                ),
                span(on, 9, "answered", r#""external_request_id":"abc""#),
            ],
        ),
        (
            engine,
            vec![
                span(far, 4, "step", r#""request_ids":["i-1","i-2"]"#),
                span(far, 6, "step 2", r#""request_ids":["i-2"]"#),
            ],
        ),
    ]);
    assert_eq!(
        chains(&dir.merge()),
        [
            vec!["s http", "t arrived", "t step", "f answered"],
            vec!["s step", "f step 2"],
        ]
    );
}

#[test]
fn forms_of_an_id_are_one_request_only_if_the_shorter_one_is_there() {
    let process = Process::new(10);
    let on = process.main_thread();
    let one = |at, id: &str| span(on, at, id, &format!(r#""request_id":"{id}""#));
    let lines = vec![
        one(0, "abc"),
        one(2, "cmpl-abc"),
        one(4, "cmpl-abc-0-0123abcd"),
        // Two requests of somebody who names them so, each in one event.
        one(6, "req-01234567"),
        one(8, "req-89abcdef"),
        // The same number behind another prefix is another request.
        one(10, "cmpl-7"),
        one(12, "chatcmpl-7"),
        one(14, "1_xyz-01234567"),
        one(16, "0_xyz-01234567"),
        one(18, "xyz-01234567"),
    ];
    assert_eq!(
        chains(&run_of(&[(process, lines)]).merge()),
        [
            vec!["s abc", "t cmpl-abc", "f cmpl-abc-0-0123abcd"],
            vec!["s 1_xyz-01234567", "t 0_xyz-01234567", "f xyz-01234567"],
        ]
    );
}

/// What is left of a request in a window that begins after its first event.
const MINE: [&str; 7] = [
    "s seen",
    "t client",
    "t client alone",
    "t step",
    "t seen",
    "t client",
    "f client alone",
];

/// A span with a request, and a recorder's flow through it.
fn with_flow(on: On, at_ms: u64, phase: &str, id: &str) -> Vec<String> {
    vec![
        on.flow(phase, ms(at_ms), "global", xxh3_64(id.as_bytes())),
        span(on, at_ms, "step", &format!(r#""request_id":"{id}""#)),
    ]
}

#[test]
fn arrows_are_added_to_the_programs_flow_where_it_has_none() {
    let (one, two) = (Process::new(10), Process::new(20));
    let lines = |process: &Process, at, phases: [&str; 2]| {
        let (on, other) = (process.main_thread(), process.thread(process.pid + 1));
        let mut lines = with_flow(on, at, phases[0], "mine");
        lines.extend(with_flow(on, at + 2, phases[1], "joined"));
        // The thread on which the program draws the flow is left as it is.
        lines.push(span(on, at + 3, "seen", r#""request_id":"mine""#));
        lines.push(span(
            other,
            at + 4,
            "client",
            r#""external_id":"c","request_id":"mine""#,
        ));
        lines.push(span(other, at + 6, "client alone", r#""external_id":"c""#));
        lines.push(span(other, at + 8, "other", r#""request_id":"theirs""#));
        lines
    };
    // A flow without a start shows nothing, so the second request has none.
    let dir = run_of(&[
        (one.clone(), lines(&one, 0, ["s", "t"])),
        (two.clone(), lines(&two, 20, ["f", "f"])),
    ]);
    let merged = dir.merge();
    let flows = found(merged.trace.links());
    let chains: Vec<_> = flows.iter().map(|flow| chain(&merged, flow)).collect();
    assert_eq!(
        chains,
        [vec!["s step", "f step"], vec!["s other", "f other"]]
    );
    assert_eq!(merged.report.0["links"]["requests"], 2);
    // "mine" passes through the thread that the program leaves out, and ends where the program ends it.
    assert_eq!(
        program_chains(&merged),
        [["s step", "t client", "t client alone", "f step"]]
    );
    assert_eq!(merged.report.0["links"]["events_joined"], 2);
    let loose =
        json!([{"name": "request", "category": "flow", "without_end": 0, "without_start": 1}]);
    assert_eq!(merged.report.0["links"]["loose_flows"], loose);
    // In a window that begins after the start of its flow the first one has no arrows of its recorder.
    let merged = Merged::of(&["--last", "27ms"], &[dir.path()]);
    let names: Vec<_> = found(merged.trace.links())
        .iter()
        .map(|flow| chain(&merged, flow))
        .collect();
    assert!(
        names.contains(&MINE.map(str::to_owned).to_vec()),
        "{names:?}"
    );
}

/// Returns the phases and names along each flow that a program starts.
fn program_chains(merged: &Merged) -> Vec<Vec<String>> {
    flow_chains(merged, |category| category != "sa_link")
}

/// Returns the same of flows of the merge.
fn merge_chains(merged: &Merged) -> Vec<Vec<String>> {
    flow_chains(merged, |category| category == "sa_link")
}

fn flow_chains(merged: &Merged, is_wanted: impl Fn(&Value) -> bool) -> Vec<Vec<String>> {
    let mut flows: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for event in &merged.trace.events {
        let is_flow = ["s", "t", "f"].contains(&event["ph"].as_str().unwrap());
        if is_flow && is_wanted(&event["cat"]) {
            let key = [&event["id"], &event["name"], &event["cat"]];
            let flow = flows.entry(key.map(Value::to_string).join(" "));
            flow.or_default().push(event);
        }
    }
    let is_whole = |flow: &&Vec<&Value>| flow.iter().any(|event| event["ph"] == "s");
    let of = |mut flow: Vec<&Value>| {
        flow.sort_by_key(|event| ns(&event["ts"]));
        let name = |event: &&Value| {
            let around = merged.trace.shown().filter(|span| {
                let from = ns(&span["ts"]);
                let range = from..=from + span.get("dur").map_or(0, ns);
                let is_span = ["X", "i"].contains(&span["ph"].as_str().unwrap());
                let row = ["pid", "tid"].iter().all(|of| span[of] == event[of]);
                is_span && row && range.contains(&ns(&event["ts"]))
            });
            let innermost = around.min_by_key(|span| span.get("dur").map_or(0, ns));
            let name = innermost.map_or("", |span| span["name"].as_str().unwrap());
            format!("{} {name}", event["ph"].as_str().unwrap())
        };
        flow.iter().map(name).collect()
    };
    let flows = flows.into_values().filter(|flow| is_whole(&flow));
    flows.map(of).collect()
}

#[test]
fn before_the_programs_flow_starts_the_merge_draws_its_own() {
    let (api, engine) = (Process::new(10), Process::new(20));
    let (on, far) = (api.main_thread(), engine.main_thread());
    let id = r#""request_id":"r""#;
    let dir = run_of(&[
        (
            api,
            vec![
                span(on, 0, "http", id),
                span(on, 2, "add", id),
                on.flow("f", ms(20), "global", xxh3_64(b"r")),
                span(on, 20, "answer", id),
            ],
        ),
        (
            engine,
            vec![
                span(far, 4, "schedule", id),
                far.flow("s", ms(6) + 1_000, "global", xxh3_64(b"r")),
                span(far, 6, "step", id),
                // An instant on a thread on which the program draws the flow is left to the span around it.
                far.instant(ms(6) + 500_000, "token", id),
            ],
        ),
    ]);
    let merged = dir.merge();
    assert_eq!(
        merge_chains(&merged),
        [["s http", "t add", "t schedule", "f step"]]
    );
    assert_eq!(program_chains(&merged), [["s step", "f answer"]]);
    assert_eq!(merged.report.0["links"]["loose_flows"], Value::Null);
}

/// An arrow from a span to itself would say nothing.
#[test]
fn an_arrow_leads_to_the_programs_flow_unless_that_starts_in_the_first_span() {
    for (span_ms, start_ms) in [(0, 0), (0, 4)] {
        let (api, engine) = (Process::new(10), Process::new(20));
        let (on, far) = (api.main_thread(), engine.main_thread());
        let id = r#""request_id":"r""#;
        let flow = |on: On, phase: &str, ns| on.flow(phase, ns, "global", xxh3_64(b"r"));
        let dir = run_of(&[
            (
                api,
                vec![
                    span(on, span_ms, "http", id),
                    span(on, 4, "add", ""),
                    flow(on, "s", ms(start_ms) + 1_000),
                ],
            ),
            (
                engine,
                vec![span(far, 6, "step", id), flow(far, "f", ms(6) + 1_000)],
            ),
        ]);
        let merged = dir.merge();
        let (started_in, lead) = match start_ms {
            0 => ("s http", vec![]),
            _ => ("s add", vec![["s http", "f add"]]),
        };
        assert_eq!(program_chains(&merged), [[started_in, "f step"]]);
        assert_eq!(merge_chains(&merged), lead);
    }
}

#[test]
fn flows_that_do_not_meet_are_named_and_the_request_keeps_its_arrows() {
    // Whichever category is met first.
    for (api, engine) in [(10, 20), (20, 10)] {
        flows_do_not_meet(Process::new(api), Process::new(engine));
    }
}

fn flows_do_not_meet(api: Process, engine: Process) {
    let (on, far) = (api.main_thread(), engine.main_thread());
    let id = r#""request_id":"r""#;
    let flow = |on: On, phase: &str, at_ms| on.flow(phase, ms(at_ms), "global", xxh3_64(b"r"));
    let of_serving = |line: String| line.replace(r#""cat":"flow""#, r#""cat":"serving""#);
    let dir = run_of(&[
        (api, vec![flow(on, "s", 0), span(on, 0, "http", id)]),
        (
            engine,
            vec![
                span(far, 4, "schedule", id),
                of_serving(flow(far, "f", 6)),
                span(far, 6, "step", id),
                far.flow("s", ms(6), "local", 5),
            ],
        ),
    ]);
    let merged = dir.merge();
    let mut chains = program_chains(&merged);
    chains.sort();
    let joined = vec!["s http", "t schedule"];
    assert_eq!(chains, [joined, vec!["s step"]]);
    let flow = |category: &str, end, start| json!({"name": "request", "category": category, "without_end": end, "without_start": start});
    // The joined steps are the merge's: the program's flows are as loose as before.
    assert_eq!(
        merged.report.0["links"]["loose_flows"],
        json!([flow("flow", 2, 0), flow("serving", 0, 1)])
    );
    let text = Ended::of(trace_merge().arg(dir.path())).stderr;
    for line in [
        r#"flows without end: 2 named "request" in category "flow""#,
        r#"flows without start: 1 named "request" in category "serving""#,
        "steps added to flows of the program: 1",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn an_id_counts_for_a_run_where_several_are_shown() {
    let of_run = |pid: u32, run: &str, at| {
        let process = Process {
            run: run.into(),
            ..Process::new(pid)
        };
        let on = process.main_thread();
        let lines = ["a", "b"]
            .map(|name| (name, if name == "a" { at } else { at + 2 }))
            .map(|(name, at)| span(on, at, &format!("{name} of {run}"), r#""request_id":"0""#));
        (process, lines.to_vec())
    };
    let both = run_of(&[of_run(10, "r1", 0), of_run(20, "r2", 10)]);
    let merged = Merged::of(&["--all-runs"], &[both.path()]);
    let flows = found(merged.trace.links());
    assert_eq!(flows.len(), 2);
    for flow in &flows {
        assert_eq!(flow.len(), 2, "{flow:?}");
    }
    // What has no header may be of any run, so of the only one.
    let one = run_of(&[of_run(10, "r1", 0)]);
    let mut foreign = Fragment::foreign(30);
    foreign.line(&span(
        On { pid: 30, tid: 30 },
        20,
        "step",
        r#""request_ids":["0"]"#,
    ));
    foreign.write_here(&one.fragments());
    let merged = Merged::of(&["--all-runs"], &[one.path()]);
    assert_eq!(check(&merged, "one run and a fragment of none"), 1);
    assert_eq!(merged.report.0["links"]["events"], 3);
    // Two hosts' directories that are named together are one system.
    let (one, two) = (
        run_of(&[of_run(10, "r1", 0)]),
        run_of(&[of_run(20, "r2", 10)]),
    );
    let fragments = [
        one.fragments().join("trace.10.jsonl"),
        two.fragments().join("trace.20.jsonl"),
    ];
    let merged = Merged::of(&[], &fragments.each_ref().map(std::path::PathBuf::as_path));
    assert_eq!(check(&merged, "two hosts"), 1);
}

#[test]
fn a_step_that_did_not_end_does_not_end_a_request() {
    let process = Process::new(10);
    let on = process.main_thread();
    let open = on.begin(ms(5), "killed here").replace(
        r#""unfinished":true"#,
        r#""request_ids":["a"],"unfinished":true"#,
    );
    let queued = span(on, 0, "queued", r#""request_id":"a""#);
    let dir = run_of(&[(process, vec![queued, open])]);
    assert_eq!(chains(&dir.merge()), [["s queued", "t killed here"]]);
}

#[test]
fn lines_that_begin_alike_are_linked_too() {
    let process = Process::new(10);
    let on = process.main_thread();
    let mut lines = Vec::new();
    for step in 0..200_u64 {
        let args = format!(
            r#""n":{step},"request_ids":["a{}","b{}","c","d"]"#,
            step / 10,
            step / 50
        );
        lines.push(on.instant(
            ms(step),
            "token",
            &format!(r#""request_id":"t{}""#, step / 2),
        ));
        lines.push(span(on, step, "step", &args));
        // The same requests again, within the step, and one that its recorder links among others.
        lines.push(on.span(
            ms(step) + 1000,
            1000,
            "inner",
            &args[args.find(",").unwrap() + 1..],
        ));
        lines.push(on.flow("s", ms(step), "global", xxh3_64(b"mine") ^ (step % 3)));
        lines.push(on.span(ms(step) + 3000, 1000, "other", r#""request_id":"mine""#));
    }
    let merged = run_of(&[(process, lines)]).merge();
    // "mine" has a flow that its recorder began.
    let flows = found(merged.trace.links());
    let lens: Vec<usize> = flows.iter().map(Vec::len).collect();
    let count = |len: usize| lens.iter().filter(|one| **one == len).count();
    let expected = [(2, 100), (20, 20), (100, 4), (400, 2)];
    assert_eq!(expected.map(|(len, _)| (len, count(len))), expected);
    assert_eq!(flows.len(), 126);
    assert_eq!(merged.report.0["links"]["requests"], 126);
}

#[test]
fn an_arrow_goes_along_with_a_span_that_moves() {
    let dir = RunDir::new();
    let on = On { pid: 10, tid: 10 };
    let of = |id: u64| format!(r#""request_id":"r{id}""#);
    let lines: String = (0..50_u64)
        .flat_map(|id| {
            let at = ms(10 * id);
            [
                on.span(at, 4_000_000, "first", &of(id)),
                on.span(at + 2_000_000, 4_000_000, "overlaps", &of(id)),
                on.instant(at + 5_000_000, "in it", &of(id)),
            ]
        })
        .map(|line| line + "\n")
        .collect();
    dir.put("10", lines.as_bytes());
    let merged = dir.merge();
    assert_eq!(merged.report.number("overlapping_spans"), 50);
    assert_eq!(check(&merged, "moved spans"), 50);
    for flow in found(merged.trace.links()) {
        let tids: Vec<&str> = flow.iter().map(|link| link.3.as_str()).collect();
        assert!(tids[0] != tids[1] && tids[1] == tids[2], "{flow:?}");
    }
}
