//! Follows a run and computes its live figures.

use super::live_fold::LiveFold;
use super::live_stats::{LiveLag, LiveMoments, LiveProcess, LiveRecorded, LiveState, LiveStats};
use super::whole_run::WholeRun;
use crate::gather::chunk_records::{ChunkContext, ChunkRecords};
use crate::gather::event_times::RunParts;
use crate::options::NamesBy;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use trace_merge::events::{Devices, PlacedEvent};
use trace_merge::follow::{FollowedEnd, FollowedProcess, FollowedRun, Follower, Poll};

/// Maximum number of bytes that one poll reads.
const POLL_BYTES: u64 = 16 << 20;
/// Number of events that are read before their records are folded.
const BATCH: usize = 8_192;
/// Maximum time by which the clock of another host may be ahead, or this host's clock may be set back.
const AHEAD_NS: i64 = 60_000_000_000;
/// Maximum age of an event when it is first read. Recorders write in blocks.
const LAG_NS: i64 = 2_000_000_000;
/// Time without any recording process after which a run is over, because processes may follow each other. It doubles
/// each time that a process came later, up to [`MOST_OVER`].
const OVER: Duration = Duration::from_secs(3);
const MOST_OVER: Duration = Duration::from_mins(1);

/// Reader that follows a run.
#[derive(Debug)]
pub struct LiveReader {
    directory: PathBuf,
    follower: Follower,
    folded: Folded,
    last: Poll,
    /// Time since when nothing records and everything is read, and how long that must last before the run is over.
    ended: Option<Instant>,
    patience: Duration,
    whole: Option<Result<WholeRun, String>>,
}

/// Results of folding the events of one run.
#[derive(Debug, Default)]
struct Folded {
    run: u64,
    fold: LiveFold,
    devices: Devices,
    /// Number of processes that have been checked for devices.
    checked: usize,
}

impl LiveReader {
    /// Follows the newest run of a directory. The directory may still be empty.
    pub fn new(directory: &Path) -> LiveReader {
        LiveReader {
            directory: directory.to_owned(),
            follower: Follower::new(directory),
            folded: Folded::default(),
            last: Poll::default(),
            ended: None,
            patience: OVER,
            whole: None,
        }
    }

    /// Reads at most about 16 MiB of new data and returns what was found.
    pub fn poll(&mut self) -> Poll {
        let now = Instant::now();
        let folded = &mut self.folded;
        let mut batch = Batch::default();
        self.last = self.follower.poll(POLL_BYTES, |run, event| {
            if run.number() != folded.run {
                batch = Batch::default();
            }
            folded.follow_run(run);
            batch.add_event(folded, run, event);
            if batch.events == BATCH {
                std::mem::take(&mut batch).fold(folded, now);
            }
        });
        folded.follow_run(self.follower.run());
        batch.fold(folded, now);
        // Unread data may contain more events of the same requests, from other processes.
        if self.last.unread == 0 {
            folded.fold.requests.fold(now);
        }
        if self.last.bytes > 0 || self.last.is_new_run {
            if self.whole.take().is_some() && !self.last.is_new_run {
                self.patience = (2 * self.patience).min(MOST_OVER);
            }
            self.ended = None;
        }
        match self.has_ended() && self.last.unread == 0 {
            true => drop(self.ended.get_or_insert(now)),
            false => self.ended = None,
        }
        self.last
    }

    /// Returns true if the run has processes and none of them records any more.
    pub fn has_ended(&self) -> bool {
        self.follower.is_over()
    }

    /// Returns true if no process records any more and everything was read, and this has been so for some seconds.
    pub fn is_over(&self) -> bool {
        let ended = self.ended;
        ended.is_some_and(|ended| ended.elapsed() >= self.patience)
    }

    /// Reads the whole run again when it is over, including the events in rings of killed processes. The figures are
    /// then the same as in a report, unless the run is too large or cannot be read. Returns false if the run is not
    /// over or was already read.
    pub fn finish(&mut self) -> bool {
        self.is_over() && self.finish_now()
    }

