//! Begun spans beside others: those that never end take nothing along.

use crate::clashing::{Clashing, Order};
use crate::invocation::RunDir;
use crate::random::Rng;
use crate::rows::check;
use format_oracle::writer::line::stream;

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

/// Spans begin and end in one microsecond, and ends escape the name in their own way.
#[test]
fn ends_are_found_at_the_same_time_and_by_another_spelling() {
    let dir = begun_run(|thread, phase, serial, time| {
        let is_end = phase == "E";
        let time = time - 1_000 * u64::from(is_end && serial >= 10_000);
        let letter = if is_end { r"\u0073" } else { "s" };
        thread.put(phase, &format!("{letter}pan {serial}"), (time, time), "");
        if (phase, serial) == ("E", 7) {
            thread.span("reaches over the end", time - 100, 200);
        }
    });
    assert_eq!(check(&dir, "escaped"), 1);
}
