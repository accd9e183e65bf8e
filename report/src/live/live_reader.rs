//! Follows a run, and says how it stands.

use super::live_fold::LiveFold;
use super::live_stats::{LiveBehind, LiveProcess, LiveRecorded, LiveState, LiveStats, ProcessName};
use crate::gather::chunk_facts::{ChunkContext, ChunkFacts};
use crate::gather::devices::Devices;
use crate::options::NamesBy;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use trace_merge::events::{self, PlacedEvent, TraceEvents};
use trace_merge::follow::{FollowedEnd, FollowedProcess, FollowedRun, Follower, Poll};
use trace_merge::{Error, LossReport, Options, Progress};

/// Bytes that one poll reads.
const POLL_BYTES: u64 = 16 << 20;
/// Events that are looked at before what they say is folded.
const BATCH: usize = 8_192;
/// A run with more events is not read again at its end.
const MOST_FINAL_EVENTS: u64 = 20_000_000;
/// How far the clock of another host may be ahead.
const AHEAD_NS: i64 = 1_000_000_000;
/// Threads that read the whole run once it is over: others may need the machine.
const FINAL_THREADS: usize = 2;

/// A run that is followed.
#[derive(Debug)]
pub struct LiveReader {
    directory: PathBuf,
    follower: Follower,
    folded: Folded,
    last: Poll,
    whole: Option<Result<Whole, String>>,
}

/// What the events of one run were folded into.
#[derive(Debug, Default)]
struct Folded {
    run: u64,
    fold: LiveFold,
    devices: Devices,
    /// Of how many processes it is known whether they are devices.
    known: usize,
}

/// A run that is over, read as a whole.
#[derive(Debug)]
struct Whole {
    fold: LiveFold,
    names: Vec<WholeProcess>,
    recorded: LiveRecorded,
    damaged: u64,
}

#[derive(Debug)]
struct WholeProcess {
    name: String,
    pid: u32,
    is_tracks: bool,
    recorder: usize,
}

impl LiveReader {
    /// Follows the newest run of a directory, which need not have one yet.
    pub fn new(directory: &Path) -> LiveReader {
        LiveReader {
            directory: directory.to_owned(),
            follower: Follower::new(directory),
            folded: Folded::default(),
            last: Poll::default(),
            whole: None,
        }
    }

    /// Reads on, at most some 16 MiB. Gives what was found.
    pub fn poll(&mut self) -> Poll {
        let (now, limit_ns) = (Instant::now(), axis_now(self.follower.run()));
        let folded = &mut self.folded;
        let mut batch = Batch::default();
        self.last = self.follower.poll(POLL_BYTES, |run, event| {
            if run.number() != folded.run {
                batch = Batch::default();
            }
            folded.be_of(run);
            batch.take(folded, run, event);
            if batch.events == BATCH {
                std::mem::take(&mut batch).fold(folded, limit_ns, now);
            }
        });
        folded.be_of(self.follower.run());
        batch.fold(folded, limit_ns, now);
        // What other processes say of a request may still have to be read.
        if self.last.unread == 0 {
            folded.fold.requests.fold(now);
        }
        if self.last.bytes > 0 || self.last.is_new_run {
            self.whole = None;
        }
        self.last
    }

    /// Whether nobody records any more.
    pub fn has_ended(&self) -> bool {
        self.follower.is_over()
    }

    /// Whether all processes have ended and all that they wrote was read.
    pub fn is_over(&self) -> bool {
        self.follower.is_over() && self.last.unread == 0
    }

    /// Reads the whole run once more, once it is over: also what rings of killed processes hold, and what is good of damaged blocks. The figures are then those of a
    /// report. Does nothing where that was done, or the run is too large; gives whether anything has changed.
    pub fn finish(&mut self) -> bool {
        if !self.is_over() || self.whole.is_some() {
            return false;
        }
        let processes = self.follower.run().processes();
        let events: u64 = processes.iter().map(|process| process.events).sum();
        self.whole = Some(match events {
            0..=MOST_FINAL_EVENTS => {
                Whole::read(&self.directory).map_err(|error| error.to_string())
            }
            _ => Err(format!("it has more than {MOST_FINAL_EVENTS} events")),
        });
        true
    }

