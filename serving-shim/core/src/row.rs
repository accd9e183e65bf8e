//! A stream of a device: what is under way in it, and its rows in the trace.

use crate::group::DeviceGroup;
use crate::pending::Pending;
use crate::place::Placed;
use sa_recorder::{Args, Level, Track};
use std::collections::VecDeque;

/// Most rows of a stream. Slices beyond overlap in the last one.
const MAX_LANES: usize = 8;

/// A stream.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) stream_id: i32,
    /// Launches whose end is in the stream, oldest first.
    pub(crate) pending: VecDeque<Pending>,
    /// A row for the stream, and more where pairs of several threads, or of one launch inside another, overlap in it.
    lanes: Vec<Lane>,
    told: usize,
}

#[derive(Debug, Default)]
struct Lane {
    track: Option<Track>,
    /// Where its last slice ends.
    end_ns: u64,
}

impl Row {
    pub(crate) fn new(stream_id: i32) -> Row {
        Row {
            stream_id,
            pending: VecDeque::new(),
            lanes: vec![Lane::default()],
            told: 0,
        }
    }

    /// Where the last slice of its first row ends.
    pub(crate) fn end_ns(&self) -> u64 {
        self.lanes.first().map_or(0, |lane| lane.end_ns)
    }

    /// The row that has room for a slice; `None` while nothing is recorded.
    pub(crate) fn track(&mut self, group: &DeviceGroup, placed: &Placed) -> Option<Track> {
        let free = |lane: &Lane| lane.end_ns <= placed.start_ns;
        let at = self.lanes.iter().position(free).unwrap_or_else(|| {
            if self.lanes.len() < MAX_LANES {
                self.lanes.push(Lane::default());
            }
            self.lanes.len() - 1
        });
        let lane = self.lanes.get_mut(at)?;
        lane.end_ns = lane.end_ns.max(placed.start_ns + placed.dur_ns);
        // A recording that was begun anew has rows of its own.
        if !lane.track.is_some_and(Track::is_live) {
            lane.track = group.track(&name(self.stream_id, at));
        }
        lane.track
    }

    /// Tells how many timed launches are under way, if that changed.
    pub(crate) fn tell_outstanding(&mut self, group: &DeviceGroup, now_ns: u64) {
        let outstanding = self.pending.len();
        if outstanding == self.told {
            return;
        }
        self.told = outstanding;
        let Some(first) = self.lanes.first_mut() else {
            return;
        };
        if !first.track.is_some_and(Track::is_live) {
            first.track = group.track(&name(self.stream_id, 0));
        }
        if let Some(track) = first.track {
            let name = format!("Stream {} outstanding", self.stream_id);
            let series = Args::new().with("launches", outstanding);
            track.counter(Level::Kernel, &name, now_ns, &series);
        }
    }
}

fn name(stream_id: i32, lane: usize) -> String {
    match lane {
        0 => format!("Stream {stream_id}"),
        lane => format!("Stream {stream_id} overlapping {lane}"),
    }
}
