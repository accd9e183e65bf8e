//! Arrows: which ends find their start.

use super::rule::Rule;
use std::collections::HashMap;

/// What tells an arrow from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrow {
    /// The hash of the id, category and name of `s`, `t` and `f`.
    Named(u64),
    /// The `bind_id` of spans.
    Bound(u64),
}

/// What an event does with an arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Start,
    /// A step, or an end at the span that is there.
    Reach,
    /// An end at the next span.
    EndNext,
}

/// Arrows that have started.
///
/// Perfetto knows arrows by a number: that of a `bind_id` is the id itself, the others get the numbers from 0 on as they come.
#[derive(Default)]
pub(super) struct Arrows {
    numbers: HashMap<u64, u64>,
    started: HashMap<u64, Arrow>,
}

impl Arrows {
    /// The number of an arrow; everything that names one must ask for it, in the order of time.
    pub(super) fn number(&mut self, arrow: Arrow) -> u64 {
        match arrow {
            Arrow::Bound(id) => id,
            Arrow::Named(key) => {
                let next = self.numbers.len() as u64;
                *self.numbers.entry(key).or_insert(next)
            }
        }
    }

    /// A start or an end at a span that is there; why it is lost, if it is.
    pub(super) fn take(&mut self, step: Step, arrow: Arrow) -> Option<Rule> {
        let number = self.number(arrow);
        match (step, self.started.get(&number)) {
            (Step::Start, Some(_)) => Some(Rule::FlowTwice),
            (Step::Start, None) => {
                self.started.insert(number, arrow);
                None
            }
            (_, None) => Some(Rule::FlowWithoutStart),
            (_, Some(start)) => (*start != arrow).then_some(Rule::BindIdClash),
        }
    }

    /// An end at a span that it waited for; from then on Perfetto takes the arrow for one that has started.
    pub(super) fn end_next(&mut self, arrow: Arrow) -> Option<Rule> {
        let number = self.number(arrow);
        match self.started.insert(number, arrow) {
            None => Some(Rule::FlowFromElsewhere),
            Some(start) => {
                self.started.insert(number, start);
                (start != arrow).then_some(Rule::BindIdClash)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_named_arrow_is_taken_for_the_bound_one_of_its_number() {
        let mut arrows = Arrows::default();
        let (named, zero, one) = (Arrow::Named(77), Arrow::Bound(0), Arrow::Bound(1));
        assert_eq!(arrows.take(Step::Start, named), None);
        assert_eq!(arrows.take(Step::Reach, named), None);
        assert_eq!(arrows.take(Step::Reach, zero), Some(Rule::BindIdClash));
        assert_eq!(arrows.take(Step::Start, zero), Some(Rule::FlowTwice));
        assert_eq!(arrows.take(Step::Reach, one), Some(Rule::FlowWithoutStart));
    }

    #[test]
    fn an_end_at_the_next_span_starts_its_arrow() {
        let mut arrows = Arrows::default();
        let arrow = Arrow::Named(5);
        assert_eq!(arrows.end_next(arrow), Some(Rule::FlowFromElsewhere));
        assert_eq!(arrows.take(Step::Reach, arrow), None);
        assert_eq!(arrows.end_next(arrow), None);
    }
}
