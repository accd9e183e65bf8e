//! Slices on device tracks → busy, idle and queue times of each device and each of its streams.

use super::launches::LaunchedSlices;
use crate::covered::Covered;
use crate::gather::device_slice::DeviceSlice;
use crate::gather::edge::{Edge, EdgeKind};
use crate::serving_clock::ServingClock;
use crate::table::{DeviceTime, StreamTime};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use trace_merge::events::TraceThread;

/// State of a device while its slices are read in order of time.
struct Sweep {
    time: DeviceTime,
    all: Covered,
    communication: Covered,
    others: Covered,
}

/// A time in which nothing ran on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) device: u32,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    /// Launch time of the slice that ends the gap, if known.
    pub(crate) launch_ns: Option<i64>,
}

impl Gap {
    /// Returns the edges of the gap, and of the launch that ends it. The value of the first edge is 1 if that launch is
    /// known and `is_foreign` is set. Such a gap gets a cause although no engine is known, because another profiler
    /// recorded the device.
    pub(crate) fn edges(&self, is_foreign: bool) -> impl Iterator<Item = Edge> + use<> {
        let edge = |ns, kind| Edge::new(ns, kind, self.device);
        let begin = Edge {
            value: u32::from(is_foreign && self.launch_ns.is_some()),
            ..edge(self.start_ns, EdgeKind::GapBegin)
        };
        let launch_ns = self.launch_ns.filter(|ns| *ns < self.end_ns);
        let launched = launch_ns.map(|ns| edge(ns.max(self.start_ns), EdgeKind::Launched));
        let end = edge(self.end_ns, EdgeKind::GapEnd);
        [Some(begin), launched, Some(end)].into_iter().flatten()
    }
}

/// Returns the times of each device, from the parts of its slices inside the serving time of `clock`. Calls `each` with
/// each of these parts, and `gap` with each time between them in which nothing ran.
pub(crate) fn device_times(
    slices: &LaunchedSlices<'_>,
    clock: &ServingClock,
    mut gap: impl FnMut(Gap) -> io::Result<()>,
    mut each: impl FnMut(&DeviceSlice) -> io::Result<()>,
) -> io::Result<Vec<DeviceTime>> {
    let (mut times, mut sweep): (Vec<DeviceTime>, Option<Sweep>) = (Vec::new(), None);
    let to_trace = |gap: Gap| Gap {
        start_ns: clock.trace_ns(gap.start_ns),
        end_ns: clock.trace_ns(gap.end_ns),
        launch_ns: gap.launch_ns.map(|ns| clock.trace_ns(ns)),
        ..gap
    };
    slices.each(|mut slice| {
        let Some((start_ns, end_ns)) = clock.clip((slice.start_ns, slice.end_ns.0)) else {
            return Ok(());
        };
        (slice.start_ns, slice.end_ns.0) = (start_ns, end_ns);
        let is_same_device = |sweep: &Sweep| sweep.time.process == slice.device as usize;
        if !sweep.as_ref().is_some_and(is_same_device) {
            times.extend(sweep.replace(Sweep::new(&slice)).map(Sweep::finish));
        }
        each(&slice)?;
        let found = sweep.as_mut().and_then(|sweep| sweep.add(&slice));
        found.map_or(Ok(()), |found| gap(to_trace(found)))
    })?;
    times.extend(sweep.map(Sweep::finish));
    for time in &mut times {
        time.from_ns = clock.trace_ns(time.from_ns);
        time.longest_gap_at_ns = clock.trace_ns(time.longest_gap_at_ns);
    }
    Ok(times)
}

impl Sweep {
    fn new(slice: &DeviceSlice) -> Sweep {
        let from_ns = slice.start_ns;
        Sweep {
            time: DeviceTime {
                process: slice.device as usize,
                from_ns,
                longest_gap_at_ns: from_ns,
                ..DeviceTime::default()
            },
            all: Covered::new(from_ns),
            communication: Covered::new(from_ns),
            others: Covered::new(from_ns),
        }
    }

