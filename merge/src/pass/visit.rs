//! Parallel loops over chunks, used by all passes. A batch of chunks is read at a time, and the
//! results are handed on in order, so that they do not depend on the number of threads. Results are
//! dropped long before the last chunk is read.

use crate::base::progress::Progress;
use crate::event::edges::Lies;
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
    pub(crate) fn shown<T>(
        self,
        number: usize,
        of_event: impl Fn(RecordedThread, EventRef, &Event<'_>) -> Option<T>,
    ) -> Vec<T> {
        let (chunk, mut made) = (&self.chunks[number], Vec::new());
        let source = &self.sources[chunk.source];
        let Ok(number) = u32::try_from(number) else {
            return made;
        };
        chunk.each(source.bytes, |nth, lies, event| {
            if lies != Lies::Outside {
                let place = (source.recording, (event.pid, event.tid));
                made.extend(of_event(place, EventRef { chunk: number, nth }, event));
            }
        });
        made
    }
}

/// Number of chunks that are read before their results are handed on.
#[derive(Clone, Copy)]
pub(crate) enum AtOnce {
    /// Several for each worker, bounded for the sake of memory.
    Many,
    /// Fewer, for loops with large results.
    Few,
}

impl AtOnce {
    fn chunks(self) -> usize {
        let workers = rayon::current_num_threads();
        match self {
            AtOnce::Many => (4 * workers).clamp(16, 64),
            AtOnce::Few => (2 * workers).min(16),
        }
    }
}

/// Calls `f` in parallel with these chunk numbers. Returns the results in the same order.
pub(crate) fn visit<T: Send>(
    numbers: impl IntoIterator<Item = usize>,
    at_once: AtOnce,
    look: impl Fn(usize) -> T + Sync,
) -> impl Iterator<Item = T> {
    let mut numbers = numbers.into_iter();
    let batches = std::iter::from_fn(move || {
        let some: Vec<usize> = numbers.by_ref().take(at_once.chunks()).collect();
        let found = some.par_iter().map(|number| look(*number));
        (!some.is_empty()).then(|| found.collect::<Vec<T>>())
    });
    batches.flatten()
}

/// Calls `f` in parallel for all chunks, then `merge` with each result, in order. `merge` may
/// change the chunk and its source.
///
/// # Errors
/// Returns the first error of `merge`.
pub(crate) fn visit_mut<'a, T: Send, E>(
    sources: &mut [Source<'a>],
    chunks: &mut [Chunk],
    look: impl Fn(usize, &Chunk, &Source<'a>) -> T + Sync,
    mut merge: impl FnMut(&mut Chunk, &mut Source<'a>, T) -> Result<(), E>,
) -> Result<(), E> {
    let step = AtOnce::Many.chunks();
    for (nth, chunks) in chunks.chunks_mut(step).enumerate() {
        let found: Vec<T> = {
            let sources = &*sources;
            let look =
                |(at, chunk): (usize, &Chunk)| look(nth * step + at, chunk, &sources[chunk.source]);
            chunks.par_iter().enumerate().map(look).collect()
        };
        for (chunk, found) in chunks.iter_mut().zip(found) {
            let source = &mut sources[chunk.source];
            merge(chunk, source, found)?;
        }
    }
    Ok(())
}

/// The chunks to scan.
pub(crate) struct ThreadScan<'a> {
    pub(crate) view: ChunkView<'a>,
    /// Shift in ns from the times of each recording to the times of the trace.
    pub(crate) shifts_ns: &'a [i64],
    pub(crate) progress: &'a Progress,
}

impl ThreadScan<'_> {
    /// Returns the results of `f`, in order, for the shown events of some threads. Events of other
    /// threads may be included.
    pub(crate) fn each<T: Send>(
        &self,
        places: impl Iterator<Item = RecordedThread>,
        of_event: impl Fn(RecordedThread, EventRef, &Event<'_>) -> Option<T> + Sync,
    ) -> impl Iterator<Item = T> {
        let ChunkView { sources, chunks } = self.view;
        let mut threads: BTreeMap<usize, Vec<(i64, i64)>> = BTreeMap::new();
        places.for_each(|(recording, thread)| threads.entry(recording).or_default().push(thread));
        let set =
            |(recording, threads): (usize, Vec<_>)| (recording, threads.into_iter().collect());
        let sets: BTreeMap<usize, ThreadSet> = threads.into_iter().map(set).collect();
        let may_hold = |chunk: &Chunk| {
            let set = sets.get(&sources[chunk.source].recording);
            set.is_some_and(|set| chunk.threads.meets(*set))
        };
        let numbers = 0..chunks.len();
        let numbers = numbers.filter(|number| may_hold(&chunks[*number]));
        let numbers: Vec<usize> = numbers.collect();
        let lens = numbers.iter().map(|number| chunks[*number].len());
        self.progress.expect_more(lens.sum());
        let look = move |number: usize| {
            self.progress.add(chunks[number].len(), 0);
            self.view.shown(number, &of_event)
        };
        visit(numbers, AtOnce::Few, look).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn what_is_found_comes_in_order() {
        let found = visit(0..1000, AtOnce::Few, |number| 2 * number);
        assert!(found.eq((0..2000).step_by(2)));
        let looked = AtomicUsize::new(0);
        let look = |_| looked.fetch_add(1, Ordering::Relaxed);
        assert_eq!(visit(0..1000, AtOnce::Many, look).take(20).count(), 20);
        assert!(looked.into_inner() < 1000, "no more than was asked for");
    }
}
