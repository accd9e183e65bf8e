//! An open async span: its lane, its entry in the ring's lane table, and its line when it ends.

use std::num::NonZeroU32;
use std::sync::atomic::Ordering;

use crate::event::span::mark_stopped;
use crate::process::async_ids::OpenAsync;
use crate::process::mask;
use crate::process::open_spans::record_lane_name;
use crate::process::reclaim::{self, ProcessRef};
use crate::process::state::Process;
use crate::ring::lanes::{Allocated, Ended, OwnText};
use crate::ring::open_entry::{EntryName, LANE_NAME, OpenEntry};
use crate::sys::memory::{copy_or_empty, count_out_of_memory};
use crate::sys::{clock, epoch};
use crate::text::site::Site;
use crate::text::value;
use crate::thread::event_writer::{Body, Name};
use crate::thread::slot_writer::SlotWriter;
use crate::thread::thread_state;
use sa_format::LANE_BASE;
use sa_format::loss::Cause;

/// Flag in `lane`: the lane has a text of its own for the span. Otherwise a site names the span,
/// and all its args are in the lane's area of the ring.
const OWN_TEXT: u32 = 1 << 31;
/// Flag in `lane`: the ring has no entry for the lane, so readers do not see the span while it is
/// open.
const HIDDEN: u32 = 1 << 30;
/// Names of a span whose own names were lost.
const NAMELESS: &[u8] = br#""name":"","cat":"""#;

/// The place where a span is to be shown.
#[derive(Default)]
pub(super) struct Placement<'a> {
    /// Lane of the parent span.
    pub(super) parent: Option<u32>,
    /// Name of its lane if it has no parent.
    pub(super) lane: Option<&'a str>,
}

