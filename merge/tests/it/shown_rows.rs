//! Spans that overlap, in Perfetto's own trace processor: all are there, each in the span around it.

use crate::clashing::{Clashing, Order};
use crate::invocation::RunDir;
use crate::oracle;
use crate::perfetto::{ERRORS, SLICES, number, query_bytes};
use crate::random::Rng;
use format_oracle::writer::line::stream;
use serde_json::Value;

const PARENTS: &str = "select s.name, p.name from slice s left join slice p on p.id = s.parent_id where s.name not glob 'tick*'";

/// Begun and complete spans of two threads, and instants. No two of them begin at the same time.
fn clashing_run() -> RunDir {
    let (mut rng, dir, mut lines) = (Rng::new(21), RunDir::new(), Vec::new());
    for tid in [901, 902] {
        let mut thread = Clashing::new(&mut rng, tid, 1);
        for serial in 0..600 {
            let start = 1_000_000_000 + 6 * serial;
            let dur = thread.rng.below(150) as u64;
            thread.span(&format!("span {tid} {serial}"), start, dur);
            let (begin, end) = (start + 3, start + 4 + 6 * thread.rng.below(20) as u64);
            let half = format!("half {tid} {serial}");
            let has_end = serial < 400 || thread.rng.one_in(2);
            if thread.rng.one_in(4) {
                thread.put("B", &half, (begin, begin), "");
                has_end.then(|| thread.put("E", &half, (end, end), ""));
            } else if thread.rng.one_in(9) {
                thread.put("i", "tick", (start + 1, start + 1), r#","s":"t""#);
            }
        }
        lines.extend(thread.lines(Order::ByEnd));
    }
    dir.put("900", &stream(&lines));
    dir
}

#[test]
fn spans_that_clash_are_all_shown() {
    let test = "spans_that_clash_are_all_shown";
    let dir = clashing_run();
    let mut expected = oracle::read(&dir.fragments()).shown;
    assert!(expected.moved > 300, "{}", expected.moved);
    let merged = dir.merge();
    let queries = [ERRORS, SLICES, PARENTS];
    let Some(rows) = query_bytes(test, &merged.bytes, &queries) else {
        return;
    };
    assert!(rows[0].is_empty(), "{:?}", rows[0]);
    let phases = ["X", "B", "i"].map(|phase| merged.report.phase(phase));
    assert_eq!(number(&rows[1]), phases.into_iter().sum::<u64>());
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let pair = |row: &Value| (text(&row[0]).unwrap_or_default(), text(&row[1]));
    let mut found: Vec<_> = rows[2].iter().map(pair).collect();
    found.sort();
    expected.parents.sort();
    assert_eq!(found, expected.parents);
}
