//! Spans that are two lines, and cross a cut.
//!
//! A begin without its end would be drawn to the end of its part, and an end without its begin not at all. So both are shown in each part that the
//! span reaches into; what has one half alone is where that is.

use super::bins::Amount;
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// The halves of spans that reach into other parts, of each chunk: which events they are and the parts they reach into.
#[derive(Default)]
pub(crate) struct Crossing {
    of_chunks: HashMap<usize, Vec<ShownEvent>>,
    /// What they add to each part, beside what is there by its time.
    more: Vec<Amount>,
}

/// An event that is in some parts, wherever it lies.
pub(super) struct ShownEvent {
    pub(super) nth: u32,
    pub(super) parts: RangeInclusive<usize>,
}

impl Crossing {
    /// The numbers of a chunk's events that are in that part wherever they lie, ascending.
    pub(super) fn kept(&self, chunk: usize, part: usize) -> Vec<u32> {
        let shown = self.of_chunks.get(&chunk).into_iter().flatten();
        let kept = shown.filter(|shown| shown.parts.contains(&part));
        kept.map(|shown| shown.nth).collect()
    }

    /// What is added to a part.
    pub(super) fn more(&self, part: usize) -> Amount {
        self.more.get(part).copied().unwrap_or_default()
    }

    /// One for so many parts.
    pub(super) fn of_parts(parts: usize) -> Crossing {
        Crossing {
            of_chunks: HashMap::new(),
            more: vec![Amount::default(); parts],
        }
    }

    /// Notes that an event of a chunk is in all of some parts, of which it is in its `own` one by its time.
    pub(super) fn add(&mut self, chunk: usize, shown: ShownEvent, own: usize, bytes: usize) {
        for part in shown.parts.clone().filter(|part| *part != own) {
            self.more[part].add(Amount {
                bytes: bytes as u64,
                events: 1,
            });
        }
        self.of_chunks.entry(chunk).or_default().push(shown);
    }

    /// Brings the events of each chunk into their order.
    pub(super) fn sort(&mut self) {
        for shown in self.of_chunks.values_mut() {
            shown.sort_unstable_by_key(|shown| shown.nth);
        }
    }
}
