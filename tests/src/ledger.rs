//! Holds what can be read after a victim's end against what the victim acknowledged: lost, doubled, torn and wrongly open spans.

use std::sync::atomic::Ordering::Acquire;

use serde::Deserialize;
use serde_json::Value;

use crate::progress::{LEVELS, Mark, Progress};
use crate::verdict::Verdict;
use format_oracle::reader::Recording;

/// Name of the span that the flat patterns record.
pub const FLAT: &str = "flat";
/// Names of the nested spans, outermost first.
pub const NESTED: [&str; LEVELS] = ["outer", "middle", "inner"];
const PADDING: &str = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-äöü-0123456789abcdefghijklmnopqrst";

/// The text that span `n` carries: its length changes with `n`, so that lines of many lengths meet every edge of a ring and a line
/// put together from two others shows.
pub fn padding(n: u64) -> &'static str {
    let end = usize::try_from(n % 90).unwrap_or(0);
    PADDING.get(..end).unwrap_or("ä")
}

/// An event as far as the ledger looks at it.
#[derive(Clone, Debug, Deserialize)]
pub struct Event {
    /// Phase.
    pub ph: String,
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Thread.
    #[serde(default)]
    pub tid: u64,
    /// Time in µs.
    #[serde(default)]
    pub ts: f64,
    /// Duration in µs.
    pub dur: Option<f64>,
    /// What the victim wrote into it.
    #[serde(default)]
    pub args: EventArgs,
}

/// The args the victim writes.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct EventArgs {
    t: Option<usize>,
    n: Option<u64>,
    pad: Option<String>,
    #[serde(default)]
    unfinished: bool,
}

impl EventArgs {
    /// Number of the victim's thread that recorded the event.
    pub fn thread(&self) -> Option<usize> {
        self.t
    }

    /// The text that the span carries.
    pub fn pad(&self) -> Option<&str> {
        self.pad.as_deref()
    }

    /// Number of the span within its thread.
    pub fn number(&self) -> Option<u64> {
        self.n
    }
}

/// What a reader made of a victim's files.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The ended spans that carry a number.
    pub spans: Vec<Event>,
    /// The spans shown as unfinished: thread, name, start in ns.
    pub open: Vec<(u64, String, u64)>,
    /// Damage the reader reported.
    pub damage: Vec<String>,
    /// Events the recorder says it lost.
    pub told_lost: u64,
}

impl Seen {
    /// Takes what the second reader read.
    pub fn by_second_reader(recording: Recording<Event>) -> Self {
        let open = recording.unfinished.iter().map(open_span).collect();
        Seen {
            spans: numbered(recording.events),
            open,
            damage: recording.damage,
            told_lost: recording.lost,
        }
    }

    /// Takes the events of a merged trace whose times count from `base_ns`, and what the merge reported beside them.
    pub fn by_merge(events: Vec<Event>, base_ns: u64, damage: Vec<String>, told_lost: u64) -> Self {
        let unfinished = events
            .iter()
            .filter(|event| event.ph == "B" && event.args.unfinished);
        let open = unfinished
            .map(|event| {
                (
                    event.tid,
                    event.name.clone(),
                    base_ns + nanoseconds(event.ts),
                )
            })
            .collect();
        Seen {
            spans: numbered(events),
            open,
            damage,
            told_lost,
        }
    }
}

fn numbered(events: Vec<Event>) -> Vec<Event> {
    events
        .into_iter()
        .filter(|event| event.ph == "X" && event.args.n.is_some())
        .collect()
}

fn open_span(value: &Value) -> (u64, String, u64) {
    let start = nanoseconds(value["ts"].as_f64().unwrap_or(0.0));
    (
        value["tid"].as_u64().unwrap_or(0),
        value["name"].as_str().unwrap_or("").to_owned(),
        start,
    )
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times since boot, far below 2^63 ns and never negative"
)]
fn nanoseconds(us: f64) -> u64 {
    (us * 1000.0).round() as u64
}

