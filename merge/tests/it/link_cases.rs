//! Requests linked, case by case: which ids are the same request, and who links it.

use crate::invocation::{Merged, RunDir};
use crate::links::{chain, chains, check, ms, run_of, span};
use crate::oracle::links::found;
use crate::writer::line::On;
use crate::writer::{Fragment, Process};
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
const MINE: [&str; 5] = [
    "s client",
    "t client alone",
    "t step",
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
fn a_request_that_its_recorder_links_is_not_linked_again() {
    let (one, two) = (Process::new(10), Process::new(20));
    let lines = |process: &Process, at, phases: [&str; 2]| {
        let on = process.main_thread();
        let mut lines = with_flow(on, at, phases[0], "mine");
        lines.extend(with_flow(on, at + 2, phases[1], "joined"));
        lines.push(span(
            on,
            at + 4,
            "client",
            r#""external_id":"c","request_id":"mine""#,
        ));
        lines.push(span(on, at + 6, "client alone", r#""external_id":"c""#));
        lines.push(span(on, at + 8, "other", r#""request_id":"theirs""#));
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
