//! Formats a thread's events straight into its slot and publishes them. There is no lock,
//! allocation or system call per event. Code paths that do more than that prevent the cancellation
//! of the thread, which the host may have created in C.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::process::flush::{self, Extent, Outcome, STEP_BYTES};
use crate::process::state::Process;
use crate::process::upkeep::HELPER_LATE_NS;
use crate::ring::open_entry::OpenEntry;
use crate::ring::slot::Slot;
use crate::sys::cancel::Uncancelled;
use crate::sys::clock;
use crate::sys::memory::{count_out_of_memory, try_zeros};
use crate::sys::wait::PATIENCE_NS;
use crate::text::encode::{Line, SLACK};
use crate::text::site::SiteText;
use sa_format::loss::Cause;
use sa_format::{MAX_LINE_BYTES, ring as layout};

/// Room in bytes for a line without its name, category and args.
const FIXED_BYTES: usize = 256 + SLACK;
/// Text between the tid and the time.
const TIME_KEY: &[u8; 6] = b",\"ts\":";
/// Offset of the phase in a line.
const PHASE_AT: usize = 7;
/// Number of bytes that a thread gathers before it flushes its own slot: one step and the rest of
/// the last line.
const OWN_STEP_BYTES: u64 = STEP_BYTES as u64 + 1024;
/// Number of bytes after which a thread tries to flush again if another thread was writing.
const RETRY_BYTES: u64 = 4096;
const SECOND_NS: u64 = 1_000_000_000;
/// Room in bytes for a short line. Because the size is known at compile time, not every part of the
/// line needs a bounds check. The prefix has at most 64 bytes, the time within the second 10, a
/// duration 28, middle and args 32 each, the name 64, the end 3: 233.
const SHORT_LINE: usize = 256;

/// Formats the events of one thread as lines in its slot, and publishes them.
pub(crate) struct EventWriter {
    process: &'static Process,
    slot: &'static Slot,
    state: &'static AtomicU64,
    key: u64,
    /// Position after the last published line.
    head: u64,
    /// Position up to which the thread may write without reading `flushed` again.
    limit: u64,
    /// Number of open spans.
    pub(crate) depth: u32,
    /// Entry of a span that ends with the next line, if the depth in the state cannot express that.
    pub(crate) closing: Option<OpenEntry>,
    /// Flushed position when the thread last gave up waiting for room.
    stalled_at: Option<u64>,
    /// Beginning of the second that `prefix` ends with.
    second_ns: u64,
    /// `{"ph":"X","pid":P,"tid":T,"ts":` and the digits of the second.
    prefix: [u8; 64],
    prefix_len: usize,
    fixed_len: usize,
    /// Offset of the tid in the prefix.
    tid_at: usize,
}

/// The contents of a timed event apart from its phase and time.
#[derive(Clone, Copy)]
pub(crate) struct Body<'a> {
    /// Duration for `X`.
    pub(crate) duration_ns: Option<u64>,
    /// Text between the time and the name, such as `,"s":"t"`.
    pub(crate) middle: &'a [u8],
    pub(crate) name: Name<'a>,
    /// Args as JSON without the braces.
    pub(crate) args: &'a [u8],
}

/// Name and category of an event.
#[derive(Clone, Copy)]
pub(crate) enum Name<'a> {
    /// Name of a call site.
    Site(&'static SiteText),
    /// `"name":"…","cat":"…"`, encoded for this event.
    Text(&'a [u8]),
}

impl Body<'_> {
    /// Returns true if the line of the event is certain to fit into [`SHORT_LINE`] bytes.
    #[inline(always)]
    fn is_short(&self) -> bool {
        const SHORT: usize = 32;
        let is_short_name = match self.name {
            Name::Site(text) => text.with_args.len() <= 64,
            Name::Text(_) => false,
        };
        is_short_name && self.args.len() <= SHORT && self.middle.len() <= SHORT
    }
}