    /// How the run stands.
    pub fn stats(&self) -> LiveStats {
        let run = self.follower.run();
        let whole = self.whole.as_ref().and_then(|whole| whole.as_ref().ok());
        let mut stats = match whole {
            Some(whole) => LiveStats::of(&whole.fold, &whole.names()),
            None => LiveStats::of(&self.folded.fold, &names(run)),
        };
        stats.state = match (run.processes().is_empty(), self.is_over()) {
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
        stats.process = run
            .processes()
            .iter()
            .map(|process| live_process(run, process, newest_ns))
            .collect();
        stats.recorded = recorded(run.processes());
        let late_moments = stats.behind.late_moments;
        stats.behind = behind(&self.last, late_moments);
        match &self.whole {
            Some(Ok(whole)) => {
                stats.is_final = true;
                let bytes = stats.recorded.bytes;
                stats.recorded = LiveRecorded {
                    bytes,
                    alive: stats.recorded.alive,
                    ended: stats.recorded.ended,
                    died: stats.recorded.died,
                    ..whole.recorded.clone()
                };
                stats.behind = LiveBehind {
                    damaged_lines: whole.damaged,
                    ..LiveBehind::default()
                };
            }
            Some(Err(why)) => stats.not_final = Some(why.clone()),
            None => {}
        }
        stats
    }
}

/// What some events say.
#[derive(Default)]
struct Batch {
    facts: ChunkFacts,
    events: usize,
    newest_ns: i64,
}

impl Batch {
    fn take(&mut self, folded: &Folded, run: &FollowedRun, event: &PlacedEvent<'_>) {
        let context = ChunkContext {
            threads: run.threads(),
            names_by: NamesBy::Run,
            devices: &folded.devices,
        };
        self.facts.take(&context, event);
        self.events += 1;
        let end_ns = event.ts_ns.saturating_add(event.dur_ns);
        self.newest_ns = self.newest_ns.max(end_ns);
    }

    fn fold(self, folded: &mut Folded, limit_ns: i64, now: Instant) {
        if self.events > 0 {
            let newest_ns = self.newest_ns.min(limit_ns);
            folded.fold.take(self.facts, newest_ns, now);
        }
    }
}

impl Folded {
    /// Begins anew with another run, and knows its devices.
    fn be_of(&mut self, run: &FollowedRun) {
        if run.number() != self.run {
            *self = Folded {
                run: run.number(),
                ..Folded::default()
            };
        }
        let processes = run.processes();
        if processes.len() != self.known {
            self.known = processes.len();
            let numbered = processes.iter().enumerate();
            let devices = numbered.filter(|(_, process)| process.is_tracks);
            self.devices =
                Devices::new(devices.map(|(number, process)| (number, process.recorder)));
        }
    }
}

impl Whole {
    fn read(directory: &Path) -> Result<Whole, Error> {
        let options = Options {
            settle: false,
            link_requests: false,
            threads: FINAL_THREADS,
            ..Options::new([directory.to_owned()])
        };
        let (whole, _) = events::read(&options, &Progress::default(), Whole::of)?;
        Ok(whole)
    }

    fn of(events: &mut TraceEvents<'_>) -> Result<Whole, Error> {
        events.match_spans()?;
        let (events, now) = (&*events, Instant::now());
        let devices = Devices::of(events);
        let context = ChunkContext {
            threads: events.threads(),
            names_by: NamesBy::Run,
            devices: &devices,
        };
        let mut fold = LiveFold::default();
        let begin = || (ChunkFacts::default(), 0);
        let take = |found: &mut (ChunkFacts, i64), event: &PlacedEvent<'_>| {
            found.0.take(&context, event);
            found.1 = found.1.max(event.ts_ns.saturating_add(event.dur_ns));
        };
        events.fold(begin, take, |(facts, newest_ns)| {
            fold.take(facts, newest_ns, now);
            Ok(())
        })?;
        let report = events.report();
        let processes = events.processes().iter().enumerate();
        let names = processes.map(|(number, process)| WholeProcess {
            name: process.report.name.clone().unwrap_or_default(),
            pid: u32::try_from(process.report.pid).unwrap_or(0),
            is_tracks: devices.is_one(number),
            recorder: devices.recorder(number),
        });
        let mut recorded = LiveRecorded {
            events: report.events_total,
            ..LiveRecorded::default()
        };
        for LossReport {
            cause,
            events,
            processes,
            ..
        } in &report.losses
        {
            *recorded.lost.entry(cause.clone()).or_default() += events + processes;
        }
        Ok(Whole {
            names: names.collect(),
            recorded,
            damaged: report.damage_total,
            fold,
        })
    }

