//! Tracks: the parts of a trace for events that do not belong to a thread of this process, such as
//! those on a stream of a device.
//!
//! The merge shows the tracks of one [`TrackProcess`] as a separate process, named after the group
//! and the recording process. In the fragment, a track is a tid that an `sa_track` record
//! describes.

use std::io;

use crate::event::instant::{FlowId, FlowPhase, NamedEvent, flow_middle};
use crate::process::state::Process;
use crate::process::{mask, start};
use crate::sys::epoch::EpochWords;
use crate::sys::memory::{count_out_of_memory, try_to_owned};
use crate::text::name::cut_name;
use crate::text::series;
use crate::text::value::Args;
use crate::thread::thread_state;
use sa_format::Level;
use sa_format::TrackRecord;

/// The group of tracks that a track belongs to. It is shown as a separate process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackProcess<'a> {
    /// Name of the group, such as `Ascend Hardware NPU 3`. The merge adds the name of the process
    /// that recorded it.
    pub name: &'a str,
    /// Short label next to the name, such as `NPU 3`.
    pub label: &'a str,
    /// Position among similar groups: the lowest comes first. All groups come below the processes.
    pub sort_index: u32,
}

/// A track of the trace. Copies refer to the same track. In a forked child, and after a restart of
/// the recording, it ignores events.
#[derive(Clone, Copy, Debug)]
pub struct Track {
    epochs: EpochWords,
    epoch: u32,
    tid: u32,
    /// Start of what is recorded, if a level that was switched off since then must not exclude it.
    since_ns: u64,
}

impl Track {
    /// Returns the track with the name `thread` in a group of this process. The same names give the
    /// same track. Returns `None` while recording is off.
    pub(crate) fn new(group: &TrackProcess<'_>, thread: &str) -> Option<Track> {
        let process = start::current()?;
        let Ok(record) = record(group, thread) else {
            count_out_of_memory();
            return None;
        };
        let (tid, new_line) = process.names.tracks.number(process.pid, record)?;
        if let Some(line) = new_line {
            process.append_own(&line);
        }
        Some(Track::from_tid(&process, tid))
    }

    /// Returns the track that events with this tid belong to, in the current recording.
    pub(crate) fn from_tid(process: &Process, tid: u32) -> Track {
        Track {
            epochs: process.epochs,
            epoch: process.epoch(),
            tid,
            since_ns: u64::MAX,
        }
    }

    /// Returns true if the track still accepts events. A track belongs to one recording, and the
    /// next recording needs a new one.
    pub fn is_live(self) -> bool {
        self.epochs.is_recording(self.epoch)
    }

    /// Returns a copy of the track for events of something that began at `since_ns`. They are
    /// recorded if their level was on at that time.
    #[must_use]
    pub fn since(self, since_ns: u64) -> Track {
        Track { since_ns, ..self }
    }

    /// Returns the track of a thread of this process, by the kernel's thread id.
    pub(crate) fn for_thread(tid: u32) -> Option<Track> {
        Some(Track::from_tid(&*start::current()?, tid))
    }

    /// Records a span on this track after it has ended. Times are as returned by
    /// [`now_ns`](crate::now_ns).
    pub fn duration(
        self,
        level: Level,
        category: &str,
        name: &str,
        start_ns: u64,
        dur_ns: u64,
        args: &Args,
    ) {
        let event = NamedEvent {
            duration_ns: Some(dur_ns),
            ..NamedEvent::new(b'X', category, name, args.text())
        };
        self.write(level, start_ns, event);
    }

    /// Records an instant on this track, at a time as returned by [`now_ns`](crate::now_ns).
    pub fn instant(self, level: Level, category: &str, name: &str, ts_ns: u64, args: &Args) {
        let event = NamedEvent::new(b'i', category, name, args.text());
        self.write(level, ts_ns, event);
    }

    /// Records the values of a counter at `ts_ns`, one for each argument in `series`. The viewer
    /// shows the counter under the track's process and distinguishes counters by name. Values are
    /// kept as by [`counter!`](crate::counter!).
    pub fn counter(self, level: Level, name: &str, ts_ns: u64, series: &Args) {
        if mask::wants_since(level, self.since_ns)
            && let Some(series) = series::numbers(series)
        {
            let event = NamedEvent::new(b'C', "counter", name, series.text());
            self.write(level, ts_ns, event);
        }
    }

    /// Records one event of a flow. It is attached to the span on this track that encloses `ts_ns`.
    pub fn flow(
        self,
        level: Level,
        phase: FlowPhase,
        category: &str,
        name: &str,
        id: FlowId,
        ts_ns: u64,
    ) {
        let mut room = [0; 64];
        let (letter, middle) = flow_middle(&mut room, phase, id);
        let event = NamedEvent {
            middle,
            ..NamedEvent::new(letter, category, name, b"")
        };
        self.write(level, ts_ns, event);
    }

    /// Writes an event at `ts_ns` with the track's tid, if its level is on and the track is live.
    fn write(self, level: Level, ts_ns: u64, mut event: NamedEvent<'_>) {
        event.ts_ns = Some(ts_ns);
        let is_wanted = mask::wants_since(level, self.since_ns);
        if !is_wanted || !self.is_live() {
            return; // in the child of a fork the track belongs to the parent
        }
        thread_state::with(|thread, writer| {
            if thread.epoch() == self.epoch {
                event.write(writer, Some(self.tid));
                writer.process.upkeep_if_due(ts_ns);
            }
        });
    }
}

/// Returns the `sa_track` record that describes a track, with names cut to their maximum length.
/// Returns an error if there is not enough memory.
fn record(group: &TrackProcess<'_>, thread: &str) -> io::Result<TrackRecord> {
    Ok(TrackRecord {
        process: try_to_owned(cut_name(group.name))?,
        label: try_to_owned(cut_name(group.label))?,
        sort_index: group.sort_index,
        thread: try_to_owned(cut_name(thread))?,
    })
}
