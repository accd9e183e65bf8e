//! `<dir>/removed`: the earlier runs that were removed, and what they contained.
//!
//! The host waits during this count, so only the beginning of long fragments is read, and their
//! events are estimated.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;

use crate::run::folder::{load, store};
use crate::sys::clock;
use crate::sys::dir::Dir;
use sa_format::{REMOVED_FILE, RemovedRun, RemovedRuns};

/// Maximum number of bytes that one cleaning reads to count events.
const COUNTED_BYTES: u64 = 4 << 20;
/// Assumed length of a line in bytes if nothing was counted.
const LINE_BYTES: u64 = 120;
/// Maximum number of runs listed in the file.
const MAX_LISTED: usize = 64;
/// Maximum number of runs listed in the message.
const MAX_IN_MESSAGE: usize = 3;
/// Time in ns after a removal before a further one is reported in a message again.
const REPEAT_NS: u64 = 24 * 60 * 60 * 1_000_000_000;
/// Beginning of the recorder's own records and of names.
const METADATA: &[u8] = br#"{"ph":"M""#;

/// The runs that a cleaning removes.
pub(crate) struct Removed<'a> {
    directory: &'a Dir,
    mode: u32,
    /// Runs that this cleaning removes.
    runs: Vec<RemovedRun>,
    /// True if other runs were removed recently, so that a message was already printed.
    was_reported: bool,
    bytes_left: u64,
}

impl<'a> Removed<'a> {
    pub(crate) fn new(directory: &'a Dir, mode: u32) -> Removed<'a> {
        Removed {
            directory,
            mode,
            runs: Vec::new(),
            was_reported: false,
            bytes_left: COUNTED_BYTES,
        }
    }

    /// Counts the events of a run whose files are about to be removed, and lists the run in
    /// `<dir>/removed`. For each file, `files` has the open file, its length in bytes, and true if
    /// it has a ring, whose contents are not counted.
    pub(crate) fn add(&mut self, run: &str, files: impl Iterator<Item = (OwnedFd, u64, bool)>) {
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
            let (events, is_exact) = self.events(file, bytes);
            removed.events += events;
            removed.estimated |= !is_exact || has_ring;
        }
        if removed.fragments > 0 {
            self.write(&removed);
            self.runs.push(removed);
        }
    }

    /// Returns the number of events in a segment file of `bytes` bytes, and true if they were
    /// counted to its end. Otherwise the number is an estimate. The host is waiting and may have
    /// little memory, so nothing of the file is kept in memory.
    fn events(&mut self, file: OwnedFd, bytes: u64) -> (u64, bool) {
        let (mut reader, mut counter) = (File::from(file), Counter::default());
        let mut buffer = [0; 8192];
        while self.bytes_left > 0 {
            let Ok(len @ 1..) = reader.read(&mut buffer) else {
                break;
            };
            counter.add(&buffer[..len]);
            self.bytes_left = self.bytes_left.saturating_sub(len as u64);
        }
        match counter.bytes {
            read if read >= bytes => (counter.events, true),
            0 => (bytes / LINE_BYTES, false),
            read => {
                let events = u128::from(counter.events) * u128::from(bytes) / u128::from(read);
                (u64::try_from(events).unwrap_or(u64::MAX), false)
            }
        }
    }

    /// Adds a removed run to the file `<dir>/removed`. If the file cannot be written, the message
    /// on stderr is printed all the same.
    fn write(&mut self, run: &RemovedRun) {
        let mut all: RemovedRuns = load(self.directory, REMOVED_FILE).unwrap_or_default();
        if let Some(last) = all.runs.last().filter(|_| self.runs.is_empty()) {
            self.was_reported = clock::realtime_ns().saturating_sub(last.realtime_ns) < REPEAT_NS;
        }
        all.runs.push(run.clone());
        let older = all.runs.len().saturating_sub(MAX_LISTED);
        for older in all.runs.drain(..older) {
            all.older_runs = all.older_runs.saturating_add(1);
            all.older_events = all.older_events.saturating_add(older.events);
        }
        let _ = store(self.directory, REMOVED_FILE, self.mode, &all); // the message on stderr does not depend on it
    }

    /// Returns a message for stderr about the runs that this cleaning removed. Returns `None` if it
    /// removed no run, or if such a message was printed recently.
    pub(crate) fn message(&self) -> Option<String> {
        if self.runs.is_empty() || self.was_reported {
            return None;
        }
        let events: u64 = self.runs.iter().map(|run| run.events).sum();
        let run = |run: &RemovedRun| {
            let about = if run.estimated { "about " } else { "" };
            let s = if run.events == 1 { "" } else { "s" };
            format!("{}: {about}{} event{s}", run.run, run.events)
        };
        let mut named: Vec<String> = self.runs.iter().take(MAX_IN_MESSAGE).map(run).collect();
        if self.runs.len() > MAX_IN_MESSAGE {
            named.push(format!("{} more", self.runs.len() - MAX_IN_MESSAGE));
        }
        Some(format!(
            "removed {} earlier run{} with {events} event{} from {} ({}); set {} to keep more; further removals are only listed in the file {REMOVED_FILE} there",
            self.runs.len(),
            if self.runs.len() == 1 { "" } else { "s" },
            if events == 1 { "" } else { "s" },
            self.directory.path().display(),
            named.join(", "),
            crate::run::config::OLD_RUNS
        ))
    }
}

/// Counts the lines of a file that are not metadata. A line that was cut short does not count.
#[derive(Default)]
struct Counter {
    events: u64,
    bytes: u64,
    /// Length of the line so far, and of its prefix that equals the beginning of metadata.
    line: usize,
    equal: usize,
}

impl Counter {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        for byte in bytes {
            if *byte == b'\n' {
                self.events += u64::from(self.line > 0 && self.equal < METADATA.len());
                (self.line, self.equal) = (0, 0);
                continue;
            }
            let is_equal = self.line == self.equal && METADATA.get(self.line) == Some(byte);
            self.equal += usize::from(is_equal);
            self.line += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_lines_that_are_not_metadata() {
        let text = concat!(
            "{\"ph\":\"M\",\"name\":\"sa_fragment\"}\n",
            "{\"ph\":\"X\",\"ts\":1}\n\n\n",
            "{\"ph\":\"M\",\"name\":\"sa_block\"}\n",
            "{\"ph\":\"i\"}\n{\"ph\"\n",
            "{\"name\":\"torn"
        );
        for step in 1..20 {
            let mut counter = Counter::default();
            text.as_bytes()
                .chunks(step)
                .for_each(|part| counter.add(part));
            assert_eq!((counter.events, counter.bytes), (3, text.len() as u64));
        }
    }
}
