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
    /// Adds the next event; gives its number.
    #[inline]
    pub fn push(&mut self, shown: bool) -> usize {
        let number = self.len;
        if number.is_multiple_of(64) {
            self.words.push(0);
        }
        self.len += 1;
        if shown {
            self.set(number);
        }
        number
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

    /// Goes through the events from the first one on.
    #[inline]
    pub fn reader(&self) -> Reader<'_> {
        Reader {
            shown: self,
            next: 0,
        }
    }
}

/// Tells of each event of a chunk, in their order, whether it is shown.
pub struct Reader<'a> {
    shown: &'a Shown,
    next: usize,
}

impl Reader<'_> {
    /// Where the next event lies: one that is not marked outside, and one that is marked not.
    #[inline]
    pub fn next(&mut self, event: &Event<'_>) -> Lies {
        let edges = self.shown.edges;
        let lies = edges.map_or(Lies::Inside, |edges| edges.lies(event));
        let Some(mask) = &self.shown.mask else {
            return lies;
        };
        let number = self.next;
        self.next += 1;
        match lies {
            _ if !mask.get(number) => Lies::Outside,
            Lies::Outside => Lies::Across, // the begin or the end of a span that reaches into the window
            lies => lies,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_keeps_its_bits() {
        let mut mask = Mask::default();
        let numbers: Vec<usize> = (0..200).map(|number| mask.push(number % 3 == 0)).collect();
        mask.set(64);
        for number in numbers {
            let expected = number % 3 == 0 || number == 64;
            assert_eq!(mask.get(number), expected, "{number}");
        }
        assert!(!mask.get(200));
    }
}
