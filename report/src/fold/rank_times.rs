//! Collectives → which rank came last to them.

use crate::gather::collective_record::CollectiveRecord;
use crate::statistics::is_last_apart;
use crate::table::device_idle::DeviceIdle;
use crate::table::rank_time::RankTime;
use std::collections::BTreeMap;
use std::io;
use trace_store::sorter::Sorted;

/// How many collectives of each name each device has.
pub(crate) type CollectiveCounts = BTreeMap<(u64, u32), u32>;

/// How the devices came to collectives. Names that the devices of an engine have in different numbers are left out: nobody can tell which belong together.
pub(crate) fn rank_times(
    collectives: &Sorted<CollectiveRecord>,
    counts: &CollectiveCounts,
    devices: &[DeviceIdle],
) -> io::Result<Vec<RankTime>> {
    let mut ranks: BTreeMap<usize, RankTime> = BTreeMap::new();
    for device in devices {
        ranks.insert(
            device.process,
            RankTime {
                process: device.process,
                engine: device.engine,
                collectives: 0,
                last: 0,
                outlier: 0,
                late_ns: 0,
                waited_ns: 0,
            },
        );
    }
    let mut group: Vec<CollectiveRecord> = Vec::new();
    collectives.each(|record| {
        let is_new = |last: &CollectiveRecord| (last.name, last.nth) != (record.name, record.nth);
        if group.last().is_some_and(is_new) {
            take(&group, counts, &mut ranks);
            group.clear();
        }
        group.push(record);
        Ok(())
    })?;
    take(&group, counts, &mut ranks);
    Ok(ranks
        .into_values()
        .filter(|rank| rank.collectives > 0)
        .collect())
}

/// Takes one collective of all engines.
fn take(
    group: &[CollectiveRecord],
    counts: &CollectiveCounts,
    ranks: &mut BTreeMap<usize, RankTime>,
) {
    let mut of_engines: BTreeMap<Option<usize>, Vec<&CollectiveRecord>> = BTreeMap::new();
    for record in group {
        if let Some(rank) = ranks.get(&(record.device as usize)) {
            of_engines.entry(rank.engine).or_default().push(record);
        }
    }
    for mut records in of_engines.into_values() {
        let count = |record: &&CollectiveRecord| counts.get(&(record.name, record.device));
        let is_paired = records
            .iter()
            .all(|record| count(record) == count(&records[0]));
        if records.len() < 2 || !is_paired {
            continue;
        }
        records.sort_by_key(|record| record.start_ns);
        let [.., before, last] = records.as_slice() else {
            continue;
        };
        let late_ns = last.start_ns.saturating_sub(before.start_ns);
        let starts: Vec<i64> = records.iter().map(|record| record.start_ns).collect();
        let is_outlier = is_last_apart(&starts);
        for record in &records {
            if let Some(rank) = ranks.get_mut(&(record.device as usize)) {
                rank.collectives += 1;
                let waited_ns = last.start_ns.saturating_sub(record.start_ns);
                rank.waited_ns = rank.waited_ns.saturating_add(waited_ns);
                if record.device == last.device && late_ns > 0 {
                    rank.last += 1;
                    rank.outlier += u64::from(is_outlier);
                    rank.late_ns = rank.late_ns.saturating_add(late_ns);
                }
            }
        }
    }
}
