//! The data that was recorded, the losses, and the crash of a run.

use serde::Serialize;
use std::collections::BTreeMap;
use trace_merge::{Death, Exit, LossReport};

/// The data that the report is based on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recorded {
    /// The processes, and the groups of tracks that they recorded, such as NPUs.
    pub processes: Vec<RecordedProcess>,
    /// From the first event to the end of the last one, in ns.
    pub wall_ns: i64,
    /// Events.
    pub events: u64,
    /// Spans without an end.
    pub unfinished: u64,
    /// Events that recorders lost, as far as they know how many.
    pub lost_events: u64,
    /// Each loss.
    pub losses: Vec<LossReport>,
    /// Places in the inputs that could not be read.
    pub damaged: u64,
    /// Processes that could not record at all, as far as their parents know.
    pub refused_processes: u64,
    /// Other reasons to read the figures with care, in words.
    pub cautions: Vec<String>,
}

/// A process that recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordedProcess {
    /// Its name.
    pub name: Option<String>,
    /// Its id where it ran.
    pub pid: i64,
    /// Its host, where a header names one.
    pub host: Option<String>,
    /// Whether it is a group of tracks, such as the streams of a device.
    pub is_tracks: bool,
    /// The device whose rows it has: the number of the first process with rows of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<usize>,
    /// The name of the device, if `name` does not contain it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_name: Option<String>,
    /// How it ended, if it did not say so: `killed`, `silent` or `unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<&'static str>,
    /// Its exit as seen by the program that waited for it, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// The spans that it left open.
    #[serde(skip_serializing_if = "is_zero")]
    pub open_spans: u64,
    /// Time of its last event, in ns from the start of the trace.
    pub last_ns: Option<i64>,
    /// True if the report is about a snapshot, and the process was running when it was taken.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub was_running: bool,
    /// Its events.
    pub events: u64,
    /// The clock of its times, by number. Times of one clock have no error between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<usize>,
    /// What its times may be off against those of other hosts, in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_uncertainty_ns: Option<u64>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl RecordedProcess {
    /// The known facts about its end; `None` if it ended as it should, or still ran.
    pub fn death(&self) -> Option<Death> {
        let open_spans = match self.end? {
            // A merged trace says that there were some, but not how many.
            "killed" => Some(self.open_spans.max(1)),
            "unknown" => None,
            _ => Some(0),
        };
        Some(Death {
            open_spans,
            exit: self.exit.clone(),
            last_ns: self.last_ns,
        })
    }
}

impl Recorded {
    /// Returns the uncertainty between the times of two processes, in ns; `i64::MAX` if unknown.
    pub fn uncertainty_ns(&self, one: usize, other: usize) -> i64 {
        let known = self.greatest_uncertainty_ns([one, other]);
        known.map_or(i64::MAX, |ns| i64::try_from(ns).unwrap_or(i64::MAX))
    }

    /// Returns the greatest uncertainty between the times of some processes, in ns: 0 if they share a clock, `None` if unknown.
    pub fn greatest_uncertainty_ns(
        &self,
        processes: impl IntoIterator<Item = usize>,
    ) -> Option<u64> {
        let clock = |number| {
            let process: &RecordedProcess = self.processes.get(number)?;
            Some((process.clock?, process.clock_uncertainty_ns))
        };
        let clocks: BTreeMap<usize, Option<u64>> =
            processes.into_iter().filter_map(clock).collect();
        if clocks.len() < 2 {
            return Some(0);
        }
        let mut each = clocks.into_values().collect::<Option<Vec<u64>>>()?;
        each.sort_unstable();
        let greatest = each.iter().rev().take(2);
        Some(greatest.fold(0, |sum, ns| sum.saturating_add(*ns)))
    }

    /// The name of a process, for people.
    pub fn process_name(&self, number: usize) -> String {
        let process = self.processes.get(number);
        let name = process.and_then(|process| {
            let device_name = process.device_name.as_ref();
            device_name.or(process.name.as_ref()).cloned()
        });
        let pid = process.map_or(0, |process| process.pid);
        name.unwrap_or_else(|| format!("process {pid}"))
    }
}

/// Which process of a crashed run died first, in what, and which were killed after it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Crash {
    /// The process that died first, by its number among [`Recorded::processes`](crate::Recorded::processes).
    pub process: usize,
    /// How it ended, where the program that waited for it saw.
    pub exit: Option<Exit>,
    /// Time of its last event, in ns from the start of the trace.
    pub last_ns: Option<i64>,
    /// The step that it was in, as the arg `step` or `batch` of its innermost open span that has one.
    pub step: Option<String>,
    /// The requests of its open spans, the first hundred.
    pub request_ids: Vec<String>,
    /// Number of requests of its open spans.
    pub requests: u64,
    /// Its open spans in the order in which they began, at most 32.
    pub spans: Vec<CrashedSpan>,
    /// The processes that were killed after it.
    pub followed_by: Vec<FollowedBy>,
    /// Processes that may have died before it: shortly before, they stopped recording in no open span, and did not close their recordings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub maybe_before: Vec<MaybeBefore>,
}

/// A span in which a process died.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CrashedSpan {
    /// Its name.
    pub name: String,
    /// Start, in ns from the start of the trace.
    pub start_ns: i64,
}

/// A process that may have died before the first one that was killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MaybeBefore {
    /// Its number among the processes.
    pub process: usize,
    /// Time from its last event to the last one of the process that was killed first, in ns.
    pub before_ns: i64,
}

/// A process that was killed after the first one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FollowedBy {
    /// Its number among the processes.
    pub process: usize,
    /// How it ended, where the program that waited for it saw.
    pub exit: Option<Exit>,
    /// Time from the last event of the first one to its own, in ns. It is `None` if its own last event came earlier.
    pub after_ns: Option<i64>,
}
