//! Spans that overlap, in Perfetto's own trace processor: all are there, each in the span around it, and flows lead where they should.

use crate::clashing::{Clashing, Order};
use crate::invocation::RunDir;
use crate::oracle;
use crate::perfetto::{ERRORS, SLICES, number, query};
use crate::random::Rng;

use format_oracle::writer::line::stream;
use serde_json::Value;
use std::collections::BTreeMap;

const PARENTS: &str = "select s.name, p.name from slice s left join slice p on p.id = s.parent_id where s.name not glob 'tick*'";
const ARROWS: &str = "select a.name, b.name from flow join slice a on a.id = slice_out join slice b on b.id = slice_in";

type Pair = (String, Option<String>);

/// The two columns of each row, sorted.
fn pairs(rows: &[Value]) -> Vec<Pair> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let pair = |row: &Value| (text(&row[0]).unwrap_or_default(), text(&row[1]));
    sorted(rows.iter().map(pair))
}

fn sorted(pairs: impl Iterator<Item = Pair>) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = pairs.collect();
    pairs.sort();
    pairs
}

/// From which span to which each flow leads.
fn arrows(flows: &[Pair]) -> Vec<Pair> {
    let of_phase = |phase: &str| -> BTreeMap<String, Option<String>> {
        let named =
            |(name, span): &Pair| Some((name.strip_prefix(phase)?.to_owned(), span.clone()));
        flows.iter().filter_map(named).collect()
    };
    let ends = of_phase("f ");
    let arrow =
        |(name, from): (String, Option<String>)| Some((from?, Some(ends.get(&name)?.clone()?)));
    sorted(of_phase("s ").into_iter().filter_map(arrow))
}

/// Merges the run, loads the trace, and compares spans, the spans around them and flows with the naive reader's.
fn check(test: &str, dir: &RunDir) {
    let expected = oracle::read(&dir.fragments());
    assert!(
        expected.shown.moved > 300,
        "{test}: {}",
        expected.shown.moved
    );
    let merged = dir.merge();
    let output = dir.path().join("shown.json");
    std::fs::write(&output, &merged.bytes).unwrap();
    let Some(rows) = query(test, &output, &[ERRORS, SLICES, PARENTS, ARROWS]) else {
        return;
    };
    assert!(rows[0].is_empty(), "{:?}", rows[0]);
    let phases = ["X", "B", "i"].map(|phase| merged.report.phase(phase));
    assert_eq!(number(&rows[1]), phases.into_iter().sum::<u64>());
    assert_eq!(pairs(&rows[2]), sorted(expected.shown.parents.into_iter()));
    assert_eq!(pairs(&rows[3]), arrows(&expected.shown.flows));
}

/// The spans of a thread, begun ones too, and instants; no two of them begin at the same time.
fn put_spans(thread: &mut Clashing<'_>) {
    for serial in 0..600 {
        let start = start_of(serial);
        let (dur, later) = (
            thread.rng.below(150) as u64,
            6 * thread.rng.below(20) as u64,
        );
        thread.span(&format!("span {} {serial}", thread.tid), start, dur);
        let half = format!("half {} {serial}", thread.tid);
        let (begin, end) = (start + 3, start + 4 + later);
        match thread.rng.below(12) {
            0 | 1 => {
                thread.put("B", &half, (begin, begin), "");
                thread.put("E", &half, (end, end), "");
            }
            2 if serial > 400 => thread.put("B", &half, (begin, begin), ""),
            3 => thread.put(
                "i",
                &format!("tick {serial}"),
                (start + 1, start + 1),
                r#","s":"t""#,
            ),
            _ => {}
        }
    }
}

fn start_of(serial: u64) -> u64 {
    1_000_000_000 + 6 * serial
}

/// A flow from the begin of one span to that of a later one, or to the next span after a time.
fn flow(rng: &mut Rng, id: u64) -> Vec<String> {
    let [one, other] = [rng.below(599) as u64, rng.below(600) as u64];
    let (from, to) = (start_of(one.min(other)), start_of(one.max(other) + 1));
    let tids = [901, 902].map(|tid| tid - u32::from(tid == 902 && rng.one_in(2)));
    let (binding, to) = match id % 2 {
        0 => (r#","bp":"e""#, to),
        _ => ("", to - 1),
    };
    let end = [("s", from, ""), ("f", to, binding)];
    let lines = end
        .into_iter()
        .zip(tids)
        .map(|((phase, time, binding), tid)| {
            let mut thread = Clashing::new(rng, tid, 1);
            thread.put(
                phase,
                &format!("flow {id}"),
                (time, time),
                &format!(r#","id":{id}{binding}"#),
            );
            thread.lines(Order::None)
        });
    lines.flatten().collect()
}

fn linked_run(order: Order) -> RunDir {
    let (mut rng, dir, mut lines) = (Rng::new(21), RunDir::new(), Vec::new());
    for tid in [901, 902] {
        let mut thread = Clashing::new(&mut rng, tid, 1);
        put_spans(&mut thread);
        lines.extend(thread.lines(order));
    }
    for id in 0..300 {
        lines.extend(flow(&mut rng, id));
    }
    dir.put("900", &stream(&lines));
    dir
}

#[test]
fn spans_that_clash_are_all_shown() {
    let dir = linked_run(Order::ByEnd);
    check("spans_that_clash_are_all_shown", &dir);
}
