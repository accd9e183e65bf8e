//! Formats a thread's events straight into its slot and publishes them. No lock, no allocation, no system call per event.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock;
use crate::encode::{Line, SLACK};
use crate::flush::{self, Extent, Outcome, STEP_BYTES};
use crate::format::{MAX_LINE_BYTES, ring as layout};
use crate::loss::Cause;
use crate::process::Process;
use crate::site::Site;
use crate::slot::{OpenEntry, Slot};
use crate::wait::PATIENCE_NS;

/// Room for everything of a line but its name, category and args.
const FIXED_BYTES: usize = 256 + SLACK;
/// Where the phase stands in a line.
const PHASE_AT: usize = 7;
/// What a thread that flushes for itself gathers: a step and the last line's rest.
const OWN_STEP_BYTES: u64 = STEP_BYTES as u64 + 1024;
/// After so many bytes it tries again if another thread was writing.
const RETRY_BYTES: u64 = 4096;
const SECOND_NS: u64 = 1_000_000_000;
/// Added to the depth of a span whose args the writer keeps outside of its text.
const OWN_ARGS: u32 = 1 << 31;

/// The writing end of a slot; used by the thread that has the seat.
pub(crate) struct Writer {
    pub(crate) process: &'static Process,
    slot: &'static Slot,
    state: &'static AtomicU64,
    key: u64,
    /// Position after the last published line.
    head: u64,
    /// Up to here the thread may write without looking at `flushed` again.
    limit: u64,
    depth: u32,
    /// What was flushed when waiting for room was given up.
    stalled_at: Option<u64>,
    /// The second that `prefix` ends with.
    second: u64,
    /// `{"ph":"X","pid":P,"tid":T,"ts":` and the digits of the second.
    prefix: [u8; 64],
    prefix_len: usize,
    fixed_len: usize,
    /// Args of the open spans, and names that have no site.
    pub(crate) text: Vec<u8>,
    /// Spans that ended before one opened after them, by depth, each with where its text began.
    vacant: Vec<(u32, u32)>,
    /// Args that grew while a later span was open, by the depth of their span.
    own_args: Vec<(u32, Vec<u8>)>,
    /// Spans begun without a guard.
    pub(crate) begun: Vec<crate::span::Begun>,
}

/// A piece of the writer's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) from: u32,
    pub(crate) len: u32,
}

impl Piece {
    fn range(self) -> std::ops::Range<usize> {
        self.from as usize..self.from as usize + self.len as usize
    }
}

/// What a timed event consists of beside its phase and time.
pub(crate) struct Body<'a> {
    /// Duration for `X`, with the thread's CPU time at start and its length if that is recorded.
    pub(crate) duration: Option<(u64, Option<(u64, u64)>)>,
    /// Text between the time and the name, such as `,"s":"t"`.
    pub(crate) middle: &'a [u8],
    pub(crate) name: Name<'a>,
    /// Args as JSON without the braces.
    pub(crate) args: &'a [u8],
}

/// Name and category of an event.
#[derive(Clone, Copy)]
pub(crate) enum Name<'a> {
    /// Known at the call site.
    Site(&'static Site),
    /// `"name":"…","cat":"…"`, made for this event.
    Text(&'a [u8]),
}

impl Name<'_> {
    fn len(&self) -> usize {
        match self {
            Name::Site(site) => site.text().with_args.len(),
            Name::Text(text) => text.len() + 16,
        }
    }
}

