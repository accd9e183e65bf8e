//! An open async span: its lane, its entry of the ring's lane table, and its line in the end.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::clock::now_ns;
use crate::format::LANE_BASE;
use crate::format::ring::{LANE_NAME_AT, LANE_NAME_BYTES};
use crate::lanes::Ended;
use crate::line::{self, Place};
use crate::loss::Cause;
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
    pub(super) process: &'static Process,
    pub(super) lane: u32,
    start_ns: u64,
    /// Name and category are the site's, or `"name":"…","cat":"…"`.
    site: Option<&'static Site>,
    names: Vec<u8>,
    pub(super) args: Vec<u8>,
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
    pub(super) fn start(
        process: &'static Process,
        names: Names<'_>,
        args: Vec<u8>,
        spot: &Spot<'_>,
    ) -> Open {
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
        if let Some(entry) = process.ring.lane_entry(taken.lane) {
            let number = number(process, &names, entry);
            entry.open(number, taken.parent, start_ns);
        }
        let (site, names) = match names {
            Names::Site(site) => (Some(site), Vec::new()),
            Names::Text(names, _) => (None, names),
        };
        Open {
            process,
            lane: taken.lane,
            start_ns,
            site,
            names,
            args,
        }
    }

    /// Writes the span on the calling thread's slot and gives its lane back.
    pub(super) fn close(&self, now_ns: u64) {
        let entry = self.process.ring.lane_entry(self.lane);
        let written = seat::with(|seat, writer| {
            if !std::ptr::eq(seat.process, self.process) {
                return; // told as unfinished when its recorder ended
            }
            let Some(ended) = self.end(now_ns) else {
                return self.process.lost.count(Cause::Busy);
            };
            if let Some(name) = &ended.untold {
                self.process.name_lane(self.lane, name);
            }
            self.write(writer, &ended, entry);
            self.leave(entry);
        });
        // Below a signal handler there is no line, but the lane is free all the same. After the end of recording the span is told as unfinished.
        if written.is_none() && !process::is_closed() && self.end(now_ns).is_some() {
            self.leave(entry);
        }
    }

    /// Gives the lane back of a span that is not recorded after all.
    pub(super) fn abandon(&self, now_ns: u64) {
        let entry = self.process.ring.lane_entry(self.lane);
        let leave = || {
            if self.end(now_ns).is_some() {
                self.leave(entry);
            }
        };
        let left = seat::with(|_, _| leave());
        if left.is_none() && !process::is_closed() {
            leave(); // as when it is closed
        }
    }

    /// Finds out where the span ended. What lay in it has a row of its own from now on, for readers of the ring too.
    fn end(&self, now_ns: u64) -> Option<Ended> {
        let mut lanes = wait::lock(&self.process.lanes)?;
        let ended = lanes.end(self.lane, now_ns);
        let orphan = ended.orphan.map(|lane| self.process.ring.lane_entry(lane));
        if let Some(entry) = orphan.flatten() {
            entry.parent().store(0, Ordering::Relaxed);
        }
        Some(ended)
    }

    fn write(&self, writer: &mut Writer, ended: &Ended, entry: Option<OpenEntry>) {
        let place = Place {
            pid: self.process.pid,
            tid: LANE_BASE + ended.row,
            ts_ns: self.start_ns,
            duration_ns: Some(ended.end_ns.saturating_sub(self.start_ns)),
        };
        let site = self.site.map(|site| site.text().plain.as_slice());
        let names = site.unwrap_or(&self.names);
        let stopped = process::stopped_since(self.start_ns).then(|| {
            let mut args = self.args.clone();
            mark_stopped(&mut args);
            args
        });
        let args = stopped.as_ref().unwrap_or(&self.args);
        let from = writer.text.len();
        line::push(&mut writer.text, b'X', &place, b"", names, args);
        let line = writer.text.get(from..).unwrap_or_default();
        writer.pen.append(line, entry);
        writer.text.truncate(from);
    }

    /// Gives the lane back.
    fn leave(&self, entry: Option<OpenEntry>) {
        if let Some(entry) = entry {
            entry.start().store(0, Ordering::Release);
        }
        if let Some(mut lanes) = wait::lock(&self.process.lanes) {
            lanes.give_back(self.lane);
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
