//! A log's processes and those that were recorded: the same where the pid is, and both clocks were as far apart.

use super::clock::{TimeOrigin, anchor};
use super::strace::StraceLog;
use crate::fragment::recording::Recording;
use sa_format::FragmentHeader;
use std::collections::BTreeMap;

/// Two boots whose monotonic clocks began at the same wall time, to this much, are one. Setting the clock may be later than the anchor.
const SAME_BOOT_NS: i64 = 1_000_000_000;

/// The recorded processes of a log's pids, and what its times count from.
pub(super) fn join(
    log: &StraceLog,
    recordings: &[Recording],
) -> (BTreeMap<i64, FragmentHeader>, TimeOrigin) {
    let mut joined: BTreeMap<i64, FragmentHeader> = BTreeMap::new();
    let Some(wall_ns) = wall_ns(log) else {
        let why = match log.walls_ns.is_empty() {
            true => "no [CLOCK_ANCHOR]",
            false => "[CLOCK_ANCHOR]s of several boots",
        };
        return (joined, TimeOrigin::Unknown(why.to_owned()));
    };
    for recording in recordings {
        let Some(header) = same(recording, log, wall_ns) else {
            continue;
        };
        joined
            .entry(i64::from(header.pid))
            .or_insert_with(|| header.clone());
    }
    let origin = match joined.values().next() {
        Some(header) => TimeOrigin::Host(Box::new(header.clone())),
        None => TimeOrigin::Wall(wall_ns, "[CLOCK_ANCHOR]"),
    };
    (joined, origin)
}

/// What the wall clock showed at the monotonic clock's 0; `None` if the log's processes do not agree.
fn wall_ns(log: &StraceLog) -> Option<i64> {
    let (least, most) = (log.walls_ns.values().min()?, log.walls_ns.values().max()?);
    (most.checked_sub(*least)? < SAME_BOOT_NS).then_some(*least)
}

/// The header of a recording of one of the log's processes.
fn same<'a>(recording: &'a Recording, log: &StraceLog, wall_ns: i64) -> Option<&'a FragmentHeader> {
    let header = recording.header()?;
    let anchor = anchor(recording)?;
    let [real_ns, monotonic_ns] =
        [anchor.realtime_ns, anchor.monotonic_ns].map(|ns| i64::try_from(ns).ok());
    let of_recording = real_ns?.checked_sub(monotonic_ns?)?;
    let apart = of_recording.checked_sub(wall_ns)?.unsigned_abs();
    let is_same = apart < SAME_BOOT_NS.unsigned_abs();
    (is_same && log.pids.contains(&i64::from(header.pid))).then_some(header)
}
