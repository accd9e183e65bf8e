//! Matching of begins with ends, and of the events of a flow.

use crate::base::begun_spans::BegunSpans;
use crate::event::edges::Edges;
use crate::span::group_key::{Choice, GroupEvent, GroupKey, GroupRole, ThreadNumber};
use crate::store::sorter::Record;
use std::io;

/// A span that is shown, and its thread.
pub(crate) type ShownSpan = (ThreadNumber, (i64, i64));

/// A result of matching the events of a group.
pub(crate) enum Joined<'a, T> {
    /// A begin, and its end if it has one.
    Span(&'a GroupEvent<T>, Option<&'a GroupEvent<T>>),
    /// An end without a begin.
    End(&'a GroupEvent<T>),
    /// Any other event, and the begins that have no end so far.
    Other(&'a GroupEvent<T>, &'a BegunSpans<GroupEvent<T>>),
}

/// Matches ends with begins by the rules of [`BegunSpans`]. Calls `found` with each result.
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

/// Selects the groups of events that are shown. Calls `show` with each of their events and `cover`
/// with each span. Returns the number of spans that cross an edge of the window.
pub(crate) fn show_groups(
    events: &[GroupEvent<Choice>],
    edges: Edges,
    mut show: impl FnMut(&GroupEvent<Choice>),
    mut cover: impl FnMut(ShownSpan) -> io::Result<()>,
) -> io::Result<u64> {
    let mut cut = 0;
    // Start of a flow for which no other event has been found yet, and a flow that has one.
    let mut start: Option<GroupEvent<Choice>> = None;
    let mut goes_on: Option<GroupKey> = None;
    join(events, |joined| {
        match joined {
            // A begin without an end is shown alone.
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
                // Only flows that have both a start and another event are shown.
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
