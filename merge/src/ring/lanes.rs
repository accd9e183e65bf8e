//! The lane table of a ring: which async spans were open, and on which row each is shown.

use super::{Head, OpenSpan, RingBytes, Sites, Slot, entry_u32, entry_u64, open_span};
use sa_recorder::format::LANE_BASE;
use sa_recorder::format::ring as layout;
use std::collections::HashMap;

/// A span that was open on a virtual lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenLane {
    /// The span on its own lane.
    pub span: OpenSpan,
    /// The lane of the span that it lay in.
    pub parent: Option<u32>,
}

/// What is open, as it is shown: in the order in which it began, each span that lies in another open one on that one's row.
///
/// A lane is taken again when its span has ended. Who has begun later than the span that names it as parent is therefore not meant; so
/// there is no circle either, whatever the ring says.
pub fn rows<'a>(open: impl Iterator<Item = &'a OpenLane>) -> Vec<OpenSpan> {
    let mut open: Vec<&OpenLane> = open.collect();
    open.sort_by_key(|lane| lane.span.start_ns);
    let mut rows: HashMap<u32, (u64, u32)> = HashMap::new();
    let mut shown = Vec::with_capacity(open.len());
    for OpenLane { span, parent } in open {
        let outer = parent.and_then(|parent| rows.get(&parent));
        let outer = outer.filter(|(start_ns, _)| *start_ns < span.start_ns);
        let tid = outer.map_or(span.tid, |(_, row)| *row);
        rows.insert(span.tid, (span.start_ns, tid));
        shown.push(OpenSpan {
            tid,
            ..span.clone()
        });
    }
    shown
}

pub(super) fn read(
    source: &impl RingBytes,
    head: &Head,
    sites: &mut Sites,
    slots: &[Slot],
) -> Vec<OpenLane> {
    let mut lanes = Vec::new();
    for index in 0..head.lane_count {
        let at = head.lanes + u64::from(index) * layout::OPEN_ENTRY_BYTES as u64;
        let mut entry = [0; layout::OPEN_ENTRY_BYTES];
        if source.read(at, &mut entry).is_none() {
            break;
        }
        let name = &entry[layout::LANE_NAME_AT..][..layout::LANE_NAME_BYTES];
        let Some(span) = open_span(&entry, name, LANE_BASE + index, sites) else {
            continue;
        };
        if !is_closed(&entry, slots) {
            let parent = entry_u32(&entry, layout::LANE_PARENT_AT);
            let parent = parent
                .checked_sub(1)
                .and_then(|lane| LANE_BASE.checked_add(lane));
            lanes.push(OpenLane { span, parent });
        }
    }
    lanes
}

fn is_closed(entry: &[u8; layout::OPEN_ENTRY_BYTES], slots: &[Slot]) -> bool {
    let closes_at = entry_u64(entry, layout::LANE_CLOSES_AT);
    let closing_slot = entry_u32(entry, layout::LANE_CLOSING_SLOT_AT);
    let closing = slots.iter().find(|slot| slot.slot == closing_slot);
    closes_at != 0 && closing.is_some_and(|slot| slot.head >= closes_at)
}
