//! What is missing of whose events, when and why: the loss records of all recordings → sentences.

use crate::index::Index;
use crate::line::Event;
use crate::patch::Id;
use crate::plan::Plan;
use crate::report::{ProcessReport, Report, printable};
use crate::source::{Chunk, Source};
use crate::window::Lies;
use rayon::prelude::*;
use sa_recorder::format::loss::Cause;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

/// Most rows of which a report says what they lost; the sum of all stays exact.
const MOST: usize = 256;

/// How recorders name their loss records.
const LOSS_NAME: &[u8] = br#""name":"sa_loss""#;
/// No recorder's cause is longer.
const CAUSE_CHARS: usize = 64;
/// The cause of what is missing and no recorder's record explains.
pub(crate) const GAP: &str = "gap";

/// What one row lost for one cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LossReport {
    /// The process, as the trace names it.
    pub process: Option<String>,
    /// The process id it had.
    pub pid: i64,
    /// The thread, if all events were of one: its name, else its id.
    pub thread: Option<String>,
    /// Why, as `sa_loss` records say it; `gap` where nothing tells.
    pub cause: String,
    /// Events that are missing; of `gap` at least so many, for nothing tells how many there were.
    pub events: u64,
    /// Bytes of their lines, of `gap` alone.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes: u64,
    /// Events of that thread, else of the process, that the trace has from `from_ns` to `to_ns`.
    pub events_left: u64,
    /// Processes that could not record at all; only with the cause `children_refused`.
    #[serde(skip_serializing_if = "is_zero")]
    pub processes: u64,
    /// What the system answered them, as an error number.
    #[serde(skip_serializing_if = "is_zero")]
    pub error: u64,
    /// Time of the first one in the trace, in ns from the base; absent where nothing tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_ns: Option<i64>,
    /// Time of the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_ns: Option<i64>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl LossReport {
    /// What is missing, in one sentence.
    pub fn words(&self) -> String {
        if self.processes > 0 {
            return self.refused();
        }
        let process = self.process.as_deref().unwrap_or("(no name)");
        let (whose, of) = match self.thread.as_deref().filter(|thread| *thread != process) {
            Some(thread) => (thread, format!(" of {process}")),
            None => (process, String::new()),
        };
        let (events, bytes, when) = (self.events, self.bytes, self.when());
        if self.cause == GAP {
            return printable(&format!(
                "at least {events} of {whose}'s events{when} are missing ({bytes} bytes of their lines{of}): nothing tells why"
            ));
        }
        let (share, why) = (self.share(), why(&self.cause));
        printable(&format!(
            "{share} of {whose}'s events{when} are missing ({events}{of}): {why}"
        ))
    }

    fn when(&self) -> String {
        match self.from_ns.zip(self.to_ns) {
            None => String::new(),
            Some((from, to)) if seconds(from) == seconds(to) => format!(" at {}", seconds(from)),
            Some((from, to)) => format!(" between {} and {}", seconds(from), seconds(to)),
        }
    }

    /// How much of what was recorded is missing, rounded so that only all is all.
    fn share(&self) -> String {
        if self.events_left == 0 {
            return "all".to_owned();
        }
        let all = u128::from(self.events) + u128::from(self.events_left);
        match u128::from(self.events) * 100 / all {
            0 => "less than 1 %".to_owned(),
            percent => format!("{percent} %"),
        }
    }

    /// What is said of children that could not open a fragment.
    fn refused(&self) -> String {
        let process = self.process.as_deref().unwrap_or("(no name)");
        let error = i32::try_from(self.error).unwrap_or(0);
        let answer = std::io::Error::from_raw_os_error(error);
        let children = match self.processes {
            1 => "1 child process".to_owned(),
            count => format!("{count} child processes"),
        };
        let remedy = match error {
            libc::EACCES | libc::EPERM => {
                "; if they gave up their rights, set SA_PROFILE_MODE=0660 and give the directory a group of theirs (chgrp, chmod 2770) before it is used"
            }
            _ => "",
        };
        let process = printable(process);
        format!(
            "{children} of {process} recorded nothing, none could make its files: {answer}{remedy}"
        )
    }
}

/// A time in the trace, in seconds.
fn seconds(ns: i64) -> String {
    let ms = ns.div_euclid(1_000_000);
    let sign = if ms < 0 { "-" } else { "" };
    let ms = ms.unsigned_abs();
    format!("{sign}{}.{:03} s", ms / 1000, ms % 1000)
}

