//! Compares the spans that can be read from a victim's files with those that the victim acknowledged. Finds lost, duplicated and torn spans, and wrong open spans.

use std::ops::AddAssign;
use std::path::Path;
use std::sync::atomic::Ordering::Acquire;

use serde::Deserialize;
use serde_json::Value;

use crate::host_support::Merged;
use crate::progress::{LEVELS, Mark, Progress};
use crate::victim::Victim;
use format_oracle::reader::{Recording, read_dir_as};

/// Name of the span that the flat patterns record.
pub const FLAT: &str = "flat";
/// Names of the nested spans, outermost first.
pub const NESTED: [&str; LEVELS] = ["outer", "middle", "inner"];
const PADDING: &str = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-äöü-0123456789abcdefghijklmnopqrst";

/// Returns the padding text of span `n`. Its length varies with `n`, so that lines of many lengths cross every edge of a ring
/// and a line assembled from two others is detected.
pub fn padding(n: u64) -> &'static str {
    let end = usize::try_from(n % 90).unwrap_or(0);
    PADDING.get(..end).unwrap_or("ä")
}

/// The fields of an event that the comparison needs.
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
    /// Args that the victim wrote.
    #[serde(default)]
    pub args: EventArgs,
}

/// Args that the victim writes.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct EventArgs {
    /// Index of the thread.
    pub t: Option<usize>,
    /// Number of the span within its thread.
    pub n: Option<u64>,
    pad: Option<String>,
    #[serde(default)]
    unfinished: bool,
}

/// Contents of a victim's files according to one reader.
#[derive(Clone, Debug, Default)]
pub struct Readout {
    /// Ended spans that carry a number.
    pub spans: Vec<Event>,
    /// Unfinished spans: thread, name, start in ns.
    pub open: Vec<(u64, String, u64)>,
    /// Damage that the reader reported.
    pub damage: Vec<String>,
    /// Number of events that the recorder reported as lost.
    pub reported_lost: u64,
}

impl Readout {
    /// Reads a run directory with `format-oracle`.
    pub fn by_oracle(dir: &Path) -> Self {
        let recording: Recording<Event> = read_dir_as(dir);
        let open = recording.unfinished.iter().map(open_span).collect();
        Readout {
            spans: numbered(recording.events),
            open,
            damage: recording.damage,
            reported_lost: recording.lost,
        }
    }

    /// Merges a run directory with the default options and reads the trace.
    pub fn by_merge(dir: &Path) -> Self {
        let merged = Merged::<Event>::read(dir);
        let (mut damage, report) = (merged.damage(), merged.report());
        let (counted, shown) = (
            report.events.total + report.events_added,
            as_u64(merged.events().len()),
        );
        if counted != shown {
            damage.push(format!(
                "the report counts {counted} events, the trace has {shown}"
            ));
        }
        let open = |event: &Event| {
            let start_ns = merged.base_ns() + nanoseconds(event.ts);
            (event.tid, event.name.clone(), start_ns)
        };
        let events = merged.events().iter();
        let unfinished = events.filter(|event| event.ph == "B" && event.args.unfinished);
        Readout {
            open: unfinished.map(open).collect(),
            damage,
            reported_lost: merged.lost(),
            spans: numbered(merged.into_events()),
        }
    }
}

fn numbered(mut events: Vec<Event>) -> Vec<Event> {
    events.retain(|event| event.ph == "X" && event.args.n.is_some());
    events
}

fn open_span(value: &Value) -> (u64, String, u64) {
    let name = value["name"].as_str().unwrap_or_default().to_owned();
    let start_ns = nanoseconds(value["ts"].as_f64().unwrap_or_default());
    (value["tid"].as_u64().unwrap_or_default(), name, start_ns)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times since boot, far below 2^63 ns and never negative"
)]
fn nanoseconds(us: f64) -> u64 {
    (us * 1000.0).round() as u64
}