impl Name<'_> {
    /// Returns the maximum number of bytes that the name and category take in the line.
    fn len(&self) -> usize {
        match self {
            Name::Site(text) => text.with_args.len(),
            Name::Text(text) => text.len() + 16,
        }
    }
}

impl EventWriter {
    /// Creates the writer that formats the events of thread `tid` in its `slot` (the ring area of
    /// one thread).
    pub(crate) fn new(process: &'static Process, slot: &'static Slot, tid: u32) -> EventWriter {
        let mut prefix = [0; 64];
        let mut line = Line::new(&mut prefix);
        line.text(br#"{"ph":"X","pid":"#);
        line.integer(process.pid);
        line.text(br#","tid":"#);
        let tid_at = line.len();
        line.integer(tid);
        line.text(TIME_KEY);
        let fixed_len = line.len();
        let (head, state) = (slot.head(), slot.state());
        EventWriter {
            process,
            slot,
            state,
            key: slot.key,
            head,
            limit: head,
            depth: 0,
            closing: None,
            stalled_at: None,
            second_ns: 0,
            prefix,
            prefix_len: fixed_len,
            fixed_len,
            tid_at,
        }
    }

    /// Returns the position after the last published line of the slot.
    pub(crate) fn position(&self) -> u64 {
        self.head
    }

    /// Publishes the lines written to the slot so far and the number of open spans, with one store
    /// of the slot's state.
    #[inline(always)]
    pub(crate) fn publish(&mut self) {
        if self.depth as usize >= layout::MAX_DEPTH {
            return self.publish_deep();
        }
        let state = layout::state(self.head, u64::from(self.depth), self.key);
        self.state.store(state, Ordering::Release);
    }

    /// Does the work of [`EventWriter::publish`] if the number of open spans does not fit into the
    /// slot's state. The state then contains the largest depth that fits.
    #[cold]
    #[inline(never)]
    fn publish_deep(&mut self) {
        if let Some(entry) = self.closing.take() {
            entry.close_with(self.slot.index, self.head);
        }
        let state = layout::state(self.head, layout::MAX_DEPTH as u64, self.key);
        self.state.store(state, Ordering::Release);
    }

    /// Writes an event of the calling thread into its slot and publishes it. `phase` is the event's
    /// letter in the trace format, and `ts_ns` its start.
    #[inline(always)]
    pub(crate) fn write(&mut self, phase: u8, ts_ns: u64, body: &Body<'_>) {
        self.write_on(None, phase, ts_ns, body, None);
    }

    /// Writes an event like [`EventWriter::write`], with the given tid or by default the thread's
    /// own. If `closing` is the ring entry of an async span, the event ends that span.
    #[inline(always)]
    pub(crate) fn write_on(
        &mut self,
        tid: Option<u32>,
        phase: u8,
        ts_ns: u64,
        body: &Body<'_>,
        closing: Option<OpenEntry>,
    ) {
        let need = FIXED_BYTES + body.middle.len() + body.name.len() + body.args.len();
        if self.head + need as u64 > self.limit && !self.make_room(need as u64) {
            let body = *body; // a copy, so that the original can stay in registers
            return self.large_event(tid, phase, ts_ns, need, &body);
        }
        // SAFETY: positions from `head` on belong to this thread until published, and there is room
        // for `need`.
        let room = unsafe { std::slice::from_raw_parts_mut(self.slot.address(self.head), need) };
        self.enter_second(tid, ts_ns);
        let len = match room.first_chunk_mut::<SHORT_LINE>() {
            Some(room) if body.is_short() => self.compose(Line::new(room), tid, phase, ts_ns, body),
            _ => self.compose_long(room, tid, phase, ts_ns, &{ *body }), // a copy, as above
        };
        self.head += len as u64;
        if let Some(entry) = closing {
            entry.close_with(self.slot.index, self.head);
        }
        self.publish();
    }

    /// Updates the line prefix, which ends with a whole second, to the second of an event at
    /// `ts_ns`. An event with another tid only moves it forward: if such an event began earlier,
    /// the thread's next event would move the prefix back.
    #[inline(always)]
    fn enter_second(&mut self, tid: Option<u32>, ts_ns: u64) {
        let part = ts_ns.wrapping_sub(self.second_ns);
        if part >= SECOND_NS && (tid.is_none() || ts_ns > self.second_ns) {
            self.change_second(ts_ns / SECOND_NS);
        }
    }

    /// Updates the line prefix, with which the thread's lines begin, to a new second of time. Also
    /// does the process's upkeep if it is due.
    #[cold]
    #[inline(never)]
    fn change_second(&mut self, second: u64) {
        let _uncancelled = Uncancelled::begin();
        self.second_ns = second * SECOND_NS;
        let mut buffer = itoa::Buffer::new();
        let digits = match second {
            0 => "",
            second => buffer.format(second),
        };
        self.prefix_len = self.fixed_len + digits.len();
        self.prefix[self.fixed_len..self.prefix_len].copy_from_slice(digits.as_bytes());
        self.process.upkeep_if_due(self.second_ns);
    }

    /// Formats an event as a line of JSON in the buffer of `line`. Returns the length of the line
    /// in bytes, or 0 if it does not fit.
    #[inline(always)]
    fn compose(
        &self,
        mut line: Line<'_>,
        tid: Option<u32>,
        phase: u8,
        ts_ns: u64,
        body: &Body<'_>,
    ) -> usize {
        let part = ts_ns.wrapping_sub(self.second_ns);
        let is_in_second = self.second_ns > 0 && (tid.is_none() || part < SECOND_NS);
        match tid {
            None => line.block(&self.prefix, self.prefix_len),
            Some(tid) => {
                line.block(&self.prefix, self.tid_at);
                line.number(tid);
                if is_in_second {
                    let time_at = self.fixed_len - TIME_KEY.len();
                    line.text(&self.prefix[time_at..self.prefix_len]);
                } else {
                    line.literal(TIME_KEY);
                }
            }
        }
        if phase != b'X' {
            line.replace(PHASE_AT, phase);
        }
        if is_in_second {
            line.second_part(u32::try_from(part).unwrap_or(0));
        } else {
            line.micros(ts_ns);
        }
        finish_line(&mut line, body);
        if line.fits() { line.len() } else { 0 }
    }

    /// Does the work of [`EventWriter::compose`] for a line that may be long, in the buffer `room`.
    #[inline(never)]
    fn compose_long(
        &self,
        room: &mut [u8],
        tid: Option<u32>,
        phase: u8,
        ts_ns: u64,
        body: &Body<'_>,
    ) -> usize {
        self.compose(Line::new(room), tid, phase, ts_ns, body)
    }

    /// Makes room for a line of `need` bytes in the slot. Flushes if the slot is more than three
    /// quarters full, or step by step if other threads record as fast. Returns false if the line
    /// cannot be written to the slot: it is larger than half of the slot's ring bytes, or it is
    /// lost and counted.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, need: u64) -> bool {
        let _uncancelled = Uncancelled::begin();
        let (size, flushed) = (self.slot.bytes, self.slot.flushed().load(Ordering::Acquire));
        if self.process.switches.is_late(HELPER_LATE_NS) {
            self.process.do_upkeep();
        }
        if need > size / 2 {
            return false;
        }
        let end = self.head + need - flushed;
        if self.process.crowded.load(Ordering::Relaxed) && end <= size {
            self.flush_steps(flushed);
            return true;
        }
        self.limit = if end <= size / 2 {
            flushed + size / 2
        } else if end <= size / 4 * 3 {
            if self.process.helper_sleeps.load(Ordering::Relaxed) {
                self.process.wake_helper();
            }
            flushed + size / 4 * 3
        } else {
            return self.flush_for_room(need, end);
        };
        true
    }

    /// Writes the slot's lines to the fragment in whole steps while they are still in this
    /// processor's cache, unless another thread is writing. `flushed` is the position up to which
    /// the slot was flushed. The slot has room for the next line in any case.
    fn flush_steps(&mut self, flushed: u64) {
        let (slot, process) = (self.slot, self.process);
        if self.head - flushed >= OWN_STEP_BYTES {
            flush::try_flush(slot, process, Extent::Steps);
        }
        let flushed = slot.flushed().load(Ordering::Acquire);
        let limit = (flushed + OWN_STEP_BYTES).max(self.head + RETRY_BYTES);
        self.limit = limit.min(flushed + slot.bytes);
    }

    /// Flushes the slot, waits at most a second, and returns true if the slot then has room for
    /// `need` bytes. Otherwise counts the event as lost. `end` is the number of bytes that the slot
    /// would contain with the event's line.
    fn flush_for_room(&mut self, need: u64, end: u64) -> bool {
        let (slot, process) = (self.slot, self.process);
        let flushed = |slot: &Slot| slot.flushed().load(Ordering::Acquire);
        let end_ns = clock::now_ns() + PATIENCE_NS;
        if flush::flush_within(slot, process, end_ns) == Outcome::Done {
            self.limit = flushed(slot) + slot.bytes / 2;
            return self.head + need <= self.limit;
        }
        let stalled = self.stalled_at == Some(flushed(slot));
        if end > slot.bytes && (stalled || !process.make_room(slot, need)) {
            // The thread waits once for a stalled file. Then events are dropped until the file has
            // accepted something.
            self.stalled_at = Some(flushed(slot));
            self.limit = self.head;
            process.lost.count(Cause::Busy);
            return false;
        }
        self.limit = flushed(slot) + slot.bytes;
        true
    }

    /// Writes an event for which [`EventWriter::make_room`] found no room. If the event is larger
    /// than half of the slot's ring bytes, it goes directly to the fragment. Any other such event
    /// is lost and already counted.
    #[cold]
    #[inline(never)]
    fn large_event(
        &mut self,
        tid: Option<u32>,
        phase: u8,
        ts_ns: u64,
        need: usize,
        body: &Body<'_>,
    ) {
        if need as u64 > self.slot.bytes / 2 {
            self.enter_second(tid, ts_ns);
            match try_zeros(need) {
                Ok(mut bytes) => {
                    let len = self.compose_long(&mut bytes, tid, phase, ts_ns, body);
                    self.write_through(bytes.get(..len).unwrap_or_default());
                }
                Err(_) => count_out_of_memory(),
            }
        }
        self.publish();
    }

    /// Writes a line directly to the fragment instead of the slot. Counts a line that is too long
    /// for readers as lost.
    fn write_through(&self, line: &[u8]) {
        let _uncancelled = Uncancelled::begin();
        if line.len() > MAX_LINE_BYTES {
            return self.process.lost.count(Cause::TooLarge);
        }
        self.process.write_through(line);
    }

    /// Writes a whole line, such as the record with the thread's name, to the slot and publishes
    /// it. A line that is larger than half of the slot's ring bytes goes directly to the fragment.
    /// A line without room is lost and counted.
    pub(crate) fn append(&mut self, line: &[u8]) {
        let need = line.len() as u64;
        if need > self.slot.bytes / 2 {
            return self.write_through(line);
        }
        if self.head + need > self.limit && !self.make_room(need) {
            return; // counted
        }
        flush::append(self.slot, self.head, line, u64::from(self.depth.min(255)));
        self.head += need;
    }
}

/// Writes the part of an event's line after the time: its duration, name, category and args.
#[inline(always)]
fn finish_line(line: &mut Line<'_>, body: &Body<'_>) {
    if let Some(duration_ns) = body.duration_ns {
        line.duration(duration_ns);
    }
    if !body.middle.is_empty() {
        line.text(body.middle);
    }
    match body.name {
        Name::Site(text) if body.args.is_empty() => return line.padded(&text.alone),
        Name::Site(text) => line.padded(&text.with_args),
        Name::Text(text) => {
            line.literal(b",");
            line.text(text);
            if body.args.is_empty() {
                return line.literal(b"}\n");
            }
            line.literal(b",\"args\":{");
        }
    }
    line.text(body.args);
    line.literal(b"}}\n");
}
