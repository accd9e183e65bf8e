//! A thread's open spans: their entries on the stack that survives a crash, and the text they need
//! until they end.

use std::io;
use std::sync::atomic::Ordering;

use crate::process::state::Process;
use crate::ring::open_entry::{EntryName, LANE_NAME, OpenEntry, STACK_NAME};
use crate::ring::slot::Slot;
use crate::sys::cancel::Uncancelled;
use crate::sys::memory::{copy_or_empty, out_of_memory, reserve};
use crate::thread::event_writer::EventWriter;
use crate::thread::open_span::{OpenSpan, Piece, SpanIds};
use sa_format::ring as layout;

/// Flag in the depth of a span whose args the writer keeps outside its text.
const OWN_ARGS: u32 = 1 << 31;
/// Initial capacity of a thread's text in bytes.
const TEXT_BYTES: usize = 4096;

/// The writing end of a slot, used by the thread that has the thread state.
pub(crate) struct SlotWriter {
    /// Valid inside an event.
    pub(crate) process: &'static Process,
    /// Valid inside an event.
    pub(crate) slot: &'static Slot,
    pub(crate) events: EventWriter,
    /// Args of the open spans, and names without a site.
    pub(crate) text: Vec<u8>,
    /// Spans that ended before a span opened after them: their depths, and where their texts began.
    /// Sorted by depth.
    vacant: Vec<(u32, u32)>,
    /// Args that grew while a later span was open, with the depth of their span.
    own_args: Vec<(u32, Vec<u8>)>,
    /// Spans begun without a guard; `None` for one that is not recorded.
    pub(crate) begun: Vec<Option<OpenSpan>>,
    /// Spans begun by id.
    pub(crate) by_id: SpanIds,
}

impl SlotWriter {
    /// Creates the writer with which thread `tid` records into `slot`.
    ///
    /// # Errors
    ///
    /// Returns an error if there is not enough memory.
    pub(crate) fn new(
        process: &'static Process,
        slot: &'static Slot,
        tid: u32,
    ) -> io::Result<SlotWriter> {
        let mut text = Vec::new();
        text.try_reserve_exact(TEXT_BYTES)
            .map_err(|_| out_of_memory())?;
        Ok(SlotWriter {
            process,
            slot,
            events: EventWriter::new(process, slot, tid),
            text,
            vacant: Vec::new(),
            own_args: Vec::new(),
            begun: Vec::new(),
            by_id: SpanIds::new(),
        })
    }

    /// Adds a span to the thread's stack of open spans and returns its depth, 0 for the outermost.
    /// Readers of the ring find the span there until it is closed. `piece` is the part of the
    /// writer's text that was written last: the args if a site names the span, and its name and
    /// category otherwise.
    #[inline(always)]
    pub(crate) fn push(&mut self, name: EntryName<'_>, piece: Piece, start_ns: u64) -> u32 {
        let depth = self.events.depth;
        let names = match name {
            EntryName::Site(_) => 0,
            EntryName::Text(_) => piece.len,
        };
        if let Some(entry) = self.slot.stack_entry(depth as usize) {
            self.store_text(entry, depth, names, piece);
            let number = self.process.ring.site_number(name, entry, STACK_NAME);
            entry.site().store(number, Ordering::Relaxed);
            entry.start().store(start_ns, Ordering::Relaxed);
        } else {
            self.store_deep(depth, (names, piece), name, start_ns);
        }
        self.events.depth = depth + 1;
        self.events.publish();
        depth
    }

    /// Stores the text of a new span in the ring, directly after the text of the span that contains
    /// it. `piece` is the part of the writer's text to store, and its first `names` bytes are name
    /// and category. `entry` is the span's ring entry.
    #[inline(always)]
    fn store_text(&self, entry: OpenEntry, depth: u32, names: u32, piece: Piece) {
        let below = depth.checked_sub(1).and_then(|below| self.entry(below));
        let word = |below: OpenEntry| below.text().load(Ordering::Relaxed);
        let at = below.map_or(0, |below| {
            layout::SpanText::from_bits(word(below)).args().end
        });
        let text = self.text.get(piece.from as usize..).unwrap_or_default(); // it is the last piece that was written
        self.slot.text.store(entry, at, names as usize, text);
    }

    /// Returns the ring entry of the open span at `depth`, or `None` if the ring has none for it.
    #[inline(always)]
    fn entry(&self, depth: u32) -> Option<OpenEntry> {
        self.slot.open_entry(depth as usize)
    }

