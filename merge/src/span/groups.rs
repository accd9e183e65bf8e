//! Events that mean something only together: begins and ends of spans, and the arrows of a flow.

use crate::base::begun_spans::BegunSpans;
use crate::event::edges::Edges;
use crate::span::group_key::{Choice, GroupEvent, GroupKey, GroupRole, ThreadNumber};
use crate::store::sorter::Record;
use std::io;

/// A span that is shown, on its row.
pub(crate) type ShownSpan = (ThreadNumber, (i64, i64));

/// A step in the matching of events that belong together.
pub(crate) enum Joined<'a, T> {
    /// A begin, and its end if it has one.
    Span(&'a GroupEvent<T>, Option<&'a GroupEvent<T>>),
    /// An end without a begin.
    End(&'a GroupEvent<T>),
    /// Any other event, and the begins that have no end so far.
    Other(&'a GroupEvent<T>, &'a BegunSpans<GroupEvent<T>>),
}

/// Finds the end of each begun span, as [`BegunSpans`] says, and calls `found` with what comes of the events.
pub(crate) fn join<T: Record>(
    events: &[GroupEvent<T>],
    mut found: impl FnMut(Joined<'_, T>) -> io::Result<()>,
) -> io::Result<()> {
    for whole in events.chunk_by(|one, next| one.whole == next.whole) {
        let mut open = BegunSpans::default();
        for event in whole {
            match event.role {
                GroupRole::Begin => {
                    let first = open.begin(*event);
                    first.map_or(Ok(()), |first| found(Joined::Span(&first, None)))
                }
                GroupRole::End => match open.end(event) {
                    Some(begin) => found(Joined::Span(&begin, Some(event))),
                    None => found(Joined::End(event)),
                },
                GroupRole::Within | GroupRole::Start | GroupRole::Next => {
                    found(Joined::Other(event, &open))
                }
            }?;
        }
        open.drain()
            .try_for_each(|begin| found(Joined::Span(&begin, None)))?;
    }
    Ok(())
}

/// Calls `show` with the events that are shown, together or not at all, and `cover` with their spans. Returns the number of spans that cross an edge.
pub(crate) fn show_groups(
    events: &[GroupEvent<Choice>],
    edges: Edges,
    mut show: impl FnMut(&GroupEvent<Choice>),
    mut cover: impl FnMut(ShownSpan) -> io::Result<()>,
) -> io::Result<u64> {
    let mut cut = 0;
    // The start of a flow that leads nowhere so far, and a flow that has led somewhere.
    let mut start: Option<GroupEvent<Choice>> = None;
    let mut goes_on: Option<GroupKey> = None;
    join(events, |joined| {
        match joined {
            // A begin without an end is shown by itself.
            Joined::Span(begin, end) => {
                let reaches = end.map_or(begin.more.inside, |end| {
                    begin.at_ns <= edges.to_ns && end.at_ns >= edges.from_ns
                });
                if !begin.more.wanted || !reaches {
                    return Ok(());
                }
                show(begin);
                if let Some(end) = end {
                    show(end);
                    cut += u64::from(begin.at_ns < edges.from_ns || end.at_ns > edges.to_ns);
                }
                let end_ns = end.map_or(i64::MAX, |end| end.at_ns);
                cover((begin.more.row, (begin.at_ns, end_ns)))?;
            }
            // An end without a begin is shown, too.
            Joined::End(end) if end.more.wanted && end.more.inside => show(end),
            Joined::End(_) => {}
            Joined::Other(event, open) => match event.role {
                GroupRole::Start => (start, goes_on) = (Some(*event), None),
                // Only arrows that have both their ends are shown.
                GroupRole::Next => {
                    if let Some(start) = start.take().filter(|start| start.whole == event.whole) {
                        show(&start);
                        goes_on = Some(event.whole);
                    }
                    if goes_on == Some(event.whole) {
                        show(event);
                    }
                }
                _ => {
                    let is_within = || open.iter().any(|begin| begin.more.wanted);
                    if event.more.inside && (event.more.wanted || is_within()) {
                        show(event);
                    }
                }
            },
        }
        Ok(())
    })?;
    Ok(cut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::chunk::EventRef;
    use crate::pass::labels::Labels;
    use crate::store::sorter::Sorter;

    const ROW: ThreadNumber = 3;

    fn mate(whole: GroupKey, (role, wanted): (GroupRole, bool), nth: u32) -> GroupEvent<Choice> {
        GroupEvent {
            whole,
            role,
            at_ns: i64::from(nth),
            at: EventRef { chunk: 7, nth },
            labels: Labels::default(),
            more: Choice {
                row: ROW,
                wanted,
                inside: true,
            },
        }
    }

    /// The numbers of those that are shown, and the spans; one event in each ns.
    fn found(mates: &[GroupEvent<Choice>], edges: Edges) -> (Vec<u32>, Vec<(i64, i64)>) {
        let (mut shown, mut spans) = (Vec::new(), Vec::new());
        let cover = |(_, span)| {
            spans.push(span);
            Ok(())
        };
        show_groups(mates, edges, |mate| shown.push(mate.at.nth), cover).unwrap();
        shown.sort_unstable();
        (shown, spans)
    }

    fn numbers(whole: GroupKey, roles: &[(GroupRole, bool)]) -> Vec<u32> {
        let mates = roles.iter().zip(0..);
        let mates: Vec<GroupEvent<_>> = mates.map(|(role, nth)| mate(whole, *role, nth)).collect();
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
        let mates: Vec<GroupEvent<_>> = labels.iter().zip(0..).map(one).collect();
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
            let one = |(role, nth)| {
                let mut one = mate(whole, (role, true), nth);
                one.more.inside = inside(nth);
                one
            };
            let mates: Vec<GroupEvent<_>> = mates.clone().map(one).collect();
            assert_eq!(found(&mates, edges).0, expected, "{edges:?}");
        }
    }

    /// Joins halves by row, phase, time and name. Returns the row of each begin, when it was, and when it ended.
    fn joined(halves: &[(u32, GroupRole, i64, u32)]) -> Vec<(GroupKey, i64, Option<i64>)> {
        let folder = std::env::temp_dir();
        let mut sorter = Sorter::new(&folder);
        for ((row, side, start, name), nth) in halves.iter().zip(0..) {
            let half = GroupEvent {
                at_ns: *start,
                labels: Labels {
                    category: 1,
                    name: *name,
                },
                ..mate(GroupKey::Thread(*row), (*side, true), nth)
            };
            sorter.push(half).unwrap();
        }
        let mut found = Vec::new();
        join(&sorter.finish().unwrap(), |joined| {
            if let Joined::Span(begin, end) = joined {
                found.push((begin.whole, begin.at_ns, end.map(|end| end.at_ns)));
            }
            Ok(())
        })
        .unwrap();
        found.sort_unstable();
        found
    }

    const B: GroupRole = GroupRole::Begin;
    const E: GroupRole = GroupRole::End;

    #[test]
    fn halves_of_one_row_belong_together() {
        let halves = [
            (0, B, 1, 7),
            (1, B, 2, 7),
            (0, B, 3, 7),
            (0, E, 4, 0),
            (1, E, 5, 7),
            (2, E, 6, 7),
        ];
        let [first, second] = [0, 1].map(GroupKey::Thread);
        let expected = [(first, 1, None), (first, 3, Some(4)), (second, 2, Some(5))];
        assert_eq!(joined(&halves), expected);
    }
}
