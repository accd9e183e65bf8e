//! The data that was recorded, the losses, and the crash of a run.

use serde::Serialize;
use std::collections::BTreeMap;
use trace_merge::{Death, Exit, LossReport};

/// The data that the report is based on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recorded {
    /// Processes, and groups of tracks that they recorded, such as NPUs.
    pub processes: Vec<RecordedProcess>,
    /// Time from the start of the first event to the end of the last one, in ns.
    pub wall_ns: i64,
    /// Number of events.
    pub events: u64,
    /// Number of spans without an end.
    pub unfinished: u64,
    /// Number of events that recorders know to be lost.
    pub lost_events: u64,
    /// List of losses.
    pub losses: Vec<LossReport>,
    /// Number of places in the inputs that could not be read.
    pub damaged: u64,
    /// Number of processes that could not record at all, as far as their parents know.
    pub refused_processes: u64,
    /// Further reasons to read the figures with care, as texts.
    pub cautions: Vec<String>,
}

/// A process that recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordedProcess {
    /// Name of the process.
    pub name: Option<String>,
    /// Process id on its host.
    pub pid: i64,
    /// Host of the process, if a header names one.
    pub host: Option<String>,
    /// True for a group of tracks, such as the streams of a device.
    pub is_tracks: bool,
    /// Device whose tracks it contains, as the number of the first process with tracks of this device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<usize>,
    /// Name of the device, if `name` does not contain it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_name: Option<String>,
    /// How the process ended, if it did not close its recording: `killed`, `silent` or `unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<&'static str>,
    /// Exit of the process as reported by the program that waited for it, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// Number of spans that the process left open.
    #[serde(skip_serializing_if = "is_zero")]
    pub open_spans: u64,
    /// Time of the last event of the process, in ns from the start of the trace.
    pub last_ns: Option<i64>,
    /// True if the report is about a snapshot, and the process was running when the snapshot was taken.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub was_running: bool,
    /// Number of events of the process.
    pub events: u64,
    /// Number of the clock of its times. Times of one clock have no error relative to each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<usize>,
    /// Maximum error of its times relative to other hosts, in ns.
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
    /// Returns what is known about the end of the process, or `None` if it ended normally or was still running.
    pub fn death(&self) -> Option<Death> {
        let open_spans = match self.end? {
            // A merged trace records that there were open spans, but not how many.
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
    /// Returns the uncertainty between the times of two processes, in ns, or `i64::MAX` if it is unknown.
    pub fn uncertainty_ns(&self, one: usize, other: usize) -> i64 {
        let uncertainty = self.greatest_uncertainty_ns([one, other]);
        uncertainty.map_or(i64::MAX, |ns| i64::try_from(ns).unwrap_or(i64::MAX))
    }

    /// Returns the greatest uncertainty between the times of any two of these processes, in ns. It is 0 if they share a
    /// clock, and `None` if it is unknown.
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

    /// Returns a name of the process with this number for people: its device, its own name, or else `process` and its
    /// pid.
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

/// The process of a crashed run that died first, the spans that it died in, and the processes that were killed after
/// it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Crash {
    /// Number of the process that died first among [`Recorded::processes`](crate::Recorded::processes).
    pub process: usize,
    /// Exit of the process as reported by the program that waited for it, if any.
    pub exit: Option<Exit>,
    /// Time of its last event, in ns from the start of the trace.
    pub last_ns: Option<i64>,
    /// Step in which it died: the arg `step` or `batch` of the innermost open span that has one.
    pub step: Option<String>,
    /// Ids of the first hundred requests of its open spans.
    pub request_ids: Vec<String>,
    /// Number of requests of its open spans.
    pub requests: u64,
    /// Its open spans in the order of their starts, at most 32.
    pub spans: Vec<CrashedSpan>,
    /// Processes that were killed after it.
    pub followed_by: Vec<FollowedBy>,
    /// Processes that may have died before it: shortly before, they stopped recording without an open span, and did not
    /// close their recordings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub maybe_before: Vec<MaybeBefore>,
}

/// A span in which a process died.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CrashedSpan {
    /// Name of the span.
    pub name: String,
    /// Start, in ns from the start of the trace.
    pub start_ns: i64,
}

/// A process that may have died before the first one that was killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MaybeBefore {
    /// Number of the process among the processes.
    pub process: usize,
    /// Time from its last event to the last event of the process that was killed first, in ns.
    pub before_ns: i64,
}

/// A process that was killed after the first one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FollowedBy {
    /// Number of the process among the processes.
    pub process: usize,
    /// Exit of the process as reported by the program that waited for it, if any.
    pub exit: Option<Exit>,
    /// Time from the last event of the first process to its own last event, in ns. `None` if its own last event came
    /// earlier.
    pub after_ns: Option<i64>,
}
