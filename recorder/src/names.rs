//! The names in force: of the process, its threads, lanes and tracks.

use std::io::Write;
use std::sync::atomic::Ordering;

use crate::format::{LANE_BASE, try_visible};
use crate::lanes::{LaneName, NumberRoom};
use crate::preamble::{Growing, Name, metadata_line, metadata_line_of};
use crate::process::Process;
use crate::sys::memory::{leave_out, look_for_room, owned};
use crate::value::Args;
use crate::wait;

/// A longer record of the program's own is not told: the process's own slot holds names and losses.
const MAX_METADATA_BYTES: usize = 16 << 10;
/// Longest name of a process or thread.
const MAX_NAME_BYTES: usize = 1024;
/// Room for what telling a name takes.
const NAME_BYTES: usize = 8 << 10;

/// The name of the thread that has a slot, or had it last.
#[derive(Debug, Default)]
pub(crate) struct ThreadName {
    pub(crate) tid: u32,
    pub(crate) name: String,
}

impl Process {
    /// The names in force, as lines. Nobody is waited for: who is changing a name is about to record it.
    pub(crate) fn names(&self) -> Vec<u8> {
        let name = wait::try_lock(&self.name).map(|name| name.clone());
        let mut lines = name
            .filter(|name| !name.is_empty())
            .map_or_else(Vec::new, |name| self.name_line(&name));
        self.named_lanes
            .each(|lane, name| lines.extend(lane_name_line(self.pid, lane, name)));
        lines.extend(self.tracks.lines(self.pid));
        // The kernel gives the tid of an ended thread to another one: that one's name comes after it.
        for ended in [true, false] {
            lines.extend(self.thread_names(ended));
        }
        lines
    }

    /// The names of the threads that have slots, or of those that have ended and left lines there that are not in the fragment yet.
    fn thread_names(&self, ended: bool) -> Vec<u8> {
        let mut lines = Vec::new();
        for slot in self.ring.slots() {
            let has_ended = slot.tid().load(Ordering::Relaxed) == 0;
            if has_ended != ended || has_ended && slot.is_empty() {
                continue;
            }
            if let Some(name) = wait::try_lock(&slot.thread_name).filter(|name| name.tid != 0) {
                lines.extend(thread_name_line(self.pid, name.tid, &name.name));
            }
        }
        lines
    }

    /// Names the process; a later name renames it.
    pub(crate) fn set_name(&self, name: &str) {
        let name = cut_name(name);
        if look_for_room(NAME_BYTES).is_err() {
            return leave_out();
        }
        let Ok(kept) = owned(name) else {
            return leave_out();
        };
        if let Some(mut name) = wait::lock(&self.name) {
            *name = kept;
        }
        self.tell(&self.name_line(name));
    }

    /// Names a lane; a later name renames it.
    pub(crate) fn name_lane(&self, lane: u32, name: &LaneName) {
        if look_for_room(NAME_BYTES).is_err() {
            return leave_out();
        }
        self.named_lanes.set(lane, name);
        self.tell(&lane_name_line(self.pid, lane, name));
    }

    /// Tells a record of the program's own; one that no block holds is left out.
    pub(crate) fn tell_metadata(&self, name: &str, tid: Option<u64>, args: &Args) {
        if look_for_room(NAME_BYTES + 2 * (name.len() + args.text().len())).is_err() {
            return leave_out();
        }
        let pid = self.pid;
        let tid = tid.unwrap_or_else(|| u64::from(pid));
        let mut line = Growing::default();
        let _ = write!(line, r#"{{"ph":"M","pid":{pid},"tid":{tid},"name":"#); // it takes everything
        let _ = serde_json::to_writer(&mut line, name);
        line.add(br#","args":{"#);
        line.add(args.text());
        line.add(b"}}\n");
        match line.into_text() {
            Some(line) if line.len() <= MAX_METADATA_BYTES => self.tell(&line),
            Some(_) => {}
            None => leave_out(),
        }
    }

    /// The metadata line that names the process; none for an empty name, which viewers drop.
    pub(crate) fn name_line(&self, name: &str) -> Vec<u8> {
        if name.is_empty() {
            return Vec::new();
        }
        let Some(name) = try_visible(name) else {
            leave_out();
            return Vec::new();
        };
        metadata_line(self.pid, "process_name", Name { name: &name })
    }
}

fn lane_name_line(pid: u32, lane: u32, name: &LaneName) -> Vec<u8> {
    let mut room = NumberRoom::default();
    thread_name_line(pid, LANE_BASE + lane, name.text(lane, &mut room))
}

/// The part of a process's or thread's name that is kept.
pub(crate) fn cut_name(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_NAME_BYTES)]
}

/// The metadata line that names a thread or lane; none for an empty name, which viewers drop, and none, and counted, where there is no memory for it.
pub(crate) fn thread_name_line(pid: u32, tid: u32, name: &str) -> Vec<u8> {
    if name.is_empty() {
        return Vec::new();
    }
    let Some(name) = try_visible(name) else {
        leave_out();
        return Vec::new();
    };
    metadata_line_of(pid, tid, "thread_name", Name { name: &name })
}
