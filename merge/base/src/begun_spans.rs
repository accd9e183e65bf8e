//! Matches the ends of spans with their begins.

use std::collections::VecDeque;

/// Maximum number of open spans. An end is compared with each of them. If there are more, the outermost one counts as unfinished. No call stack is that deep.
pub const MAX_OPEN: usize = 512;

/// Begin or end of a span, as an event of its own.
pub trait BeginOrEnd {
    /// Position of an event in the recording.
    type Position: Ord;

    /// Returns the time of the event in ns.
    fn time_ns(&self) -> i64;

    /// Returns its position in the recording.
    fn position(&self) -> Self::Position;

    /// Returns true if this end has a name.
    fn is_named(&self) -> bool;

    /// Returns true if this end can belong to `begin`: its name and category are the same, or it has none.
    fn can_end(&self, begin: &Self) -> bool;
}

/// Begins of one thread or id that have no end yet. Begins and ends have to be added sorted by time and then by position.
#[derive(Debug)]
pub struct BegunSpans<T>(VecDeque<T>);

impl<T> Default for BegunSpans<T> {
    fn default() -> Self {
        BegunSpans(VecDeque::new())
    }
}

impl<T: BeginOrEnd> BegunSpans<T> {
    /// Adds a begin. If there are too many open ones, removes and returns the first, which counts as unfinished.
    pub fn begin(&mut self, begin: T) -> Option<T> {
        self.0.push_back(begin);
        let is_full = self.0.len() > MAX_OPEN;
        is_full.then(|| self.0.pop_front()).flatten()
    }

    /// Removes and returns the begin that an end belongs to. This is the last one that matches.
    ///
    /// An end may match two begins: one of the same time, which gives a span of length 0, and an earlier one. An end without a name belongs to the begin that
    /// was recorded last. An end with a name belongs to the earlier begin, because consecutive steps often touch. Viewers choose the earlier begin for all ends.
    pub fn end(&mut self, end: &T) -> Option<T> {
        let first_now = self
            .0
            .partition_point(|begin| begin.time_ns() < end.time_ns());
        let last_in =
            |from: usize, to: usize| (from..to).rev().find(|at| end.can_end(&self.0[*at]));
        let (earlier, now) = (last_in(0, first_now), last_in(first_now, self.0.len()));
        let is_earlier = |earlier: usize, now: usize| {
            end.is_named() || self.0[earlier].position() > self.0[now].position()
        };
        let begun = match (earlier, now) {
            (Some(earlier), Some(now)) if is_earlier(earlier, now) => earlier,
            (earlier, now) => now.or(earlier)?,
        };
        self.0.remove(begun)
    }

    /// Returns the first begin.
    pub fn first(&self) -> Option<&T> {
        self.0.front()
    }

    /// Returns all begins in their order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }

    /// Removes all begins that never ended, and returns them.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.0.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A begin or end that happens when it is recorded.
    impl BeginOrEnd for u32 {
        type Position = u32;

        fn time_ns(&self) -> i64 {
            i64::from(*self)
        }

        fn position(&self) -> u32 {
            *self
        }

        fn is_named(&self) -> bool {
            true
        }

        fn can_end(&self, _begin: &Self) -> bool {
            true
        }
    }

    #[test]
    fn the_number_of_open_spans_is_bounded() {
        let mut open = BegunSpans::default();
        let dropped = (0..600).filter_map(|time: u32| open.begin(time));
        assert_eq!(dropped.count(), 600 - MAX_OPEN);
        assert_eq!(open.first(), Some(&88));
        assert_eq!(
            (open.iter().count(), open.drain().count()),
            (MAX_OPEN, MAX_OPEN)
        );
    }
}
