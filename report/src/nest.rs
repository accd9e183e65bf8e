//! Nests the slices of one track and computes their self times.

use crate::covered::Covered;
use crate::gather::slice_record::SliceRecord;
use crate::serving_clock::ServingClock;
use crate::stack_tree::StackTree;
use std::cmp::Reverse;
use std::io;
use trace_base::span_stack::{OpenSpan, SpanStack};
use trace_store::sorter::Sorted;

/// A slice with its self time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NestedSlice {
    pub(crate) track: u64,
    pub(crate) start_ns: i64,
    pub(crate) key: u32,
    pub(crate) dur_ns: i64,
    /// Duration without the time that inner slices cover.
    pub(crate) self_ns: i64,
    /// CPU time of the slice, with and without the CPU time of inner slices. `None` if it was not recorded.
    pub(crate) cpu_ns: Option<(i64, i64)>,
    /// True if no slice around it has the same key.
    pub(crate) is_outermost: bool,
    /// True if the slice ends after the slice in which it started. It then counts as a child of that slice until that
    /// one ends.
    pub(crate) is_crossing: bool,
}

/// An open slice and the time of its children so far.
struct OpenSlice {
    slice: SliceRecord,
    /// Time that inner slices cover.
    covered: Covered,
    /// CPU time of inner slices.
    covered_cpu_ns: i64,
    is_outermost: bool,
    is_crossing: bool,
    /// Node of the slice's stack.
    node: Option<u32>,
}

impl OpenSlice {
    fn cover(&mut self, slice: &SliceRecord) {
        let end_ns = slice.end_ns.0.min(self.slice.end_ns.0);
        self.covered.add(slice.start_ns, end_ns);
        self.covered_cpu_ns = self.covered_cpu_ns.saturating_add(slice.cpu_ns.max(0));
    }

    /// Ends the open slice: computes its self time, counts it in `stacks`, and returns it. `keys` has the number of
    /// open slices by key.
    fn close(&self, keys: &mut [u32], stacks: &mut StackTree<'_>) -> NestedSlice {
        let SliceRecord {
            track,
            start_ns,
            key,
            ..
        } = self.slice;
        keys[key as usize] -= 1;
        let dur_ns = self.slice.end_ns.0 - start_ns;
        let self_ns = dur_ns - self.covered.ns;
        if let Some(node) = self.node {
            stacks.count(node, key, dur_ns, self_ns);
        }
        let self_cpu_ns = |cpu_ns: i64| (cpu_ns - self.covered_cpu_ns).clamp(0, self_ns.max(0));
        let cpu_ns = Some(self.slice.cpu_ns).filter(|cpu_ns| *cpu_ns >= 0);
        NestedSlice {
            track,
            start_ns,
            key,
            dur_ns,
            self_ns,
            cpu_ns: cpu_ns.map(|cpu_ns| (cpu_ns, self_cpu_ns(cpu_ns))),
            is_outermost: self.is_outermost,
            is_crossing: self.is_crossing,
        }
    }
}

/// Converts a slice to serving time, or returns `None` if no part of it is in serving time. A slice that becomes
/// shorter loses its CPU time, because the CPU time of a part is unknown.
fn clipped(slice: &SliceRecord, clock: &ServingClock) -> Option<SliceRecord> {
    let (start_ns, end_ns) = clock.clip((slice.start_ns, slice.end_ns.0))?;
    let is_whole = end_ns - start_ns == slice.end_ns.0 - slice.start_ns;
    Some(SliceRecord {
        start_ns,
        end_ns: Reverse(end_ns),
        cpu_ns: if is_whole { slice.cpu_ns } else { -1 },
        ..*slice
    })
}

/// Calls `found` with the part of each slice within serving time, and counts it in `stacks`. Slices nest by containment
/// within one track, never across tracks.
pub(crate) fn nest(
    slices: &Sorted<SliceRecord>,
    clock: &ServingClock,
    stacks: &mut StackTree<'_>,
    mut found: impl FnMut(NestedSlice) -> io::Result<()>,
) -> io::Result<()> {
    let mut open: SpanStack<OpenSlice> = SpanStack::default();
    // Number of open slices by key.
    let mut keys: Vec<u32> = Vec::new();
    for track in slices.chunk_by(|one, next| one.track == next.track) {
        for slice in track.iter().filter_map(|slice| clipped(slice, clock)) {
            while let Some(ended) = open.pop_ended(slice.start_ns) {
                found(ended.value.close(&mut keys, stacks))?;
            }
            let end_ns = slice.end_ns.0;
            let parent = open.innermost_mut();
            let is_crossing = parent.as_ref().is_some_and(|parent| end_ns > parent.end_ns);
            let node = parent.as_ref().and_then(|parent| parent.value.node);
            let node = stacks.open(node, &slice);
            if let Some(parent) = parent {
                parent.value.cover(&slice);
            }
            let key = slice.key as usize;
            keys.resize(keys.len().max(key + 1), 0);
            keys[key] += 1;
            let value = OpenSlice {
                slice,
                covered: Covered::new(slice.start_ns),
                covered_cpu_ns: 0,
                is_outermost: keys[key] == 1,
                is_crossing,
                node,
            };
            open.push(OpenSpan {
                start_ns: slice.start_ns,
                end_ns,
                value,
            });
        }
        while let Some(ended) = open.pop_ended(i64::MAX) {
            found(ended.value.close(&mut keys, stacks))?;
        }
    }
    Ok(())
}
