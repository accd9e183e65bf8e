//! Which events of a chunk are shown.

use crate::edges::{Edges, Lies};
use crate::event::Event;

/// Which events of a chunk are shown: those within a window that a filter lets through.
#[derive(Default)]
pub struct Shown {
    /// The window in the recording's own time.
    pub edges: Option<Edges>,
    /// What was marked, with a look at the window, for what belongs together is shown together.
    pub mask: Option<Mask>,
}

/// A bit for each event of a chunk, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mask {
    words: Vec<u64>,
    len: usize,
}

impl Mask {
    /// Adds the next event, which is not shown.
    #[inline]
    pub fn push(&mut self) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        self.len += 1;
    }

    /// Shows an event that was added.
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
    /// Whether nothing is left out.
    #[inline]
    pub fn is_all(&self) -> bool {
        self.edges.is_none() && self.mask.is_none()
    }

    /// Returns where the event of this number is. An event that is not marked is outside, and a marked one is not.
    #[inline]
    pub fn lies(&self, number: usize, event: &Event<'_>) -> Lies {
        let edges = self.edges;
        let lies = edges.map_or(Lies::Inside, |edges| edges.lies(event));
        match (&self.mask, lies) {
            (Some(mask), _) if !mask.get(number) => Lies::Outside,
            // The begin or the end of a span that reaches into the window.
            (Some(_), Lies::Outside) => Lies::Across,
            (_, lies) => lies,
        }
    }
}
