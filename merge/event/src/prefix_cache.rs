//! Lines that begin like an earlier one. What a recorder writes of one thread and phase is the same, byte for byte, up to the time: one
//! comparison says what reading the front would say.
//!
//! Only for lines in canonical order whose block's checksum holds (FORMAT.md §2).

use crate::canonical::{flow_id, is_named};
use crate::event::Event;
use trace_base::number::three_decimals;

/// The front of a line, up to its time, and what is known of all that begin so.
pub struct Front<'a, T> {
    text: &'a [u8],
    /// What is known of all lines that begin so.
    pub known: T,
}

/// The last two fronts of each phase: a thread, and a lane beside it.
pub struct Fronts<'a, T> {
    fronts: [[Option<Front<'a, T>>; 2]; PHASES.len()],
    /// Which of the two is the older one.
    older: [usize; PHASES.len()],
}

/// A line's time, and what comes after it.
#[derive(Clone, Copy)]
pub struct Timed<'a> {
    /// Its time in ns, as the line says.
    pub ts_ns: i64,
    /// What comes after the time, up to the line's end.
    pub rest: &'a [u8],
}

impl<T> Default for Fronts<'_, T> {
    fn default() -> Self {
        Fronts {
            fronts: [const { [const { None }; 2] }; PHASES.len()],
            older: [0; PHASES.len()],
        }
    }
}

/// The phases whose events are told by their front and their time, but for what [`Timed`] looks at. Begun spans may be unfinished ones.
const PHASES: [u8; 6] = *b"XiCstf";

/// Where the phase stands in a canonical line.
const PHASE: usize = br#"{"ph":""#.len();

/// The place of a phase among them.
#[inline(always)]
fn place(phase: u8) -> Option<usize> {
    PHASES.iter().position(|of| *of == phase)
}

impl<'a, T> Fronts<'a, T> {
    /// The front that this line has too, and its time.
    #[inline(always)]
    pub fn find(&self, line: &'a [u8]) -> Option<(&Front<'a, T>, Timed<'a>)> {
        let [one, other] = &self.fronts[place(*line.get(PHASE)?)?];
        let begins = |front: &&Front<'a, T>| line.starts_with(front.text);
        let front = one.as_ref().filter(begins);
        let front = front.or_else(|| other.as_ref().filter(begins))?;
        let after = &line[front.text.len()..];
        let (ts_ns, len) = three_decimals(after)?;
        let rest = &after[len..];
        Some((front, Timed { ts_ns, rest }))
    }

    /// Keeps the front of an event of a canonical line, and what is known of its like, unless it is kept already.
    pub fn keep(&mut self, event: &Event<'a>, known: impl FnOnce() -> T) {
        let Some(place) = place(event.phase.byte()) else {
            return;
        };
        let fronts = &mut self.fronts[place];
        let text = &event.line[..event.fields.ts.start];
        if fronts.iter().flatten().any(|front| front.text == text) {
            return;
        }
        let older = &mut self.older[place];
        fronts[*older] = Some(Front {
            text,
            known: known(),
        });
        *older ^= 1;
    }
}

impl<'a> Timed<'a> {
    /// The duration of a complete event.
    #[inline(always)]
    pub fn dur_ns(&self) -> Option<i64> {
        let after = self.rest.strip_prefix(br#","dur":"#)?;
        let (ns, len) = three_decimals(after)?;
        is_named(&after[len..]).then_some(ns)
    }

    /// The id of a flow, and what comes after it.
    #[inline(always)]
    pub fn flow_id(&self) -> Option<(&'a [u8], &'a [u8])> {
        flow_id(self.rest)
    }

    /// Whether an instant has a name that the merge never asks for.
    #[inline(always)]
    pub fn has_common_name(&self) -> bool {
        let scope = self.rest.strip_prefix(br#","s":""#);
        let name = scope.and_then(|scope| scope.get(1..)?.strip_prefix(br#"","name":""#));
        name.is_some_and(|name| {
            !name.starts_with(b"sa_") && memchr::memchr2(b'"', b'\\', name).is_some()
        })
    }
}