/// Result of comparing what was read with what was acknowledged. Verdicts on several victims can be added up.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Number of acknowledged spans.
    pub acknowledged: u64,
    /// Number of spans read.
    pub read: u64,
    /// Number of spans in removed segments.
    pub removed: u64,
    /// Descriptions of the errors.
    pub wrong: Vec<String>,
}

impl Verdict {
    /// Returns true if there are no errors.
    pub fn is_clean(&self) -> bool {
        self.wrong.is_empty()
    }

    /// Adds the errors of another verdict, prefixed with their source.
    fn add_errors(&mut self, source: &str, other: Verdict) {
        let wrong = other.wrong.into_iter();
        self.wrong
            .extend(wrong.map(|wrong| format!("{source}: {wrong}")));
    }
}

impl AddAssign for Verdict {
    fn add_assign(&mut self, other: Verdict) {
        self.acknowledged += other.acknowledged;
        self.read += other.read;
        self.removed += other.removed;
        self.wrong.extend(other.wrong);
    }
}

/// Spans that may be missing from a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// Nothing.
    Nothing,
    /// The first spans of each thread, if they were in removed segments and are reported as lost.
    First,
}

/// Judges a dead victim's files: with `format-oracle` before and after the merge, and with the merge.
pub fn autopsy(victim: &Victim, lack: Lack) -> Verdict {
    let dir = victim.directory();
    let judged = |readout: &Readout| judge(readout, &victim.progress, victim.order.threads, lack);
    let mut verdict = judged(&Readout::by_oracle(&dir));
    verdict.add_errors("merge", judged(&Readout::by_merge(&dir)));
    verdict.add_errors("after the merge", judged(&Readout::by_oracle(&dir)));
    verdict
}

/// Judges the files of a running victim with both readers. `dir` is its directory or a snapshot of it.
pub fn judge_live(dir: &Path, floor: &[u64], lack: Lack) -> Verdict {
    let mut verdict = compare(&Readout::by_oracle(dir), floor, None, lack);
    verdict.add_errors("merge", compare(&Readout::by_merge(dir), floor, None, lack));
    verdict
}

/// Compares what was read with the progress file of a dead or stopped victim.
pub fn judge(readout: &Readout, progress: &Progress, threads: usize, lack: Lack) -> Verdict {
    let floor = snapshot(progress, threads);
    let mut verdict = compare(readout, &floor, Some(1), lack);
    for (thread, acknowledged) in floor.iter().enumerate() {
        judge_open(readout, progress, thread, *acknowledged, &mut verdict);
    }
    let is_known = |tid: u64| (0..threads).any(|at| progress.tid(at).load(Acquire) == tid);
    let strangers = readout.open.iter().filter(|(tid, ..)| !is_known(*tid));
    let strange = strangers.map(|open| format!("{open:?} is open on no thread of the victim"));
    verdict.wrong.extend(strange);
    verdict
}

/// Returns the current number of acknowledged spans of each thread.
pub fn snapshot(progress: &Progress, threads: usize) -> Vec<u64> {
    (0..threads)
        .map(|thread| progress.acknowledged(thread).load(Acquire))
        .collect()
}

