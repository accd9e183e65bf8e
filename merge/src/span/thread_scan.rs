//! A look at some threads between the two passes: at the chunks that may have events of theirs, a few at a time.

use crate::base::progress::Progress;
use crate::event::edges::Lies;
use crate::event::line::Event;
use crate::pass::chunk::Chunk;
use crate::pass::event_ref::EventRef;
use crate::pass::source::Source;
use crate::pass::thread::{RecordedThread, ThreadSet};
use crate::pass::verdict::Question;
use crate::pass::visit::{AtOnce, visit};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;
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

    /// The threads for which a question is answered with yes. Spans that are not shown answer as well: then a thread is looked at closely in vain.
    pub(crate) fn ask(&self, questions: &[Question]) -> BTreeSet<RecordedThread> {
        let mut of_recordings: HashMap<usize, Vec<&Question>> = HashMap::new();
        for question in questions {
            let of_recording = of_recordings.entry(question.place.0).or_default();
            of_recording.push(question);
        }
        for questions in of_recordings.values_mut() {
            questions.sort_by_key(|question| question.chunks.start);
        }
        let look = |number: usize| {
            let recording = self.sources[self.chunks[number].source].recording;
            let questions = of_recordings.get(&recording).map(Vec::as_slice);
            let questions = questions.unwrap_or_default();
            let begun = questions.partition_point(|question| question.chunks.start <= number);
            let is_asked = |question: &&&Question| question.chunks.end > number;
            self.answers(number, questions[..begun].iter().filter(is_asked))
        };
        let mut yes = BTreeSet::new();
        let Ok(()) = visit(0..self.chunks.len(), AtOnce::Many, look, |mut found| {
            yes.append(&mut found);
            Ok::<(), Infallible>(())
        });
        yes
    }

    fn answers<'q>(
        &self,
        number: usize,
        asked: impl Iterator<Item = &'q &'q Question>,
    ) -> BTreeSet<RecordedThread> {
        let (chunk, mut yes) = (&self.chunks[number], BTreeSet::new());
        let mut of_threads: HashMap<(i64, i64), Vec<&Question>> = HashMap::new();
        for question in asked {
            let of_thread = of_threads.entry(question.place.1).or_default();
            of_thread.push(question);
        }
        let threads: ThreadSet = of_threads.keys().copied().collect();
        if !chunk.threads.meets(threads) {
            return yes;
        }
        for questions in of_threads.values_mut() {
            questions.sort_by_key(|question| question.start());
        }
        let source = &self.sources[chunk.source];
        // Spans nest or not by their own times, by which the questions were asked.
        chunk.recorded(source.bytes, |event| {
            let thread = (event.pid, event.tid);
            let span = (event.ts_ns, event.ts_ns + event.dur_ns);
            if event.phase == b'X'
                && let Some(questions) = of_threads.get(&thread)
                && Question::is_any_answered_by(questions, span)
            {
                of_threads.remove(&thread);
                yes.insert((source.recording, thread));
            }
        });
        yes
    }
}
