//! Slices on tracks → how busy each device was.

use crate::gather::slice_record::SliceRecord;
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

/// The times of each device; its slices have its number as their row, and 1 as the key of communication.
pub(crate) fn device_times(slices: &Sorted<SliceRecord>) -> io::Result<Vec<DeviceTime>> {
    let (mut times, mut sweep): (Vec<DeviceTime>, Option<Sweep>) = (Vec::new(), None);
    slices.each(|slice| {
        let process = usize::try_from(slice.row).map_err(io::Error::other)?;
        if sweep
            .as_ref()
            .is_none_or(|sweep| sweep.time.process != process)
        {
            times.extend(
                sweep
                    .replace(Sweep::new(process, slice.start_ns))
                    .map(Sweep::finish),
            );
        }
        if let Some(sweep) = &mut sweep {
            sweep.take(slice);
        }
        Ok(())
    })?;
    times.extend(sweep.map(Sweep::finish));
    Ok(times)
}

impl Sweep {
    fn new(process: usize, from_ns: i64) -> Sweep {
        Sweep {
            time: DeviceTime {
                process,
                slices: 0,
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

    fn take(&mut self, slice: SliceRecord) {
        let (start_ns, end_ns) = (slice.start_ns, slice.end_ns.0);
        let gap_at_ns = self.all.to_ns;
        let gap_ns = self.all.add(start_ns, end_ns);
        if gap_ns > self.time.longest_gap_ns {
            (self.time.longest_gap_ns, self.time.longest_gap_at_ns) = (gap_ns, gap_at_ns);
        }
        match slice.key {
            1 => self.communication.add(start_ns, end_ns),
            _ => self.others.add(start_ns, end_ns),
        };
        self.time.slices += 1;
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
        let slice = |row, start_ns, end_ns, key| SliceRecord {
            row,
            start_ns,
            end_ns: Reverse(end_ns),
            key,
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
        let times = device_times(&Sorted::Memory(slices)).unwrap();
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
            device_times(&Sorted::Memory(Vec::new()))
                .unwrap()
                .is_empty()
        );
    }
}