    /// Adds a slice and returns the gap before it.
    fn add(&mut self, slice: &DeviceSlice) -> Option<Gap> {
        let (start_ns, end_ns) = (slice.start_ns, slice.end_ns.0);
        let gap_at_ns = self.all.to_ns;
        let gap_ns = self.all.add(start_ns, end_ns);
        if gap_ns > self.time.longest_gap_ns {
            (self.time.longest_gap_ns, self.time.longest_gap_at_ns) = (gap_ns, gap_at_ns);
        }
        match slice.is_communication {
            false => self.others.add(start_ns, end_ns),
            true => self.communication.add(start_ns, end_ns),
        };
        self.time.slices += u64::from(!slice.is_part);
        self.time.short_slices += u64::from(slice.is_short);
        self.time.early_slices += u64::from(slice.early_ns() > 0);
        self.time.early_ns = self.time.early_ns.max(slice.early_ns());
        (gap_ns > 0).then_some(Gap {
            device: slice.device,
            start_ns: gap_at_ns,
            end_ns: start_ns,
            launch_ns: slice.launch_ns(),
        })
    }

    fn finish(self) -> DeviceTime {
        DeviceTime {
            wall_ns: self.all.to_ns - self.time.from_ns,
            busy_ns: self.all.ns,
            communication_ns: self.communication.ns,
            exposed_communication_ns: self.all.ns - self.others.ns,
            ..self.time
        }
    }
}

/// Maximum number of queued slices that are tracked per stream.
const LONGEST: usize = 65_536;

/// State of a stream while its slices are read in order of their starts.
#[derive(Debug, Default)]
struct Stream {
    slices: u64,
    replays: u64,
    busy: Option<Covered>,
    launched: u64,
    queued_ns: i64,
    /// Latest launch so far.
    launched_to_ns: Option<i64>,
    /// Start times of the slices that may still be queued at a later launch.
    begins: VecDeque<i64>,
    max_queue: u64,
}

/// State of the streams of all devices while slices are read.
#[derive(Debug, Default)]
pub(crate) struct StreamTimes {
    streams: BTreeMap<(u32, u32), Stream>,
}

impl StreamTimes {
    pub(crate) fn add(&mut self, slice: &DeviceSlice) {
        let stream = self
            .streams
            .entry((slice.device, slice.stream))
            .or_default();
        stream.add(slice);
    }

    /// Returns the times of all streams, ordered by device. The steps of a worker without a device are not a stream.
    pub(crate) fn finish(self, devices: &[DeviceTime], threads: &[TraceThread]) -> Vec<StreamTime> {
        let time = |((device, thread), stream): ((u32, u32), Stream)| {
            let device = devices
                .iter()
                .find(|time| time.process == device as usize && !time.is_runner)?;
            let thread = threads.get(thread as usize)?;
            Some(stream.finish(device, thread.label()))
        };
        self.streams.into_iter().filter_map(time).collect()
    }
}

impl Stream {
    fn add(&mut self, slice: &DeviceSlice) {
        let (start_ns, end_ns) = (slice.start_ns, slice.end_ns.0);
        let busy = self.busy.get_or_insert(Covered::new(start_ns));
        busy.add(start_ns, end_ns);
        self.slices += 1;
        self.replays += u64::from(slice.is_replay);
        if let Some(launch_ns) = slice.launch_ns() {
            self.launched += 1;
            self.queued_ns = self.queued_ns.saturating_add(start_ns - launch_ns);
            self.queue(launch_ns, start_ns);
        }
    }

    /// Adds a slice to the queue and updates the longest queue. Slices that had started by the latest launch are
    /// removed first.
    fn queue(&mut self, launch_ns: i64, start_ns: i64) {
        let last_ns = self.launched_to_ns.max(Some(launch_ns));
        self.launched_to_ns = last_ns;
        let has_begun = |begin_ns: &mut i64| Some(*begin_ns) <= last_ns;
        while self.begins.pop_front_if(has_begun).is_some() {}
        if self.begins.len() == LONGEST {
            self.begins.pop_front();
        }
        self.begins.push_back(start_ns);
        self.max_queue = self.max_queue.max(self.begins.len() as u64);
    }

    fn finish(self, device: &DeviceTime, name: String) -> StreamTime {
        let is_known = self.launched > 0;
        StreamTime {
            process: device.process,
            name,
            slices: self.slices,
            replays: self.replays,
            busy_ns: self.busy.map_or(0, |busy| busy.ns),
            mean_queue: is_known.then(|| self.queued_ns as f64 / device.wall_ns.max(1) as f64),
            max_queue: is_known.then_some(self.max_queue),
        }
    }
}