impl Writer {
    pub(crate) fn new(process: &'static Process, slot: &'static Slot, tid: u32) -> Writer {
        let start = format!(r#"{{"ph":"X","pid":{},"tid":{tid},"ts":"#, process.pid);
        let mut prefix = [0; 64];
        prefix[..start.len()].copy_from_slice(start.as_bytes());
        let head = slot.head();
        let (state, fixed_len) = (slot.state(), start.len());
        let text = Vec::with_capacity(4096);
        Writer {
            process,
            slot,
            state,
            key: slot.key,
            head,
            limit: head,
            depth: 0,
            stalled_at: None,
            second: 0,
            prefix,
            prefix_len: fixed_len,
            fixed_len,
            text,
            vacant: Vec::new(),
            own_args: Vec::new(),
            begun: Vec::new(),
        }
    }

    /// Publishes the position and how many spans are open.
    #[inline(always)]
    fn publish(&self) {
        let state = layout::state(self.head, u64::from(self.depth.min(255)), self.key);
        self.state.store(state, Ordering::Release);
    }

    /// Opens a span: it shows in the stack until it is closed.
    #[inline(always)]
    pub(crate) fn push(&mut self, site: &'static Site, start_ns: u64) -> u32 {
        let depth = self.depth;
        if let Some(entry) = self.entry(depth) {
            let number = self
                .process
                .ring
                .number_of(site, || name_entry(entry, site.name()));
            entry.site().store(number, Ordering::Relaxed);
            entry.start().store(start_ns, Ordering::Relaxed);
        }
        self.depth = depth + 1;
        self.publish();
        depth
    }

    /// Opens a span whose name is not known at a call site.
    pub(crate) fn push_named(&mut self, name: &str, start_ns: u64) -> u32 {
        let depth = self.depth;
        if let Some(entry) = self.entry(depth) {
            entry.site().store(0, Ordering::Relaxed);
            name_entry(entry, name);
            entry.start().store(start_ns, Ordering::Relaxed);
        }
        self.depth = depth + 1;
        self.publish();
        depth
    }

    #[inline(always)]
    fn entry(&self, depth: u32) -> Option<OpenEntry> {
        let depth = depth as usize;
        (depth < layout::STACK_DEPTH).then(|| self.slot.open_entry(depth))
    }

    /// Takes a span off the stack; the store that publishes its line publishes this too. False, and nothing done, unless it is the innermost one,
    /// the one below it is open, and its args are in the text.
    #[inline(always)]
    pub(crate) fn pop(&mut self, depth: u32) -> bool {
        let plain = depth + 1 == self.depth
            && (depth == 0
                || self
                    .entry(depth - 1)
                    .is_some_and(|below| below.start().load(Ordering::Relaxed) != 0));
        if plain {
            self.depth = depth;
        }
        plain
    }

    /// Takes any span off the stack, with the vacant entries that are innermost then; says where the text of those began.
    pub(crate) fn pop_any(&mut self, depth: u32, text_from: u32) -> Option<u32> {
        let depth = depth & !OWN_ARGS;
        if depth + 1 != self.depth {
            self.vacate(depth, text_from);
            return None;
        }
        self.depth = depth;
        let mut lowest = None;
        while let Some((depth, from)) = self.vacant.pop_if(|vacant| vacant.0 + 1 == self.depth) {
            self.depth = depth;
            lowest = Some(lowest.map_or(from, |lowest| from.min(lowest)));
        }
        lowest
    }

    /// A span that ends before one opened after it leaves a vacant entry.
    fn vacate(&mut self, depth: u32, text_from: u32) {
        if depth >= self.depth {
            return;
        }
        if let Some(entry) = self.entry(depth) {
            entry.start().store(0, Ordering::Relaxed);
        }
        let at = self.vacant.partition_point(|vacant| vacant.0 < depth);
        self.vacant.insert(at, (depth, text_from));
    }

    /// Writes a timed event on the calling thread and publishes it.
    #[inline(always)]
    pub(crate) fn event(&mut self, phase: u8, ts_ns: u64, body: &Body<'_>) {
        let need = FIXED_BYTES + body.middle.len() + body.name.len() + body.args.len();
        if self.head + need as u64 > self.limit && !self.make_room(need as u64) {
            return self.large_event(phase, ts_ns, body);
        }
        // SAFETY: positions from `head` on are this thread's until published, and there is room for `need`.
        let room = unsafe { std::slice::from_raw_parts_mut(self.slot.address(self.head), need) };
        self.set_second(ts_ns);
        let mut line = Line::new(room);
        self.compose(&mut line, phase, ts_ns, body);
        if line.fits() {
            self.head += line.len() as u64;
        }
        self.publish();
    }

    #[inline(always)]
    fn set_second(&mut self, ts_ns: u64) {
        if ts_ns.wrapping_sub(self.second * SECOND_NS) >= SECOND_NS {
            self.change_second(ts_ns / SECOND_NS);
        }
    }

    #[cold]
    #[inline(never)]
    fn change_second(&mut self, second: u64) {
        self.second = second;
        let mut buffer = itoa::Buffer::new();
        let digits = if second == 0 {
            ""
        } else {
            buffer.format(second)
        };
        self.prefix_len = self.fixed_len + digits.len();
        self.prefix[self.fixed_len..self.prefix_len].copy_from_slice(digits.as_bytes());
    }

    /// Writes the line; `second` is that of `ts_ns`.
    #[inline(always)]
    fn compose(&self, line: &mut Line<'_>, phase: u8, ts_ns: u64, body: &Body<'_>) {
        line.block(&self.prefix, self.prefix_len);
        if phase != b'X' {
            line.replace(PHASE_AT, phase);
        }
        let part = u32::try_from(ts_ns - self.second * SECOND_NS).unwrap_or(0);
        if self.second == 0 {
            line.micros(u64::from(part));
        } else {
            line.second_part(part);
        }
        if let Some((duration_ns, cpu)) = body.duration {
            line.literal(b",\"dur\":");
            line.micros(duration_ns);
            if let Some((cpu_start_ns, cpu_ns)) = cpu {
                line.literal(b",\"tts\":");
                line.micros(cpu_start_ns);
                line.literal(b",\"tdur\":");
                line.micros(cpu_ns);
            }
        }
        if !body.middle.is_empty() {
            line.text(body.middle);
        }
        finish_line(line, body);
    }

    /// Makes room for `need` bytes, flushing if the ring is more than three quarters full, or by steps if others record as fast.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, need: u64) -> bool {
        let (size, flushed) = (self.slot.bytes, self.slot.flushed().load(Ordering::Acquire));
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

    /// Writes whole steps while they are still in this processor's cache, if nobody else is writing; there is room in any case.
    fn flush_steps(&mut self, flushed: u64) {
        let (slot, process) = (self.slot, self.process);
        if self.head - flushed >= OWN_STEP_BYTES {
            flush::try_flush(slot, &process.fragment, process.pid, Extent::Steps);
        }
        let flushed = slot.flushed().load(Ordering::Acquire);
        self.limit = (flushed + OWN_STEP_BYTES)
            .max(self.head + RETRY_BYTES)
            .min(flushed + slot.bytes);
    }

    fn flush_for_room(&mut self, need: u64, end: u64) -> bool {
        let (slot, process) = (self.slot, self.process);
        let flushed = |slot: &Slot| slot.flushed().load(Ordering::Acquire);
        if flush::try_flush(slot, &process.fragment, process.pid, Extent::All) == Outcome::Done {
            self.limit = flushed(slot) + slot.bytes / 2;
            return self.head + need <= self.limit;
        }
        let stalled = self.stalled_at == Some(flushed(slot));
        if end > slot.bytes && (stalled || !process.make_room(slot, need)) {
            // One wait a stall, then events are dropped until the file has taken something.
            self.stalled_at = Some(flushed(slot));
            self.limit = self.head;
            process.lost.count(Cause::Busy);
            return false;
        }
        self.limit = flushed(slot) + slot.bytes;
        true
    }

    /// Writes an event that does not fit into a ring straight to the fragment.
    #[cold]
    fn large_event(&mut self, phase: u8, ts_ns: u64, body: &Body<'_>) {
        let need = FIXED_BYTES + body.middle.len() + body.name.len() + body.args.len();
        if (need as u64) <= self.slot.bytes / 2 {
            return self.publish(); // no room, and counted
        }
        self.set_second(ts_ns);
        let mut bytes = vec![0; need];
        let mut line = Line::new(&mut bytes);
        self.compose(&mut line, phase, ts_ns, body);
        let len = line.len().min(need);
        self.write_through(&bytes[..len]);
        self.publish();
    }

    /// Writes a line straight to the fragment, where a reader would take it and the file is free soon.
    fn write_through(&self, line: &[u8]) {
        let process = self.process;
        let taken = line.len() <= MAX_LINE_BYTES
            && process
                .fragment
                .lock_until(clock::now_ns() + PATIENCE_NS)
                .is_some_and(|mut place| place.append(b"", line, b"").is_ok());
        if !taken {
            process.lost.count(Cause::TooLarge);
        }
    }

    /// Appends a whole line that is no timed event of this thread; with `closing` it ends the span of that lane entry.
    pub(crate) fn append(&mut self, line: &[u8], closing: Option<OpenEntry>) {
        let need = line.len() as u64;
        if need > self.slot.bytes / 2 {
            return self.write_through(line);
        }
        if self.head + need > self.limit && !self.make_room(need) {
            return; // counted
        }
        if let Some(entry) = closing {
            entry.close_with(self.slot.index, self.head + need);
        }
        flush::append(self.slot, self.head, line, u64::from(self.depth.min(255)));
        self.head += need;
    }

    /// Appends to the text as a new piece.
    pub(crate) fn add_text(&mut self, add: impl FnOnce(&mut Vec<u8>)) -> Piece {
        let from = self.text.len();
        add(&mut self.text);
        self.piece_from(from)
    }

    fn piece_from(&self, from: usize) -> Piece {
        Piece {
            from: u32::try_from(from).unwrap_or(u32::MAX),
            len: u32::try_from(self.text.len() - from).unwrap_or(0),
        }
    }

    /// Appends to the args of an open span; `add` gets the text and whether it is the first of them. While a later span is open they move out
    /// of the text: pieces lie in it as the spans do on the stack, so that what is last can be dropped.
    pub(crate) fn add_args(
        &mut self,
        depth: &mut u32,
        piece: &mut Piece,
        add: impl FnOnce(&mut Vec<u8>, bool),
    ) {
        let (first, end) = (piece.len == 0, self.text.len());
        if *depth + 1 == self.depth && (first || piece.range().end == end) {
            let from = if first { end } else { piece.from as usize };
            add(&mut self.text, first);
            *piece = self.piece_from(from);
            return;
        }
        if *depth & OWN_ARGS == 0 {
            let args = self.text.get(piece.range()).unwrap_or_default().to_vec();
            *depth |= OWN_ARGS;
            self.own_args.push((*depth, args));
        }
        let of_span = self.own_args.iter_mut().rev().find(|own| own.0 == *depth);
        if let Some((_, args)) = of_span {
            let first = args.is_empty();
            add(args, first);
        }
    }

    /// Takes the args that are not in the text.
    pub(crate) fn take_own_args(&mut self, depth: u32) -> Option<Vec<u8>> {
        let at = self.own_args.iter().rposition(|own| own.0 == depth)?;
        Some(self.own_args.swap_remove(at).1)
    }

    /// Drops the text of a span that has ended.
    #[inline(always)]
    pub(crate) fn release(&mut self, piece: Piece) {
        if self.depth == 0 && self.begun.is_empty() {
            self.text.clear();
        } else if piece.len > 0 && piece.range().end == self.text.len() {
            self.text.truncate(piece.from as usize);
        }
    }
}

/// Names an entry of the stack that has no site.
#[cold]
fn name_entry(entry: OpenEntry, name: &str) {
    entry.set_name(name, layout::STACK_NAME_AT, layout::STACK_NAME_BYTES);
}

#[inline(always)]
fn finish_line(line: &mut Line<'_>, body: &Body<'_>) {
    match body.name {
        Name::Site(site) if body.args.is_empty() => return line.padded(&site.text().alone),
        Name::Site(site) => line.padded(&site.text().with_args),
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
