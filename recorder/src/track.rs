//! Tracks: rows of the trace for what happens on no thread of this process, such as the streams of a device.
//!
//! The merge shows the tracks of one [`TrackProcess`] as a process of its own, named after both. In the fragment a track is a tid that a
//! `sa_track` record describes.

use std::io;
use std::sync::Mutex;

use crate::alive::Alive;
use crate::clock::now_ns;
use crate::config::Level;
use crate::event::{FlowId, FlowPhase, flow_middle};
use crate::format::{TRACK_BASE, TRACK_RECORD, TrackRecord};
use crate::line::{Place, line};
use crate::mask;
use crate::names;
use crate::preamble::metadata_line_of;
use crate::process::{self, Process};
use crate::seat;
use crate::span::write_name;
use crate::sys::memory::{leave_out, owned};
use crate::value::Args;
use crate::wait;

/// How long a lookup may take that is in the way.
const MOMENT_NS: u64 = 1_000_000;
/// Most tracks of a process.
const MAX_TRACKS: usize = 1 << 16;

/// The group of rows that a track belongs to, shown as a process of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackProcess<'a> {
    /// Its name, such as `Ascend Hardware NPU 3`; the merge adds the name of the process that recorded it.
    pub name: &'a str,
    /// A short label beside the name, such as `NPU 3`.
    pub label: &'a str,
    /// Where it stands among its like: the lowest comes first, all of them below the processes.
    pub sort_index: u32,
}

/// A row of the trace. Copies are the same row; in a forked child, and after a restart of the recording, it takes nothing.
#[derive(Clone, Copy, Debug)]
pub struct Track {
    alive: Alive,
    epoch: u32,
    pid: u32,
    tid: u32,
    /// When what is told began, if a level that was switched off since shall not leave it out.
    since_ns: u64,
}

/// The tracks of a process, in the order of their tids.
#[derive(Debug, Default)]
pub(crate) struct Tracks(Mutex<Vec<TrackRecord>>);

impl Tracks {
    /// The tid of a track, and its line where that is new; `None` when there are too many.
    fn number(&self, pid: u32, record: TrackRecord) -> Option<(u32, Option<Vec<u8>>)> {
        let mut known = wait::lock(&self.0)?;
        let at = known.iter().position(|one| *one == record);
        let (at, new) = (at.unwrap_or(known.len()), at.is_none());
        if at >= MAX_TRACKS {
            return None;
        }
        if new {
            if known.try_reserve(1).is_err() {
                leave_out();
                return None;
            }
            known.push(record);
        }
        let tid = TRACK_BASE + u32::try_from(at).ok()?;
        let line = known.get(at).filter(|_| new);
        Some((tid, line.map(|record| record_line(pid, tid, record))))
    }

    /// The records of all tracks, as lines. Who looks a track up has the lock for a moment.
    pub(crate) fn lines(&self, pid: u32) -> Vec<u8> {
        let known = wait::lock_until(&self.0, now_ns() + MOMENT_NS);
        let known = known.iter().flat_map(|known| known.iter());
        known
            .zip(TRACK_BASE..)
            .flat_map(|(record, tid)| record_line(pid, tid, record))
            .collect()
    }
}

impl Track {
    /// The track `thread` of a group of this process; the same names give the same track. `None` while nothing is recorded.
    pub(crate) fn new(group: &TrackProcess<'_>, thread: &str) -> Option<Track> {
        let process = process::current()?;
        let Ok(record) = record(group, thread) else {
            leave_out();
            return None;
        };
        let (tid, untold) = process.tracks.number(process.pid, record)?;
        if let Some(line) = untold {
            process.tell(&line);
        }
        Some(Track::of(&process, tid))
    }

    pub(crate) fn of(process: &Process, tid: u32) -> Track {
        Track {
            alive: process.alive,
            epoch: process.epoch(),
            pid: process.pid,
            tid,
            since_ns: u64::MAX,
        }
    }

    /// Whether it takes anything: a track belongs to one recording, and the next one needs another.
    pub fn is_live(self) -> bool {
        self.alive.is_recording(self.epoch)
    }

    /// The same row, for what began at `since_ns`: it is recorded if its level was on then.
    #[must_use]
    pub fn since(self, since_ns: u64) -> Track {
        Track { since_ns, ..self }
    }

    /// The row of a thread of this process.
    pub(crate) fn of_thread(tid: u32) -> Option<Track> {
        Some(Track::of(&*process::current()?, tid))
    }

    /// Records a span that has ended. Times are as [`now_ns`](crate::now_ns) counts.
    pub fn duration(
        self,
        level: Level,
        category: &str,
        name: &str,
        start_ns: u64,
        dur_ns: u64,
        args: &Args,
    ) {
        let times = (start_ns, Some(dur_ns));
        self.write(level, b'X', times, b"", (category, name), args);
    }

    /// Records an instant.
    pub fn instant(self, level: Level, category: &str, name: &str, ts_ns: u64, args: &Args) {
        let middle = br#","s":"t""#;
        self.write(level, b'i', (ts_ns, None), middle, (category, name), args);
    }

    /// Records counters, one series for each argument. The viewer shows them under the track's process, told apart by name.
    pub fn counter(self, level: Level, name: &str, ts_ns: u64, series: &Args) {
        self.write(level, b'C', (ts_ns, None), b"", ("counter", name), series);
    }

    /// Records an event of a flow; it binds to the span that `ts_ns` falls into on this track.
    pub fn flow(
        self,
        level: Level,
        phase: FlowPhase,
        category: &str,
        name: &str,
        id: FlowId,
        ts_ns: u64,
    ) {
        let (letter, middle) = flow_middle(phase, id);
        let (times, names) = ((ts_ns, None), (category, name));
        self.write(level, letter, times, middle.as_bytes(), names, &Args::new());
    }

    fn write(
        self,
        level: Level,
        phase: u8,
        (ts_ns, duration_ns): (u64, Option<u64>),
        middle: &[u8],
        (category, name): (&str, &str),
        args: &Args,
    ) {
        let is_wanted = mask::wants_since(level, self.since_ns);
        if !is_wanted || !self.is_live() {
            return; // in the child of a fork the track is the parent's
        }
        let mut names = Vec::new();
        if !write_name(&mut names, category, name) {
            return; // counted
        }
        let place = Place {
            pid: self.pid,
            tid: self.tid,
            ts_ns,
            duration_ns,
        };
        let line = line(phase, &place, middle, &names, args.text());
        seat::with(|seat, writer| {
            if seat.epoch() == self.epoch {
                writer.process.late.note(ts_ns);
                writer.pen.append(&line, None);
                writer.process.come_by(ts_ns);
            }
        });
    }
}

fn record(group: &TrackProcess<'_>, thread: &str) -> io::Result<TrackRecord> {
    Ok(TrackRecord {
        process: owned(names::cut_name(group.name))?,
        label: owned(names::cut_name(group.label))?,
        sort_index: group.sort_index,
        thread: owned(names::cut_name(thread))?,
    })
}

fn record_line(pid: u32, tid: u32, record: &TrackRecord) -> Vec<u8> {
    metadata_line_of(pid, tid, TRACK_RECORD, record)
}
