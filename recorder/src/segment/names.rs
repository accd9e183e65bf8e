//! The names in force: of the process, its threads, lanes and tracks. Every segment begins with them.

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use crate::ring::file::Ring;
use crate::ring::lanes::{LaneName, Named};
use crate::segment::tracks::Tracks;
use crate::sys::wait;
use crate::text::record::{process_name_line, thread_name_line};
use sa_format::LANE_BASE;

/// The names of a process, its lanes and its tracks; those of its threads are in their slots.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) process: Mutex<String>,
    /// Name of the process that forked this one, as the header has it.
    pub(crate) forked_from: Option<String>,
    pub(crate) lanes: Named,
    pub(crate) tracks: Tracks,
}

impl Names {
    /// The names in force, as lines. Nobody is waited for: who is changing a name is about to record it.
    pub(crate) fn lines(&self, pid: u32, ring: &Ring) -> Vec<u8> {
        let name = wait::try_lock(&self.process).map(|name| name.clone());
        let mut lines = name
            .filter(|name| !name.is_empty())
            .map_or_else(Vec::new, |name| process_name_line(pid, &name));
        self.lanes
            .each(|lane, name| lines.extend(lane_name_line(pid, lane, name)));
        lines.extend(self.tracks.lines(pid));
        // The kernel gives the tid of an ended thread to another one: that one's name comes after it.
        for ended in [true, false] {
            lines.extend(thread_names(pid, ring, ended));
        }
        lines
    }
}

/// The names of the threads that have slots, or of those that have ended and left lines there that are not in the fragment yet.
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

/// The metadata line that names a lane.
pub(crate) fn lane_name_line(pid: u32, lane: u32, name: &LaneName) -> Vec<u8> {
    thread_name_line(pid, LANE_BASE + lane, &name.text(lane))
}