    /// Stores a new span that is deeper than the stack has entries, in a chunk of the ring file
    /// that is created on first use. If there is no room for it, the span is counted as lost while
    /// it is open. The first `names` bytes of its text, `piece`, are name and category.
    #[cold]
    #[inline(never)]
    fn store_deep(
        &self,
        depth: u32,
        (names, piece): (u32, Piece),
        name: EntryName<'_>,
        start_ns: u64,
    ) {
        let (slot, ring, lost) = (self.slot, &self.process.ring, &self.process.lost);
        let nth = depth as usize - layout::STACK_DEPTH;
        if slot.deeper.entry(nth).is_none() {
            let _uncancelled = Uncancelled::begin();
            ring.extend(&slot.deeper, nth);
            slot.deeper.give_up(nth);
        }
        let Some(entry) = slot.deeper.entry(nth) else {
            return lost.begin_hidden();
        };
        entry.start().store(0, Ordering::Relaxed);
        if let Some(area) = slot.deeper.text(nth) {
            let text = self.text.get(piece.from as usize..).unwrap_or_default(); // it is the last piece that was written
            area.store(entry, 0, names as usize, text);
        }
        let number = ring.site_number(name, entry, LANE_NAME);
        entry.open(number, None, start_ns);
    }

    /// Clears the ring entry of the span at `depth` after [`SlotWriter::pop_any`] has removed the
    /// span and its line was written.
    pub(crate) fn clear_entry(&self, depth: u32) {
        let depth = depth & !OWN_ARGS;
        let Some(entry) = self.entry(depth) else {
            return self.process.lost.end_hidden();
        };
        // The state excludes the innermost entry now, but not once the thread is that deep again.
        if depth < self.events.depth || self.state_excludes(depth) {
            entry.start().store(0, Ordering::Relaxed);
            self.slot.ending().store(0, Ordering::Release);
        }
    }

    /// Returns true if only the number of open spans in the slot's state shows that the span at
    /// `depth` has ended. Its entry must then be cleared, because it would look open again once the
    /// thread is that deep.
    fn state_excludes(&self, depth: u32) -> bool {
        depth as usize >= layout::MAX_DEPTH && (self.events.depth as usize) < layout::MAX_DEPTH
    }

    /// Removes a span from the thread's stack in the usual case. The store that publishes the
    /// span's line also publishes the removal. Does nothing and returns false in every other case:
    /// the span at `depth` is not the innermost one, it is deeper than the stack has entries, the
    /// span that contains it has ended already, or its args are not in the writer's text.
    #[inline(always)]
    pub(crate) fn pop(&mut self, depth: u32) -> bool {
        let is_open = |entry: OpenEntry| entry.start().load(Ordering::Relaxed) != 0;
        let below = |depth: u32| self.slot.stack_entry(depth as usize - 1);
        let plain = depth + 1 == self.events.depth
            && (depth as usize) < layout::STACK_DEPTH
            && (depth == 0 || below(depth).is_some_and(is_open));
        if plain {
            self.events.depth = depth;
        }
        plain
    }

    /// Removes the span at `depth` from the thread's stack, even if later spans are still open. If
    /// it is the innermost span, also removes the vacant entries directly below it, which belong to
    /// spans that ended earlier. `text_from` is where the span's text begins in the writer's text.
    /// Returns where the texts of the removed vacant entries begin, or `None` if none was removed.
    pub(crate) fn pop_any(&mut self, depth: u32, text_from: u32) -> Option<u32> {
        let depth = depth & !OWN_ARGS;
        if depth + 1 != self.events.depth {
            self.vacate(depth, text_from);
            return None;
        }
        self.events.depth = depth;
        let mut lowest = None;
        let events = &mut self.events;
        while let Some((depth, from)) = self.vacant.pop_if(|last| last.0 + 1 == events.depth) {
            events.depth = depth;
            lowest = Some(lowest.map_or(from, |lowest| from.min(lowest)));
        }
        if self.events.depth as usize >= layout::MAX_DEPTH {
            self.events.closing = self.entry(depth);
        }
        lowest
    }

    /// Ends the span at `depth` while spans opened after it are still open: its entry stays on the
    /// stack and is vacant. Readers consider the span open until its line, the next one, is
    /// published. `text_from` is where the span's text begins in the writer's text.
    fn vacate(&mut self, depth: u32, text_from: u32) {
        if depth >= self.events.depth {
            return;
        }
        let head = self.events.position();
        match depth as usize {
            layout::MAX_DEPTH.. => {
                if let Some(entry) = self.entry(depth) {
                    entry.close_with(self.slot.index, head + 1);
                }
            }
            _ => {
                let ending = layout::ending(head, depth.into());
                self.slot.ending().store(ending, Ordering::Release);
            }
        }
        if !reserve(&mut self.vacant, 1) {
            return;
        }
        let at = self.vacant.partition_point(|vacant| vacant.0 < depth);
        self.vacant.insert(at, (depth, text_from));
    }