/// A cause in words.
fn why(cause: &str) -> &str {
    match Cause::of_name(cause) {
        Some(Cause::DiskFull) => "the disk was full",
        Some(Cause::FileSizeLimit) => "the limit on the size of files was reached",
        Some(Cause::WriteError) => "the fragment could not be written",
        Some(Cause::Busy) => "the fragment took nothing for too long",
        Some(Cause::FragmentRemoved) => "somebody removed the fragment",
        Some(Cause::DiskBound) => "SA_PROFILE_MAX_MB was reached",
        Some(Cause::Signal) => "a signal handler interrupted an event",
        Some(Cause::Threads) => "no more threads could record",
        Some(Cause::TooLarge) => "they were too large",
        Some(Cause::TooManyOpen) => "too many spans were open",
        Some(Cause::OutOfMemory) => "there was no memory for them",
        Some(Cause::Clamped | Cause::ChildrenRefused) | None => cause,
    }
}

/// The row that a loss record stands on, whether it is of that thread alone, and why.
type Row = ((i64, i64), bool, String);

/// The losses of a stretch of lines, by row and cause.
#[derive(Clone, Default)]
pub(crate) struct Losses(BTreeMap<Row, Loss>);

/// What was lost of a row for one cause; times as the lines say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) events: u64,
    pub(crate) processes: u64,
    pub(crate) error: u64,
    /// Bytes of their lines, of [`GAP`] alone.
    pub(crate) bytes: u64,
    pub(crate) first_ns: i64,
    pub(crate) last_ns: i64,
}

impl Losses {
    /// Adds a loss of the thread or process that its record stands on.
    pub(crate) fn add(&mut self, event: &Event<'_>, is_of_thread: bool, cause: &str, loss: Loss) {
        let cause = cause.chars().take(CAUSE_CHARS).collect();
        let row = ((event.pid, event.tid), is_of_thread, cause);
        self.join(row, loss);
    }

    fn join(&mut self, row: Row, loss: Loss) {
        if self.0.len() == 16 * MOST && !self.0.contains_key(&row) {
            return; // no recorder has so many rows
        }
        let sum = self.0.entry(row).or_insert(Loss {
            events: 0,
            processes: 0,
            bytes: 0,
            ..loss
        });
        sum.events = sum.events.saturating_add(loss.events);
        sum.processes = sum.processes.saturating_add(loss.processes);
        sum.bytes = sum.bytes.saturating_add(loss.bytes);
        sum.first_ns = sum.first_ns.min(loss.first_ns);
        sum.last_ns = sum.last_ns.max(loss.last_ns);
    }

    /// Adds what comes after `self`.
    pub(crate) fn append(&mut self, later: Losses) {
        for (row, loss) in later.0 {
            self.join(row, loss);
        }
    }

    /// Moves all times.
    pub(crate) fn warp(&mut self, at: impl Fn(i64) -> i64) {
        for loss in self.0.values_mut() {
            (loss.first_ns, loss.last_ns) = (at(loss.first_ns), at(loss.last_ns));
        }
    }
}

/// A loss, and how many events of its row are there in its time.
struct Missing<'a> {
    row: &'a Row,
    loss: &'a Loss,
    left: AtomicU64,
}

