//! Finds the tracks of devices in each recording, and numbers the ranks that they belong to.

use crate::device::category::{CategoryUse, category_use};
use crate::device::group::is_of_mspti;
use crate::device::label::DeviceLabel;
use crate::event::collective::Collective;
use crate::event::json::scan_object;
use crate::event::line::Event;
use crate::fragment::recording::Recording;
use crate::summary::chunk_summary::ChunkSummary;
use sa_format::Phase;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Tracks of devices.
#[derive(Debug, Default)]
pub(super) struct DeviceTracks {
    /// Rank of each track, for each recording.
    ranks: Vec<HashMap<(i64, i64), u32>>,
    /// For each rank, its number in the distributed program if its trace declares it, and the
    /// number of that trace.
    declared: Vec<Option<(u64, usize)>>,
    /// Processes that are labelled as devices, by recording.
    labelled: HashSet<(usize, i64)>,
    /// True for recordings of other profilers.
    foreign: Vec<bool>,
}

impl DeviceTracks {
    /// Finds the tracks in recordings that have a boot: our own device tracks, and all tracks of
    /// other profilers, whose categories are checked later. Tracks of MSPTI are skipped, because
    /// their clock is not ours.
    pub(super) fn new(
        recordings: &[Recording],
        summaries: &[ChunkSummary],
        boots: &[Option<u32>],
    ) -> DeviceTracks {
        let mut tracks = DeviceTracks::default();
        // Pieces of one trace share their ranks.
        let mut ranks: HashMap<(Option<usize>, usize, i64, &str), u32> = HashMap::new();
        for (number, (recording, summary)) in recordings.iter().zip(summaries).enumerate() {
            let is_foreign = recording.foreign.is_some();
            let trace = recording.foreign.as_ref().map(|foreign| foreign.number);
            let scope = (trace, if is_foreign { 0 } else { number });
            let foreign = recording.foreign.as_ref();
            let declared = foreign.and_then(|foreign| Some((foreign.rank?, foreign.number)));
            let mut recording_ranks = HashMap::new();
            for &(pid, tid) in summary.threads.keys().filter(|_| boots[number].is_some()) {
                let device = match summary.tracks.get(&(pid, tid)) {
                    Some(track) if is_of_mspti(&track.thread) => continue,
                    Some(track) => track.process.as_str(),
                    None if summary
                        .thread_names
                        .get(&(pid, tid))
                        .is_some_and(|name| is_of_mspti(name)) =>
                    {
                        continue;
                    }
                    None if is_foreign => "",
                    None => continue,
                };
                let rank = *ranks
                    .entry((scope.0, scope.1, pid, device))
                    .or_insert_with(|| {
                        tracks.declared.push(declared);
                        u32::try_from(tracks.declared.len() - 1).unwrap_or(u32::MAX)
                    });
                recording_ranks.insert((pid, tid), rank);
            }
            let labels = summary.hints.labels.iter();
            let labelled = labels.filter(|(_, labels)| DeviceLabel::in_labels(labels).is_some());
            tracks
                .labelled
                .extend(labelled.map(|(pid, _)| (number, *pid)));
            tracks.ranks.push(recording_ranks);
            tracks.foreign.push(is_foreign);
        }
        tracks
    }

    /// Returns true if a recording has device tracks.
    pub(super) fn has_tracks(&self, recording: usize) -> bool {
        !self.ranks[recording].is_empty()
    }

    /// Returns true if traces of two of these ranks declare the same rank of the distributed
    /// program. Then they belong to different runs.
    pub(super) fn share_declared_rank(&self, ranks: impl Iterator<Item = u32>) -> bool {
        let mut traces = HashMap::new();
        let mut declared = ranks.filter_map(|rank| *self.declared.get(rank as usize)?);
        declared.any(|(rank, trace)| *traces.entry(rank).or_insert(trace) != trace)
    }

    /// Returns the rank and the collective of an event, if it is a slice of a collective that all
    /// ranks end together.
    pub(super) fn collective(
        &self,
        recording: usize,
        event: &Event<'_>,
    ) -> Option<(u32, Collective)> {
        if event.phase != Phase::Complete {
            return None;
        }
        let rank = *self.ranks[recording].get(&(event.pid, event.tid))?;
        let fields = scan_object(event.line)?;
        if self.foreign[recording] {
            let category = text(fields.cat.slice(event.line));
            let is_work = match category_use(&category) {
                Some(CategoryUse::Work) => true,
                Some(CategoryUse::WorkOnDevice) | None => {
                    self.labelled.contains(&(recording, event.pid))
                }
                Some(_) => false,
            };
            if !is_work {
                return None;
            }
        }
        let name = text(fields.name.slice(event.line));
        let collective = Collective::from_event(&name, fields.args.slice(event.line))?;
        collective
            .kind
            .ends_together()
            .then_some((rank, collective))
    }
}

/// Returns the text of a JSON string.
fn text(value: &[u8]) -> Cow<'_, str> {
    match memchr::memchr(b'\\', value) {
        None => String::from_utf8_lossy(crate::base::number::unquoted(value)),
        Some(_) => serde_json::from_slice::<String>(value)
            .unwrap_or_default()
            .into(),
    }
}