/// Compares what was read with the acknowledged counts in `floor`. Each thread may have recorded up to `ahead` more spans in sequence, or any number if `ahead` is `None`, for a victim that is still recording.
fn compare(readout: &Readout, floor: &[u64], ahead: Option<u64>, lack: Lack) -> Verdict {
    let mut verdict = Verdict {
        acknowledged: floor.iter().sum(),
        read: as_u64(readout.spans.len()),
        wrong: readout.damage.clone(),
        ..Verdict::default()
    };
    let mut numbers: Vec<Vec<u64>> = vec![Vec::new(); floor.len()];
    for span in &readout.spans {
        let thread = span.args.t.and_then(|thread| numbers.get_mut(thread));
        match (thread, span.args.n) {
            (Some(thread), Some(n)) if is_whole(span, n) => thread.push(n),
            _ => verdict.wrong.push(format!("torn: {span:?}")),
        }
    }
    let is_partial = ahead.is_none() && lack == Lack::Nothing;
    let is_unseen = ahead.is_none() && numbers.iter().any(Vec::is_empty);
    for (thread, (numbers, floor)) in numbers.iter_mut().zip(floor).enumerate() {
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        let first = match lack {
            Lack::Nothing => 0,
            Lack::First => numbers.first().copied().unwrap_or(*floor),
        };
        let end = numbers.last().map_or(*floor, |last| last + 1);
        // Of the spans beyond the floor, only some may be visible yet.
        let whole_to = if is_partial { *floor } else { end.max(*floor) };
        let missing = whole_to - first - as_u64(numbers.partition_point(|n| *n < whole_to));
        let is_invented = ahead.is_some_and(|ahead| end > floor + ahead);
        let doubled = all - numbers.len();
        if missing > 0 || doubled > 0 || is_invented {
            verdict.wrong.push(format!(
                "thread {thread}: {missing} lost and {doubled} duplicated from {first} to {end}, acknowledged {floor}"
            ));
        }
        verdict.removed += first;
    }
    // A thread that waited for space until recording ended has not acknowledged its event, but the recorder reports it as lost.
    let in_flight = as_u64(floor.len()) * ahead.unwrap_or(0);
    let (removed, reported) = (verdict.removed, readout.reported_lost);
    let is_consistent = match lack {
        Lack::Nothing => reported <= in_flight,
        // If no span of a thread is left, that thread may have recorded more spans in removed segments than it had acknowledged.
        Lack::First => removed == reported || is_unseen && removed < reported,
    };
    if !is_consistent {
        let wrong = format!("{reported} are reported as lost, {removed} are missing");
        verdict.wrong.push(wrong);
    }
    verdict
}

/// Returns true if span `n` has the contents that its victim wrote.
fn is_whole(span: &Event, n: u64) -> bool {
    let is_known = span.name == FLAT || NESTED.contains(&span.name.as_str());
    is_known
        && span.args.pad.as_deref() == Some(padding(n))
        && span.dur.is_some_and(|dur| dur >= 0.0)
}

/// Compares the open spans of one thread with the marks in the progress file.
fn judge_open(
    readout: &Readout,
    progress: &Progress,
    thread: usize,
    acknowledged: u64,
    verdict: &mut Verdict,
) {
    let tid = progress.tid(thread).load(Acquire);
    let shown = |name: &str| -> Vec<u64> {
        let open = readout.open.iter();
        let same = open.filter(|(other, shown, _)| *other == tid && shown == name);
        same.map(|(.., start)| *start).collect()
    };
    let recorded = |n: u64| {
        let mut args = readout.spans.iter().map(|span| &span.args);
        args.any(|args| args.t == Some(thread) && args.n == Some(n))
    };
    let flat = shown(FLAT).len();
    if flat > 1 {
        let wrong = format!("thread {thread} shows {flat} open flat spans");
        verdict.wrong.push(wrong);
    }
    for (level, name) in NESTED.iter().enumerate() {
        let mark = |mark| progress.mark(thread, level, mark).load(Acquire);
        let (before, after, closing) = (mark(Mark::Before), mark(Mark::After), mark(Mark::Closing));
        let starts = shown(name);
        let expected = match (before, after, closing) {
            (0, ..) => 0..=0,
            (_, 0, _) => 0..=1,
            (_, _, 0) => 1..=1,
            // The span was being ended. Either its line was published or it is still open: not both, and not neither.
            (_, _, n) if n <= acknowledged || recorded(n - 1) => 0..=0,
            _ => 1..=1,
        };
        let end = if after == 0 { u64::MAX } else { after };
        let is_within = starts.iter().all(|start| (before..=end).contains(start));
        if !expected.contains(&starts.len()) || !is_within {
            verdict.wrong.push(format!("thread {thread} {name}: {expected:?} expected, starts {starts:?}, before {before} after {after} closing {closing} acknowledged {acknowledged}"));
        }
    }
}

fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
