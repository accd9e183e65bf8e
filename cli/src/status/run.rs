//! Status of a run, in the form that `--json` prints.

use crate::control::wall_ns;
use crate::error::Error;
use sa_format::Level;
use sa_format::loss::Cause;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use trace_merge::survey::{Contents, RunProcess, SegmentCache, processes};
use trace_merge::{DeadProcess, Death, DeathKind};

/// A run.
#[derive(Debug, Default, Serialize)]
pub(super) struct Run {
    /// Directory as the user named it.
    pub(super) directory: String,
    /// Run id.
    pub(super) run: String,
    /// Wall time in ns when its first process began; absent if no fragment contains it.
    pub(super) start_realtime_ns: Option<u64>,
    /// Time in ns since then.
    pub(super) age_ns: Option<u64>,
    /// Size of all fragments in bytes.
    pub(super) bytes: u64,
    /// Number of events of all processes.
    pub(super) events: u64,
    /// Number of lost events of all processes.
    pub(super) lost: u64,
    /// Its processes, the main process first.
    pub(super) processes: Vec<Process>,
}

/// A process.
#[derive(Debug, Serialize)]
pub(crate) struct Process {
    /// Name that it gave itself, or the name of its script or program.
    pub(crate) name: String,
    pub(crate) pid: u32,
    pub(super) host: String,
    /// True if it is the main process of the run.
    pub(super) main: bool,
    pub(super) state: State,
    /// End of the process; absent if it is alive or has ended its recording itself.
    #[serde(skip)]
    pub(super) death: Option<Death>,
    /// Levels that it records; empty if recording is off; absent if its recorder does not report them.
    pub(super) levels: Option<Vec<Level>>,
    /// Number of its fragment files.
    pub(super) fragments: usize,
    /// Wall time in ns when it began.
    #[serde(skip)]
    pub(super) start_realtime_ns: Option<u64>,
    pub(super) events: u64,
    pub(super) bytes: u64,
    /// Time in ns since its latest event.
    pub(super) last_event_age_ns: Option<u64>,
    /// Number of lost events by cause.
    pub(crate) lost: BTreeMap<String, u64>,
    /// Calls of the process that the preload library does not see, one sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_visible: Vec<String>,
}

/// State of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// It is alive.
    Alive,
    /// It was running when this snapshot was taken.
    Running,
    /// It ended the recording itself.
    Ended,
    /// It was killed: it left spans open, or its signal is known.
    Killed,
    /// It ended by itself with an exit code, and left spans open.
    Exited,
    /// It did not close its recording and left no span open, for example because of `_exit` or a signal between two spans.
    Silent,
    /// It did not close its recording, and it is not known if spans were open.
    Unknown,
}

impl State {
    pub(super) fn word(self) -> &'static str {
        match self {
            State::Alive => "alive",
            State::Running => "running",
            State::Ended => "ended",
            State::Killed => "killed",
            State::Exited => "exited",
            State::Silent => "silent",
            State::Unknown => "unknown",
        }
    }
}

impl Run {
    /// Reads the newest run of a directory. Segments in the cache are not read again.
    pub(super) fn read(directory: &Path, cache: &mut SegmentCache) -> Result<Run, Error> {
        let found = processes(directory)?;
        let now_ns = wall_ns();
        let mut run = Run {
            directory: directory.display().to_string(),
            run: found
                .first()
                .map(|process| process.header.run.clone())
                .unwrap_or_default(),
            ..Run::default()
        };
        for process in &found {
            let read = Process::read(process, cache, now_ns);
            run.add(read.map_err(|error| Error::file(&process.fragments[0], error))?);
        }
        run.age_ns = run
            .start_realtime_ns
            .map(|start| now_ns.saturating_sub(start));
        Ok(run)
    }

    fn add(&mut self, process: Process) {
        let starts = self.start_realtime_ns.into_iter();
        self.start_realtime_ns = starts.chain(process.start_realtime_ns).min();
        self.bytes += process.bytes;
        self.events += process.events;
        let is_lost = |cause: &str| Cause::from_name(cause).is_none_or(Cause::loses_events);
        let lost = process.lost.iter().filter(|(cause, _)| is_lost(cause));
        self.lost = lost.fold(self.lost, |sum, (_, events)| sum.saturating_add(*events));
        self.processes.push(process);
    }
}

impl Process {
    /// Reads what a process has recorded so far. Segments in the cache are not read again.
    pub(crate) fn read(
        process: &RunProcess,
        cache: &mut SegmentCache,
        now_ns: u64,
    ) -> io::Result<Process> {
        let alive = process.is_alive(); // checked before the fragment is read, so that nothing a dead process wrote is missed
        let contents = process.contents(cache)?;
        let death = death(&contents, alive);
        let last_ns = last_realtime_ns(&contents);
        let header = &process.header;
        let switched = contents.switch.map(|switch| switch.levels);
        Ok(Process {
            last_event_age_ns: last_ns.map(|last_ns| now_ns.saturating_sub(last_ns)),
            name: contents
                .name
                .unwrap_or_else(|| process.default_name().into_owned()),
            pid: header.pid,
            host: header.host.clone(),
            main: header.main,
            state: match alive {
                _ if contents.was_running => State::Running,
                _ if contents.ended => State::Ended,
                true => State::Alive,
                false => match death.as_ref().map(Death::kind) {
                    Some(DeathKind::Killed) => State::Killed,
                    Some(DeathKind::Exited) => State::Exited,
                    Some(DeathKind::Idle) => State::Silent,
                    Some(DeathKind::Unknown) | None => State::Unknown,
                },
            },
            death,
            levels: switched.or_else(|| header.levels.clone()),
            fragments: contents.segments,
            start_realtime_ns: contents.began.map(|anchor| anchor.realtime_ns),
            events: contents.events,
            bytes: contents.bytes,
            lost: contents.lost,
            not_visible: contents
                .visibility
                .map_or_else(Vec::new, |visibility| visibility.sentences()),
        })
    }

    /// Returns the name, pid and cause of death of the process, or `None` if it did not die.
    pub(crate) fn dead(&self) -> Option<DeadProcess> {
        Some(DeadProcess {
            name: self.name.clone(),
            pid: i64::from(self.pid),
            death: self.death.clone()?,
        })
    }
}

/// Returns how a process died; `None` if it is alive, has ended its recording itself, or was running when a snapshot was taken.
fn death(contents: &Contents, is_alive: bool) -> Option<Death> {
    (!is_alive && !contents.ended && !contents.was_running).then(|| Death {
        open_spans: contents.open_spans,
        exit: contents.exit.clone(),
        last_ns: last_realtime_ns(contents).and_then(|ns| i64::try_from(ns).ok()),
    })
}

/// Returns the wall time of the last event of a process. It is computed from the monotonic clock and the first anchor.
fn last_realtime_ns(contents: &Contents) -> Option<u64> {
    let (began, last_ns) = (contents.began?, contents.last_ns?);
    let since = last_ns.saturating_sub(began.monotonic_ns);
    Some(began.realtime_ns.saturating_add(since))
}
