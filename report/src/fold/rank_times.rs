//! Finds the rank that joined each collective last.

use crate::gather::device_slice::CollectiveRecord;
use crate::statistics::is_last_apart;
use crate::table::{DeviceIdle, RankTime, Recorded};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use trace_merge::collective::CollectiveCounts;
use trace_store::sorter::Sorted;

/// Context of the collectives.
struct RankContext<'a> {
    counts: &'a CollectiveCounts,
    /// Source of the clock uncertainties between devices.
    recorded: &'a Recorded,
}

/// Returns when the devices joined collectives, relative to each other. A group is left out if the devices of an engine
/// have different numbers of its collectives, because it is then unknown which ones belong together.
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
        context.add(group, &mut ranks);
    }
    let ranks = ranks.into_values();
    ranks.filter(|rank| rank.collectives > 0).collect()
}

impl RankContext<'_> {
    /// Adds one collective of all engines.
    fn add(&self, group: &[CollectiveRecord], ranks: &mut BTreeMap<usize, RankTime>) {
        let mut by_engine: BTreeMap<Option<usize>, Vec<&CollectiveRecord>> = BTreeMap::new();
        for record in group {
            if let Some(rank) = ranks.get(&(record.device as usize)) {
                by_engine.entry(rank.engine).or_default().push(record);
            }
        }
        for mut records in by_engine.into_values() {
            let count =
                |record: &CollectiveRecord| self.counts.count(record.key.group, record.device);
            let is_paired = records
                .iter()
                .all(|record| count(record) == count(records[0]));
            if records.len() < 2 || !is_paired {
                continue;
            }
            records.sort_by_key(|record| record.start_ns);
            self.add_paired(&records, ranks);
        }
    }

    /// Adds one collective of an engine. The records must be ordered by their starts.
    fn add_paired(&self, records: &[&CollectiveRecord], ranks: &mut BTreeMap<usize, RankTime>) {
        let [others @ .., last] = records else {
            return;
        };
        let before = others.last().unwrap_or(last);
        // A smaller difference may only be an error of the clocks.
        let is_sure = |record: &&CollectiveRecord| {
            last.start_ns.saturating_sub(record.start_ns) > self.uncertainty_ns(record, last)
        };
        let is_last_known = others.iter().all(is_sure);
        let is_close =
            |record: &&CollectiveRecord| self.uncertainty_ns(record, last) > 0 && !is_sure(record);
        let is_undecided = others.iter().any(is_close);
        let starts: Vec<i64> = records.iter().map(|record| record.start_ns).collect();
        let is_outlier = is_last_known && is_last_apart(&starts);
        let uncertain = self.least_certain(records);
        for record in records {
            let uncertain_ns = uncertain
                .iter()
                .map(|other| self.uncertainty_ns(record, other));
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

    /// Returns one record for each of the two least certain clocks.
    fn least_certain<'a>(&self, records: &[&'a CollectiveRecord]) -> Vec<&'a CollectiveRecord> {
        let process =
            |record: &CollectiveRecord| self.recorded.processes.get(record.device as usize);
        let clock = |record: &CollectiveRecord| process(record).and_then(|process| process.clock);
        let clocks = records.iter().map(|record| (clock(record), *record));
        let clocks: BTreeMap<Option<usize>, &CollectiveRecord> = clocks.collect();
        let mut by_certainty: Vec<&CollectiveRecord> = clocks.into_values().collect();
        let certainty = |record: &&CollectiveRecord| {
            Reverse(process(record).map(|process| process.clock_uncertainty_ns.unwrap_or(u64::MAX)))
        };
        by_certainty.sort_by_key(certainty);
        by_certainty.truncate(2);
        by_certainty
    }

    fn uncertainty_ns(&self, one: &CollectiveRecord, other: &CollectiveRecord) -> i64 {
        self.recorded
            .uncertainty_ns(one.device as usize, other.device as usize)
    }
}

/// Returns how long one rank waited for another in a collective, limited to the duration of its own part.
fn waited_ns(record: &CollectiveRecord, last: &CollectiveRecord) -> i64 {
    let later_ns = last.start_ns.saturating_sub(record.start_ns);
    later_ns.min(record.end_ns.saturating_sub(record.start_ns))
}

/// Returns the greater of two uncertainties. `None` and `i64::MAX` mean that the clocks may differ by any amount.
fn greatest(one: Option<u64>, other_ns: i64) -> Option<u64> {
    match other_ns {
        i64::MAX => None,
        ns => one.map(|one| one.max(ns.unsigned_abs())),
    }
}
