//! Spans on the clock of a chip, which begins anew with each launch and has nothing to do with the host's.
//!
//! The chip works while the host's span `runner_run` is open, for that one ends after the chip has been waited for. So `device_wall` lies somewhere within it:
//! it is put into the middle, and half of what is left is how far off that can be.

use super::record::LogSpan;
use sa_format::{Record, TRACK_BASE, TrackRecord, write_metadata};
use std::collections::{BTreeSet, HashMap};

/// The host's span around the work of a chip.
const RUNNER: &str = ".runner_run";
/// The chip's own, below it.
const WALL: &str = ".runner_run.device_wall";
/// Launches that are kept while their end has not come.
const MOST_LAUNCHES: usize = 4096;
/// Rows of chips come behind those of devices that were timed.
const SORT_INDEX: u32 = 1 << 20;

/// A span of a chip in the host's time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) span: LogSpan,
    pub(super) ts_ns: i64,
    pub(super) uncertainty_ns: i64,
}

/// The chips of all processes.
#[derive(Default)]
pub(super) struct Chips {
    launches: HashMap<(i64, i64), Launch>,
    tracks: BTreeSet<i64>,
    unplaced: u64,
}

/// What is known of one launch.
#[derive(Default)]
struct Launch {
    /// Start and length of the host's span.
    runner: Option<(i64, i64)>,
    /// Start and length of the chip's.
    wall: Option<(i64, i64)>,
    waiting: Vec<LogSpan>,
}

impl Chips {
    /// Takes a span of either clock; gives back those of the chip that it places.
    pub(super) fn take(&mut self, span: &LogSpan) -> Vec<Placed> {
        let key = (span.pid, span.inv);
        if !span.is_on_chip && !span.name.ends_with(RUNNER) {
            if span.depth == 0 && span.name.ends_with("run") {
                self.end(key);
            }
            return Vec::new();
        }
        if self.launches.len() >= MOST_LAUNCHES && !self.launches.contains_key(&key) {
            self.end_all();
        }
        let launch = self.launches.entry(key).or_default();
        if !span.is_on_chip {
            launch.runner = Some((span.ts_ns, span.dur_ns));
        } else {
            if span.name.ends_with(WALL) {
                launch.wall = Some((span.ts_ns, span.dur_ns));
            }
            launch.waiting.push(span.clone());
        }
        let placed = launch.placed();
        if !placed.is_empty() {
            self.tracks.insert(span.pid);
        }
        placed
    }

    /// A launch has ended; what of its chip has not been placed will not be.
    fn end(&mut self, key: (i64, i64)) {
        let launch = self.launches.remove(&key);
        self.unplaced += launch.map_or(0, |launch| launch.waiting.len() as u64);
    }

    fn end_all(&mut self) {
        let waiting = self
            .launches
            .drain()
            .map(|(_, launch)| launch.waiting.len() as u64);
        self.unplaced += waiting.sum::<u64>();
    }

    /// Spans that could not be placed.
    pub(super) fn unplaced(&mut self) -> u64 {
        self.end_all();
        self.unplaced
    }

    /// The row of the chip of a process.
    pub(super) fn track() -> i64 {
        i64::from(TRACK_BASE)
    }

    /// What names the rows, by process.
    pub(super) fn track_records(&self) -> Vec<String> {
        let record = |pid: &i64| {
            let args = TrackRecord {
                process: "Chip".to_owned(),
                label: "clock of the chip, within runner_run".to_owned(),
                sort_index: SORT_INDEX,
                thread: "device_wall".to_owned(),
            };
            let pid = u32::try_from(*pid).ok()?;
            let mut line = Vec::new();
            write_metadata(&mut line, (pid, TRACK_BASE), TrackRecord::NAME, &args).ok()?;
            String::from_utf8(line).ok()
        };
        self.tracks.iter().filter_map(record).collect()
    }
}

impl Launch {
    fn placed(&mut self) -> Vec<Placed> {
        let (Some((host_ns, host_dur_ns)), Some((wall_ns, wall_dur_ns))) = (self.runner, self.wall)
        else {
            return Vec::new();
        };
        let slack_ns = host_dur_ns - wall_dur_ns;
        if slack_ns < 0 {
            // It cannot lie within: one of the two is not what it says.
            return Vec::new();
        }
        let uncertainty_ns = slack_ns - slack_ns / 2;
        let ahead_ns = host_ns + slack_ns / 2 - wall_ns;
        let place = |span: LogSpan| Placed {
            ts_ns: ahead_ns + span.ts_ns,
            uncertainty_ns,
            span,
        };
        self.waiting.drain(..).map(place).collect()
    }
}
