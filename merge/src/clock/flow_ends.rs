//! Collects the ends of flows that lead from process to process, by which the clocks of several hosts are brought together.

use crate::align::{End, Role, clamp};
use crate::event::flow;
use crate::event::line::Event;
use crate::fragment::recording::Recording;
use crate::pass::labels::Labels;
use crate::pass::visit::{AtOnce, ChunkView, visit};
use crate::store::sorter::Sorter;
use sa_format::Phase;
use std::io;

/// Reads the chunks that may have ends once more, and adds these to `sorter`. `boots` has the boot of each recording.
pub(super) fn collect(
    sorter: &mut Sorter<'_, End>,
    recordings: &[Recording],
    boots: &[Option<u32>],
    ChunkView { sources, chunks }: ChunkView<'_>,
) -> io::Result<()> {
    let may_have = |number: &usize| {
        let source = &sources[chunks[*number].source];
        boots[source.recording].is_some()
            && source.summary.phases.keys().any(|phase| phase.is_flow())
    };
    let look = |number: usize| {
        let (chunk, mut ends) = (&chunks[number], Vec::new());
        let source = &sources[chunk.source];
        let header = recordings[source.recording].clock_header();
        let offset_ns = header.map_or(0, |header| header.monotonic_offset_ns);
        chunk.recorded(source.bytes, |event| {
            ends.extend(end_of(&event, boots[source.recording], offset_ns));
        });
        ends
    };
    let numbers = (0..chunks.len()).filter(may_have);
    visit(numbers, AtOnce::Few, look, |ends| {
        ends.into_iter().try_for_each(|end| sorter.push(end))
    })
}

fn end_of(event: &Event<'_>, boot: Option<u32>, offset_ns: i64) -> Option<End> {
    let role = match event.phase {
        Phase::FlowStart => Role::Start,
        Phase::FlowStep => Role::Step,
        Phase::FlowEnd => Role::End,
        _ => return None,
    };
    let id = flow::global_id(event)?;
    let labels = Labels::of(event); // viewers tell flows apart by them, too
    let labels = u64::from(labels.name) << 32 | u64::from(labels.category);
    Some(End {
        flow: id ^ labels.rotate_left(7),
        role,
        boot: boot?,
        at_ns: clamp(event.ts_ns.saturating_sub(clamp(offset_ns))),
    })
}
