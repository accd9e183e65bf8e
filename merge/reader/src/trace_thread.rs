//! A thread of the trace, as consumers see it.

use crate::device::group::is_of_mspti;

/// A thread, a lane of async work, or a track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceThread {
    /// Its process, by its number among `TraceEvents::processes`.
    pub process: usize,
    /// Its id in the trace.
    pub tid: u32,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// True for the main thread of its process.
    pub is_main: bool,
    /// True for a lane of async work or a track, such as a stream of a device.
    pub is_lane: bool,
    /// Output ids of the rows for its overlapping spans.
    pub rows: Vec<u32>,
}

impl TraceThread {
    /// Returns its name, or its id if it has none.
    pub fn label(&self) -> String {
        let name = self.name.clone();
        name.unwrap_or_else(|| format!("tid {}", self.tid))
    }

    /// Returns true for a row of MSPTI's records, which repeat the work that other rows of a device show.
    pub fn is_of_mspti(&self) -> bool {
        self.name.as_deref().is_some_and(is_of_mspti)
    }
}
