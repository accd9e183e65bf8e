//! The lane table of a ring: which async spans were open, and on which lane each of them is shown.

use super::open::{Chain, EntryPlace};
use super::{Area, OpenEntry, OpenSpan, RingBytes, RingReader, Slot, read_entry};
use sa_format::LANE_BASE;
use sa_format::ring as layout;
use std::collections::HashMap;

/// A span that was open on a virtual lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenLane {
    /// The span, on its own lane.
    pub span: OpenSpan,
    /// Lane of its parent span.
    pub parent: Option<u32>,
}

/// Returns the open spans in the order in which they began. A span with an open parent is shown on its parent's lane.
///
/// A lane is reused when its span has ended. Therefore a span on the parent's lane that began later than the child is not its parent. This also rules
/// out cycles, whatever the ring contains.
pub fn shown_lanes<'a>(open: impl Iterator<Item = &'a OpenLane>) -> Vec<OpenSpan> {
    let mut open: Vec<&OpenLane> = open.collect();
    open.sort_by_key(|lane| lane.span.start_ns);
    // Start of each lane's span, and the lane on which it is shown.
    let mut shown_on: HashMap<u32, (u64, u32)> = HashMap::new();
    let mut shown = Vec::with_capacity(open.len());
    for OpenLane { span, parent } in open {
        let outer = parent
            .and_then(|parent| shown_on.get(&parent))
            .filter(|(start_ns, _)| *start_ns < span.start_ns);
        let tid = outer.map_or(span.tid, |(_, tid)| *tid);
        shown_on.insert(span.tid, (span.start_ns, tid));
        shown.push(OpenSpan {
            tid,
            ..span.clone()
        });
    }
    shown
}

impl RingReader<'_> {
    /// Reads the spans that are open on lanes. `more` contains the lanes beyond the table.
    pub(super) fn lanes(&mut self, more: &Chain, slots: &[Slot]) -> Vec<OpenLane> {
        let (source, table, areas) = (self.source, self.head.lanes, self.head.texts);
        let lanes_per_group = self.head.lane_count.checked_div(areas.lanes_count);
        let mut last = None;
        let in_table = (0..self.head.lane_count).map(|index| EntryPlace {
            at: table + u64::from(index) * layout::OPEN_ENTRY_BYTES as u64,
            text: lanes_per_group.map_or(Area::NONE, |lanes_per_group| {
                text(source, areas, (index, lanes_per_group), &mut last)
            }),
        });
        let in_table = in_table.take_while(|place| place.at < source.len());
        let mut lanes = Vec::new();
        for (index, EntryPlace { at, text }) in (0..).zip(in_table.chain(more.entries())) {
            let entry = OpenEntry::read(self, at, layout::LANE_NAME_AT, text);
            let Some(entry) = entry.filter(|entry| !is_closed(entry, slots)) else {
                continue;
            };
            let parent = entry
                .u32(layout::LANE_PARENT_AT)
                .checked_sub(1)
                .and_then(|lane| LANE_BASE.checked_add(lane));
            let span = entry.span(self, LANE_BASE + index);
            lanes.extend(span.map(|span| OpenLane { span, parent }));
        }
        lanes
    }
}

fn is_closed(entry: &OpenEntry, slots: &[Slot]) -> bool {
    let closing_slot = entry.u32(layout::LANE_CLOSING_SLOT_AT);
    let closing = slots.iter().find(|slot| slot.slot == closing_slot);
    closing.is_some_and(|slot| entry.is_closed_at(slot.head))
}

/// Number of a lane group, and the offset and size of its texts.
type Group = (u32, Option<(u64, u64)>);

/// Returns where the text of a lane's span is: in the area that the directory entry of its group refers to. The area is empty if there is no text. An
/// entry is read once for all lanes of a group, because `last` caches it.
fn text(
    source: &dyn RingBytes,
    areas: layout::TextAreas,
    (lane, lanes_per_group): (u32, u32),
    last: &mut Option<Group>,
) -> Area {
    let bytes = u64::from(areas.lane_bytes);
    let mut place = || {
        let group = lane.checked_div(lanes_per_group)?;
        if last.is_none_or(|(last, _)| last != group) {
            let at = u64::from(group) * layout::DIRECTORY_ENTRY_BYTES as u64;
            let at = u64::from(areas.lanes_offset) + at;
            *last = Some((group, read_entry(source, group, at)));
        }
        let (offset, size) = (*last)?.1?;
        let within = u64::from(lane % lanes_per_group) * bytes;
        let is_inside = offset != 0 && within + bytes <= size;
        offset.checked_add(within).filter(|_| is_inside)
    };
    place().map_or(Area::NONE, |at| Area { at, bytes })
}
