//! Spans that live across awaits or threads, on virtual lanes.

mod by_id;

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::clock::now_ns;
use crate::config::Level;
use crate::format::LANE_BASE;
use crate::format::ring::{LANE_NAME_AT, LANE_NAME_BYTES};
use crate::line::{Place, line};
use crate::loss::Cause;
use crate::names::lane_name_line;
use crate::process::{self, Process};
use crate::seat;
use crate::site::Site;
use crate::slot::OpenEntry;
use crate::span::{SiteArgs, mark_stopped, site_args, write_name};
use crate::value::{self, Args, Value};
use crate::wait;

pub use by_id::AsyncSpanId;
pub(crate) use by_id::Held;

/// A span that may be sent to other threads and held over awaits: it takes the lowest free lane of its process until it is dropped.
#[derive(Debug)]
#[must_use = "a span ends when it is dropped"]
pub struct AsyncSpan(Option<Box<Open>>);

#[derive(Debug)]
struct Open {
    process: &'static Process,
    lane: u32,
    start_ns: u64,
    /// `"name":"…","cat":"…"`
    names: Vec<u8>,
    args: Vec<u8>,
}

impl AsyncSpan {
    /// A span that is not recorded.
    #[doc(hidden)]
    pub const fn off() -> AsyncSpan {
        AsyncSpan(None)
    }

    /// Opens a span of a call site; `args` appends its arguments.
    #[doc(hidden)]
    pub fn open(site: &'static Site, args: impl FnOnce(&mut SiteArgs<'_>)) -> AsyncSpan {
        let opened = seat::with(|seat, _| {
            process::wants(site.level()).then(|| {
                let mut text = Vec::new();
                site_args(&mut text, args);
                let mut name = "";
                let number = seat.process.ring.number_of(site, || name = site.name());
                Open::start(seat.process, site.text().plain.clone(), text, number, name)
            })
        });
        AsyncSpan(opened.flatten().map(Box::new))
    }

    pub(crate) fn open_named(level: Level, category: &str, name: &str) -> AsyncSpan {
        if !process::wants(level) {
            return AsyncSpan(None);
        }
        let opened = seat::with(|seat, _| {
            process::wants(level).then(|| {
                let mut names = Vec::new();
                write_name(&mut names, category, name);
                Open::start(seat.process, names, Vec::new(), 0, name)
            })
        });
        AsyncSpan(opened.flatten().map(Box::new))
    }

    /// Ends it without recording it: what its end would tell never was. Counted as lost for this cause.
    fn abandon(mut self, cause: Cause) {
        if let Some(open) = self.0.take()
            && open.process.alive.load(Ordering::Relaxed) != 0
        {
            open.abandon();
            open.process.lost.count(cause);
        }
    }

    /// Adds an argument; it may still be added just before the span ends.
    pub fn arg(&mut self, key: &str, value: impl Value) {
        if let Some(open) = &mut self.0 {
            let first = open.args.is_empty();
            value::push_after(&mut open.args, first, key, &value);
        }
    }

    /// Adds args that are JSON text already: `"key":value,…`, without braces.
    #[doc(hidden)]
    pub fn raw(&mut self, args: &[u8]) {
        if let Some(open) = &mut self.0 {
            let first = open.args.is_empty();
            value::raw_after(&mut open.args, first, args);
        }
    }

    /// Adds arguments.
    pub fn args(&mut self, args: &Args) {
        self.raw(args.text());
    }

    /// Whether the span is being recorded.
    pub fn is_recording(&self) -> bool {
        self.0.is_some()
    }
}

impl Open {
    fn start(
        process: &'static Process,
        names: Vec<u8>,
        args: Vec<u8>,
        site: u32,
        name: &str,
    ) -> Open {
        let (lane, new) = process
            .lanes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if new {
            process.named_lanes.add(lane);
            process.tell(&lane_name_line(process.pid, lane));
        }
        let start_ns = now_ns();
        if let Some(entry) = process.ring.lane_entry(lane) {
            entry.set_name(name, LANE_NAME_AT, LANE_NAME_BYTES);
            entry.open(site, start_ns);
        }
        Open {
            process,
            lane,
            start_ns,
            names,
            args,
        }
    }

    fn line(&self, end_ns: u64) -> Vec<u8> {
        let mut args = self.args.clone();
        if process::stopped_since(self.start_ns) {
            mark_stopped(&mut args);
        }
        let place = Place {
            pid: self.process.pid,
            tid: LANE_BASE + self.lane,
            ts_ns: self.start_ns,
            duration_ns: Some(end_ns.saturating_sub(self.start_ns)),
        };
        line(b'X', &place, b"", &self.names, &args)
    }

    /// Writes the span on the calling thread's slot and gives its lane back.
    fn close(&self, end_ns: u64) {
        let line = self.line(end_ns);
        let entry = self.process.ring.lane_entry(self.lane);
        let written = seat::with(|_, writer| {
            writer.pen.append(&line, entry);
            self.leave(entry);
        });
        // Below a signal handler there is no line, but the lane is free all the same. After the end of recording the span is told as unfinished.
        if written.is_none() && !process::is_closed() {
            self.leave(entry);
        }
    }

    /// Gives the lane back of a span that is not recorded after all.
    fn abandon(&self) {
        let entry = self.process.ring.lane_entry(self.lane);
        let left = seat::with(|_, _| self.leave(entry));
        if left.is_none() && !process::is_closed() {
            self.leave(entry); // as when it is closed
        }
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

impl Drop for AsyncSpan {
    fn drop(&mut self) {
        if let Some(open) = self.0.take()
            && open.process.alive.load(Ordering::Relaxed) != 0
        {
            open.close(now_ns()); // in the child of a fork the span is the parent's
        }
    }
}
