//! Begun spans that wait for their ends.

use std::collections::VecDeque;

/// Begun spans that may wait, with each of which an end is compared; one that waits below more of them counts as unfinished. No stack is as deep, and
/// what was never ended soon makes room.
pub(super) const WAITING: usize = 512;

/// Begins of one thread or id, in the order of times.
#[derive(Debug)]
pub(super) struct BegunSpans<T>(VecDeque<T>);

impl<T> Default for BegunSpans<T> {
    fn default() -> Self {
        BegunSpans(VecDeque::new())
    }
}

impl<T> BegunSpans<T> {
    /// Adds a begin. Gives the first one if too many wait: it counts as unfinished.
    pub(super) fn begin(&mut self, begin: T) -> Option<T> {
        self.0.push_back(begin);
        let is_full = self.0.len() > WAITING;
        is_full.then(|| self.0.pop_front()).flatten()
    }

    /// Takes the last one that an end belongs to.
    pub(super) fn end(&mut self, is_its: impl Fn(&T) -> bool) -> Option<T> {
        let begun = self.0.iter().rposition(is_its)?;
        self.0.remove(begun)
    }

    /// The same of those behind the ones that are `before`.
    pub(super) fn end_behind(
        &mut self,
        before: impl Fn(&T) -> bool,
        is_its: impl Fn(&T) -> bool,
    ) -> Option<T> {
        let first = self.0.partition_point(before);
        let mut begun = (first..self.0.len()).rev();
        let begun = begun.find(|number| is_its(&self.0[*number]))?;
        self.0.remove(begun)
    }

    /// The first one.
    pub(super) fn first(&self) -> Option<&T> {
        self.0.front()
    }

    /// All of them, in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }

    /// Takes all that never ended.
    pub(super) fn leave(&mut self) -> impl Iterator<Item = T> {
        self.0.drain(..)
    }
}