    /// Reads the whole run again as [`finish`](LiveReader::finish) does, as soon as no process records any more and
    /// everything was read. Returns false before that time, or if the whole run was already read.
    pub fn finish_now(&mut self) -> bool {
        if self.ended.is_none() || self.whole.is_some() {
            return false;
        }
        self.folded.fold.requests.fold_all();
        let whole = WholeRun::read(&self.directory, self.follower.id());
        self.whole = Some(whole.map_err(|error| error.to_string()));
        true
    }

    /// Returns the state of the run as it was read while being written, counting only requests that have ended. No sum
    /// in it ever decreases during the run.
    pub fn counters(&self) -> LiveStats {
        let mut stats = self.followed();
        stats.requests = self.folded.fold.requests.folded().clone();
        stats
    }

    /// Returns the current figures of the run, including requests in flight. After the whole run was read again, the
    /// figures are the final ones.
    pub fn stats(&self) -> LiveStats {
        let stats = self.followed();
        match &self.whole {
            Some(Ok(whole)) => whole.complete(stats),
            Some(Err(why)) => LiveStats {
                not_final: Some(why.clone()),
                ..stats
            },
            None => stats,
        }
    }

    /// Returns the times up to which figures are computed. They make sure that a run does not look idle only because
    /// recorders hold events back, or because this reader lags.
    fn moments(&self) -> LiveMoments {
        let newest_ns = self.folded.fold.newest_ns.unwrap_or(0);
        let now = self.follower.run().now_ns();
        let now = now.filter(|_| !self.has_ended());
        let now_ns = now.map_or(newest_ns, |now_ns| now_ns.max(newest_ns));
        let behind_ns = i64::try_from(self.last.behind.as_nanos()).unwrap_or(i64::MAX);
        let lag_ns = LAG_NS.saturating_add(behind_ns);
        LiveMoments {
            now_ns,
            windows_end_ns: newest_ns.max(now_ns.saturating_sub(lag_ns)),
        }
    }

    fn followed(&self) -> LiveStats {
        let run = self.follower.run();
        let moments = self.moments();
        let mut stats = LiveStats::from_fold(
            &self.folded.fold,
            live_processes(run, moments.now_ns),
            moments,
        );
        stats.state = match (run.processes().is_empty(), self.ended.is_some()) {
            (true, _) => LiveState::Waiting,
            (_, true) => LiveState::Ended,
            _ => LiveState::Live,
        };
        stats.run = self.follower.id().to_owned();
        stats.realtime_ns = realtime_ns();
        let newest_ns = self.folded.fold.newest_ns;
        let wall = run.wall_ns().zip(newest_ns);
        stats.last_event_realtime_ns =
            wall.map(|(wall, ns)| wall.saturating_add(ns).max(0).unsigned_abs());
        let is_current = stats.state == LiveState::Live && self.last.unread == 0;
        let last_event = newest_ns.filter(|_| is_current);
        stats.no_event_for_ns =
            last_event.map(|ns| moments.now_ns.saturating_sub(ns).unsigned_abs());
        stats.recorded = recorded(run.processes());
        stats.behind = lag(&self.last, &self.folded.fold);
        stats
    }
}

/// Records of some events.
#[derive(Default)]
struct Batch {
    records: ChunkRecords,
    events: usize,
    newest_ns: i64,
    /// Latest time that an event of the run can have. It is determined again for each batch.
    limit_ns: Option<i64>,
    out_of_time: u64,
}

impl Batch {
    fn add_event(&mut self, folded: &Folded, run: &FollowedRun, event: &PlacedEvent<'_>) {
        let context = ChunkContext {
            // A live run has no known end.
            parts: RunParts::new(0, i64::MAX),
            threads: run.threads(),
            names_by: NamesBy::Run,
            devices: &folded.devices,
            runs: &[], // only one run is followed
        };
        let limit_ns = *self.limit_ns.get_or_insert_with(|| latest_ns(run));
        let end_ns = event.ts_ns.saturating_add(event.dur_ns);
        self.events += 1;
        if run.threads()[event.thread].is_of_mspti() {
            return; // its clock is not comparable
        }
        if end_ns > limit_ns {
            self.out_of_time += 1;
            return;
        }
        self.records.add_event(&context, event);
        self.newest_ns = self.newest_ns.max(end_ns);
    }

