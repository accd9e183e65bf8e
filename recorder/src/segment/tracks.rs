//! The tracks of a process: rows of the trace for what happens on no thread of it.

use std::sync::Mutex;

use crate::sys::clock::now_ns;
use crate::sys::memory::reserve;
use crate::sys::wait;
use crate::text::record::track_line;
use sa_format::{TRACK_BASE, TrackRecord};

/// How long a lookup may take that is in the way.
const MOMENT_NS: u64 = 1_000_000;
/// Most tracks of a process.
const MAX_TRACKS: usize = 1 << 16;

/// The tracks of a process, in the order of their tids.
#[derive(Debug, Default)]
pub(crate) struct Tracks(Mutex<Vec<TrackRecord>>);

impl Tracks {
    /// The tid of a track, and its line where that is new; `None` when there are too many.
    pub(crate) fn number(&self, pid: u32, record: TrackRecord) -> Option<(u32, Option<Vec<u8>>)> {
        let mut known = wait::lock(&self.0)?;
        let at = known.iter().position(|one| *one == record);
        let (at, new) = (at.unwrap_or(known.len()), at.is_none());
        if at >= MAX_TRACKS {
            return None;
        }
        if new {
            if !reserve(&mut known, 1) {
                return None;
            }
            known.push(record);
        }
        let tid = TRACK_BASE + u32::try_from(at).ok()?;
        let line = known.get(at).filter(|_| new);
        Some((tid, line.map(|record| track_line(pid, tid, record))))
    }

    /// The records of all tracks, as lines. Who looks a track up has the lock for a moment.
    pub(crate) fn lines(&self, pid: u32) -> Vec<u8> {
        let known = wait::lock_until(&self.0, now_ns() + MOMENT_NS);
        let known = known.iter().flat_map(|known| known.iter());
        known
            .zip(TRACK_BASE..)
            .flat_map(|(record, tid)| track_line(pid, tid, record))
            .collect()
    }
}