/// Compares what was read with the progress file of a dead (or stopped) victim.
pub fn judge(seen: &Seen, progress: &Progress, threads: usize) -> Verdict {
    let floor: Vec<u64> = snapshot(progress, threads);
    let mut verdict = compare(seen, &floor, Some(1));
    for (thread, acknowledged) in floor.iter().enumerate() {
        judge_open(seen, progress, thread, *acknowledged, &mut verdict);
    }
    let tids: Vec<u64> = (0..threads)
        .map(|thread| progress.tid(thread).load(Acquire))
        .collect();
    let strangers = seen.open.iter().filter(|(tid, ..)| !tids.contains(tid));
    verdict
        .open_wrong
        .extend(strangers.map(|open| format!("{open:?} is open on no thread of the victim")));
    verdict
}

/// What each thread has acknowledged by now.
pub fn snapshot(progress: &Progress, threads: usize) -> Vec<u64> {
    (0..threads)
        .map(|thread| progress.acknowledged(thread).load(Acquire))
        .collect()
}

/// Compares what was read of a process that may still record with what it had acknowledged before: later spans may be there or not.
pub fn compare_live(seen: &Seen, floor: &[u64]) -> Verdict {
    compare(seen, floor, None)
}

/// Compares what was read with the counts in `floor`; each thread may have recorded up to `ahead` more, in order.
fn compare(seen: &Seen, floor: &[u64], ahead: Option<u64>) -> Verdict {
    let mut verdict = Verdict {
        checks: 1,
        acknowledged: floor.iter().sum(),
        damage: seen.damage.clone(),
        ..Verdict::default()
    };
    // A thread that still waited for room when recording ended has not acknowledged its event, of which the recorder tells.
    let in_flight = as_u64(floor.len()) * ahead.unwrap_or(0);
    if seen.told_lost > in_flight {
        verdict.damage.push(format!(
            "the recorder says it lost {} events",
            seen.told_lost
        ));
    }
    let mut counts: Vec<Vec<u8>> = floor.iter().map(|_| Vec::new()).collect();
    for event in &seen.spans {
        count_span(event, &mut counts, &mut verdict);
    }
    for (counts, floor) in counts.iter().zip(floor) {
        let below = counts
            .len()
            .min(usize::try_from(*floor).unwrap_or(usize::MAX));
        let found = as_u64(counts[..below].iter().filter(|count| **count > 0).count());
        verdict.lost += floor - found;
        if let Some(ahead) = ahead {
            verdict.invented += as_u64(counts.len()).saturating_sub(floor + ahead);
            verdict.lost += as_u64(counts[below..].iter().filter(|count| **count == 0).count());
        }
    }
    verdict
}

/// Counts one span of its thread and looks at its contents.
fn count_span(event: &Event, counts: &mut [Vec<u8>], verdict: &mut Verdict) {
    let (Some(thread), Some(n)) = (event.args.t, event.args.n) else {
        verdict.torn += 1;
        return;
    };
    let at = usize::try_from(n).unwrap_or(usize::MAX);
    let Some(counts) = counts.get_mut(thread).filter(|_| at < 1 << 32) else {
        verdict.torn += 1;
        return;
    };
    let known = event.name == FLAT || NESTED.contains(&event.name.as_str());
    if event.args.pad.as_deref() != Some(padding(n))
        || !known
        || event.dur.is_none_or(|dur| dur < 0.0)
    {
        verdict.torn += 1;
    }
    if counts.len() <= at {
        counts.resize(at + 1, 0);
    }
    match counts[at] {
        0 => verdict.read += 1,
        _ => verdict.doubled += 1,
    }
    counts[at] = counts[at].saturating_add(1);
}

