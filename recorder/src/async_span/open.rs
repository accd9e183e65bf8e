//! An open async span: its lane, its entry of the ring's lane table, and its line in the end.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::alive::Alive;
use crate::clock::now_ns;
use crate::current::Using;
use crate::format::LANE_BASE;
use crate::format::ring::{LANE_NAME_AT, LANE_NAME_BYTES};
use crate::lanes::Ended;
use crate::loss::Cause;
use crate::mask;
use crate::pen::{Body, Name};
use crate::process::{self, Process};
use crate::seat;
use crate::site::Site;
use crate::slot::OpenEntry;
use crate::span::mark_stopped;
use crate::wait;
use crate::writer::Writer;

/// What is known of an open async span.
#[derive(Debug)]
pub(super) struct Open {
    alive: Alive,
    /// The recording in which it began; in another one, and in the child of a fork, it does nothing.
    pub(super) epoch: u32,
    pub(super) lane: u32,
    start_ns: u64,
    /// Name and category are the site's, or `"name":"…","cat":"…"`.
    site: Option<&'static Site>,
    names: Vec<u8>,
    /// So many bytes of args stand behind the names in the text area of the lane, and nowhere else.
    kept: usize,
    /// The args that do not stand there alone.
    args: Vec<u8>,
}

/// Name and category of a span that opens.
pub(super) enum Names<'a> {
    Site(&'static Site),
    /// `"name":"…","cat":"…"`, and the name alone.
    Text(Vec<u8>, &'a str),
}

/// Where a span shall be shown.
#[derive(Default)]
pub(super) struct Spot<'a> {
    /// The lane of the span that it lies in.
    pub(super) parent: Option<u32>,
    /// What its row is called if it lies in none.
    pub(super) lane: Option<&'a str>,
}

impl Open {
    pub(super) fn start(process: &Process, names: Names<'_>, args: &[u8], spot: &Spot<'_>) -> Open {
        let lock = || process.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lanes = lock();
        let taken = lanes.take(spot.parent, spot.lane);
        if let Some(name) = &taken.untold {
            drop(lanes); // telling may wait for the disk
            process.name_lane(taken.lane, name);
            lanes = lock();
        }
        let start_ns = lanes.begin(taken.lane, now_ns());
        drop(lanes);
        let mut is_kept = false;
        if let Some(entry) = process.ring.lane_entry(taken.lane) {
            let number = number(process, &names, entry);
            is_kept = show(process, taken.lane, entry, &names, args);
            entry.open(number, taken.parent, start_ns);
        }
        let (site, names) = match names {
            Names::Site(site) => (Some(site), Vec::new()),
            Names::Text(names, _) => (None, names),
        };
        Open {
            alive: process.alive,
            epoch: process.epoch(),
            lane: taken.lane,
            start_ns,
            site,
            names,
            kept: if is_kept { args.len() } else { 0 },
            args: if is_kept { Vec::new() } else { args.to_vec() },
        }
    }

    /// Appends to the args; `add` gets them, and whether it adds the first.
    pub(super) fn add_args(&mut self, add: impl FnOnce(&mut Vec<u8>, bool)) {
        seat::with(|seat, writer| {
            if seat.epoch() == self.epoch {
                self.add_args_in(writer.process, add); // else told as unfinished when its recording ended
            }
        });
    }

    fn add_args_in(&mut self, process: &Process, add: impl FnOnce(&mut Vec<u8>, bool)) {
        let at = self.names.len();
        let area = process.ring.lane_text(self.lane);
        if let Some(area) = area.filter(|_| self.kept > 0) {
            self.args = area.own(at..at + self.kept).to_vec();
            self.kept = 0;
        }
        let old = self.args.len();
        add(&mut self.args, old == 0);
        if let (Some(entry), Some(area)) = (process.ring.lane_entry(self.lane), area) {
            area.show_more(entry, old, &self.args);
        }
    }

