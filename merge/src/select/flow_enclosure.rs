//! Finds flow events that are in spans that are shown. A viewer binds a flow event to the span
//! around it, and reports an error if there is none.

use crate::span::group_key::{FilterState, GroupEvent, GroupKey, ThreadNumber};
use crate::span::groups::ShownSpan;
use crate::store::sorter::{Record, Sorter};
use std::collections::HashSet;
use std::io;

/// A span that is shown or a flow event, on its thread. The order is by the fields, so a span comes
/// before events at its begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EnclosureItem {
    thread: ThreadNumber,
    at_ns: i64,
    what: ItemKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ItemKind {
    Span { end_ns: i64 },
    Flow(GroupEvent<FilterState>),
}

impl EnclosureItem {
    pub(crate) fn from_span((thread, (at_ns, end_ns)): ShownSpan) -> EnclosureItem {
        let what = ItemKind::Span { end_ns };
        EnclosureItem {
            thread,
            at_ns,
            what,
        }
    }

    pub(crate) fn from_flow(event: GroupEvent<FilterState>) -> EnclosureItem {
        EnclosureItem {
            thread: event.data.thread,
            at_ns: event.at_ns,
            what: ItemKind::Flow(event),
        }
    }
}

/// Adds the flow events that are in spans to `enclosed`, except for flows in `others`.
pub(crate) fn add_enclosed_flows(
    items: &[EnclosureItem],
    others: &HashSet<u64>,
    enclosed: &mut Sorter<'_, GroupEvent<FilterState>>,
) -> io::Result<()> {
    for thread in items.chunk_by(|one, next| one.thread == next.thread) {
        let mut until_ns = i64::MIN;
        for item in thread {
            match item.what {
                ItemKind::Span { end_ns } => until_ns = until_ns.max(end_ns),
                ItemKind::Flow(event) if item.at_ns < until_ns => match event.group {
                    GroupKey::Flow(id, _) if others.contains(&id) => {}
                    _ => enclosed.push(event)?,
                },
                ItemKind::Flow(_) => {}
            }
        }
    }
    Ok(())
}

impl Record for EnclosureItem {}
