//! More overlapping spans than fit in memory, and more than there are lanes for.

use crate::clashing::{Clashing, ORDERS, Order};
use crate::invocation::{RunDir, trace_merge};
use crate::lanes::assert_tracks_nest;
use crate::memory::{assert_below, peak_kib};
use crate::random::Rng;
use crate::usage::merges;
use format_oracle::writer::line::stream;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::Stdio;

#[test]
fn lanes_are_named_after_their_thread_and_spans_without_one_are_counted() {
    let (mut rng, dir) = (Rng::new(1), RunDir::new());
    let mut thread = Clashing::new(&mut rng, 903, 1);
    for number in 0..300 {
        thread.span(&format!("span {number}"), 1_000_000_000 + number, 1_000);
    }
    let mut lines = thread.lines(Order::None);
    let name = r#"{"name":"thread_name","ph":"M","pid":900,"tid":903,"args":{"name":"worker"}}"#;
    lines.push(name.to_owned());
    dir.put("900", &stream(&lines));
    let merged = dir.merge();
    let names: BTreeSet<String> = merged.trace.thread_names().into_values().collect();
    let lane_name = |lane: u32| format!("worker (overlapping {lane})");
    let expected = (1..=255).map(lane_name).chain(["worker".to_owned()]);
    assert_eq!(names, expected.collect());
    let keys = ["overlapping_spans", "rows_added", "overlapping_spans_left"];
    assert_eq!(keys.map(|key| merged.report.number(key)), [255, 255, 44]);
    assert_eq!(merged.trace.phase("X").len(), 300);
}

fn serial(event: &Value) -> usize {
    event["name"].as_str().unwrap().parse().unwrap()
}

/// Returns a run whose thread has so many overlapping spans that sorting them needs temporary
/// files.
pub(crate) fn many() -> (RunDir, usize) {
    let (mut rng, dir, count) = (Rng::new(7), RunDir::new(), 250_000);
    let mut thread = Clashing::new(&mut rng, 903, 50 * count);
    for serial in 0..count {
        let (start, dur) = (thread.time(), thread.rng.below(400) as u64);
        thread.span(&format!("{serial}"), start, dur);
    }
    dir.put("900", &stream(&thread.lines(Order::None)));
    (dir, count)
}

#[test]
fn very_many_spans_clash() {
    let (dir, count) = many();
    let merged = dir.merge();
    assert_tracks_nest(&merged, "many");
    let spans = merged.trace.phase("X");
    let mut serials: Vec<usize> = spans.iter().map(|span| serial(span)).collect();
    serials.sort_unstable();
    assert!(serials.into_iter().eq(0..count));
    assert_eq!(merged.report.number("overlapping_spans_left"), 0);
    let mut alone = trace_merge();
    alone.args(["--threads", "1", "-o", "-"]).arg(dir.path());
    assert!(merges(&mut alone).stdout == merged.bytes);
}

/// 30 MB of steps with 20 spans each on 100 threads, some of which overlap.
#[test]
fn many_threads_take_little_memory() {
    for order in ORDERS {
        let (mut rng, dir, mut content) = (Rng::new(7), RunDir::new(), String::new());
        let mut now = [1_000_000_000; 100];
        while content.len() < 30_000_000 {
            let number = rng.below(100);
            let mut thread = Clashing::new(&mut rng, 901 + u32::try_from(number).unwrap(), 1);
            let start = now[number];
            for serial in 0..20 {
                thread.span("kernel", start + 100 * serial + 10, 80);
            }
            let clashes = thread.rng.one_in(50);
            thread.span("step", start, if clashes { 1_950 } else { 2_000 });
            now[number] += 2_100;
            for line in thread.lines(order) {
                writeln!(content, "{line}").unwrap();
            }
        }
        dir.put("900", content.as_bytes());
        eprintln!("{order:?}");
        let mut merge = trace_merge();
        merge.args(["-q", "--threads", "2", "-o", "/dev/null"]);
        let kib = peak_kib(merge.arg(dir.path()).stdout(Stdio::null()));
        assert_below(24 << 10, kib, "many_threads_take_little_memory");
    }
}
