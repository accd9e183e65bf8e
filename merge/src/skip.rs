//! Which segments of bounded recordings a window cannot reach: they are not read.

use crate::fragment::Fragment;
use crate::recording::Recording;
use memchr::memchr_iter;
use sa_recorder::format::{ANCHOR_RECORD, Anchor, BLOCK_START, Metadata};
use std::collections::BTreeMap;
use std::time::Duration;

/// Recordings whose clocks are one.
type Boot = (String, String);

/// Drops the segments that were full before the window of the last `last` can have begun, and gives their number. A segment ends when the next one
/// begins, and the newest event comes after the begin of the newest segment.
pub(crate) fn skip(recordings: &mut [Recording], last: Duration) -> u64 {
    let last_ns = i64::try_from(last.as_nanos()).unwrap_or(i64::MAX);
    let begins: Vec<Vec<Option<i64>>> = recordings
        .iter()
        .map(|recording| recording.fragments.iter().map(began_ns).collect())
        .collect();
    let mut newest: BTreeMap<Boot, i64> = BTreeMap::new();
    for (recording, begins) in recordings.iter().zip(&begins) {
        if let (Some(boot), Some(begin)) = (boot(recording), begins.iter().flatten().max()) {
            let newest = newest.entry(boot).or_insert(*begin);
            *newest = (*newest).max(*begin);
        }
    }
    let mut skipped = 0;
    for (recording, begins) in recordings.iter_mut().zip(&begins) {
        let Some(newest) = boot(recording).and_then(|boot| newest.get(&boot)) else {
            continue;
        };
        let edge_ns = newest.saturating_sub(last_ns);
        let is_before = |begin: &Option<i64>| begin.is_some_and(|begin| begin < edge_ns);
        let count = begins.iter().rposition(is_before).unwrap_or(0);
        recording.fragments.drain(..count);
        recording.skipped = count as u64;
        skipped += recording.skipped;
    }
    skipped
}

fn boot(recording: &Recording) -> Option<Boot> {
    let header = recording.header()?;
    Some((header.host.clone(), header.boot_id.clone()))
}

/// When a segment was begun, by the clock of its host: the anchor among its first lines says so.
fn began_ns(fragment: &Fragment) -> Option<i64> {
    let header = fragment.header.as_ref()?;
    let bytes = fragment.content.bytes();
    let mut start = 0;
    for newline in memchr_iter(b'\n', bytes) {
        let line = &bytes[start..newline];
        if line.starts_with(BLOCK_START) {
            return None;
        }
        let anchor = serde_json::from_slice::<Metadata<Anchor>>(line).ok();
        if let Some(anchor) = anchor.filter(|anchor| anchor.name == ANCHOR_RECORD) {
            let ns = i64::try_from(anchor.args.monotonic_ns).ok()?;
            return ns.checked_sub(header.monotonic_offset_ns);
        }
        start = newline + 1;
    }
    None
}
