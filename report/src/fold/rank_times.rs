//! Collectives → which rank came last to them.

use crate::gather::device_slice::CollectiveRecord;
use crate::statistics::is_last_apart;
use crate::table::{DeviceIdle, RankTime, Recorded};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use trace_merge::collective::CollectiveCounts;
use trace_store::sorter::Sorted;

/// The context of the collectives.
struct RankContext<'a> {
    counts: &'a CollectiveCounts,
    /// Knows what the clocks of two devices may be off.
    recorded: &'a Recorded,
}

/// Returns how the devices came to collectives. Leaves out groups that the devices of an engine have in different numbers, because it is unknown which belong
/// together.
pub(crate) fn rank_times(
    collectives: &Sorted<CollectiveRecord>,
    counts: &CollectiveCounts,
    devices: &[DeviceIdle],
    recorded: &Recorded,
) -> Vec<RankTime> {
    let context = RankContext { counts, recorded };
    let rank = |device: &DeviceIdle| RankTime {
        process: device.process,
        engine: device.engine,
        uncertainty_ns: Some(0),
        ..RankTime::default()
    };
    let devices = devices.iter();
    let mut ranks: BTreeMap<usize, RankTime> = devices
        .map(|device| (device.process, rank(device)))
        .collect();
    for group in collectives.chunk_by(|one, next| one.key == next.key) {
        context.take(group, &mut ranks);
    }
    let ranks = ranks.into_values();
    ranks.filter(|rank| rank.collectives > 0).collect()
}

impl RankContext<'_> {
    /// Takes one collective of all engines.
    fn take(&self, group: &[CollectiveRecord], ranks: &mut BTreeMap<usize, RankTime>) {
        let mut of_engines: BTreeMap<Option<usize>, Vec<&CollectiveRecord>> = BTreeMap::new();
        for record in group {
            if let Some(rank) = ranks.get(&(record.device as usize)) {
                of_engines.entry(rank.engine).or_default().push(record);
            }
        }
        for mut records in of_engines.into_values() {
            let count = |of: &CollectiveRecord| self.counts.count(of.key.group, of.device);
            let is_paired = records.iter().all(|of| count(of) == count(records[0]));
            if records.len() < 2 || !is_paired {
                continue;
            }
            records.sort_by_key(|record| record.start_ns);
            self.take_paired(&records, ranks);
        }
    }

    /// Takes one collective of an engine; its records are in the order of their starts.
    fn take_paired(&self, records: &[&CollectiveRecord], ranks: &mut BTreeMap<usize, RankTime>) {
        let [others @ .., last] = records else {
            return;
        };
        let before = others.last().unwrap_or(last);
        // A difference that is smaller may be nothing but the clocks'.
        let is_sure = |record: &&CollectiveRecord| {
            last.start_ns.saturating_sub(record.start_ns) > self.uncertainty_ns(record, last)
        };
        let is_last_known = others.iter().all(is_sure);
        let is_close =
            |record: &&CollectiveRecord| self.uncertainty_ns(record, last) > 0 && !is_sure(record);
        let is_undecided = others.iter().any(is_close);
        let starts: Vec<i64> = records.iter().map(|record| record.start_ns).collect();
        let is_outlier = is_last_known && is_last_apart(&starts);
        let farthest = self.least_certain(records);
        for record in records {
            let uncertain_ns = farthest.iter().map(|of| self.uncertainty_ns(record, of));
            let Some(rank) = ranks.get_mut(&(record.device as usize)) else {
                continue;
            };
            rank.collectives += 1;
            rank.undecided += u64::from(is_undecided);
            rank.uncertainty_ns = greatest(rank.uncertainty_ns, uncertain_ns.max().unwrap_or(0));
            if is_sure(record) {
                let waited_ns = waited_ns(record, last);
                rank.waited_ns = rank.waited_ns.saturating_add(waited_ns);
            }
            if record.device == last.device && is_last_known {
                rank.last += 1;
                rank.outlier += u64::from(is_outlier);
                rank.late_ns = rank.late_ns.saturating_add(waited_ns(before, last));
            }
        }
    }

    /// Returns devices of the two clocks that are the least certain.
    fn least_certain<'a>(&self, records: &[&'a CollectiveRecord]) -> Vec<&'a CollectiveRecord> {
        let process = |of: &CollectiveRecord| self.recorded.processes.get(of.device as usize);
        let clock = |of: &CollectiveRecord| process(of).and_then(|process| process.clock);
        let clocks = records.iter().map(|record| (clock(record), *record));
        let clocks: BTreeMap<Option<usize>, &CollectiveRecord> = clocks.collect();
        let mut of_clocks: Vec<&CollectiveRecord> = clocks.into_values().collect();
        let certainty = |of: &&CollectiveRecord| {
            Reverse(process(of).map(|process| process.clock_uncertainty_ns.unwrap_or(u64::MAX)))
        };
        of_clocks.sort_by_key(certainty);
        of_clocks.truncate(2);
        of_clocks
    }

    fn uncertainty_ns(&self, one: &CollectiveRecord, other: &CollectiveRecord) -> i64 {
        self.recorded
            .uncertainty_ns(one.device as usize, other.device as usize)
    }
}

/// Returns how long one rank waited for another in a collective, at most the duration of its own part.
fn waited_ns(record: &CollectiveRecord, last: &CollectiveRecord) -> i64 {
    let later_ns = last.start_ns.saturating_sub(record.start_ns);
    later_ns.min(record.end_ns.saturating_sub(record.start_ns))
}

/// The greater of two uncertainties; `None` and `i64::MAX` are any time.
fn greatest(one: Option<u64>, other_ns: i64) -> Option<u64> {
    match other_ns {
        i64::MAX => None,
        ns => one.map(|one| one.max(ns.unsigned_abs())),
    }
}