    /// Writes the span on the calling thread's slot and gives its lane back.
    pub(super) fn close(&self, now_ns: u64) {
        let written = seat::with(|seat, writer| {
            if seat.epoch() != self.epoch {
                return; // told as unfinished when its recording ended
            }
            let process = writer.process;
            let Some(ended) = self.end(process, now_ns) else {
                return process.lost.count(Cause::Busy);
            };
            if let Some(name) = &ended.untold {
                process.name_lane(self.lane, name);
            }
            self.write(writer, &ended, process.ring.lane_entry(self.lane));
            self.leave(process);
        });
        // Below a signal handler there is no line, but the lane is free all the same. After the end of recording the span is told as unfinished.
        if written.is_none()
            && let Some(process) = self.process()
            && self.end(&process, now_ns).is_some()
        {
            self.leave(&process);
        }
    }

    /// Whether its recording still takes events.
    pub(super) fn is_live(&self) -> bool {
        self.alive.is_recording(self.epoch)
    }

    /// Its recorder, if that still takes events.
    pub(super) fn process(&self) -> Option<Using> {
        let of_it = |process: &Using| process.epoch() == self.epoch && process.is_recording();
        process::existing().filter(of_it)
    }

    /// Gives the lane back of a span that is not recorded after all.
    pub(super) fn abandon(&self, process: &Process, now_ns: u64) {
        let leave = || {
            if self.end(process, now_ns).is_some() {
                self.leave(process);
            }
        };
        let left = seat::with(|seat, _| {
            if seat.epoch() == self.epoch {
                leave();
            }
        });
        if left.is_none() && process.is_recording() {
            leave(); // as when it is closed
        }
    }

    /// Finds out where the span ended. What lay in it has a row of its own from now on, for readers of the ring too.
    fn end(&self, process: &Process, now_ns: u64) -> Option<Ended> {
        let mut lanes = wait::lock(&process.lanes)?;
        let ended = lanes.end(self.lane, now_ns);
        let orphan = ended.orphan.map(|lane| process.ring.lane_entry(lane));
        if let Some(entry) = orphan.flatten() {
            entry.parent().store(0, Ordering::Relaxed);
        }
        Some(ended)
    }

    fn write(&self, writer: &mut Writer, ended: &Ended, entry: Option<OpenEntry>) {
        let at = self.names.len();
        let area = writer.process.ring.lane_text(self.lane);
        let args = match &area {
            Some(area) if self.kept > 0 => area.own(at..at + self.kept),
            _ => &self.args,
        };
        let stopped = mask::stopped_since(self.start_ns).then(|| {
            let mut args = args.to_vec();
            mark_stopped(&mut args);
            args
        });
        let body = Body {
            duration_ns: Some(ended.end_ns.saturating_sub(self.start_ns)),
            middle: b"",
            name: self.site.map_or(Name::Text(&self.names), Name::Site),
            args: stopped.as_deref().unwrap_or(args),
        };
        if entry.is_none() {
            writer.process.late.note(self.start_ns); // more are open than the ring shows
        }
        let row = LANE_BASE + ended.row;
        writer.pen.span_on_row(row, self.start_ns, &body, entry);
        writer.process.come_by(ended.end_ns);
    }

    /// Gives the lane back.
    fn leave(&self, process: &Process) {
        if let Some(entry) = process.ring.lane_entry(self.lane) {
            entry.start().store(0, Ordering::Release);
        }
        if let Some(mut lanes) = wait::lock(&process.lanes) {
            lanes.give_back(self.lane);
        }
    }
}

/// Lets readers of the ring find the span's args, and its names where it has no site; false if not all args have room.
fn show(process: &Process, lane: u32, entry: OpenEntry, names: &Names<'_>, args: &[u8]) -> bool {
    let Some(area) = process.ring.lane_text(lane) else {
        entry.text().store(0, Ordering::Relaxed);
        return false;
    };
    match names {
        Names::Site(_) => area.show(entry, 0, 0, args),
        Names::Text(names, _) => {
            let is_whole = area.show(entry, 0, names.len(), names);
            is_whole && area.show_more(entry, 0, args)
        }
    }
}

/// The number of the span's site; without one its name stands in the entry.
fn number(process: &Process, names: &Names<'_>, entry: OpenEntry) -> u32 {
    let set_name = |name: &str| entry.set_name(name, LANE_NAME_AT, LANE_NAME_BYTES);
    match names {
        Names::Site(site) => process.ring.number_of(site, || set_name(site.name())),
        Names::Text(_, name) => {
            set_name(name);
            0
        }
    }
}
