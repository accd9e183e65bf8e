//! A stream of a device: its open launches, and its tracks in the trace.

use crate::pending::Pending;
use crate::place::Placed;
use crate::track::DeviceGroup;
use sa_recorder::{Args, Level, Track};
use std::collections::VecDeque;

/// Maximum number of tracks of a stream. All further slices overlap on the last one.
const MAX_LANES: usize = 8;

/// A stream of a device.
#[derive(Debug, Default)]
pub(crate) struct DeviceStream {
    pub(crate) stream_id: i32,
    /// Launches whose end is in the stream, oldest first.
    pub(crate) pending: VecDeque<Pending>,
    /// A lane for the stream, and more if pairs of several threads, or of one launch inside another, overlap.
    lanes: Vec<Lane>,
    /// Last number of open launches in the trace.
    shown: usize,
}

#[derive(Debug, Default)]
struct Lane {
    track: Option<Track>,
    /// End of the last slice.
    end_ns: u64,
}

impl DeviceStream {
    pub(crate) fn new(stream_id: i32) -> DeviceStream {
        DeviceStream {
            stream_id,
            lanes: vec![Lane::default()],
            ..DeviceStream::default()
        }
    }

    /// Returns the time at which the last slice on the stream's first track ends.
    pub(crate) fn end_ns(&self) -> u64 {
        self.lanes.first().map_or(0, |lane| lane.end_ns)
    }

    /// Returns the first track of this stream that has room for the slice `placed`. Slices that overlap get further tracks. Returns `None` while nothing is
    /// recorded.
    pub(crate) fn track(&mut self, group: &DeviceGroup, placed: &Placed) -> Option<Track> {
        let free = |lane: &Lane| lane.end_ns <= placed.start_ns;
        let at = self.lanes.iter().position(free).unwrap_or_else(|| {
            if self.lanes.len() < MAX_LANES {
                self.lanes.push(Lane::default());
            }
            self.lanes.len() - 1
        });
        let lane = &mut self.lanes[at];
        lane.end_ns = lane.end_ns.max(placed.start_ns + placed.dur_ns);
        self.lane_track(group, at)
    }

    fn lane_track(&mut self, group: &DeviceGroup, at: usize) -> Option<Track> {
        let id = self.stream_id;
        group.live_track(&mut self.lanes[at].track, || match at {
            0 => format!("Stream {id}"),
            at => format!("Stream {id} overlapping {at}"),
        })
    }

    /// Writes a counter with the number of the stream's open timed launches, if that has changed.
    pub(crate) fn write_outstanding(&mut self, group: &DeviceGroup, now_ns: u64) {
        let outstanding = self.pending.len();
        if outstanding == self.shown {
            return;
        }
        self.shown = outstanding;
        if let Some(track) = self.lane_track(group, 0) {
            let name = format!("Stream {} outstanding", self.stream_id);
            let series = Args::new().with("launches", outstanding);
            track.counter(Level::Kernel, &name, now_ns, &series);
        }
    }
}
