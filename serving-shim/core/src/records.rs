//! MSPTI's records of a device in the trace: a track for each stream, next to the tracks of the launches.
//!
//! The times of a record come from MSPTI, which converts the device's counter to the wall clock with one reading that it renews every 7 s. The vendor states
//! no bound for the error of that reading, so these tracks have none, and this module does not assign records to launches.

use crate::description::Kind;
use crate::mspti::Record;
use crate::tally::{Fate, Tally};
use crate::track::DeviceGroup;
use sa_recorder::{Args, Level, Track, host};
use std::collections::BTreeMap;

/// Name of the source of these tracks' times in the trace.
const METHOD: &str = "mspti";
/// Uncertainty of these tracks' times in the trace.
const UNCERTAINTY: &str = "unbounded";

/// The tracks of a device for MSPTI's records, by stream.
#[derive(Debug, Default)]
pub(crate) struct RecordTracks(BTreeMap<u32, Option<Track>>);

impl RecordTracks {
    /// Writes MSPTI's records of the device `group` into the trace, each as a slice on the track of its stream. Counts them in `tally`.
    pub(crate) fn write(&mut self, group: &DeviceGroup, mut records: Vec<Record>, tally: &Tally) {
        if records.is_empty() {
            return;
        }
        records.sort_by_key(|record| record.start_ns);
        let anchor = host::anchor();
        let ahead_ns = anchor.realtime_ns.cast_signed() - anchor.monotonic_ns.cast_signed();
        for record in &records {
            let Some(start_ns) = on_host(record, ahead_ns) else {
                tally.count(Fate::Unreadable);
                continue;
            };
            if !sa_recorder::__wants_since(Level::Kernel, start_ns) {
                continue; // it began while the level was off, so it is not recorded, like other events
            }
            let Some(track) = self.track(group, record.stream, start_ns) else {
                tally.count(Fate::NoRoom);
                continue;
            };
            write(track, record, start_ns);
            tally.count(Fate::Placed);
        }
    }

    /// Returns the track for MSPTI's records of a stream, for one that begins at `start_ns`. A new track begins with an instant that states the uncertainty of
    /// its times.
    fn track(&mut self, group: &DeviceGroup, stream: u32, start_ns: u64) -> Option<Track> {
        let slot = self.0.entry(stream).or_default();
        let is_new = !slot.is_some_and(Track::is_live);
        let track = group.live_track(slot, || format!("Stream {stream} (MSPTI)"))?;
        // The slice is recorded completely, even if the level was switched off in the meantime.
        let track = track.since(start_ns);
        if is_new {
            let args = Args::new()
                .with("read_by", METHOD)
                .with("uncertainty", UNCERTAINTY);
            track.instant(Level::Kernel, "device", "MSPTI clock", start_ns, &args);
        }
        Some(track)
    }
}

/// Converts the start of an MSPTI record, which is a wall-clock time, to the clock of [`sa_recorder::now_ns`]. The wall clock is `ahead_ns` ahead of it.
/// Returns `None` for a time before the host's boot.
fn on_host(record: &Record, ahead_ns: i64) -> Option<u64> {
    u64::try_from(record.start_ns.checked_sub(ahead_ns)?).ok()
}

fn write(track: Track, record: &Record, start_ns: u64) {
    let args = Args::new()
        .with("correlation", record.correlation)
        .with("stream", record.stream)
        .with("device_method", METHOD);
    let (kind, args) = match &record.comm {
        None => (Kind::Kernel, args),
        Some(comm) => (Kind::Collective, args.with("comm", &**comm)),
    };
    let dur_ns = record.end_ns.abs_diff(record.start_ns);
    let (level, category) = (Level::Kernel, kind.category());
    track.duration(level, category, &record.name, start_ns, dur_ns, &args);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_from_before_the_hosts_boot_has_no_place() {
        let at = |start_ns: i64| Record {
            device: 0,
            stream: 1,
            start_ns,
            end_ns: start_ns,
            correlation: 3,
            name: "add".into(),
            comm: None,
        };
        for (start_ns, placed) in [
            (1_000, Some(400)),
            (600, Some(0)),
            (599, None),
            (i64::MIN, None),
        ] {
            assert_eq!(on_host(&at(start_ns), 600), placed, "{start_ns}");
        }
    }
}
