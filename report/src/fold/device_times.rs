//! Slices on tracks → how busy each device was.

use super::launches::LaunchedSlices;
use crate::covered::Covered;
use crate::gather::device_slice::DeviceSlice;
use crate::gather::edge::{Edge, EdgeKind};
use crate::table::DeviceTime;
use std::io;

/// A device while its slices come.
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
    /// When the slice that ends it was launched, if that is known.
    pub(crate) launch_ns: Option<i64>,
}

impl Gap {
    /// Returns the edges of the gap, and of the launch that ends it. The value of the first edge is 1 if that launch is known, and is a cause without an engine:
    /// if another profiler recorded it.
    pub(crate) fn edges(&self, is_foreign: bool) -> impl Iterator<Item = Edge> + use<> {
        let is_known = u32::from(is_foreign && self.launch_ns.is_some());
        let launch_ns = self.launch_ns.filter(|ns| *ns < self.end_ns);
        let edges = [
            (Some(self.start_ns), EdgeKind::GapBegin),
            (
                launch_ns.map(|ns| ns.max(self.start_ns)),
                EdgeKind::Launched,
            ),
            (Some(self.end_ns), EdgeKind::GapEnd),
        ];
        let of = self.device;
        edges.into_iter().filter_map(move |(ns, kind)| {
            Some(Edge {
                ns: ns?,
                kind,
                of,
                value: match kind {
                    EdgeKind::GapBegin => is_known,
                    _ => 0,
                },
            })
        })
    }
}

/// Returns the times of each device. `gap` is called with each time in which nothing ran between its slices, `each` with each slice.
pub(crate) fn device_times(
    slices: &LaunchedSlices<'_>,
    mut gap: impl FnMut(Gap) -> io::Result<()>,
    mut each: impl FnMut(&DeviceSlice) -> io::Result<()>,
) -> io::Result<Vec<DeviceTime>> {
    let (mut times, mut sweep): (Vec<DeviceTime>, Option<Sweep>) = (Vec::new(), None);
    slices.each(|slice| {
        let is_of = |sweep: &Sweep| sweep.time.process == slice.device as usize;
        if !sweep.as_ref().is_some_and(is_of) {
            times.extend(sweep.replace(Sweep::new(&slice)).map(Sweep::finish));
        }
        each(&slice)?;
        let found = sweep.as_mut().and_then(|sweep| sweep.take(&slice));
        found.map_or(Ok(()), &mut gap)
    })?;
    times.extend(sweep.map(Sweep::finish));
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

    /// Takes a slice; gives the gap before it.
    fn take(&mut self, slice: &DeviceSlice) -> Option<Gap> {
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
        self.time.slices += 1;
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
