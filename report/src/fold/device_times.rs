//! Slices on tracks → how busy each device was.

use crate::gather::device_slice::DeviceSlice;
use crate::gather::edge::{Edge, EdgeKind};
use crate::quantiles::Quantiles;
use crate::table::device_time::DeviceTime;
use std::io;
use trace_store::sorter::Sorted;

/// Intervals that come by their begins: how much they cover together.
#[derive(Clone, Copy, Debug)]
struct Union {
    covered_ns: i64,
    to_ns: i64,
}

impl Union {
    fn new(from_ns: i64) -> Union {
        Union {
            covered_ns: 0,
            to_ns: from_ns,
        }
    }

    /// Adds one; gives the gap before it.
    fn add(&mut self, start_ns: i64, end_ns: i64) -> i64 {
        let gap_ns = (start_ns - self.to_ns).max(0);
        self.covered_ns += (end_ns - start_ns.max(self.to_ns)).max(0);
        self.to_ns = self.to_ns.max(end_ns);
        gap_ns
    }
}

/// A device while its slices come.
struct Sweep {
    time: DeviceTime,
    all: Union,
    communication: Union,
    others: Union,
}

/// A time in which nothing ran on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) device: u32,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    /// When the slice was launched that ends it.
    pub(crate) launch_ns: Option<i64>,
}

impl Gap {
    /// When it begins and ends, and when what ends it was launched.
    pub(crate) fn edges(&self) -> impl Iterator<Item = Edge> + use<> {
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
                value: 0,
            })
        })
    }
}

/// The times of each device. `gap` is called with each time in which nothing ran between its slices, `each` with each slice.
pub(crate) fn device_times(
    slices: &Sorted<DeviceSlice>,
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
                is_runner: false,
                slices: 0,
                short_slices: 0,
                launch_delay: Quantiles::default(),
                from_ns,
                wall_ns: 0,
                busy_ns: 0,
                communication_ns: 0,
                exposed_communication_ns: 0,
                longest_gap_ns: 0,
                longest_gap_at_ns: from_ns,
            },
            all: Union::new(from_ns),
            communication: Union::new(from_ns),
            others: Union::new(from_ns),
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
        match slice.collective {
            0 => self.others.add(start_ns, end_ns),
            _ => self.communication.add(start_ns, end_ns),
        };
        self.time.slices += 1;
        self.time.short_slices += u64::from(slice.is_short);
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
            busy_ns: self.all.covered_ns,
            communication_ns: self.communication.covered_ns,
            exposed_communication_ns: self.all.covered_ns - self.others.covered_ns,
            ..self.time
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Reverse;

    #[test]
    fn what_overlaps_is_counted_once() {
        let slice = |device, start_ns, end_ns, communication| DeviceSlice {
            device,
            start_ns,
            end_ns: Reverse(end_ns),
            queue_ns: -1,
            collective: communication,
            is_short: false,
            is_replay: false,
            stream: 0,
        };
        // Device 3: computing 0..10 and 5..20 on two streams, communication 15..30 and 40..45. Device 4 computes 7..9.
        let mut slices = vec![
            slice(3, 0, 10, 0),
            slice(3, 15, 30, 1),
            slice(3, 5, 20, 0),
            slice(3, 40, 45, 1),
            slice(4, 7, 9, 0),
        ];
        slices.sort_unstable();
        let mut gaps = Vec::new();
        let times = device_times(
            &Sorted::Memory(slices),
            |gap| {
                gaps.push((gap.device, gap.start_ns, gap.end_ns));
                Ok(())
            },
            |_| Ok(()),
        )
        .unwrap();
        assert_eq!(gaps, [(3, 30, 40)]);
        let [one, other] = times.as_slice() else {
            panic!("{times:?}")
        };
        assert_eq!(
            (
                one.process,
                one.slices,
                one.from_ns,
                one.wall_ns,
                one.busy_ns
            ),
            (3, 4, 0, 45, 35)
        );
        assert_eq!(
            (one.communication_ns, one.exposed_communication_ns),
            (20, 15)
        );
        assert_eq!((one.longest_gap_ns, one.longest_gap_at_ns), (10, 30));
        assert_eq!(
            (
                other.process,
                other.busy_ns,
                other.wall_ns,
                other.longest_gap_ns
            ),
            (4, 2, 2, 0)
        );
        assert!(
            device_times(&Sorted::Memory(Vec::new()), |_| Ok(()), |_| Ok(()))
                .unwrap()
                .is_empty()
        );
    }
}
