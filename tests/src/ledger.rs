//! Holds what can be read of a victim's recording against what the victim acknowledged: lost, doubled, torn and wrongly open spans.

use std::fmt;
use std::fs;
use std::ops::AddAssign;
use std::path::Path;
use std::sync::atomic::Ordering::Acquire;

use serde::Deserialize;
use serde_json::Value;
use trace_merge::{Options, Output};

use crate::progress::{LEVELS, Mark, Progress};
use crate::victim::Victim;
use format_oracle::reader::{Recording, read_dir_as};

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
    /// Thread, counted from 0.
    pub t: Option<usize>,
    /// Number of the span in its thread.
    pub n: Option<u64>,
    pad: Option<String>,
    #[serde(default)]
    unfinished: bool,
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
    /// Reads a run directory with the second reader.
    pub fn by_second_reader(dir: &Path) -> Self {
        let recording: Recording<Event> = read_dir_as(dir);
        let open = recording.unfinished.iter().map(open_span).collect();
        Seen {
            spans: numbered(recording.events),
            open,
            damage: recording.damage,
            told_lost: recording.lost,
        }
    }

    /// Merges a run directory into `trace`, settling it as the command line does, and reads the trace back.
    ///
    /// # Panics
    ///
    /// If there is no trace, or it is no JSON: that is what the tests are about.
    pub fn by_merge(dir: &Path, trace: &Path) -> Self {
        let options = Options {
            output: Output::File(trace.to_path_buf()),
            ..Options::new([dir.to_path_buf()])
        };
        let report = trace_merge::merge(&options)
            .unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        let text = fs::read(trace).expect("the merged trace");
        let Trace { events } = serde_json::from_slice(&text).expect("a trace in JSON");
        let mut damage: Vec<String> = (report.damage.list.iter())
            .map(|damage| format!("{damage:?}"))
            .collect();
        if damage.is_empty() && report.damage.total > 0 {
            damage.push(format!("{} places, none listed", report.damage.total));
        }
        let (total, added) = (report.events.total, report.events_added);
        if as_u64(events.len()) != total + added {
            let shown = events.len();
            damage.push(format!(
                "the report counts {total} + {added} events, the trace has {shown}"
            ));
        }
        let base_ns = u64::try_from(report.clocks.base_ns).expect("a base after boot");
        let open = |event: &Event| {
            let start_ns = base_ns + nanoseconds(event.ts);
            (event.tid, event.name.clone(), start_ns)
        };
        let unfinished = events
            .iter()
            .filter(|event| event.ph == "B" && event.args.unfinished);
        Seen {
            open: unfinished.map(open).collect(),
            spans: numbered(events),
            damage,
            told_lost: report.losses.events,
        }
    }
}

#[derive(Deserialize)]
struct Trace {
    #[serde(rename = "traceEvents")]
    events: Vec<Event>,
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

/// How what was read compares with what was acknowledged; adds up over many victims.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Spans acknowledged.
    pub acknowledged: u64,
    /// Spans read.
    pub read: u64,
    /// Spans that went with removed segments.
    pub removed: u64,
    /// Open spans shown.
    pub open: u64,
    /// Descriptions of the errors.
    pub wrong: Vec<String>,
}

impl Verdict {
    /// Returns true if nothing at all is wrong.
    pub fn is_clean(&self) -> bool {
        self.wrong.is_empty()
    }

    /// Adds what is wrong by another verdict, and says whose it is.
    fn blame(&mut self, whose: &str, other: Verdict) {
        let wrong = other.wrong.into_iter();
        self.wrong
            .extend(wrong.map(|wrong| format!("{whose}: {wrong}")));
    }
}

impl AddAssign for Verdict {
    fn add_assign(&mut self, other: Verdict) {
        self.acknowledged += other.acknowledged;
        self.read += other.read;
        self.removed += other.removed;
        self.open += other.open;
        self.wrong.extend(other.wrong);
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict {
            acknowledged,
            read,
            removed,
            open,
            wrong,
        } = self;
        let count = wrong.len();
        write!(
            out,
            "acknowledged={acknowledged} read={read} removed={removed} open={open} wrong={count}"
        )?;
        let mut first = wrong.iter().take(8);
        first.try_for_each(|line| write!(out, "\n    {line}"))
    }
}

/// Spans that a recording may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// Nothing.
    Nothing,
    /// The first spans of each thread, which were in removed segments, if they are reported as lost.
    First,
}