    fn fold(self, folded: &mut Folded, now: Instant) {
        if self.events > 0 {
            folded.fold.out_of_time += self.out_of_time;
            folded.fold.add_records(self.records, self.newest_ns, now);
        }
    }
}

impl Folded {
    /// Discards all figures if a newer run is followed now, and updates which processes are devices.
    fn follow_run(&mut self, run: &FollowedRun) {
        if run.number() != self.run {
            *self = Folded {
                run: run.number(),
                ..Folded::default()
            };
        }
        let processes = run.processes();
        if processes.len() != self.checked {
            self.checked = processes.len();
            let numbered = processes.iter().enumerate();
            let devices = numbered.filter(|(_, process)| process.is_tracks);
            self.devices =
                Devices::from_tracks(devices.map(|(number, process)| (number, process.recorder)));
        }
    }
}

fn live_processes(run: &FollowedRun, now_ns: i64) -> Vec<LiveProcess> {
    let processes = run.processes();
    let with_tracks = processes.iter().filter(|process| process.is_tracks);
    let with_tracks: BTreeSet<usize> = with_tracks.map(|process| process.recorder).collect();
    let process = |(number, process): (usize, &FollowedProcess)| LiveProcess {
        name: shown_name(run, process),
        pid: process.header.pid,
        host: process.header.host.clone(),
        is_tracks: process.is_tracks,
        has_tracks: with_tracks.contains(&number),
        state: match processes[process.recorder].end {
            FollowedEnd::Alive | FollowedEnd::Running => "alive",
            FollowedEnd::Ended => "ended",
            FollowedEnd::Died => "died",
        },
        events: process.events,
        bytes: process.bytes,
        idle_ns: process.last_ns.map(|last_ns| (now_ns - last_ns).max(0)),
        clock_uncertainty_ns: process.clock_uncertainty_ns,
        lost: process.lost.clone(),
    };
    processes.iter().enumerate().map(process).collect()
}

/// Returns the name of a process. A group of tracks has the same name as in the trace (FORMAT.md §2.6).
fn shown_name(run: &FollowedRun, process: &FollowedProcess) -> String {
    match process.is_tracks {
        true => {
            let recorder = &run.processes()[process.recorder];
            format!("{} · {}", process.label(), recorder.label())
        }
        false => process.label().into_owned(),
    }
}

fn recorded(processes: &[FollowedProcess]) -> LiveRecorded {
    let mut recorded = LiveRecorded::default();
    for process in processes {
        recorded.events += process.events;
        recorded.bytes += process.bytes;
        for (cause, events) in &process.lost {
            let lost = recorded.lost.entry(cause.clone()).or_default();
            *lost = lost.saturating_add(*events);
        }
        if !process.is_tracks {
            *match process.end {
                FollowedEnd::Alive | FollowedEnd::Running => &mut recorded.alive,
                FollowedEnd::Ended => &mut recorded.ended,
                FollowedEnd::Died => &mut recorded.died,
            } += 1;
        }
    }
    recorded
}

fn lag(poll: &Poll, fold: &LiveFold) -> LiveLag {
    LiveLag {
        unread_bytes: poll.unread,
        behind_ns: u64::try_from(poll.behind.as_nanos()).unwrap_or(u64::MAX),
        damaged_blocks: poll.skipped.blocks,
        damaged_lines: poll.skipped.lines,
        skipped_events: poll.skipped.events,
        skipped_segments: poll.skipped.segments,
        missing_bytes: poll.skipped.missing_bytes,
        out_of_time: fold.out_of_time,
        unreadable_files: poll.unreadable,
        late_moments: fold.requests.late,
    }
}

fn realtime_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

/// Returns the latest time of the trace, in ns, that an event of the run can have: one minute after the current time,
/// or the greatest number if the current time is unknown.
fn latest_ns(run: &FollowedRun) -> i64 {
    let now_ns = run.now_ns().unwrap_or(i64::MAX);
    now_ns.saturating_add(AHEAD_NS)
}
