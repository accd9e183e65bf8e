//! Converts spans on the clock of a chip, which starts anew with each launch and has no relation to the host's clock.
//!
//! The chip works while the host's span `runner_run` is open, because that span ends after waiting for the chip. So `device_wall` is somewhere within
//! it. It is placed in the middle, with half of the remaining time as its uncertainty.

use super::record::LogSpan;
use sa_format::{Record, TRACK_BASE, TrackRecord, write_metadata};
use std::collections::{BTreeSet, HashMap};

/// Suffix of the host's span around the work of a chip.
const RUNNER: &str = ".runner_run";
/// Suffix of the chip's own span, below it.
const WALL: &str = ".runner_run.device_wall";
/// Maximum number of launches that are kept because they have not ended.
const MOST_LAUNCHES: usize = 4096;
/// Sort index that puts the tracks of chips after those of devices with measured times.
const SORT_INDEX: u32 = 1 << 20;

/// A span of a chip, converted to the host's time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlacedSpan {
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

/// State of one launch.
#[derive(Default)]
struct Launch {
    /// Start and length of the host's span.
    runner: Option<(i64, i64)>,
    /// Start and length of the chip's span.
    wall: Option<(i64, i64)>,
    waiting: Vec<LogSpan>,
}

impl Chips {
    /// Adds a span of the host or of a chip. Returns the spans of the chip whose times can now be converted to the host's clock, because both
    /// spans around their launch are known.
    pub(super) fn add_span(&mut self, span: &LogSpan) -> Vec<PlacedSpan> {
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

    /// Ends the launch with this key, its pid and its number in the process. Its chip's spans that were not converted by now count as unplaced.
    fn end(&mut self, key: (i64, i64)) {
        let launch = self.launches.remove(&key);
        self.unplaced += launch.map_or(0, |launch| launch.waiting.len() as u64);
    }

    /// Ends all launches, and counts their chips' spans that were not converted as unplaced.
    fn end_all(&mut self) {
        let waiting = self
            .launches
            .drain()
            .map(|(_, launch)| launch.waiting.len() as u64);
        self.unplaced += waiting.sum::<u64>();
    }

    /// Ends all launches and returns the number of chip spans whose times could not be converted to the host's clock.
    pub(super) fn unplaced(&mut self) -> u64 {
        self.end_all();
        self.unplaced
    }

    /// Returns the tid of the track that shows the spans of a process's chip. It is the same in every process.
    pub(super) fn track() -> i64 {
        i64::from(TRACK_BASE)
    }

    /// Returns the lines of the records that name the tracks of chips: one for each process with spans of a chip.
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
    /// Removes the launch's waiting chip spans and returns them with times on the host's clock. The result is empty until the spans of host and
    /// chip around the launch are known.
    fn placed(&mut self) -> Vec<PlacedSpan> {
        let (Some((host_ns, host_dur_ns)), Some((wall_ns, wall_dur_ns))) = (self.runner, self.wall)
        else {
            return Vec::new();
        };
        let slack_ns = host_dur_ns - wall_dur_ns;
        if slack_ns < 0 {
            // The chip's span cannot be inside a shorter one, so one of the two is wrong.
            return Vec::new();
        }
        let uncertainty_ns = slack_ns - slack_ns / 2;
        let ahead_ns = host_ns + slack_ns / 2 - wall_ns;
        let place = |span: LogSpan| PlacedSpan {
            ts_ns: ahead_ns + span.ts_ns,
            uncertainty_ns,
            span,
        };
        self.waiting.drain(..).map(place).collect()
    }
}
