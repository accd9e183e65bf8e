//! Maps threads of recordings to threads of the trace.

use crate::event::patch::Target;
use crate::identity::plan::Plan;
use crate::identity::process::{Process, ProcessKey, Thread, ThreadKey};
use crate::reader::placed_event::{ThreadTrack, TraceThread};
use std::collections::HashMap;

/// Index from the threads of recordings to those of the trace.
pub(super) struct ThreadIndex {
    pub(super) threads: Vec<TraceThread>,
    /// Threads of each recording, by pid and tid in its lines.
    recorded: Vec<HashMap<(i64, i64), ThreadTrack>>,
    /// Extra lanes of threads, by their number.
    extra_lanes: Vec<Option<ThreadTrack>>,
}

impl ThreadIndex {
    /// Creates the index for the threads of a plan and their extra lanes.
    pub(super) fn new(plan: &Plan, extra_lanes: &[Target]) -> ThreadIndex {
        let mut threads = Vec::new();
        let mut lanes: HashMap<(u32, u32), (u32, u32)> = HashMap::new();
        for (number, process) in plan.processes.iter().enumerate() {
            for (key, thread) in &process.threads {
                let nth = u32::try_from(threads.len()).unwrap_or(u32::MAX);
                let tids = [thread.output_tid].into_iter();
                for (tid, lane) in tids.chain(thread.lane_tids.iter().copied()).zip(0..) {
                    lanes.insert((process.output_pid, tid), (nth, lane));
                }
                threads.push(trace_thread(number, process, *key, thread));
            }
        }
        let track = |target: &Target| {
            let found = lanes.get(&(target.pid.number(), target.tid.number()));
            let (thread, lane) = found.copied()?;
            let ordinal = target.ordinal;
            Some(ThreadTrack {
                thread,
                track: lane,
                ordinal,
            })
        };
        let recording_tracks = |targets: &HashMap<(i64, i64), Target>| {
            let targets = targets.iter();
            targets
                .filter_map(|(thread, target)| Some((*thread, track(target)?)))
                .collect()
        };
        ThreadIndex {
            recorded: plan.targets.iter().map(recording_tracks).collect(),
            extra_lanes: extra_lanes.iter().map(track).collect(),
            threads,
        }
    }

    /// Returns the track on which the events of a thread are shown, if they are.
    pub(super) fn track(&self, recording: usize, thread: (i64, i64)) -> Option<ThreadTrack> {
        self.recorded.get(recording)?.get(&thread).copied()
    }

    /// Returns an extra lane of a thread, by its number.
    pub(super) fn extra_lane(&self, number: u32) -> Option<ThreadTrack> {
        self.extra_lanes
            .get(usize::try_from(number).ok()?)
            .copied()?
    }
}

/// Converts a thread of the plan to its public form.
fn trace_thread(number: usize, process: &Process, key: ThreadKey, thread: &Thread) -> TraceThread {
    let name = thread.display_name();
    // In a merged trace only the name distinguishes a lane from a thread.
    let is_recorded = matches!(process.key.recorder(), ProcessKey::Recorded(..));
    let has_lane_name = || name.as_deref().is_some_and(is_lane_name);
    TraceThread {
        process: number,
        tid: thread.output_tid,
        is_main: thread.is_main,
        is_lane: matches!(key, ThreadKey::Lane(..)) || !is_recorded && has_lane_name(),
        overlap_tracks: thread.lane_tids.clone(),
        name,
    }
}

/// Returns true if recorders give this name to lanes or to tracks of samples.
fn is_lane_name(name: &str) -> bool {
    let number = name.strip_prefix("async ");
    name.contains(" (async)")
        || name.starts_with("samples ")
        || number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_recognized_by_their_names() {
        for name in [
            "async 0",
            "async 12 (overlapping 1)",
            "Task-2 (async)",
            "samples MainThread",
            "batches (async) (overlapping 2)",
        ] {
            assert!(is_lane_name(name), "{name}");
        }
        for name in ["async", "async io", "my async 1", "Task-2", ""] {
            assert!(!is_lane_name(name), "{name}");
        }
    }
}
