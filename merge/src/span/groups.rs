//! Events that mean something only together: begins and ends of spans, and the arrows of a flow. They are shown or left out together.

use crate::base::begun_spans::BegunSpans;
use crate::event::edges::Edges;
use crate::span::group_key::{GroupEvent, GroupKey, GroupRole, ThreadNumber};
use std::io;

/// A span that is shown, on its row.
pub(crate) type ShownSpan = (ThreadNumber, (i64, i64));

/// Tells which of the events that belong together are shown. They come in their order.
pub(crate) struct GroupMatcher<S, C> {
    edges: Edges,
    /// Called with what is shown.
    show: S,
    /// Called with the spans that are.
    cover: C,
    whole: Option<GroupKey>,
    /// Begins without an end so far.
    open: BegunSpans<GroupEvent>,
    /// The start of a flow that leads nowhere so far.
    start: Option<GroupEvent>,
    goes_on: bool,
    /// Spans that cross an edge of the window.
    pub(crate) cut: u64,
}

impl<S, C> GroupMatcher<S, C>
where
    S: FnMut(&GroupEvent),
    C: FnMut(ShownSpan) -> io::Result<()>,
{
    pub(crate) fn new(edges: Edges, show: S, cover: C) -> GroupMatcher<S, C> {
        GroupMatcher {
            edges,
            show,
            cover,
            whole: None,
            open: BegunSpans::default(),
            start: None,
            goes_on: false,
            cut: 0,
        }
    }

    /// Takes the next one.
    pub(crate) fn take(&mut self, mate: GroupEvent) -> io::Result<()> {
        if self.whole.replace(mate.whole) != Some(mate.whole) {
            self.leave()?;
        }
        match mate.role {
            GroupRole::Begin => self.begin(mate)?,
            GroupRole::End => self.end(&mate)?,
            GroupRole::Within => {
                let is_within = |begin: &GroupEvent| begin.wanted;
                if mate.inside && (mate.wanted || self.open.iter().any(is_within)) {
                    (self.show)(&mate);
                }
            }
            GroupRole::Start => (self.start, self.goes_on) = (Some(mate), false),
            GroupRole::Next => self.arrow(&mate),
        }
        Ok(())
    }

    /// Ends what waits for more of its whole.
    pub(crate) fn leave(&mut self) -> io::Result<()> {
        (self.start, self.goes_on) = (None, false);
        for begin in self.open.drain().collect::<Vec<_>>() {
            self.span(&begin, None)?;
        }
        Ok(())
    }

    fn begin(&mut self, begin: GroupEvent) -> io::Result<()> {
        let first = self.open.begin(begin);
        first.map_or(Ok(()), |first| self.span(&first, None))
    }

    /// An end without a begin stands for itself.
    fn end(&mut self, end: &GroupEvent) -> io::Result<()> {
        match self.open.end(end) {
            Some(begin) => self.span(&begin, Some(end))?,
            None if end.wanted && end.inside => (self.show)(end),
            None => {}
        }
        Ok(())
    }

    /// Shows a span if it is wanted and reaches into the window. A begin without an end stands for itself.
    fn span(&mut self, begin: &GroupEvent, end: Option<&GroupEvent>) -> io::Result<()> {
        let reaches = end.map_or(begin.inside, |end| {
            begin.at_ns <= self.edges.to_ns && end.at_ns >= self.edges.from_ns
        });
        if !begin.wanted || !reaches {
            return Ok(());
        }
        (self.show)(begin);
        if let Some(end) = end {
            (self.show)(end);
            let crosses = begin.at_ns < self.edges.from_ns || end.at_ns > self.edges.to_ns;
            self.cut += u64::from(crosses);
        }
        let end_ns = end.map_or(i64::MAX, |end| end.at_ns);
        (self.cover)((begin.row, (begin.at_ns, end_ns)))
    }

    /// Shows the arrows of a flow that have both their ends.
    fn arrow(&mut self, next: &GroupEvent) {
        if let Some(start) = self.start.take() {
            (self.show)(&start);
            self.goes_on = true;
        }
        if self.goes_on {
            (self.show)(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::chunk::EventRef;
    use crate::pass::labels::Labels;

    const ROW: ThreadNumber = 3;

    fn mate(whole: GroupKey, (role, wanted): (GroupRole, bool), nth: u32) -> GroupEvent {
        GroupEvent {
            whole,
            role,
            at_ns: i64::from(nth),
            row: ROW,
            at: EventRef { chunk: 7, nth },
            labels: Labels::default(),
            wanted,
            inside: true,
        }
    }

    /// The numbers of those that are shown, and the spans; one event in each ns.
    fn found(mates: &[GroupEvent], edges: Edges) -> (Vec<u32>, Vec<(i64, i64)>) {
        let (mut shown, mut spans) = (Vec::new(), Vec::new());
        let cover = |(_, span)| {
            spans.push(span);
            Ok(())
        };
        let mut pairs =
            GroupMatcher::new(edges, |mate: &GroupEvent| shown.push(mate.at.nth), cover);
        mates
            .iter()
            .try_for_each(|mate| pairs.take(*mate))
            .and_then(|()| pairs.leave())
            .unwrap();
        shown.sort_unstable();
        (shown, spans)
    }

    fn numbers(whole: GroupKey, roles: &[(GroupRole, bool)]) -> Vec<u32> {
        let mates = roles.iter().zip(0..);
        let mates: Vec<GroupEvent> = mates.map(|(role, nth)| mate(whole, *role, nth)).collect();
        found(&mates, Edges::OPEN).0
    }

    #[test]
    fn ends_go_with_their_begins() {
        use GroupRole::{Begin, End, Within};
        let outer = [
            (Begin, true),
            (Begin, false),
            (Within, false),
            (End, true),
            (End, false),
            (End, false),
        ];
        assert_eq!(numbers(GroupKey::Thread(ROW), &outer), [0, 2, 4]);
        let inner = [(Begin, false), (Within, false), (Within, true), (End, true)];
        assert_eq!(numbers(GroupKey::Async(1, 1), &inner), [2]);
    }

    #[test]
    fn an_end_belongs_to_a_begin_of_its_label() {
        let labels = [
            (GroupRole::Begin, 1),
            (GroupRole::Begin, 2),
            (GroupRole::End, 1),
        ];
        let one = |((role, label), nth): (&(GroupRole, u32), u32)| GroupEvent {
            labels: Labels {
                category: 1,
                name: *label,
            },
            ..mate(GroupKey::Thread(ROW), (*role, *label == 1), nth)
        };
        let mates: Vec<GroupEvent> = labels.iter().zip(0..).map(one).collect();
        assert_eq!(found(&mates, Edges::OPEN), (vec![0, 2], vec![(0, 2)]));
    }

    #[test]
    fn an_arrow_has_two_ends() {
        use GroupRole::{Next, Start};
        let roles = [Next, Start, Next, Start, Next, Next, Start];
        let flow = roles.map(|role| (role, true));
        assert_eq!(numbers(GroupKey::Flow(1, 1), &flow), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_span_that_reaches_into_the_window_is_shown_whole() {
        use GroupRole::{Begin, End};
        let mates = [Begin, End, Begin, End, Begin, Begin, End];
        let mates = mates.into_iter().zip(0..);
        let whole = GroupKey::Thread(ROW);
        for (from_ns, to_ns, expected) in [
            (3, 3, vec![2, 3]),
            (2, 5, vec![2, 3, 4, 5, 6]),
            (7, 9, vec![]),
            (0, 0, vec![0, 1]),
        ] {
            let edges = Edges { from_ns, to_ns };
            let inside = |nth: u32| (from_ns..=to_ns).contains(&i64::from(nth));
            let one = |(role, nth)| GroupEvent {
                inside: inside(nth),
                ..mate(whole, (role, true), nth)
            };
            let mates: Vec<GroupEvent> = mates.clone().map(one).collect();
            assert_eq!(found(&mates, edges).0, expected, "{edges:?}");
        }
    }
}
