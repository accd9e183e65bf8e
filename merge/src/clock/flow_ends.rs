//! Collects the ends of flows that lead from process to process, by which the clocks of several hosts are brought together.

use crate::align::{End, Role, clamp};
use crate::event::flow;
use crate::event::line::Event;
use crate::fragment::recording::Recording;
use crate::pass::chunk::Chunk;
use crate::pass::labels::Labels;
use crate::pass::source::Source;
use crate::pass::visit::ChunkView;
use crate::store::sorter::Sorter;
use rayon::prelude::*;
use sa_format::Phase;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Most that one thread holds of them.
const BATCH: usize = 1024;

/// Reads them once more, and adds them to `sorter`. `boots` has the boot of each recording.
pub(super) fn collect(
    sorter: &mut Sorter<'_, End>,
    recordings: &[Recording],
    boots: &[Option<u32>],
    ChunkView { sources, chunks }: ChunkView<'_>,
) -> io::Result<()> {
    let sorter = Mutex::new(sorter);
    let push = |ends: &mut Vec<End>| {
        let mut sorter = sorter.lock().unwrap_or_else(PoisonError::into_inner);
        ends.drain(..).try_for_each(|end| sorter.push(end))
    };
    let has_ends = |source: &Source<'_>| {
        boots[source.recording].is_some()
            && source.summary.phases.keys().any(|phase| phase.is_flow())
    };
    let may_have = |chunk: &&Chunk| has_ends(&sources[chunk.source]);
    let chunks: Vec<&Chunk> = chunks.iter().filter(may_have).collect();
    chunks.par_iter().try_for_each(|chunk| {
        let source = &sources[chunk.source];
        let header = recordings[source.recording].clock_header();
        let offset_ns = header.map_or(0, |header| header.monotonic_offset_ns);
        let (mut ends, mut pushed) = (Vec::with_capacity(BATCH), Ok(()));
        chunk.recorded(source.bytes, |event| {
            ends.extend(end_of(&event, boots[source.recording], offset_ns));
            if ends.len() >= BATCH && pushed.is_ok() {
                pushed = push(&mut ends);
            }
            if pushed.is_err() {
                ends.clear();
            }
        });
        pushed.and_then(|()| push(&mut ends))
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