    /// Lets `add` append to the writer's text, and returns the range of what was appended.
    pub(crate) fn add_text(&mut self, add: impl FnOnce(&mut Vec<u8>)) -> Piece {
        let from = self.text.len();
        add(&mut self.text);
        Piece::from(from, &self.text)
    }

    /// Adds args to an open span, in the writer's text and in the ring. `add` gets the text to
    /// append to, and true if it adds the span's first arg. Updates the span's `depth`, which
    /// contains a flag, and the `piece` that locates its args. If a later span is open, the args
    /// move out of the text: the pieces in the text must have the same order as the spans on the
    /// stack, so that the last piece can be dropped.
    pub(crate) fn add_args(
        &mut self,
        depth: &mut u32,
        piece: &mut Piece,
        add: impl FnOnce(&mut Vec<u8>, bool),
    ) {
        let old = piece.len as usize;
        if self.extend_args(depth, piece, add) {
            let area = self.slot.text_area(*depth as usize);
            if let Some((entry, area)) = self.entry(*depth).zip(area) {
                let args = self.text.get(piece.range()).unwrap_or_default();
                area.store_more(entry, old, args);
            }
        }
    }

    /// Adds args to an open span like [`SlotWriter::add_args`], but not in the ring. Returns true
    /// if all the span's args are in the writer's text, and false if the writer keeps them outside
    /// it.
    pub(crate) fn extend_args(
        &mut self,
        depth: &mut u32,
        piece: &mut Piece,
        add: impl FnOnce(&mut Vec<u8>, bool),
    ) -> bool {
        let is_last = self.is_last(*depth, *piece);
        if is_last {
            let first = piece.len == 0;
            let (end, old) = (self.text.len(), piece.from as usize);
            let from = if first { end } else { old };
            add(&mut self.text, first);
            *piece = Piece::from(from, &self.text);
        } else {
            self.add_own_args(depth, *piece, add);
        }
        is_last
    }

    /// Shortens the args of the innermost span to `kept` bytes in the writer's text, but not in the
    /// ring, where readers still find all of them.
    pub(crate) fn truncate_args(&mut self, depth: u32, piece: &mut Piece, kept: usize) {
        let kept = u32::try_from(kept).unwrap_or(u32::MAX);
        if kept < piece.len && depth & OWN_ARGS == 0 && self.is_last(depth, *piece) {
            piece.len = kept;
            self.text.truncate(piece.range().end);
        }
    }

    /// Returns true if a span has args. `depth` and `piece` are the span's.
    pub(crate) fn has_args(depth: u32, piece: Piece) -> bool {
        piece.len > 0 || depth & OWN_ARGS != 0
    }

    /// Returns true if more args of a span can be appended to the writer's text: it is the
    /// innermost span, and nothing follows its args.
    fn is_last(&self, depth: u32, piece: Piece) -> bool {
        depth + 1 == self.events.depth && (piece.len == 0 || piece.range().end == self.text.len())
    }

    /// Lets `add` append to args that the writer keeps outside its text. Moves the span's args
    /// there first if they are still in the text.
    fn add_own_args(
        &mut self,
        depth: &mut u32,
        piece: Piece,
        add: impl FnOnce(&mut Vec<u8>, bool),
    ) {
        if *depth & OWN_ARGS == 0 {
            if !reserve(&mut self.own_args, 1) {
                return;
            }
            let args = copy_or_empty(self.text.get(piece.range()).unwrap_or_default());
            *depth |= OWN_ARGS;
            self.own_args.push((*depth, args));
        }
        let of_span = self.own_args.iter_mut().rev().find(|own| own.0 == *depth);
        if let Some((_, args)) = of_span {
            let first = args.is_empty();
            add(args, first);
        }
    }

    /// Removes and returns the args of the span at `depth` that the writer keeps outside its text.
    /// Returns `None` if they are in the text.
    pub(crate) fn remove_own_args(&mut self, depth: u32) -> Option<Vec<u8>> {
        let at = self.own_args.iter().rposition(|own| own.0 == depth)?;
        Some(self.own_args.swap_remove(at).1)
    }

    /// Drops `piece`, the part of the writer's text that belongs to an event that was written,
    /// unless other text follows it. If no span is open, drops the whole text.
    #[inline(always)]
    pub(crate) fn release(&mut self, piece: Piece) {
        if self.events.depth == 0 && self.begun.is_empty() {
            self.text.clear();
        } else if piece.len > 0 && piece.range().end == self.text.len() {
            self.text.truncate(piece.from as usize);
        }
    }
}

#[cfg(test)]
mod tests;
