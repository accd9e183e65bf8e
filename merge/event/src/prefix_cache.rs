//! A cache for lines that begin like an earlier one. The lines of one thread and phase are the same, byte for byte, up to the time, so one comparison replaces
//! parsing the beginning of a line.
//!
//! It is only for lines in canonical order in a block with a valid checksum (FORMAT.md §2).

use crate::canonical::{flow_id, is_named};
use crate::event::Event;
use trace_base::number::three_decimals;

/// The beginning of a line up to its time, and what the caller knows of all lines with it.
pub struct Front<'a, T> {
    text: &'a [u8],
    /// Data of the caller, valid for all lines with this beginning.
    pub known: T,
}

/// The last two fronts of each phase: usually a thread, and a lane next to it.
pub struct PrefixCache<'a, T> {
    fronts: [[Option<Front<'a, T>>; 2]; PHASES.len()],
    /// Index of the older one of the two.
    older: [usize; PHASES.len()],
}

/// The time of a line, and the rest of the line after it.
#[derive(Clone, Copy)]
pub struct Timed<'a> {
    /// Time in ns in the line.
    pub ts_ns: i64,
    /// Rest of the line after the time.
    pub rest: &'a [u8],
}

impl<T> Default for PrefixCache<'_, T> {
    fn default() -> Self {
        PrefixCache {
            fronts: [const { [const { None }; 2] }; PHASES.len()],
            older: [0; PHASES.len()],
        }
    }
}

/// Phases of events for which the front, the time and the methods of [`Timed`] are enough. Begins are excluded, because they may be unfinished spans.
const PHASES: [u8; 6] = *b"XiCstf";

/// Offset of the phase in a canonical line.
const PHASE_OFFSET: usize = br#"{"ph":""#.len();

/// Returns the index of a phase in [`PHASES`].
#[inline(always)]
fn phase_index(phase: u8) -> Option<usize> {
    PHASES.iter().position(|cached| *cached == phase)
}

impl<'a, T> PrefixCache<'a, T> {
    /// Returns the front that this line begins with, and its time.
    #[inline(always)]
    pub fn find(&self, line: &'a [u8]) -> Option<(&Front<'a, T>, Timed<'a>)> {
        let [one, other] = &self.fronts[phase_index(*line.get(PHASE_OFFSET)?)?];
        let begins = |front: &&Front<'a, T>| line.starts_with(front.text);
        let front = one.as_ref().filter(begins);
        let front = front.or_else(|| other.as_ref().filter(begins))?;
        let after = &line[front.text.len()..];
        let (ts_ns, len) = three_decimals(after)?;
        let rest = &after[len..];
        Some((front, Timed { ts_ns, rest }))
    }

    /// Adds the front of an event with a canonical line, and the caller's data for such lines, unless the cache has it already.
    pub fn keep(&mut self, event: &Event<'a>, known: impl FnOnce() -> T) {
        let Some(phase) = phase_index(event.phase.byte()) else {
            return;
        };
        let fronts = &mut self.fronts[phase];
        let text = &event.line[..event.fields.ts.start];
        if fronts.iter().flatten().any(|front| front.text == text) {
            return;
        }
        let older = &mut self.older[phase];
        fronts[*older] = Some(Front {
            text,
            known: known(),
        });
        *older ^= 1;
    }
}

impl<'a> Timed<'a> {
    /// Parses the duration of a complete event.
    #[inline(always)]
    pub fn dur_ns(&self) -> Option<i64> {
        let after = self.rest.strip_prefix(br#","dur":"#)?;
        let (ns, len) = three_decimals(after)?;
        is_named(&after[len..]).then_some(ns)
    }

    /// Returns the id of a flow, and the rest of the line after it.
    #[inline(always)]
    pub fn flow_id(&self) -> Option<(&'a [u8], &'a [u8])> {
        flow_id(self.rest)
    }

    /// Returns true if the name of an instant is irrelevant to the merge, because it is not one of the recorder's own records.
    #[inline(always)]
    pub fn has_common_name(&self) -> bool {
        let scope = self.rest.strip_prefix(br#","s":""#);
        let name = scope.and_then(|scope| scope.get(1..)?.strip_prefix(br#"","name":""#));
        name.is_some_and(|name| {
            !name.starts_with(b"sa_") && memchr::memchr2(b'"', b'\\', name).is_some()
        })
    }
}