impl OpenAsync {
    /// Opens an async span on a free lane and shows it in the ring. `names` is empty if a site
    /// names the span, and otherwise `"name":"…","cat":"…"`. Returns `None` if there is no lane for
    /// the span, which is counted.
    #[inline(never)]
    pub(super) fn open(
        process: &Process,
        (name, names): (EntryName<'_>, &[u8]),
        args: &[u8],
        placement: &Placement<'_>,
    ) -> Option<OpenAsync> {
        let site = match name {
            EntryName::Site(site) => Some(site),
            EntryName::Text(_) => None,
        };
        let (allocated, start_ns) = allocate_lane(process, site, placement)?;
        let mut is_whole = args.is_empty();
        let mut lane = allocated.lane;
        if let Some(entry) = process.ring.lane_entry_or_add(allocated.lane) {
            let number = process.ring.site_number(name, entry, LANE_NAME);
            is_whole |= store_text(process, allocated.lane, entry, names, args);
            entry.open(number, allocated.parent, start_ns);
        } else {
            lane |= HIDDEN;
            process.lost.begin_hidden();
        }
        let mut open = OpenAsync {
            epoch: NonZeroU32::new(process.epoch())?,
            lane,
            start_ns,
        };
        if site.is_none() || !is_whole {
            open.store_own_text(process, names, args);
        }
        Some(open)
    }

    /// Stores the span's names and args with its lane, because neither the ring nor its site
    /// contains all of them.
    #[cold]
    #[inline(never)]
    fn store_own_text(&mut self, process: &Process, names: &[u8], args: &[u8]) {
        let mut text = copy_or_empty(names);
        let names = text.len();
        value::raw_after(&mut text, true, args);
        self.set_own(process, OwnText { text, names });
    }

    /// Stores `own`, the part of the span's text that the ring lacks, with its lane. Counts it as
    /// lost if other threads keep the lock on the lanes.
    fn set_own(&mut self, process: &Process, own: OwnText) {
        match process.lanes.lock() {
            Some(mut lanes) => {
                *lanes.own_text(self.lane()) = own;
                self.lane |= OWN_TEXT;
            }
            None => process.lost.count(Cause::Busy),
        }
    }

    /// Returns the span's lane, a virtual thread with a number from 0.
    pub(super) fn lane(&self) -> u32 {
        self.lane & !(OWN_TEXT | HIDDEN)
    }

    /// Returns the span's entry in the ring, or `None` if the ring has no entry for its lane.
    #[inline(always)]
    fn entry(&self, process: &Process) -> Option<OpenEntry> {
        if self.lane & HIDDEN == 0 {
            process.ring.lane_entry(self.lane())
        } else {
            None
        }
    }

    /// Returns the number of the recording in which the span began.
    pub(super) fn epoch(&self) -> u32 {
        self.epoch.get()
    }

    /// Adds args to the open span. `add` appends them to the empty text that it gets. It also gets
    /// true, because it adds the first arg there.
    pub(super) fn add_args(&mut self, add: impl FnOnce(&mut Vec<u8>, bool)) {
        thread_state::with(|thread, writer| {
            if thread.epoch() != self.epoch() {
                return; // reported as unfinished when its recording ended
            }
            let from = writer.text.len();
            add(&mut writer.text, true);
            let args = writer.text.get(from..).unwrap_or_default();
            self.append(writer.process, args);
            writer.text.truncate(from);
        });
    }

    /// Appends `args` to the args that are stored for the span, in the ring or with its lane.
    fn append(&mut self, process: &Process, args: &[u8]) {
        let entry = self.entry(process);
        let place = entry.zip(process.ring.lane_text(self.lane()));
        let mut own = OwnText::default();
        if self.lane & OWN_TEXT != 0 {
            let Some(mut lanes) = process.lanes.lock() else {
                return process.lost.count(Cause::Busy);
            };
            own = std::mem::take(lanes.own_text(self.lane()));
        } else if let Some((entry, area)) = place {
            if args.is_empty() || area.append(entry, args) {
                return;
            }
            own.text = copy_or_empty(area.args(entry));
        }
        let old = own.args().len();
        value::raw_after(&mut own.text, old == 0, args);
        if let Some((entry, area)) = place {
            area.store_more(entry, old, own.args());
        }
        self.set_own(process, own);
    }

    /// Ends the span at `now_ns`: writes its line into the calling thread's slot and frees its
    /// lane.
    pub(super) fn close(&self, now_ns: u64) {
        let written = thread_state::with(|thread, writer| {
            if thread.epoch() != self.epoch() {
                return; // reported as unfinished when its recording ended
            }
            let process = writer.process;
            let Some((ended, own)) = self.end(process, now_ns) else {
                return process.lost.count(Cause::Busy);
            };
            if !ended.is_named {
                record_lane_name(process, self.lane());
            }
            let entry = self.entry(process);
            self.write(writer, &ended, own.as_ref(), entry);
            self.free_lane(process, entry);
        });
        // In a signal handler no line can be written, but the lane is freed all the same. After the
        // end of recording, the span is reported as unfinished.
        if written.is_none()
            && let Some(process) = self.process()
        {
            self.end_unwritten(&process, now_ns);
        }
    }

    /// Ends the span and frees its lane, but writes no line for it.
    #[cold]
    fn end_unwritten(&self, process: &Process, now_ns: u64) {
        if self.end(process, now_ns).is_some() {
            self.free_lane(process, self.entry(process));
        }
    }

    /// Returns true if the span's recording still accepts events.
    pub(super) fn is_live(&self) -> bool {
        epoch::is_recording(self.epoch())
    }

    /// Returns the recorder of the recording in which the span began. Returns `None` if that
    /// recording accepts no more events.
    pub(super) fn process(&self) -> Option<ProcessRef> {
        let is_recorder =
            |process: &ProcessRef| process.epoch() == self.epoch() && process.is_recording();
        reclaim::existing().filter(is_recorder)
    }

    /// Frees the span's lane without recording the span, because nobody can end it.
    pub(super) fn abandon(&self, process: &Process, now_ns: u64) {
        let free = || self.end_unwritten(process, now_ns);
        let freed = thread_state::with(|thread, _| {
            if thread.epoch() == self.epoch() {
                free();
            }
        });
        if freed.is_none() && process.is_recording() {
            free(); // as in `close`
        }
    }

    /// Ends the span in the lanes. Returns its end, and the text that was stored with its lane, if
    /// any. The span's child becomes independent, for readers of the ring too. The lane is freed,
    /// but cannot be reused until its entry is vacant. Returns `None` if other threads keep the
    /// lock on the lanes.
    #[inline(always)] // otherwise the result goes through memory in pieces, which stalls
    fn end(&self, process: &Process, now_ns: u64) -> Option<(Ended, Option<OwnText>)> {
        let lane = self.lane();
        let mut lanes = process.lanes.lock()?;
        let ended = lanes.end(lane, now_ns);
        let own = (self.lane & OWN_TEXT != 0).then(|| std::mem::take(lanes.own_text(lane)));
        let orphan = ended.orphan.map(|lane| process.ring.lane_entry(lane));
        if let Some(entry) = orphan.flatten() {
            entry.parent().store(0, Ordering::Relaxed);
        }
        if self.lane & HIDDEN == 0 {
            lanes.release(lane);
        }
        Some((ended, own))
    }

    /// Writes the line of the ended span into the calling thread's slot. The line also closes the
    /// span's ring `entry`, if it has one.
    #[inline(always)]
    fn write(
        &self,
        writer: &mut SlotWriter,
        ended: &Ended,
        own: Option<&OwnText>,
        entry: Option<OpenEntry>,
    ) {
        let process = writer.process;
        let area = || process.ring.lane_text(self.lane());
        let place = match own {
            None => entry.zip(area()),
            Some(_) => None,
        };
        let in_ring = place.as_ref().map(|(entry, area)| area.args(*entry));
        let args = own.map(OwnText::args).or(in_ring).unwrap_or_default();
        let names = || {
            let names = own.map(OwnText::names).filter(|names| !names.is_empty());
            names.unwrap_or(NAMELESS)
        };
        let site = ended.site.map(|site| Name::Site(site.text()));
        let mut body = Body {
            duration_ns: Some(ended.end_ns.saturating_sub(self.start_ns)),
            middle: b"",
            name: site.unwrap_or_else(|| Name::Text(names())),
            args,
        };
        let mut marked;
        if mask::stopped_since(self.start_ns) {
            marked = copy_or_empty(args);
            mark_stopped(&mut marked);
            body.args = &marked;
        }
        if entry.is_none() {
            process.open_horizon.observe(self.start_ns); // more spans are open than the ring can show
        }
        let tid = LANE_BASE + ended.shown_lane;
        let events = &mut writer.events;
        events.write_on(Some(tid), b'X', self.start_ns, &body, entry);
        process.upkeep_if_due(ended.end_ns);
    }

    /// Makes the span's lane available to other spans after its line was written. `entry` is its
    /// ring entry.
    #[inline]
    fn free_lane(&self, process: &Process, entry: Option<OpenEntry>) {
        if let Some(entry) = entry {
            entry.start().store(0, Ordering::Release);
            return;
        }
        process.lost.end_hidden();
        if let Some(mut lanes) = process.lanes.lock() {
            lanes.release(self.lane()); // there is no entry that would show when it is vacant
        }
    }
}

/// Allocates a lane to a new async span and begins the span. Returns the lane, and the span's start
/// in ns. If other threads keep the lock on the lanes, or if there is no memory for another lane,
/// counts that and returns `None`.
#[inline(always)]
fn allocate_lane(
    process: &Process,
    site: Option<&'static Site>,
    placement: &Placement<'_>,
) -> Option<(Allocated, u64)> {
    let is_vacant = |lane| {
        let entry = process.ring.lane_entry(lane);
        entry.is_none_or(|entry| entry.start().load(Ordering::Acquire) == 0)
    };
    let now_ns = clock::now_ns();
    let Some(mut lanes) = process.lanes.lock() else {
        process.lost.count(Cause::Busy);
        return None;
    };
    let Some(allocated) = lanes.allocate(placement.parent, placement.lane, is_vacant) else {
        count_out_of_memory();
        return None;
    };
    if !allocated.is_named {
        drop(lanes); // recording the name may wait for the disk
        record_lane_name(process, allocated.lane);
        let Some(locked) = process.lanes.lock() else {
            process.lost.count(Cause::Busy);
            return None;
        };
        lanes = locked;
    }
    let start_ns = lanes.begin(allocated.lane, site, now_ns);
    Some((allocated, start_ns))
}

/// Stores the args of a new async span in the ring, and its `names` if no site names it. Returns
/// false if not all of them fit.
#[inline(always)]
fn store_text(process: &Process, lane: u32, entry: OpenEntry, names: &[u8], args: &[u8]) -> bool {
    let Some(area) = process.ring.lane_text(lane) else {
        entry.text().store(0, Ordering::Relaxed);
        return false;
    };
    if names.is_empty() {
        return area.store(entry, 0, 0, args);
    }
    area.store(entry, 0, names.len(), names) && area.store_more(entry, 0, args)
}
