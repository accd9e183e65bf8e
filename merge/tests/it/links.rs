//! Requests linked by the ids in their events: held against a naive reader, and case by case.

use crate::full::cases;
use crate::invocation::{Merged, RunDir, one_block, trace_merge};
use crate::oracle::links::{expected, found};
use crate::pypto;
use crate::random::{Rng, write_foreign, write_own};
use crate::usage::merges;
use format_oracle::writer::line::{On, stream};
use format_oracle::writer::{Fragment, Process};
use serde_json::json;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

const CASES: u64 = 150;

/// Checks the flows of a merged trace, and what the report says of them; gives how many requests are linked.
pub(crate) fn check(merged: &Merged, what: &str) -> usize {
    let (trace, report) = (&merged.trace, &merged.report.0["links"]);
    let flows = found(trace.links());
    assert_eq!(flows, expected(trace.shown()), "{what}");
    assert_eq!(report["requests"], flows.len(), "{what}");
    assert_eq!(report["events"], trace.links().count(), "{what}");
    let [total, added] = ["events_total", "events_added"].map(|key| merged.report.number(key));
    assert_eq!(trace.events.len() as u64, total + added, "{what}");
    let told = &trace.document["otherData"]["linked_requests"];
    assert_eq!(*told, flows.len(), "{what}");
    flows.len()
}

/// A run of processes, each with its lines in a block.
pub(crate) fn run_of(processes: &[(Process, Vec<String>)]) -> RunDir {
    let dir = RunDir::new();
    for (process, lines) in processes {
        one_block(process, lines).write_here(&dir.fragments());
    }
    dir
}

pub(crate) fn ms(ms: u64) -> u64 {
    5_000_000_000 + ms * 1_000_000
}

/// A span of a millisecond at `at_ms`.
pub(crate) fn span(on: On, at_ms: u64, name: &str, args: &str) -> String {
    on.span(ms(at_ms), 1_000_000, name, args)
}

#[test]
fn without_links_the_trace_is_what_was_recorded() {
    let (with, without) = (
        Merged::of(&[], &[&pypto::fixture()]),
        Merged::of(&["--no-link-requests"], &[&pypto::fixture()]),
    );
    assert!(without.trace.links().next().is_none());
    assert!(without.report.0.get("links").is_none());
    let lines = |merged: &Merged| {
        let text = String::from_utf8(merged.bytes.clone()).unwrap();
        let lines = text.lines().skip(1);
        let kept = lines.filter(|line| !line.contains("sa_link"));
        kept.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(&with), lines(&without));
    let said = merges(trace_merge().arg(pypto::fixture()).args(["-o", "-"])).stderr;
    assert!(said.contains("12 requests linked through "), "{said}");
    let verbatim = Merged::of(&["--verbatim"], &[&pypto::fixture()]);
    assert!(verbatim.trace.links().next().is_none());
}

/// Ids of a few requests, each in one of the forms in which engines know it.
fn id(rng: &mut Rng) -> String {
    let name = format!("r{}", rng.below(6));
    match rng.below(8) {
        0 => format!("cmpl-{name}"),
        1 => format!("cmpl-{name}-0"),
        2 => format!("cmpl-{name}-0-{:08x}", 0xa0 + rng.below(2)),
        3 => format!("1_cmpl-{name}-0-000000a0"),
        4 => format!("{name}-0123abcd"),
        5 => format!("other-{:08x}", rng.below(3)),
        _ => name,
    }
}

