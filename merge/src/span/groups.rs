//! Matching of begins with ends, and of the events of a flow.

use crate::base::begun_spans::BegunSpans;
use crate::event::edges::Edges;
use crate::span::group_key::{FilterState, GroupEvent, GroupKey, GroupRole, ThreadNumber};
use crate::store::sorter::Record;
use std::io;

/// A span that is shown, and its thread.
pub(crate) type ShownSpan = (ThreadNumber, (i64, i64));

/// A result of matching the events of a group.
pub(crate) enum Matched<'a, T> {
    /// A begin, and its end if it has one.
    Span(&'a GroupEvent<T>, Option<&'a GroupEvent<T>>),
    /// An end without a begin.
    End(&'a GroupEvent<T>),
    /// Any other event, and the begins that have no end so far.
    Other(&'a GroupEvent<T>, &'a BegunSpans<GroupEvent<T>>),
}

/// Matches ends with begins by the rules of [`BegunSpans`]. Calls `found` with each result.
pub(crate) fn match_events<T: Record>(
    events: &[GroupEvent<T>],
    mut found: impl FnMut(Matched<'_, T>) -> io::Result<()>,
) -> io::Result<()> {
    for group in events.chunk_by(|one, next| one.group == next.group) {
        let mut open = BegunSpans::default();
        for event in group {
            match event.role {
                GroupRole::Begin => {
                    let first = open.begin(*event);
                    first.map_or(Ok(()), |first| found(Matched::Span(&first, None)))
                }
                GroupRole::End => match open.end(event) {
                    Some(begin) => found(Matched::Span(&begin, Some(event))),
                    None => found(Matched::End(event)),
                },
                GroupRole::Within | GroupRole::Start | GroupRole::Next => {
                    found(Matched::Other(event, &open))
                }
            }?;
        }
        open.drain()
            .try_for_each(|begin| found(Matched::Span(&begin, None)))?;
    }
    Ok(())
}

/// Selects the groups of events that are shown. Calls `show` with each of their events and `cover`
/// with each span. Returns the number of spans that cross an edge of the window.
pub(crate) fn show_groups(
    events: &[GroupEvent<FilterState>],
    edges: Edges,
    mut show: impl FnMut(&GroupEvent<FilterState>),
    mut cover: impl FnMut(ShownSpan) -> io::Result<()>,
) -> io::Result<u64> {
    let mut cut = 0;
    // Start of a flow for which no other event has been found yet, and a flow that has one.
    let mut start: Option<GroupEvent<FilterState>> = None;
    let mut shown_flow: Option<GroupKey> = None;
    match_events(events, |matched| {
        match matched {
            // A begin without an end is shown alone.
            Matched::Span(begin, end) => {
                let overlaps = end.map_or(begin.data.is_in_window, |end| {
                    begin.at_ns <= edges.to_ns && end.at_ns >= edges.from_ns
                });
                if !begin.data.is_selected || !overlaps {
                    return Ok(());
                }
                show(begin);
                if let Some(end) = end {
                    show(end);
                    cut += u64::from(begin.at_ns < edges.from_ns || end.at_ns > edges.to_ns);
                }
                let end_ns = end.map_or(i64::MAX, |end| end.at_ns);
                cover((begin.data.thread, (begin.at_ns, end_ns)))?;
            }
            // An end without a begin is shown, too.
            Matched::End(end) if end.data.is_selected && end.data.is_in_window => show(end),
            Matched::End(_) => {}
            Matched::Other(event, open) => match event.role {
                GroupRole::Start => (start, shown_flow) = (Some(*event), None),
                // Only flows that have both a start and another event are shown.
                GroupRole::Next => {
                    if let Some(start) = start.take().filter(|start| start.group == event.group) {
                        show(&start);
                        shown_flow = Some(event.group);
                    }
                    if shown_flow == Some(event.group) {
                        show(event);
                    }
                }
                _ => {
                    let is_within = || open.iter().any(|begin| begin.data.is_selected);
                    if event.data.is_in_window && (event.data.is_selected || is_within()) {
                        show(event);
                    }
                }
            },
        }
        Ok(())
    })?;
    Ok(cut)
}
