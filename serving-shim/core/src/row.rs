//! A stream of a device: what is under way in it, and its row in the trace.

use crate::launch::Pending;
use crate::track::DeviceGroup;
use sa_recorder::{Args, Level, Track};
use std::collections::VecDeque;

/// A stream.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) stream_id: i32,
    /// Launches whose end is in the stream, oldest first.
    pub(crate) pending: VecDeque<Pending>,
    /// Where the last slice ends.
    pub(crate) end_ns: u64,
    track: Option<Track>,
    told: usize,
}

impl Row {
    pub(crate) fn new(stream_id: i32) -> Row {
        Row {
            stream_id,
            pending: VecDeque::new(),
            end_ns: 0,
            track: None,
            told: 0,
        }
    }

    /// The row in the trace; `None` while nothing is recorded.
    pub(crate) fn track(&mut self, group: &DeviceGroup) -> Option<Track> {
        if self.track.is_none() {
            self.track = group.track(&format!("Stream {}", self.stream_id));
        }
        self.track
    }

    /// Tells how many timed launches are under way, if that changed.
    pub(crate) fn tell_outstanding(&mut self, group: &DeviceGroup, now_ns: u64) {
        let outstanding = self.pending.len();
        if outstanding == self.told {
            return;
        }
        self.told = outstanding;
        if let Some(track) = self.track(group) {
            let name = format!("Stream {} outstanding", self.stream_id);
            let series = Args::new().with("launches", outstanding);
            track.counter(Level::Kernel, &name, now_ns, &series);
        }
    }
}
