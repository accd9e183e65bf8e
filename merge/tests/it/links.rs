//! Requests linked by the ids in their events, compared with a naive reader.

use crate::full::cases;
use crate::invocation::{Merged, RunDir};
use crate::oracle::links::{expected, found};
use crate::random::{Rng, write_foreign, write_own};
use format_oracle::writer::line::{On, stream};
use format_oracle::writer::{Fragment, Process};
use std::path::Path;

const CASES: u64 = 150;

/// Checks the flows of a merged trace and their numbers in the report. Returns the number of linked
/// requests.
pub(crate) fn check(merged: &Merged, what: &str) -> usize {
    let (trace, report) = (&merged.trace, &merged.report.0["links"]);
    let flows = found(trace.links());
    assert_eq!(flows, expected(trace.shown()), "{what}");
    assert_eq!(report["requests"], flows.len(), "{what}");
    assert_eq!(report["events"], trace.links().count(), "{what}");
    let [total, added] = ["events_total", "events_added"].map(|key| merged.report.number(key));
    assert_eq!(trace.events.len() as u64, total + added, "{what}");
    let linked = &trace.document["otherData"]["linked_requests"];
    assert_eq!(*linked, flows.len(), "{what}");
    flows.len()
}

/// Returns the id of one of a few requests, in one of the forms that engines use.
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
            // One client id for each engine id, because the result for conflicting ids is not
            // specified.
            let name = rng.below(6);
            format!(r#""request_id":"x{name}","external_ids":["r{name}"]"#)
        }
        5 => r#""request_id":"","request_ids":[null,"r\u0031"],"text":"\"request_id\":\"r2\"""#
            .into(),
        6 => r#""parent_request_id":"r1""#.into(),
        _ => r#""n":1"#.into(),
    }
}

/// Returns an event at one of a few times, so that many coincide.
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
            let merged = Merged::new(&options, &[dir.path()]);
            linked += check(&merged, &format!("seed {seed}, {options:?}")) as u64;
        }
    }
    assert!(linked > 6 * cases(CASES), "{linked} requests linked");
}
