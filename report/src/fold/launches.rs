//! Finds the launch of each device slice, and the delay between them.

use crate::gather::device_slice::{DeviceSlice, LaunchEnd};
use crate::gather::edge::{Edge, EdgeKind};
use crate::table::DeviceTime;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use trace_store::sorter::{Record, Sorted, Sorter};

/// Maximum number of calls with the same key.
const MOST_CALLS: usize = 65_536;

/// Launch of a slice. Sorted launches have the order of their slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Launch {
    /// Device of the slice, followed by its start and its stream.
    device: u32,
    start_ns: i64,
    stream: u32,
    launch_ns: i64,
    /// Duration of the call on the host in ns, or −1 if unknown.
    dur_ns: i64,
}

/// Finds the launches of slices. For each launch, adds an edge to the process that feeds the device, which `host`
/// returns.
pub(crate) fn launches<'a>(
    ends: &Sorted<LaunchEnd>,
    host: impl Fn(u32) -> u32,
    mut launches: Sorter<'a, Launch>,
    edges: &mut Sorter<'_, Edge>,
) -> io::Result<Sorted<Launch>> {
    for ends in ends.chunk_by(|one, next| one.key == next.key) {
        let (calls, work) = ends.split_at(ends.partition_point(|end| !end.is_work));
        let calls = &calls[..calls.len().min(MOST_CALLS)];
        for end in work {
            // Choose the last call before the work. If all calls are later, the clocks differ, and the first call is
            // chosen.
            let before = calls.partition_point(|call| call.ns <= end.ns);
            let Some(call) = calls.get(before.saturating_sub(1)) else {
                break;
            };
            let host = host(end.device);
            edges.push(Edge::new(call.ns, EdgeKind::Launch, host))?;
            launches.push(Launch {
                device: end.device,
                start_ns: end.ns,
                stream: end.stream,
                launch_ns: call.ns,
                dur_ns: call.dur_ns,
            })?;
        }
    }
    launches.finish()
}

/// The slices of devices with their launches.
pub(crate) struct LaunchedSlices<'a> {
    pub(crate) slices: &'a Sorted<DeviceSlice>,
    pub(crate) launches: &'a Sorted<Launch>,
    /// Processes that run steps. Parts of steps in other processes are no slices.
    pub(crate) stepping: &'a BTreeSet<u32>,
}

impl LaunchedSlices<'_> {
    /// Calls `found` with each slice. If the args of a slice do not contain its launch time, the time of its last
    /// launch is used.
    pub(crate) fn each(
        &self,
        mut found: impl FnMut(DeviceSlice) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut launches = self.launches.iter().peekable();
        // The last launch on each stream for slices with the current start time.
        let (mut at_once, mut current) = (BTreeMap::<u32, Launch>::new(), None);
        self.slices.each(|mut slice| {
            if slice.is_part && !self.stepping.contains(&slice.device) {
                return Ok(());
            }
            let place = (slice.device, slice.start_ns);
            if current.replace(place) != Some(place) {
                at_once.clear();
            }
            while let Some(launch) = launches.next_if(|next| (next.device, next.start_ns) <= place)
            {
                if (launch.device, launch.start_ns) == place {
                    at_once.insert(launch.stream, *launch);
                }
            }
            let last = at_once.get(&slice.stream);
            if let Some(launch) = last.filter(|_| slice.queue_ns().is_none()) {
                let dur_ns = slice.end_ns.0 - slice.start_ns;
                slice.set_launch(launch.launch_ns);
                slice.is_short = dur_ns < launch.dur_ns;
            }
            found(slice)
        })
    }
}

impl Record for Launch {}

/// Returns a caution if any device slice starts before its launch.
pub(crate) fn early_words(devices: &[DeviceTime]) -> Option<String> {
    let early: u64 = devices.iter().map(|device| device.early_slices).sum();
    let most_ns = devices.iter().map(|device| device.early_ns).max()?;
    let slices = match early {
        0 => return None,
        1 => "1 slice of a device starts".to_owned(),
        _ => format!("{early} slices of devices start"),
    };
    Some(format!(
        "{slices} before the launch, by up to {:.3} µs: the clocks of host and device differ, and the delay counts as 0",
        most_ns as f64 / 1e3
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Profilers with a coarse clock write very many slices with the same start time.
    #[test]
    fn many_launches_of_slices_with_one_start_are_found() {
        let launch = |stream: u32, launch_ns: i64| Launch {
            device: 5,
            start_ns: 20,
            stream,
            launch_ns,
            dur_ns: -1,
        };
        let mut launches: Vec<Launch> = (0..100_000).map(|stream| launch(stream, 10)).collect();
        launches.extend((0..100_000).map(|nth| launch(7, 10 - nth)));
        launches.push(launch(7, 15));
        launches.sort_unstable();
        let slices = (0..100_000).map(|stream| DeviceSlice::new(5, (20, 23), stream));
        let launched = LaunchedSlices {
            slices: &Sorted::Memory(slices.collect()),
            launches: &Sorted::Memory(launches),
            stepping: &BTreeSet::new(),
        };
        let mut found = BTreeMap::<Option<i64>, usize>::new();
        launched
            .each(|slice| {
                *found.entry(slice.queue_ns()).or_default() += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!(found, [(Some(5), 1), (Some(10), 99_999)].into());
    }
}
