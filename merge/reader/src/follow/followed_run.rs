//! Processes and threads of a run that is followed.

use super::boot_clocks::BootClocks;
use crate::fragment::liveness::{ProcessIdentity, identity};
use crate::placed_event::TraceThread;
use sa_format::{Anchor, FragmentHeader, LANE_BASE, TrackRecord};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Maximum number of distinct threads. All further threads of a process share one entry.
const MOST_THREADS: usize = 1 << 16;

/// The processes and threads so far. Their numbers never change.
#[derive(Debug, Default)]
pub struct FollowedRun {
    /// Number of the run in its directory.
    pub(super) number: u64,
    pub(super) processes: Vec<FollowedProcess>,
    pub(super) threads: Vec<TraceThread>,
    pub(super) clocks: BootClocks,
    by_identity: BTreeMap<ProcessIdentity, usize>,
    /// Number of the process for each group of tracks, by recorder and group name.
    groups: BTreeMap<(usize, String), usize>,
}

impl FollowedRun {
    /// Returns the number of this run, from 0, among the runs of its directory that were followed one after the other. Each run has its own
    /// processes and threads.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the processes of the run so far. A group of tracks, such as the streams of a device, is a process of its own.
    pub fn processes(&self) -> &[FollowedProcess] {
        &self.processes
    }

    /// Returns the threads of the run so far, including lanes of async work and tracks. An event names its thread by the index in this slice.
    pub fn threads(&self) -> &[TraceThread] {
        &self.threads
    }

    /// Returns the wall time at the zero of the time axis, in ns since 1970; `None` until a recorder's clocks are known.
    pub fn wall_ns(&self) -> Option<i64> {
        self.clocks.wall_ns()
    }

    /// Returns the current time on the time axis of the events, in ns; `None` until a recorder's clocks are known. It is exact for a run of this
    /// boot; otherwise it is as exact as the wall clocks of both hosts.
    pub fn now_ns(&self) -> Option<i64> {
        self.clocks.now_ns()
    }

    /// Returns the index in `processes` of the process that wrote this header. Adds the process if it is new.
    pub(super) fn process_number(&mut self, header: &FragmentHeader) -> usize {
        let new = self.processes.len();
        let number = *self.by_identity.entry(identity(header)).or_insert(new);
        if number == new {
            self.processes.push(FollowedProcess {
                header: header.clone(),
                recorder: new,
                ..FollowedProcess::default()
            });
        }
        self.processes[number].header.complete_with(header);
        number
    }

    /// Adds a thread to the process with index `process` and returns the thread's index in `threads`. If there are too many threads, adds none
    /// and returns the last thread of the process.
    pub(super) fn add_thread(&mut self, process: usize, tid: i64) -> usize {
        if self.threads.len() >= MOST_THREADS {
            let mut threads = self.threads.iter();
            let other = threads.rposition(|thread| thread.process == process);
            if let Some(other) = other {
                return other;
            }
        }
        let pid = i64::from(self.processes[process].header.pid);
        self.threads.push(TraceThread {
            process,
            tid: u32::try_from(tid).unwrap_or(u32::MAX),
            name: None,
            is_main: tid == pid,
            is_lane: tid >= i64::from(LANE_BASE),
            overlap_tracks: Vec::new(),
        });
        self.threads.len() - 1
    }

    /// Adds a track that the process `recorder` described in a record, and returns its index in `threads`. Adds a process for its group if the
    /// group is new.
    pub(super) fn add_track(&mut self, recorder: usize, tid: i64, record: TrackRecord) -> usize {
        let new = self.processes.len();
        let group = (recorder, record.process);
        let number = *self.groups.entry(group.clone()).or_insert(new);
        if number == new {
            self.processes.push(FollowedProcess {
                header: self.processes[recorder].header.clone(),
                name: Some(group.1),
                is_tracks: true,
                recorder,
                ..FollowedProcess::default()
            });
        }
        let thread = self.add_thread(number, tid);
        self.threads[thread].name = Some(record.thread);
        thread
    }

    /// Adds an anchor, a reading of the monotonic and the wall clock that the process recorded. Updates the uncertainty of the process's times.
    pub(super) fn add_anchor(&mut self, process: usize, anchor: &Anchor) {
        let header = &self.processes[process].header;
        self.clocks.add(header, anchor);
        let offset = self.clocks.offset(header);
        self.processes[process].clock_uncertainty_ns = offset.map(|offset| offset.uncertainty_ns);
    }
}

/// State of a followed process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FollowedEnd {
    /// It is alive, as far as this host can tell.
    #[default]
    Alive,
    /// It ended the recording itself.
    Ended,
    /// It died without ending the recording.
    Died,
    /// It was running when this snapshot of its run was taken. Nothing will be added to the snapshot.
    Running,
}

/// A process, or a group of tracks that one recorded, such as the streams of a device.
#[derive(Clone, Debug, Default)]
pub struct FollowedProcess {
    /// Header of the process, or of the process that recorded the tracks.
    pub header: FragmentHeader,
    /// Name that the process gave itself; for a group of tracks, the name of the group.
    pub name: Option<String>,
    /// True for a group of tracks.
    pub is_tracks: bool,
    /// Number of the process that recorded it: itself, except for a group of tracks.
    pub recorder: usize,
    /// State of the process.
    pub end: FollowedEnd,
    /// Number of events read from it, including the ones that name threads and processes.
    pub events: u64,
    /// Number of bytes of its fragments that were read.
    pub bytes: u64,
    /// Number of events that it reported as lost, by cause. For `children_refused` it is the number of processes that could not record.
    pub lost: BTreeMap<String, u64>,
    /// End of its last event, on the axis.
    pub last_ns: Option<i64>,
    /// Uncertainty of its times relative to the first host's clock; `None` if it is unknown.
    pub clock_uncertainty_ns: Option<u64>,
}

impl FollowedProcess {
    /// Returns the text that shows which process this is: the name it gave itself, or the name of its script or program.
    pub fn label(&self) -> Cow<'_, str> {
        let named = self.name.as_deref().map(Cow::Borrowed);
        named.unwrap_or_else(|| self.header.default_name())
    }
}