impl Missing<'_> {
    fn count(&self, event: &Event<'_>) {
        let ((pid, tid), is_of_thread, _) = self.row;
        let is_of_row = event.pid == *pid && (!is_of_thread || event.tid == *tid);
        let range = self.loss.first_ns..=self.loss.last_ns;
        if is_of_row && range.contains(&event.ts_ns) {
            self.left.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn meets(&self, chunk: &Chunk) -> bool {
        let times = chunk.times_ns();
        times.is_some_and(|(first_ns, last_ns)| {
            first_ns <= self.loss.last_ns && self.loss.first_ns <= last_ns
        })
    }
}

/// Says of each row what is missing: once the plan is told, which names the processes.
pub(crate) fn tell_losses(
    (sources, chunks): (&[Source<'_>], &[Chunk]),
    indexes: &[Index],
    plan: &Plan,
    report: &mut Report,
) {
    let missing: Vec<Vec<Missing<'_>>> = indexes.iter().map(of_recording).collect();
    if missing.iter().all(Vec::is_empty) {
        return;
    }
    chunks.par_iter().for_each(|chunk| {
        let source = &sources[chunk.source];
        let missing = &missing[source.recording];
        if !missing.iter().any(|missing| missing.meets(chunk)) {
            return;
        }
        chunk.each(source.bytes, |_, lies, event| {
            if lies != Lies::Outside && !event.is_metadata() && !is_loss(event) {
                missing.iter().for_each(|missing| missing.count(event));
            }
        });
    });
    let processes = report.processes.iter().enumerate();
    let by_pid: HashMap<Id, usize> = processes
        .map(|(nth, process)| (process.output_pid.into(), nth))
        .collect();
    for (recording, missing) in missing.iter().enumerate() {
        for missing in missing {
            let target = plan.targets[recording].get(&missing.row.0);
            let process = target.and_then(|target| by_pid.get(&target.pid));
            let process = process.map(|nth| &report.processes[*nth]);
            let told = said(missing, (recording, &indexes[recording]), plan, process);
            report.refused_processes += told.processes;
            report.losses.push(told);
        }
    }
    report
        .losses
        .sort_by_key(|loss| std::cmp::Reverse(loss.events));
    report.losses.truncate(MOST);
}

/// Whether it is a loss record; its name may not have been looked for.
fn is_loss(event: &Event<'_>) -> bool {
    event.phase == b'i' && memchr::memmem::find(event.line, LOSS_NAME).is_some()
}

fn of_recording(index: &Index) -> Vec<Missing<'_>> {
    let all = index.losses.0.iter();
    let lost = all.filter(|(_, loss)| loss.events > 0 || loss.processes > 0);
    let missing = lost.map(|(row, loss)| Missing {
        row,
        loss,
        left: AtomicU64::new(0),
    });
    let mut missing: Vec<_> = missing.collect();
    missing.sort_by_key(|missing| std::cmp::Reverse(missing.loss.events));
    missing.truncate(MOST);
    missing
}

fn said(
    missing: &Missing<'_>,
    (recording, index): (usize, &Index),
    plan: &Plan,
    process: Option<&ProcessReport>,
) -> LossReport {
    let (thread, is_of_thread, cause) = missing.row;
    let name = || {
        let name = index.thread_names.get(thread);
        name.map_or_else(|| format!("thread {}", thread.1), Clone::clone)
    };
    let at = |ns: i64| ns.saturating_add(plan.shifts_ns[recording]);
    LossReport {
        process: process.and_then(|process| process.name.clone()),
        pid: process.map_or(thread.0, |process| process.pid),
        thread: is_of_thread.then(name),
        cause: cause.clone(),
        events: missing.loss.events,
        bytes: missing.loss.bytes,
        events_left: missing.left.load(Ordering::Relaxed),
        processes: missing.loss.processes,
        error: missing.loss.error,
        from_ns: Some(at(missing.loss.first_ns)),
        to_ns: Some(at(missing.loss.last_ns)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(events: u64, events_left: u64) -> LossReport {
        LossReport {
            process: Some("api".to_owned()),
            pid: 7,
            thread: Some("worker-3".to_owned()),
            cause: "disk_full".to_owned(),
            events,
            bytes: 0,
            events_left,
            processes: 0,
            error: 0,
            from_ns: Some(12_100_000_000),
            to_ns: Some(60_000_000_000),
        }
    }

    #[test]
    fn a_loss_is_a_sentence() {
        assert_eq!(
            lost(985, 15).words(),
            "98 % of worker-3's events between 12.100 s and 60.000 s are missing (985 of api): the disk was full"
        );
        assert!(lost(5, 0).words().starts_with("all of worker-3's events"));
        let share = |events, left| lost(events, left).share();
        assert_eq!(
            (share(999, 1), share(1, 999)),
            ("99 %".into(), "less than 1 %".into())
        );
        let of_process = LossReport {
            thread: None,
            to_ns: Some(12_100_000_000),
            cause: "disk_bound".to_owned(),
            ..lost(5, 0)
        };
        assert_eq!(
            of_process.words(),
            "all of api's events at 12.100 s are missing (5): SA_PROFILE_MAX_MB was reached"
        );
    }

    #[test]
    fn a_gap_is_at_least_one_event() {
        let gap = LossReport {
            bytes: 99,
            cause: GAP.to_owned(),
            ..lost(1, 7)
        };
        assert_eq!(
            gap.words(),
            "at least 1 of worker-3's events between 12.100 s and 60.000 s are missing (99 bytes of their lines of api): nothing tells why"
        );
    }

    #[test]
    fn refused_children_are_named_with_the_remedy() {
        let refused = LossReport {
            processes: 2,
            error: 13,
            ..lost(0, 0)
        };
        let words = refused.words();
        assert!(
            words.starts_with("2 child processes of api recorded nothing"),
            "{words}"
        );
        assert!(
            words.contains("Permission denied") && words.contains("SA_PROFILE_MODE=0660"),
            "{words}"
        );
    }
}
