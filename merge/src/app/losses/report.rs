//! A loss in the report, and as a sentence.

use crate::app::report::printable;
use crate::base::number::is_zero;
use crate::base::plural::plural;
use crate::event::loss::GAP;
use sa_format::loss::Cause;
use serde::Serialize;

/// Loss of a thread or process for one cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LossReport {
    /// Name of the process in the trace.
    pub process: Option<String>,
    /// Number of the process in [`Report::processes`](crate::Report::processes); `None` if it is
    /// not there.
    #[serde(skip)]
    pub number: Option<usize>,
    /// Process id when it was recorded.
    pub pid: i64,
    /// Name or id of the thread, if all events were on one thread.
    pub thread: Option<String>,
    /// Cause, as in `sa_loss` records; `gap` if no record explains the loss.
    pub cause: String,
    /// Number of missing events. For `gap` this is a minimum, because the number is unknown.
    pub events: u64,
    /// Number of changes to recorded events, such as texts that were cut. With such a cause, `events` is 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub changed: u64,
    /// Length in bytes of the missing lines, only for `gap`.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes: u64,
    /// Number of events of that thread, otherwise of the process, that the trace has from `from_ns`
    /// to `to_ns`.
    pub events_left: u64,
    /// Number of processes that could not record at all; only with the cause `children_refused`.
    #[serde(skip_serializing_if = "is_zero")]
    pub processes: u64,
    /// Error number that the system returned to them.
    #[serde(skip_serializing_if = "is_zero")]
    pub error: u64,
    /// Time of the first loss in the trace, in ns from the base; absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_ns: Option<i64>,
    /// Time of the last loss, in the same unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_ns: Option<i64>,
}

impl LossReport {
    /// Describes the loss in one sentence.
    pub fn text(&self) -> String {
        if self.processes > 0 {
            return self.refused();
        }
        let process = self.process.as_deref().unwrap_or("(no name)");
        if self.changed > 0 {
            let (what, when, count) = (changed(&self.cause), self.when(), self.changed);
            return printable(&format!("{what} in {process}'s events{when}: {count}"));
        }
        let (whose, of) = match self.thread.as_deref().filter(|thread| *thread != process) {
            Some(thread) => (thread, format!(" of {process}")),
            None => (process, String::new()),
        };
        let (events, bytes, when) = (self.events, self.bytes, self.when());
        if self.cause == GAP {
            let verb = if events == 1 { "is" } else { "are" };
            return printable(&format!(
                "at least {events} of {whose}'s events{when} {verb} missing ({bytes} bytes of lines{of}): the cause is unknown"
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

    /// Returns the missing share of what was recorded. It is rounded down, so that only a complete
    /// loss is "all". A whole process, or a thread at one instant, lost "some" of its events even
    /// if no others have that time.
    fn share(&self) -> String {
        if self.events_left == 0 {
            let is_all = self.thread.is_some() && self.from_ns < self.to_ns;
            return if is_all { "all" } else { "some" }.to_owned();
        }
        let all = u128::from(self.events) + u128::from(self.events_left);
        match u128::from(self.events) * 100 / all {
            0 => "less than 1 %".to_owned(),
            percent => format!("{percent} %"),
        }
    }

    /// Describes child processes that could not open a fragment.
    fn refused(&self) -> String {
        let process = self.process.as_deref().unwrap_or("(no name)");
        let error = i32::try_from(self.error).unwrap_or(0);
        let answer = std::io::Error::from_raw_os_error(error);
        let children = plural(self.processes, "child process");
        let files = match self.processes {
            1 => "it could not create its files",
            _ => "they could not create their files",
        };
        let remedy = match error {
            libc::EACCES | libc::EPERM => {
                "; if they dropped their privileges, set SA_PROFILE_MODE=0660 and give the directory one of their groups (chgrp, chmod 2770) before recording"
            }
            _ => "",
        };
        let process = printable(process);
        format!("{children} of {process} recorded nothing, because {files}: {answer}{remedy}")
    }
}

/// Formats a time in the trace, in seconds.
fn seconds(ns: i64) -> String {
    let ms = ns.div_euclid(1_000_000);
    let sign = if ms < 0 { "-" } else { "" };
    let ms = ms.unsigned_abs();
    format!("{sign}{}.{:03} s", ms / 1000, ms % 1000)
}

/// Describes the change that a cause made to recorded events.
fn changed(cause: &str) -> &str {
    match Cause::from_name(cause) {
        Some(Cause::Cut) => "texts and lists that were too long were cut",
        Some(Cause::BadValue) => "values with invalid JSON were replaced with null",
        Some(Cause::BadSeries) => "counter values that are not finite numbers were left out",
        Some(Cause::Clamped) => "durations were clamped",
        _ => cause,
    }
}

/// Describes a cause.
fn why(cause: &str) -> &str {
    match Cause::from_name(cause) {
        Some(Cause::DiskFull) => "the disk was full",
        Some(Cause::FileSizeLimit) => "the limit on the size of files was reached",
        Some(Cause::WriteError) => "the fragment could not be written",
        Some(Cause::Busy) => "the fragment could not be written for too long",
        Some(Cause::FragmentRemoved) => "the fragment was removed",
        Some(Cause::DiskBound) => "SA_PROFILE_MAX_MB was reached",
        Some(Cause::Signal) => {
            "they were recorded during another event, by a signal handler or a value of the program's own"
        }
        Some(Cause::Threads) => "no more threads could record",
        Some(Cause::TooLarge) => "they were too large",
        Some(Cause::TooManyOpen) => "too many spans were open",
        Some(Cause::OutOfMemory) => "there was no memory for them",
        Some(Cause::OpenSpans) => "they were open spans at the end, too many for the ring",
        Some(
            Cause::Clamped
            | Cause::Cut
            | Cause::BadValue
            | Cause::BadSeries
            | Cause::ChildrenRefused,
        )
        | None => cause,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(cause: &str, numbers: [u64; 5], thread: Option<&str>) -> LossReport {
        let [events, events_left, changed, bytes, to_ms] = numbers;
        LossReport {
            process: Some("api".to_owned()),
            number: None,
            pid: 7,
            thread: thread.map(str::to_owned),
            cause: cause.to_owned(),
            events,
            changed,
            bytes,
            events_left,
            processes: 0,
            error: 0,
            from_ns: Some(12_100_000_000),
            to_ns: Some(to_ms.cast_signed() * 1_000_000),
        }
    }

    #[test]
    fn a_loss_is_a_sentence() {
        // Cause, events, events left, changed values, bytes, end in ms, and thread; the sentence.
        for case in include_str!("../../../tests/fixtures/losses.txt").lines() {
            let (fields, expected) = case.split_once(" | ").unwrap();
            let fields: Vec<&str> = fields.split(' ').collect();
            let numbers = std::array::from_fn(|at| fields[at + 1].parse().unwrap());
            let loss = lost(fields[0], numbers, fields.get(6).copied());
            assert_eq!(loss.text(), expected);
        }
        let shares = [[999, 1], [1, 999]]
            .map(|[events, left]| lost("disk_full", [events, left, 0, 0, 0], None).share());
        assert_eq!(shares, ["99 %", "less than 1 %"]);
    }
}
