//! Slices of devices → how busy each stream was, and how long its queue.

use crate::covered::Covered;
use crate::gather::device_slice::DeviceSlice;
use crate::table::{DeviceTime, StreamTime};
use std::collections::{BTreeMap, VecDeque};
use trace_merge::events::TraceThread;

/// Slices of a queue that are looked at.
const LONGEST: usize = 65_536;

/// A stream while its slices come, by their begins.
#[derive(Debug, Default)]
struct Stream {
    slices: u64,
    replays: u64,
    busy: Option<Covered>,
    launched: u64,
    queued_ns: i64,
    /// The last launch of those that came.
    launched_to_ns: Option<i64>,
    /// When those begin that a later launch may still find in the queue.
    begins: VecDeque<i64>,
    max_queue: u64,
}

/// The streams of all devices while slices come.
#[derive(Debug, Default)]
pub(crate) struct StreamTimes {
    of: BTreeMap<(u32, u32), Stream>,
}

impl StreamTimes {
    pub(crate) fn take(&mut self, slice: &DeviceSlice) {
        let stream = self.of.entry((slice.device, slice.stream)).or_default();
        stream.take(slice);
    }

    /// All of them, by device. The steps of a worker that has no device are no stream.
    pub(crate) fn finish(self, devices: &[DeviceTime], threads: &[TraceThread]) -> Vec<StreamTime> {
        let of = |((device, thread), stream): ((u32, u32), Stream)| {
            let device = devices
                .iter()
                .find(|time| time.process == device as usize && !time.is_runner)?;
            let thread = threads.get(thread as usize)?;
            Some(stream.finish(device, thread.label()))
        };
        self.of.into_iter().filter_map(of).collect()
    }
}

impl Stream {
    fn take(&mut self, slice: &DeviceSlice) {
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

    /// What a launch finds: those before it on the stream that have not begun, not even when another one of them was launched.
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
