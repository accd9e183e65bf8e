//! The current names of the process, its threads, lanes and tracks. Every segment begins with them.

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use crate::ring::file::Ring;
use crate::ring::lanes::{LaneName, NumberRoom};
use crate::sys::clock::now_ns;
use crate::sys::memory::reserve;
use crate::sys::wait;
use crate::text::record::{process_name_line, thread_name_line, track_line};
use sa_format::{LANE_BASE, TRACK_BASE, TrackRecord};

/// Maximum time in ns to wait for a thread that is looking up a name or track.
const LOCK_WAIT_NS: u64 = 1_000_000;
/// Maximum number of tracks of a process.
const MAX_TRACKS: usize = 1 << 16;

/// The names of a process, its lanes and its tracks. The names of its threads are in their slots.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) process: Mutex<String>,
    /// Name of the process that forked this one, as in the header.
    pub(crate) forked_from: Option<String>,
    pub(crate) lanes: LaneNames,
    pub(crate) tracks: Tracks,
    /// Line with the settings of the engine, or an empty line.
    pub(crate) engine_settings: Mutex<Vec<u8>>,
}

impl Names {
    /// Returns metadata lines with the current names of the process and its threads, lanes and
    /// tracks. Waits for no other thread: one that is changing a name is about to record it.
    pub(crate) fn lines(&self, pid: u32, ring: &Ring) -> Vec<u8> {
        let name = wait::try_lock(&self.process).map(|name| name.clone());
        let mut lines = name.map_or_else(Vec::new, |name| process_name_line(pid, &name));
        lines.extend(self.lanes.lines(pid));
        lines.extend(self.tracks.lines(pid));
        let settings = wait::try_lock(&self.engine_settings);
        lines.extend(settings.iter().flat_map(|line| line.iter()));
        // The kernel may reuse the tid of an ended thread, so the names of live threads come last.
        for ended in [true, false] {
            lines.extend(thread_names(pid, ring, ended));
        }
        lines
    }
}

/// Returns metadata lines with the names of live threads that have ring slots. If `ended` is true,
/// returns instead the names of ended threads that left lines in their slots.
fn thread_names(pid: u32, ring: &Ring, ended: bool) -> Vec<u8> {
    let mut lines = Vec::new();
    for slot in ring.slots() {
        let has_ended = slot.tid().load(Ordering::Relaxed) == 0;
        if has_ended != ended || has_ended && slot.is_empty() {
            continue;
        }
        if let Some(name) = wait::try_lock(&slot.thread_name).filter(|name| name.tid != 0) {
            lines.extend(thread_name_line(pid, name.tid, &name.name));
        }
    }
    lines
}

/// Latest name of each lane, readable without waiting for the lock on the lanes.
#[derive(Debug, Default)]
pub(crate) struct LaneNames(Mutex<Vec<Option<LaneName>>>);

impl LaneNames {
    /// Stores the name of a lane (a virtual thread, on which async spans are shown), to be repeated
    /// at the beginning of each segment.
    pub(crate) fn set(&self, lane: u32, name: &LaneName) {
        let Some(mut names) = wait::lock(&self.0) else {
            return;
        };
        let at = lane as usize;
        let len = names.len().max(at + 1);
        let missing = len - names.len();
        if reserve(&mut names, missing) {
            names.resize(len, None);
            names[at] = Some(name.clone());
        }
    }

    /// Returns the metadata lines that name the lanes, or nothing if another thread keeps the lock.
    fn lines(&self, pid: u32) -> Vec<u8> {
        let lock = wait::lock_until(&self.0, now_ns() + LOCK_WAIT_NS);
        let names = lock.iter().flat_map(|names| names.iter());
        let line = |(lane, name): (u32, &Option<LaneName>)| {
            Some(lane_name_line(pid, lane, name.as_ref()?))
        };
        (0..).zip(names).filter_map(line).flatten().collect()
    }
}

/// Returns the metadata line that names a lane (a virtual thread, on which async spans are shown).
pub(crate) fn lane_name_line(pid: u32, lane: u32, name: &LaneName) -> Vec<u8> {
    let mut room = NumberRoom::default();
    thread_name_line(pid, LANE_BASE + lane, name.text(lane, &mut room))
}

/// The tracks of a process, ordered by tid. A track shows events that do not belong to one of the
/// process's threads.
#[derive(Debug, Default)]
pub(crate) struct Tracks(Mutex<Vec<TrackRecord>>);

impl Tracks {
    /// Returns the tid under which a track is shown. If the track is new, assigns the next tid and
    /// also returns the metadata line that declares the track. Returns `None` if there are too many
    /// tracks.
    pub(crate) fn number(&self, pid: u32, record: TrackRecord) -> Option<(u32, Option<Vec<u8>>)> {
        let mut tracks = wait::lock(&self.0)?;
        let at = tracks.iter().position(|one| *one == record);
        let (at, new) = (at.unwrap_or(tracks.len()), at.is_none());
        if at >= MAX_TRACKS {
            return None;
        }
        if new {
            if !reserve(&mut tracks, 1) {
                return None;
            }
            tracks.push(record);
        }
        let tid = TRACK_BASE + u32::try_from(at).ok()?;
        let line = tracks.get(at).filter(|_| new);
        Some((tid, line.map(|record| track_line(pid, tid, record))))
    }

    /// Returns the metadata lines that declare all tracks. Waits at most 1 ms for a thread that is
    /// looking up a track, which takes only a moment.
    pub(crate) fn lines(&self, pid: u32) -> Vec<u8> {
        let lock = wait::lock_until(&self.0, now_ns() + LOCK_WAIT_NS);
        let tracks = lock.iter().flat_map(|tracks| tracks.iter());
        let lines = |(record, tid)| track_line(pid, tid, record);
        tracks.zip(TRACK_BASE..).flat_map(lines).collect()
    }
}