fn args(rng: &mut Rng) -> String {
    match rng.below(9) {
        0 => format!(r#""n":1,"request_id":"{}""#, id(rng)),
        1 => {
            let (one, other) = (id(rng), id(rng));
            format!(r#""request_ids":["{one}","{other}"],"n":{{"request_id":"r1"}}"#)
        }
        2 => format!(r#""external_id":"{}""#, id(rng)),
        3 => format!(r#""internal_request_id":{}"#, rng.below(3)),
        4 => {
            // One client's id for each engine's: what two say of one is a matter of taste.
            let name = rng.below(6);
            format!(r#""request_id":"x{name}","external_ids":["r{name}"]"#)
        }
        5 => r#""request_id":"","request_ids":[null,"r\u0031"],"text":"\"request_id\":\"r2\"""#
            .into(),
        6 => r#""parent_request_id":"r1""#.into(),
        _ => r#""n":1"#.into(),
    }
}

/// An event at one of few times, so that many fall together.
fn event(rng: &mut Rng, on: On) -> String {
    let ts_ns = 5_000_000_000 + 1000 * (rng.next() % 400);
    let args = args(rng);
    let of_process = |line: String| line.replace(r#""s":"t""#, r#""s":"p""#);
    let with_args = |line: String| line.replace("}}", &format!(",{args}}}}}"));
    match rng.below(6) {
        0 => on.instant(ts_ns, "token", &args),
        1 => of_process(on.instant(ts_ns, "switch", &args)),
        2 => with_args(on.begin(ts_ns, "open")),
        _ => on.span(ts_ns, rng.next() % 90_000, "step", &args),
    }
}

fn write_requests(rng: &mut Rng, folder: &Path) {
    for pid in [10, 20, 30] {
        let process = Process {
            offset_ns: if rng.one_in(2) { 100_000 } else { 0 },
            ..Process::new(pid)
        };
        let count = rng.below(40);
        let lines: Vec<String> = (0..count)
            .map(|_| {
                let tid = pid + u32::try_from(rng.below(2)).unwrap();
                event(rng, process.thread(tid))
            })
            .collect();
        let mut fragment = process.fragment();
        if pid == 30 {
            fragment = Fragment::foreign(pid);
            fragment.raw(&stream(&lines));
            fragment.line("garbage with a \"request_id\" in it");
            fragment.line(r#" { "args" : { "request_ids" : [ "r1" , "r2" ] } , "ts" : 5000000 , "dur":1,"ph":"X","pid":30,"name":"spaced"}"#);
        } else {
            fragment.block(1, 0, &stream(&lines));
        }
        fragment.write_here(folder);
    }
}

#[test]
fn random_requests_are_linked_as_the_naive_reader_links_them() {
    let mut linked = 0;
    for seed in 0..cases(CASES) {
        let (mut rng, dir) = (Rng::new(seed), RunDir::new());
        write_requests(&mut rng, &dir.fragments());
        let is_whole = seed % 2 == 0;
        write_own(&mut rng, &dir.fragments(), 100, is_whole);
        write_foreign(&mut rng, &dir.fragments(), 200, 30, is_whole);
        let last = format!("{}us", 1 + rng.below(400));
        let [from, to] = [rng.below(200), 200 + rng.below(200)].map(|us| format!("{us}us"));
        // Events outside the window or the filter are not linked.
        for options in [
            &[][..],
            &["--last", &last],
            &["--from", &from, "--to", &to],
            &["--pid", "200", "--pid", "100"],
        ] {
            let options = [&["--no-settle"], options].concat();
            let merged = Merged::of(&options, &[dir.path()]);
            linked += check(&merged, &format!("seed {seed}, {options:?}")) as u64;
        }
    }
    assert!(linked > 6 * cases(CASES), "{linked} requests linked");
}

/// Whichever category is met first.
#[test]
fn flows_that_do_not_meet_are_named_and_the_request_keeps_its_arrows() {
    for (api, engine) in [(10, 20), (20, 10)] {
        let (api, engine) = (Process::new(api), Process::new(engine));
        let (on, far) = (api.main_thread(), engine.main_thread());
        let id = r#""request_id":"r""#;
        let flow = |on: On, phase: &str, at_ms| on.flow(phase, ms(at_ms), "global", xxh3_64(b"r"));
        let of_serving = |line: String| line.replace(r#""cat":"flow""#, r#""cat":"serving""#);
        let of_engine = vec![
            span(far, 4, "schedule", id),
            of_serving(flow(far, "f", 6)),
            span(far, 6, "step", id),
            far.flow("s", ms(6), "local", 5),
        ];
        let of_api = vec![flow(on, "s", 0), span(on, 0, "http", id)];
        let dir = run_of(&[(api, of_api), (engine, of_engine)]);
        let links = &dir.merge().report.0["links"];
        assert_eq!(links["events_joined"], 1, "schedule");
        let flow = |category: &str, end, start| json!({"name": "request", "category": category, "without_end": end, "without_start": start});
        // The joined step is the merge's: the program's flows are as loose as before.
        let loose = json!([flow("flow", 2, 0), flow("serving", 0, 1)]);
        assert_eq!(links["loose_flows"], loose);
        let text = merges(trace_merge().arg(dir.path())).stderr;
        for line in [
            r#"flows without end: 2 named "request" in category "flow""#,
            r#"flows without start: 1 named "request" in category "serving""#,
            "steps added to flows of the program: 1",
        ] {
            assert!(text.contains(line), "{text}");
        }
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
        let lines = [at, at + 2].map(|at| span(on, at, "step", r#""request_id":"0""#));
        (process, lines.to_vec())
    };
    let both = run_of(&[of_run(10, "r1", 0), of_run(20, "r2", 10)]);
    let merged = Merged::of(&["--all-runs"], &[both.path()]);
    let lens: Vec<usize> = found(merged.trace.links()).iter().map(Vec::len).collect();
    assert_eq!(lens, [2, 2]);
    // An input without a header may belong to any run, so here it belongs to the only one.
    let one = run_of(&[of_run(10, "r1", 0)]);
    let line = span(
        On { pid: 30, tid: 30 },
        20,
        "step",
        r#""request_ids":["0"]"#,
    );
    one.put("30", &stream(&[line]));
    let merged = Merged::of(&["--all-runs"], &[one.path()]);
    assert_eq!(check(&merged, "one run and a fragment of none"), 1);
    assert_eq!(merged.report.0["links"]["events"], 3);
    // Two hosts' directories that are named together are one system.
    let dirs =
        [(10, "r1", 0), (20, "r2", 10)].map(|(pid, run, at)| run_of(&[of_run(pid, run, at)]));
    let fragments = [(&dirs[0], "trace.10.jsonl"), (&dirs[1], "trace.20.jsonl")];
    let fragments = fragments.map(|(dir, name)| dir.fragments().join(name));
    let merged = Merged::of(&[], &fragments.each_ref().map(PathBuf::as_path));
    assert_eq!(check(&merged, "two hosts"), 1);
}
