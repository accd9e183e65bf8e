//! Begun spans beside others: those that never end take nothing along.

use crate::clashing::{Clashing, Order};
use crate::invocation::RunDir;
use crate::random::Rng;
use crate::rows::check;
use format_oracle::writer::line::stream;

#[test]
fn an_unfinished_span_is_not_within_one_that_ended() {
    let (mut rng, dir) = (Rng::new(1), RunDir::new());
    let start = 1_000_000_000;
    let mut thread = Clashing::new(&mut rng, 903, 1);
    thread.span("around", start, 1_000);
    let unfinished = r#","args":{"unfinished":true}"#;
    thread.put("B", "killed", (start + 10, start + 10), unfinished);
    thread.put(
        "B",
        "killed later",
        (start + 1_000, start + 1_000),
        unfinished,
    );
    dir.put("900", &stream(&thread.lines(Order::None)));
    assert_eq!(check(&dir, "unfinished"), 1);
    let merged = dir.merge();
    let row = |name: &str| merged.trace.named(name)["tid"].clone();
    assert_ne!(row("around"), row("killed"));
    assert_eq!(row("around"), row("killed later"), "takes nothing along");
}

/// A worker that was killed in a step: what comes after two spans that clash is in the step.
#[test]
fn what_is_in_an_unfinished_span_is_on_its_row() {
    let (mut rng, dir, start) = (Rng::new(1), RunDir::new(), 1_000_000_000);
    let mut thread = Clashing::new(&mut rng, 903, 1);
    thread.put(
        "B",
        "step",
        (start, start),
        r#","args":{"unfinished":true}"#,
    );
    thread.span("one", start + 1_000, 4_000);
    thread.span("other", start + 3_000, 5_000);
    let sent = start + 9_000;
    thread.put("s", "flow", (sent, sent), r#","id":1"#);
    dir.put("900", &stream(&thread.lines(Order::None)));
    assert_eq!(check(&dir, "a killed worker"), 1);
    let merged = dir.merge();
    let row = |name: &str| merged.trace.named(name)["tid"].clone();
    assert_eq!(row("flow"), row("step"));
    assert_ne!(row("one"), row("step"), "the shorter one");
    assert_eq!(row("other"), row("step"));
}

/// A thread of 1000 spans, each with one in it, as begins and ends that `half` writes.
fn begun_run(mut half: impl FnMut(&mut Clashing<'_>, &str, usize, u64)) -> RunDir {
    let (mut rng, dir) = (Rng::new(1), RunDir::new());
    let mut thread = Clashing::new(&mut rng, 903, 1);
    for serial in 0..1_000 {
        let start = 1_000_000_000 + 10_000 * serial as u64;
        half(&mut thread, "B", serial, start);
        half(&mut thread, "B", 10_000 + serial, start + 2_000);
        half(&mut thread, "E", 10_000 + serial, start + 3_000);
        half(&mut thread, "E", serial, start + 9_000);
    }
    dir.put("900", &stream(&thread.lines(Order::None)));
    dir
}

#[test]
fn a_lost_end_takes_nothing_along() {
    for lost in [10_007, 7] {
        let dir = begun_run(|thread, phase, serial, time| {
            if (phase, serial) != ("E", lost) {
                thread.put(phase, &format!("span {serial}"), (time, time), "");
            }
        });
        let expected = u64::from(lost > 10_000);
        assert_eq!(check(&dir, &format!("end of {lost}")), expected);
    }
}

#[test]
fn spans_that_begin_and_end_in_one_microsecond_stay() {
    let dir = begun_run(|thread, phase, serial, time| {
        let time = if serial >= 10_000 && phase == "E" {
            time - 1_000
        } else {
            time
        };
        thread.put(phase, &format!("span {serial}"), (time, time), "");
    });
    assert_eq!(check(&dir, "no length"), 0);
}

#[test]
fn an_end_may_escape_the_name_in_its_own_way() {
    let dir = begun_run(|thread, phase, serial, time| {
        let letter = if phase == "E" { r"\u0073" } else { "s" };
        thread.put(phase, &format!("{letter}pan {serial}"), (time, time), "");
        if (phase, serial) == ("E", 7) {
            thread.span("reaches over the end", time - 100, 200);
        }
    });
    assert_eq!(check(&dir, "escaped"), 1);
}