    fn names(&self) -> Vec<ProcessName> {
        let with_tracks = self.names.iter().filter(|process| process.is_tracks);
        let with_tracks: BTreeSet<usize> = with_tracks.map(|process| process.recorder).collect();
        let numbered = self.names.iter().enumerate();
        numbered
            .map(|(number, process)| ProcessName {
                name: process.name.clone(),
                pid: process.pid,
                is_tracks: process.is_tracks,
                has_tracks: with_tracks.contains(&number),
            })
            .collect()
    }
}

fn names(run: &FollowedRun) -> Vec<ProcessName> {
    let processes = run.processes();
    let with_tracks = processes.iter().filter(|process| process.is_tracks);
    let with_tracks: BTreeSet<usize> = with_tracks.map(|process| process.recorder).collect();
    let numbered = processes.iter().enumerate();
    numbered
        .map(|(number, process)| ProcessName {
            name: shown_name(run, process),
            pid: process.header.pid,
            is_tracks: process.is_tracks,
            has_tracks: with_tracks.contains(&number),
        })
        .collect()
}

/// A group of tracks is called as in the trace (FORMAT.md §2.6).
fn shown_name(run: &FollowedRun, process: &FollowedProcess) -> String {
    match process.is_tracks {
        true => {
            let recorder = &run.processes()[process.recorder];
            format!("{} · {}", process.label(), recorder.label())
        }
        false => process.label().to_owned(),
    }
}

fn live_process(
    run: &FollowedRun,
    process: &FollowedProcess,
    newest_ns: Option<i64>,
) -> LiveProcess {
    let end = run.processes()[process.recorder].end;
    let idle = newest_ns.zip(process.last_ns);
    LiveProcess {
        name: shown_name(run, process),
        pid: process.header.pid,
        host: process.header.host.clone(),
        is_tracks: process.is_tracks,
        state: match end {
            FollowedEnd::Alive => "alive",
            FollowedEnd::Ended => "ended",
            FollowedEnd::Died => "died",
        },
        events: process.events,
        bytes: process.bytes,
        idle_ns: idle.map(|(newest_ns, last_ns)| (newest_ns - last_ns).max(0)),
        clock_uncertainty_ns: process.clock_uncertainty_ns,
        lost: process.lost.clone(),
    }
}

fn recorded(processes: &[FollowedProcess]) -> LiveRecorded {
    let mut recorded = LiveRecorded::default();
    for process in processes {
        recorded.events += process.events;
        recorded.bytes += process.bytes;
        for (cause, events) in &process.lost {
            *recorded.lost.entry(cause.clone()).or_default() += events;
        }
        if !process.is_tracks {
            *match process.end {
                FollowedEnd::Alive => &mut recorded.alive,
                FollowedEnd::Ended => &mut recorded.ended,
                FollowedEnd::Died => &mut recorded.died,
            } += 1;
        }
    }
    recorded
}

fn behind(poll: &Poll, late_moments: u64) -> LiveBehind {
    LiveBehind {
        unread_bytes: poll.unread,
        behind_ns: u64::try_from(poll.behind.as_nanos()).unwrap_or(u64::MAX),
        damaged_blocks: poll.skipped.blocks,
        damaged_lines: poll.skipped.lines,
        skipped_events: poll.skipped.events,
        skipped_segments: poll.skipped.segments,
        unreadable_files: poll.unreadable,
        late_moments,
    }
}

fn realtime_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

/// Now on the run's axis, with what another host's clock may be ahead: a time beyond that is no time of this run.
fn axis_now(run: &FollowedRun) -> i64 {
    let wall_ns = run.wall_ns().unwrap_or(0);
    let now_ns = i64::try_from(realtime_ns()).unwrap_or(i64::MAX);
    now_ns.saturating_sub(wall_ns).saturating_add(AHEAD_NS)
}
