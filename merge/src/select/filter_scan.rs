//! What a look at the events of a chunk finds, where an event by itself does not tell whether it is shown.

use crate::event::event_mask::Mask;
use crate::event::flow::trace_id;
use crate::event::json::scan_object;
use crate::event::line::Event;
use crate::event::patch::Target;
use crate::pass::history::Place;
use crate::select::flow_enclosure::Spot;
use crate::span::group_key::{Mate, Role, Row, Whole};
use crate::span::lane_events::At;
use std::collections::HashSet;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What was found in a chunk.
#[derive(Default)]
pub(crate) struct Looked {
    pub(crate) mask: Mask,
    pub(crate) mates: Vec<Mate>,
    pub(crate) spots: Vec<Spot>,
    pub(crate) names: Vec<Name>,
    pub(crate) used: HashSet<Row>,
}

/// Metadata of a process or of a thread.
pub(crate) struct Name {
    pub(crate) at: At,
    pub(crate) place: Place,
    pub(crate) of_thread: bool,
}

impl Looked {
    /// Adds an event that belongs to others. One of a flow counts only in the window, and where events are asked for only in a span that is shown.
    pub(crate) fn add(&mut self, mate: Mate, only_in_spans: bool) {
        match mate.role {
            Role::Start | Role::Next if !mate.inside => {}
            Role::Start | Role::Next if only_in_spans => self.spots.extend(Spot::of_flow(&mate)),
            Role::Start | Role::Next if !mate.wanted => {}
            _ => self.mates.push(mate),
        }
    }

    /// Shows an event that stands for itself; a span may cover events of flows.
    pub(crate) fn show(
        &mut self,
        event: &Event<'_>,
        (at_ns, at, row): (i64, At, Row),
        covers: bool,
    ) {
        self.mask.set(at.nth as usize);
        self.used.insert(row);
        let end_ns = match event.phase {
            b'X' => at_ns.saturating_add(event.dur_ns),
            b'B' => i64::MAX,
            _ => return,
        };
        if covers {
            self.spots.push(Spot::of_span((row, (at_ns, end_ns))));
        }
    }
}

/// What the event belongs to and its role in it, if it belongs to any other; flows only if `flows`.
pub(crate) fn whole(
    event: &Event<'_>,
    target: &Target,
    (row, flows): (Row, bool),
) -> Option<(Whole, Role)> {
    let role = match event.phase {
        b'B' if event.is_unfinished() => return None,
        b'B' => return Some((Whole::Thread(row), Role::Begin)),
        b'E' => return Some((Whole::Thread(row), Role::End)),
        b'b' | b'S' => Role::Begin,
        b'n' | b'T' | b'p' => Role::Within,
        b'e' | b'F' => Role::End,
        b's' if flows => Role::Start,
        b't' | b'f' if flows => Role::Next,
        _ => return None,
    };
    let (id, _) = trace_id(event, target.ordinal)?;
    let fields = scan_object(event.line)?;
    let category = xxh3_64_with_seed(fields.cat.of(event.line), 0);
    let whole = match role {
        Role::Start | Role::Next => {
            Whole::Flow(id, xxh3_64_with_seed(fields.name.of(event.line), category))
        }
        _ => Whole::Async(id, category),
    };
    Some((whole, role))
}