/// Compares the open spans shown of one thread with the marks that its victim left.
fn judge_open(
    seen: &Seen,
    progress: &Progress,
    thread: usize,
    acknowledged: u64,
    verdict: &mut Verdict,
) {
    let tid = progress.tid(thread).load(Acquire);
    let shown = |name: &str| -> Vec<u64> {
        let same = seen
            .open
            .iter()
            .filter(|(other, shown, _)| *other == tid && shown == name);
        same.map(|(.., start)| *start).collect()
    };
    let recorded = |n: u64| {
        seen.spans
            .iter()
            .any(|span| span.args.t == Some(thread) && span.args.n == Some(n))
    };
    verdict.open += as_u64(shown(FLAT).len());
    if shown(FLAT).len() > 1 {
        verdict.open_wrong.push(format!(
            "thread {thread} shows {} open flat spans",
            shown(FLAT).len()
        ));
    }
    for (level, name) in NESTED.iter().enumerate() {
        let mark = |mark| progress.mark(thread, level, mark).load(Acquire);
        let (before, after, closing) = (mark(Mark::Before), mark(Mark::After), mark(Mark::Closing));
        let starts = shown(name);
        let expected = match (before, after, closing) {
            (0, ..) => 0..=0,
            (_, 0, _) => 0..=1,
            (_, _, 0) => 1..=1,
            // It was being ended: either its line was published or it is still open, never both and never neither.
            (_, _, n) if n <= acknowledged || recorded(n - 1) => 0..=0,
            _ => 1..=1,
        };
        let end = if after == 0 { u64::MAX } else { after };
        if !expected.contains(&starts.len())
            || starts.iter().any(|start| !(before..=end).contains(start))
        {
            let marks = format!(
                "before {before} after {after} closing {closing} acknowledged {acknowledged}"
            );
            verdict.open_wrong.push(format!("thread {thread} {name}: {} shown, {expected:?} expected, starts {starts:?}, {marks}", starts.len()));
        }
        verdict.open += as_u64(starts.len());
    }
}

fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(n: u64, pad: &str) -> Event {
        let args = EventArgs {
            t: Some(0),
            n: Some(n),
            pad: Some(pad.to_owned()),
            unfinished: false,
        };
        Event {
            ph: "X".to_owned(),
            name: FLAT.to_owned(),
            tid: 1,
            ts: 1.0,
            dur: Some(0.0),
            args,
        }
    }

    fn verdict(spans: Vec<Event>, floor: u64) -> Verdict {
        compare(
            &Seen {
                spans,
                ..Seen::default()
            },
            &[floor],
            Some(1),
        )
    }

    #[test]
    fn whole_recordings_are_clean_with_at_most_one_span_ahead() {
        let spans: Vec<Event> = (0..3).map(|n| span(n, padding(n))).collect();
        assert!(verdict(spans.clone(), 3).is_clean());
        assert!(verdict(spans.clone(), 2).is_clean());
        assert_eq!(verdict(spans, 1).invented, 1);
    }

    #[test]
    fn issue_19_a_thread_that_waited_at_the_end_may_lose_what_it_did_not_acknowledge() {
        let seen = |told_lost| Seen {
            spans: vec![span(0, padding(0))],
            told_lost,
            ..Seen::default()
        };
        for (told, ahead, clean) in [(1, Some(1), true), (2, Some(1), false), (1, None, false)] {
            let verdict = compare(&seen(told), &[1], ahead);
            assert_eq!(verdict.is_clean(), clean, "{told} {ahead:?}");
        }
        assert!(!compare(&seen(1), &[2], Some(1)).is_clean(), "acknowledged");
    }

    #[test]
    fn lost_doubled_and_torn_spans_are_counted() {
        assert_eq!(
            verdict(vec![span(0, padding(0)), span(2, padding(2))], 3).lost,
            1
        );
        assert_eq!(verdict(vec![span(0, padding(0))], 3).lost, 2);
        assert_eq!(
            verdict(vec![span(0, padding(0)), span(0, padding(0))], 1).doubled,
            1
        );
        assert_eq!(verdict(vec![span(0, "x")], 1).torn, 1);
    }
}
