//! What a process records about itself, in slot 0: its names and anchors, and what was lost.

use std::sync::atomic::Ordering;

use crate::clock;
use crate::flush::append;
use crate::loss::{Cause, Loss, counted_line};
use crate::process::Process;
use crate::slot::{GENERATION, OpenEntry};
use crate::wait;

impl Process {
    /// Appends lines to the process's own slot; gives up where somebody keeps that to himself for long.
    pub(crate) fn tell(&self, lines: &[u8]) {
        if let Some(_turn) = wait::lock(&self.own) {
            self.tell_in_turn(lines);
        }
    }

    /// Appends lines for whoever holds `own`.
    fn tell_in_turn(&self, lines: &[u8]) {
        let slot = self.ring.own_slot();
        if self.make_room(slot, lines.len() as u64) {
            append(slot, slot.head(), lines, 0);
        }
    }

    /// Appends the line that closes a lane's span; both show at once to a reader.
    pub(crate) fn tell_closing(&self, line: &[u8], entry: OpenEntry) {
        let Some(_turn) = wait::lock(&self.own) else {
            return;
        };
        let slot = self.ring.own_slot();
        if self.make_room(slot, line.len() as u64) {
            entry.close_with(slot.index, slot.head() + line.len() as u64);
            append(slot, slot.head(), line, 0);
            entry.start().store(0, Ordering::Release);
        }
    }

    /// Tells what was lost since the last call. Without its turn until `end_ns`, or where a thread is counting, it leaves that for the next call.
    pub(crate) fn tell_losses(&self, end_ns: u64) {
        let Some(_turn) = wait::lock_until(&self.own, end_ns) else {
            return;
        };
        for slot in self.ring.slots() {
            let loss = wait::try_lock(&slot.loss).and_then(|mut loss| loss.take());
            if let Some(loss) = loss {
                self.late.note(loss.first_ns);
                self.tell_in_turn(loss.line(self.pid, slot.index, GENERATION).as_bytes());
            }
        }
        let now = clock::now_ns();
        for (cause, events) in self.lost.take() {
            self.tell_in_turn(counted_line(self.pid, now, cause, events).as_bytes());
        }
        let removed = self.fragment.try_lock();
        let events = removed.map_or(0, |mut place| place.take_removed());
        if events > 0 {
            self.tell_removed(events, now);
        }
    }

    /// Somebody removed the fragment: everything flushed so far went with it.
    fn tell_removed(&self, events: u64, now: u64) {
        self.lost.add_total(events);
        let cause = Cause::FragmentRemoved;
        for slot in self.ring.slots() {
            let (to, first) = (slot.flushed().load(Ordering::Acquire), slot.index == 0);
            let loss = Loss {
                cause,
                from: 0,
                to,
                events: if first { events } else { 0 },
                first_ns: now,
                last_ns: now,
            };
            self.tell_in_turn(loss.line(self.pid, slot.index, GENERATION).as_bytes());
        }
    }
}
