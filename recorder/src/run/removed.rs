//! `<dir>/removed`: which earlier runs were removed, and what was in them.
//!
//! The host waits while this counts. So only the front of long fragments is read, and their events are estimated.

use std::os::fd::OwnedFd;

use crate::run::folder::{load, store};
use crate::sys::clock;
use crate::sys::dir::Dir;
use crate::sys::read;
use crate::text::line::is_metadata;
use sa_format::{REMOVED_FILE, RemovedRun, RemovedRuns};

/// Bytes that a cleaning reads to count events.
const COUNTED_BYTES: usize = 4 << 20;
/// Bytes of a line, where nothing was counted.
const LINE_BYTES: u64 = 120;
/// Runs that are named.
const NAMED: usize = 64;
/// Runs that are said.
const SAID: usize = 3;
/// After so long a removal is said again.
const AGAIN_NS: u64 = 24 * 60 * 60 * 1_000_000_000;

/// What a cleaning removes.
pub(crate) struct Removed<'a> {
    directory: &'a Dir,
    mode: u32,
    /// Those that this cleaning removes.
    runs: Vec<RemovedRun>,
    /// Whether others were removed not long ago: then it has been said.
    was_said: bool,
    bytes_left: usize,
}

impl<'a> Removed<'a> {
    pub(crate) fn new(directory: &'a Dir, mode: u32) -> Removed<'a> {
        Removed {
            directory,
            mode,
            runs: Vec::new(),
            was_said: false,
            bytes_left: COUNTED_BYTES,
        }
    }

    /// Tells of a run that is about to be removed: its files, the length of each, and whether there is a ring, of which nobody counts what it holds.
    pub(crate) fn tell(&mut self, run: &str, files: impl Iterator<Item = (OwnedFd, u64, bool)>) {
        let mut removed = RemovedRun {
            run: run.to_owned(),
            fragments: 0,
            bytes: 0,
            events: 0,
            estimated: false,
            realtime_ns: clock::realtime_ns(),
        };
        for (file, bytes, has_ring) in files {
            removed.fragments += 1;
            removed.bytes += bytes;
            let (events, is_exact) = self.events(&file, bytes);
            removed.events += events;
            removed.estimated |= !is_exact || has_ring;
        }
        if removed.fragments > 0 {
            self.write(&removed);
            self.runs.push(removed);
        }
    }

    /// The events of a file, and whether they were counted to its end.
    fn events(&mut self, file: &OwnedFd, bytes: u64) -> (u64, bool) {
        let text = read::rest(file, self.bytes_left).unwrap_or_default();
        self.bytes_left -= text.len();
        let events = events_in(&text);
        match text.len() as u64 {
            read if read >= bytes => (events, true),
            0 => (bytes / LINE_BYTES, false),
            read => {
                let events = u128::from(events) * u128::from(bytes) / u128::from(read);
                (u64::try_from(events).unwrap_or(u64::MAX), false)
            }
        }
    }

    /// Adds a run to the file. Where that cannot be written, it is said all the same.
    fn write(&mut self, run: &RemovedRun) {
        let mut all: RemovedRuns = load(self.directory, REMOVED_FILE).unwrap_or_default();
        if let Some(last) = all.runs.last().filter(|_| self.runs.is_empty()) {
            self.was_said = clock::realtime_ns().saturating_sub(last.realtime_ns) < AGAIN_NS;
        }
        all.runs.push(run.clone());
        let older = all.runs.len().saturating_sub(NAMED);
        for older in all.runs.drain(..older) {
            all.older_runs = all.older_runs.saturating_add(1);
            all.older_events = all.older_events.saturating_add(older.events);
        }
        let _ = store(self.directory, REMOVED_FILE, self.mode, &all); // the words on stderr do not depend on it
    }

    /// What to say of it, unless it was said not long ago.
    pub(crate) fn words(&self) -> Option<String> {
        if self.runs.is_empty() || self.was_said {
            return None;
        }
        let events: u64 = self.runs.iter().map(|run| run.events).sum();
        let run = |run: &RemovedRun| {
            let about = if run.estimated { "about " } else { "" };
            format!("{}: {about}{} events", run.run, run.events)
        };
        let mut named: Vec<String> = self.runs.iter().take(SAID).map(run).collect();
        if self.runs.len() > SAID {
            named.push(format!("{} more", self.runs.len() - SAID));
        }
        Some(format!(
            "removed {} earlier run{} with {events} events from {} ({}); {} keeps more, {REMOVED_FILE} in it names those that follow",
            self.runs.len(),
            if self.runs.len() == 1 { "" } else { "s" },
            self.directory.path().display(),
            named.join(", "),
            crate::run::config::OLD_RUNS
        ))
    }
}

/// Returns the number of lines that are not metadata. A line that was cut short does not count.
fn events_in(text: &[u8]) -> u64 {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let is_event = |line: &&[u8]| line.len() > 1 && line.ends_with(b"\n") && !is_metadata(line);
    lines.filter(is_event).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_lines_that_are_no_metadata() {
        let text = concat!(
            "{\"ph\":\"M\",\"name\":\"sa_fragment\"}\n",
            "{\"ph\":\"X\",\"ts\":1}\n\n\n",
            "{\"ph\":\"M\",\"name\":\"sa_block\"}\n",
            "{\"ph\":\"i\"}\n{\"ph\"\n",
            "{\"name\":\"torn"
        );
        assert_eq!(events_in(text.as_bytes()), 3);
    }
}
