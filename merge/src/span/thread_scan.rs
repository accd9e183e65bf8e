//! A look at some threads between the two passes: at the chunks that may have events of theirs, a few at a time.

use crate::base::progress::Progress;
use crate::event::edges::Lies;
use crate::event::line::Event;
use crate::pass::chunk::Chunk;
use crate::pass::chunk::EventRef;
use crate::pass::source::Source;
use crate::pass::visit::{AtOnce, visit};
use crate::summary::thread::{RecordedThread, ThreadSet};
use std::collections::BTreeMap;
use std::io;

/// What there is to look at.
pub(crate) struct ThreadScan<'a> {
    pub(crate) sources: &'a [Source<'a>],
    pub(crate) chunks: &'a [Chunk],
    /// What to add to each recording's times to get the trace's.
    pub(crate) shifts_ns: &'a [i64],
    pub(crate) progress: &'a Progress,
}

impl ThreadScan<'_> {
    /// Calls `found` in order with what `of_event` makes of the events that are shown, of some threads and perhaps of others.
    pub(crate) fn each<T: Send>(
        &self,
        places: impl Iterator<Item = RecordedThread>,
        of_event: impl Fn(RecordedThread, EventRef, &Event<'_>) -> Option<T> + Sync,
        mut found: impl FnMut(T) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut threads: BTreeMap<usize, Vec<(i64, i64)>> = BTreeMap::new();
        places.for_each(|(recording, thread)| threads.entry(recording).or_default().push(thread));
        let sets: BTreeMap<usize, ThreadSet> = threads
            .into_iter()
            .map(|(recording, threads)| (recording, threads.into_iter().collect()))
            .collect();
        let may_hold = |chunk: &Chunk| {
            let set = sets.get(&self.sources[chunk.source].recording);
            set.is_some_and(|set| chunk.threads.meets(*set))
        };
        let numbers: Vec<usize> = (0..self.chunks.len())
            .filter(|number| may_hold(&self.chunks[*number]))
            .collect();
        let lens = numbers.iter().map(|number| self.chunks[*number].len());
        self.progress.expect_more(lens.sum());
        let look = |number: usize| {
            self.progress.add(self.chunks[number].len(), 0);
            self.of_chunk(number, &of_event)
        };
        visit(numbers, AtOnce::Few, look, |made| {
            made.into_iter().try_for_each(&mut found)
        })
    }

    fn of_chunk<T>(
        &self,
        number: usize,
        of_event: &impl Fn(RecordedThread, EventRef, &Event<'_>) -> Option<T>,
    ) -> Vec<T> {
        let (chunk, mut made) = (&self.chunks[number], Vec::new());
        let (source, number) = (&self.sources[chunk.source], u32::try_from(number));
        let Ok(number) = number else { return made };
        chunk.each(source.bytes, |nth, lies, event| {
            if lies != Lies::Outside {
                let place = (source.recording, (event.pid, event.tid));
                made.extend(of_event(place, EventRef { chunk: number, nth }, event));
            }
        });
        made
    }
}
