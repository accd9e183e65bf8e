//! What is known of the spans of a thread after the first pass, and what has to be asked.

use crate::pass::nesting::Span;
use crate::pass::thread::RecordedThread;
use std::ops::Range;

/// Whether a span of `place` begins before `begins_before` and ends after `ends_after`, by `ends_by`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) place: RecordedThread,
    pub(crate) chunks: Range<usize>,
    begins_before: i64,
    ends_after: i64,
    ends_by: i64,
}

impl Question {
    /// Which spans one with a begin and an end would cut.
    pub(crate) fn of_span(
        place: RecordedThread,
        chunks: Range<usize>,
        (start, end): Span,
    ) -> Question {
        Question {
            place,
            chunks,
            begins_before: start,
            ends_after: start,
            ends_by: end,
        }
    }

    /// Which spans that end would hold the begin of one that does not.
    pub(crate) fn of_unfinished(
        place: RecordedThread,
        chunks: Range<usize>,
        start: i64,
    ) -> Question {
        Question {
            place,
            chunks,
            begins_before: start.saturating_add(1),
            ends_after: start,
            ends_by: i64::MAX,
        }
    }

    /// When the span begins that may cut others.
    pub(crate) fn start(&self) -> i64 {
        self.ends_after
    }

    /// Tells whether one of some questions, in the order of their begins, is answered by a span.
    pub(crate) fn is_any_answered_by(questions: &[&Question], span: Span) -> bool {
        let first = questions.partition_point(|question| question.start() < span.0);
        questions[first..]
            .iter()
            .take_while(|question| question.start() < span.1)
            .any(|question| question.is_answered_by(span))
    }

    /// Tells whether it is such a span.
    pub(crate) fn is_answered_by(&self, (start, end): Span) -> bool {
        start < self.begins_before && end > self.ends_after && end <= self.ends_by
    }
}

/// What is known of the spans of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Of any two one holds the other, or ends before it begins, unless a question is answered with yes.
    Nest(Vec<Question>),
    /// They may overlap: a closer look is needed.
    MayOverlap,
}

impl Verdict {
    pub(crate) fn questions(&self) -> &[Question] {
        match self {
            Verdict::Nest(questions) => questions,
            Verdict::MayOverlap => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_of_the_questions_may_be_answered() {
        let place = (0, (1, 1));
        let spans = || (0..8).flat_map(|start| (start..8).map(move |end| (start, end)));
        let of_span = |span| Question::of_span(place, 0..1, span);
        let of_unfinished = |start| Question::of_unfinished(place, 0..1, start);
        let mut all: Vec<Question> = spans().map(of_span).collect();
        all.extend((0..8).map(of_unfinished));
        all.sort_by_key(Question::start);
        let mut answered = [0, 0];
        for (number, one) in all.iter().enumerate() {
            for (two, span) in all[number..]
                .iter()
                .flat_map(|two| spans().map(move |span| (two, span)))
            {
                let expected = one.is_answered_by(span) || two.is_answered_by(span);
                let found = Question::is_any_answered_by(&[one, two], span);
                assert_eq!(found, expected, "{one:?}, {two:?}, {span:?}");
                answered[usize::from(found)] += 1;
            }
        }
        assert!(answered.iter().all(|count| *count > 1_000), "{answered:?}");
    }
}
