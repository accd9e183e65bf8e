//! A thread of the trace, as consumers see it.

use crate::identity::process::{Process, ProcessKey, Thread, ThreadKey};

/// A thread, a lane of async work, or a track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceThread {
    /// Its process, by its number among [`TraceEvents::processes`](super::TraceEvents::processes).
    pub process: usize,
    /// Its id in the trace.
    pub tid: u32,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Whether it is the main thread of its process.
    pub is_main: bool,
    /// Whether it is no thread of the system: a lane of async work, or a track such as a stream of a device.
    pub is_lane: bool,
    /// The ids in the trace of the rows beside it, for spans that overlap others of it.
    pub rows: Vec<u32>,
}

impl TraceThread {
    /// What people call it: its name, or its id.
    pub fn label(&self) -> String {
        let name = self.name.clone();
        name.unwrap_or_else(|| format!("tid {}", self.tid))
    }

    pub(super) fn of(
        number: usize,
        process: &Process,
        key: ThreadKey,
        thread: &Thread,
    ) -> TraceThread {
        let name = thread.shown_name();
        // In a trace that a merge wrote nothing but the name tells it from a thread.
        let is_recorded = matches!(process.key.recorder(), ProcessKey::Recorded(..));
        let is_called_so = || name.as_deref().is_some_and(is_of_lane);
        TraceThread {
            process: number,
            tid: thread.output_tid,
            is_main: thread.is_main,
            is_lane: matches!(key, ThreadKey::Lane(..)) || !is_recorded && is_called_so(),
            rows: thread.overflow.clone(),
            name,
        }
    }
}

/// Returns true if recorders give this name to lanes or to rows of samples.
fn is_of_lane(name: &str) -> bool {
    let number = name.strip_prefix("async ");
    name.contains(" (async)")
        || name.starts_with("samples ")
        || number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_known_by_their_names() {
        for name in [
            "async 0",
            "async 12 (overlapping 1)",
            "Task-2 (async)",
            "samples MainThread",
            "batches (async) (overlapping 2)",
        ] {
            assert!(is_of_lane(name), "{name}");
        }
        for name in ["async", "async io", "my async 1", "Task-2", ""] {
            assert!(!is_of_lane(name), "{name}");
        }
    }
}
