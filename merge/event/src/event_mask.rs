//! Selects the events of a chunk that are shown.

use crate::edges::{Edges, Relation};
use crate::event::Event;

/// Selection of the events of a chunk by a window and a filter.
#[derive(Default)]
pub struct Shown {
    /// Window in the recording's own time.
    pub edges: Option<Edges>,
    /// Events that the filter selected. It has considered the window already, because the begin and end of a span are shown together.
    pub mask: Option<Mask>,
}

/// A bit for each event of a chunk, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mask {
    words: Vec<u64>,
    len: usize,
}

impl Mask {
    /// Adds the next event, which is not selected.
    #[inline]
    pub fn push(&mut self) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        self.len += 1;
    }

    /// Selects an event that was added.
    #[inline]
    pub fn set(&mut self, number: usize) {
        if let Some(word) = self.words.get_mut(number / 64) {
            *word |= 1 << (number % 64);
        }
    }

    fn get(&self, number: usize) -> bool {
        let word = self.words.get(number / 64);
        word.is_some_and(|word| word >> (number % 64) & 1 == 1)
    }
}

impl Shown {
    /// Returns true if all events are shown.
    #[inline]
    pub fn is_all(&self) -> bool {
        self.edges.is_none() && self.mask.is_none()
    }

    /// Returns the position of the event with this number. If there is a mask, an event is outside exactly if it is not selected.
    #[inline]
    pub fn relation(&self, number: usize, event: &Event<'_>) -> Relation {
        let edges = self.edges;
        let relation = edges.map_or(Relation::Inside, |edges| edges.relation(event));
        match (&self.mask, relation) {
            (Some(mask), _) if !mask.get(number) => Relation::Outside,
            // The begin or the end of a span that reaches into the window.
            (Some(_), Relation::Outside) => Relation::Across,
            (_, relation) => relation,
        }
    }
}
