//! The threads whose spans may overlap, so that they are read again.

use crate::event::patch::Target;
use crate::identity::plan::Plan;
use crate::pass::history::Histories;
use crate::summary::chunk_summary::ChunkSummary;
use crate::summary::thread::RecordedThread;
use std::collections::BTreeMap;

/// A row of the trace on which spans may overlap, with the threads that are shown on it.
pub(crate) struct LaneCandidate {
    pub(crate) target: Target,
    pub(crate) places: Vec<RecordedThread>,
}

impl LaneCandidate {
    fn new(target: &Target) -> LaneCandidate {
        LaneCandidate {
            target: target.clone(),
            places: Vec::new(),
        }
    }
}

/// Returns the rows on which spans may overlap, in a fixed order.
pub(crate) fn suspects(
    summaries: &[ChunkSummary],
    histories: Histories,
    plan: &Plan,
    shifts_ns: &[i64],
) -> Vec<LaneCandidate> {
    let overlaps = histories.into_overlaps();
    if overlaps.is_empty() {
        return Vec::new(); // lines as they stand, or nothing that lasts
    }
    let mut rows: BTreeMap<(&[u8], &[u8]), LaneCandidate> = BTreeMap::new();
    for (recording, targets) in plan.targets.iter().enumerate() {
        for (thread, target) in targets {
            let row = rows.entry((&target.pid, &target.tid));
            let row = row.or_insert_with(|| LaneCandidate::new(target));
            row.places.push((recording, *thread));
        }
    }
    let is_one = |row: &LaneCandidate| {
        let has_spans = |place: &&RecordedThread| overlaps.contains_key(*place);
        let with_spans: Vec<&RecordedThread> = row.places.iter().filter(has_spans).collect();
        with_spans.iter().any(|place| overlaps[*place]) || meet(&with_spans, summaries, shifts_ns)
    };
    rows.into_values().filter(is_one).collect()
}

/// Whether some of the threads that are shown on one row have events at the same time: whatever they are, for it is rare, and what an
/// unfinished span reaches is known of no range.
fn meet(places: &[&RecordedThread], summaries: &[ChunkSummary], shifts_ns: &[i64]) -> bool {
    let range = |place: &&RecordedThread| {
        let activity = summaries[place.0].threads.get(&place.1)?;
        let activity = activity.shifted(shifts_ns[place.0]);
        Some((activity.first_ns, activity.last_ns))
    };
    let mut ranges: Vec<(i64, i64)> = places.iter().filter_map(range).collect();
    ranges.sort_unstable();
    ranges.windows(2).any(|two| two[0].1 >= two[1].0)
}
