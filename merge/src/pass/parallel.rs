//! Parallel loops over chunks, used by all passes. A batch of chunks is read at a time, and the
//! results are handed on in order, so that they do not depend on the number of threads. Results are
//! dropped long before the last chunk is read.

use crate::base::progress::Progress;
use crate::event::edges::Relation;
use crate::event::line::Event;
use crate::pass::chunk::{Chunk, EventRef};
use crate::pass::source::Source;
use crate::summary::chunk_summary::{RecordedThread, ThreadSet};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// All chunks, and the sources of their bytes.
#[derive(Clone, Copy)]
pub(crate) struct ChunkView<'a> {
    pub(crate) sources: &'a [Source<'a>],
    pub(crate) chunks: &'a [Chunk],
}

impl ChunkView<'_> {
    /// Returns the results of `f` for those events of a chunk that are shown.
    pub(crate) fn map_shown<T>(
        self,
        number: usize,
        f: impl Fn(RecordedThread, EventRef, &Event<'_>) -> Option<T>,
    ) -> Vec<T> {
        let (chunk, mut results) = (&self.chunks[number], Vec::new());
        let source = &self.sources[chunk.source];
        let Ok(number) = u32::try_from(number) else {
            return results;
        };
        chunk.for_each_event(source.bytes, |nth, relation, event| {
            if relation != Relation::Outside {
                let thread = (source.recording, (event.pid, event.tid));
                results.extend(f(thread, EventRef { chunk: number, nth }, event));
            }
        });
        results
    }
}

/// Number of chunks that are read before their results are handed on.
#[derive(Clone, Copy)]
pub(crate) enum BatchSize {
    /// Several for each worker, bounded for the sake of memory.
    Large,
    /// Fewer, for loops with large results.
    Small,
}

impl BatchSize {
    fn chunks(self) -> usize {
        let workers = rayon::current_num_threads();
        match self {
            BatchSize::Large => (4 * workers).clamp(16, 64),
            BatchSize::Small => (2 * workers).min(16),
        }
    }
}

/// Calls `f` in parallel with these chunk numbers. Returns the results in the same order.
pub(crate) fn map_chunks<T: Send>(
    numbers: impl IntoIterator<Item = usize>,
    batch_size: BatchSize,
    f: impl Fn(usize) -> T + Sync,
) -> impl Iterator<Item = T> {
    let mut numbers = numbers.into_iter();
    let batches = std::iter::from_fn(move || {
        let batch: Vec<usize> = numbers.by_ref().take(batch_size.chunks()).collect();
        let results = batch.par_iter().map(|number| f(*number));
        (!batch.is_empty()).then(|| results.collect::<Vec<T>>())
    });
    batches.flatten()
}

/// Calls `f` in parallel for all chunks, then `merge` with each result, in order. `merge` may
/// change the chunk and its source.
///
/// # Errors
/// Returns the first error of `merge`.
pub(crate) fn map_and_merge<'a, T: Send, E>(
    sources: &mut [Source<'a>],
    chunks: &mut [Chunk],
    f: impl Fn(usize, &Chunk, &Source<'a>) -> T + Sync,
    mut merge: impl FnMut(&mut Chunk, &mut Source<'a>, T) -> Result<(), E>,
) -> Result<(), E> {
    let step = BatchSize::Large.chunks();
    for (nth, chunks) in chunks.chunks_mut(step).enumerate() {
        let results: Vec<T> = {
            let sources = &*sources;
            let call =
                |(at, chunk): (usize, &Chunk)| f(nth * step + at, chunk, &sources[chunk.source]);
            chunks.par_iter().enumerate().map(call).collect()
        };
        for (chunk, result) in chunks.iter_mut().zip(results) {
            let source = &mut sources[chunk.source];
            merge(chunk, source, result)?;
        }
    }
    Ok(())
}

/// Chunks to read for the events of some threads.
pub(crate) struct ThreadScan<'a> {
    pub(crate) view: ChunkView<'a>,
    /// Shift in ns from the times of each recording to the times of the trace.
    pub(crate) shifts_ns: &'a [i64],
    pub(crate) progress: &'a Progress,
}

impl ThreadScan<'_> {
    /// Returns the results of `f`, in order, for the shown events of some threads. Events of other
    /// threads may be included.
    pub(crate) fn map_events<T: Send>(
        &self,
        threads: impl Iterator<Item = RecordedThread>,
        f: impl Fn(RecordedThread, EventRef, &Event<'_>) -> Option<T> + Sync,
    ) -> impl Iterator<Item = T> {
        let ChunkView { sources, chunks } = self.view;
        let mut by_recording: BTreeMap<usize, Vec<(i64, i64)>> = BTreeMap::new();
        threads.for_each(|(recording, thread)| {
            by_recording.entry(recording).or_default().push(thread);
        });
        let thread_set =
            |(recording, threads): (usize, Vec<_>)| (recording, threads.into_iter().collect());
        let sets: BTreeMap<usize, ThreadSet> = by_recording.into_iter().map(thread_set).collect();
        let may_hold = |chunk: &Chunk| {
            let set = sets.get(&sources[chunk.source].recording);
            set.is_some_and(|set| chunk.threads.meets(*set))
        };
        let numbers: Vec<usize> = (0..chunks.len())
            .filter(|number| may_hold(&chunks[*number]))
            .collect();
        let lens = numbers.iter().map(|number| chunks[*number].len());
        self.progress.expect_more(lens.sum());
        let read_chunk = move |number: usize| {
            self.progress.add(chunks[number].len(), 0);
            self.view.map_shown(number, &f)
        };
        map_chunks(numbers, BatchSize::Small, read_chunk).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn results_come_in_order() {
        let found = map_chunks(0..1000, BatchSize::Small, |number| 2 * number);
        assert!(found.eq((0..2000).step_by(2)));
        let calls = AtomicUsize::new(0);
        let count = |_| calls.fetch_add(1, Ordering::Relaxed);
        assert_eq!(
            map_chunks(0..1000, BatchSize::Large, count)
                .take(20)
                .count(),
            20
        );
        assert!(calls.into_inner() < 1000, "no more than was asked for");
    }
}