/// Judges a dead victim's files by the second reader, before and after the merge, and by the merge.
pub fn autopsy(victim: &Victim, lack: Lack) -> Verdict {
    let dir = victim.directory();
    let judged = |seen: &Seen| judge(seen, &victim.progress, victim.order.threads, lack);
    let mut verdict = judged(&Seen::by_second_reader(&dir));
    let merged = Seen::by_merge(&dir, &victim.scratch("trace.json"));
    verdict.blame("merge", judged(&merged));
    verdict.blame("after the merge", judged(&Seen::by_second_reader(&dir)));
    verdict
}

/// Judges the files of a victim that goes on recording by both readers; `dir` is its directory or a snapshot.
pub fn look(victim: &Victim, dir: &Path, floor: &[u64], lack: Lack) -> Verdict {
    let mut verdict = compare(&Seen::by_second_reader(dir), floor, None, lack);
    let merged = Seen::by_merge(dir, &victim.scratch("trace.json"));
    verdict.blame("merge", compare(&merged, floor, None, lack));
    verdict
}

/// Compares what was read with the progress file of a dead (or stopped) victim.
pub fn judge(seen: &Seen, progress: &Progress, threads: usize, lack: Lack) -> Verdict {
    let floor: Vec<u64> = snapshot(progress, threads);
    let mut verdict = compare(seen, &floor, Some(1), lack);
    for (thread, acknowledged) in floor.iter().enumerate() {
        judge_open(seen, progress, thread, *acknowledged, &mut verdict);
    }
    let tids: Vec<u64> = (0..threads)
        .map(|thread| progress.tid(thread).load(Acquire))
        .collect();
    let strangers = seen.open.iter().filter(|(tid, ..)| !tids.contains(tid));
    verdict
        .wrong
        .extend(strangers.map(|open| format!("{open:?} is open on no thread of the victim")));
    verdict
}

/// What each thread has acknowledged by now.
pub fn snapshot(progress: &Progress, threads: usize) -> Vec<u64> {
    (0..threads)
        .map(|thread| progress.acknowledged(thread).load(Acquire))
        .collect()
}

/// Compares what was read with the counts in `floor`. Each thread may have recorded up to `ahead` more, in order; any number if the victim goes on recording.
fn compare(seen: &Seen, floor: &[u64], ahead: Option<u64>, lack: Lack) -> Verdict {
    let mut verdict = Verdict {
        acknowledged: floor.iter().sum(),
        read: as_u64(seen.spans.len()),
        wrong: seen.damage.clone(),
        ..Verdict::default()
    };
    let mut numbers: Vec<Vec<u64>> = vec![Vec::new(); floor.len()];
    for span in &seen.spans {
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
        // Spans that a live victim recorded beyond the floor may be visible only in part.
        let whole_to = if is_partial { *floor } else { end.max(*floor) };
        let missing = whole_to - first - as_u64(numbers.partition_point(|n| *n < whole_to));
        let is_invented = ahead.is_some_and(|ahead| end > floor + ahead);
        let doubled = all - numbers.len();
        if missing > 0 || doubled > 0 || is_invented {
            verdict.wrong.push(format!(
                "thread {thread}: {missing} lost and {doubled} doubled from {first} to {end}, acknowledged {floor}"
            ));
        }
        verdict.removed += first;
    }
    // A thread that waited for room until recording ended has not acknowledged its event. The recorder still reports the loss.
    let in_flight = as_u64(floor.len()) * ahead.unwrap_or(0);
    let (removed, told) = (verdict.removed, seen.told_lost);
    let is_told = match lack {
        Lack::Nothing => told <= in_flight,
        // If a live victim's files contain no span of a thread, it may have recorded more in removed segments than it had acknowledged.
        Lack::First => removed == told || is_unseen && removed < told,
    };
    if !is_told {
        let told = format!("{told} are told as lost, {removed} are missing");
        verdict.wrong.push(told);
    }
    verdict
}

/// Returns true if span `n` has the contents that its victim gave it.
fn is_whole(span: &Event, n: u64) -> bool {
    let is_known = span.name == FLAT || NESTED.contains(&span.name.as_str());
    is_known
        && span.args.pad.as_deref() == Some(padding(n))
        && span.dur.is_some_and(|dur| dur >= 0.0)
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
        verdict.wrong.push(format!(
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
            verdict.wrong.push(format!("thread {thread} {name}: {} shown, {expected:?} expected, starts {starts:?}, {marks}", starts.len()));
        }
        verdict.open += as_u64(starts.len());
    }
}

fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
