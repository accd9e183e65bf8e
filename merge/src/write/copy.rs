//! The second pass: copies every line and replaces only its times and ids.

use crate::Error;
use crate::event::json::scan_object;
use crate::event::line::is_left_out;
use crate::event::scan::{Found, scan_part};
use crate::event::verbatim::{object, write_verbatim};
use crate::fragment::file::Fragment;
use crate::identity::process::output_pids;
use crate::identity::viewer_metadata::metadata_lines;
use crate::link::{LinkedEvents, Links, Lookup};
use crate::pass::chunk::Chunk;
use crate::write::addition::Addition;
use crate::write::output::{Destination, reject_inputs};
use crate::write::sink::{Length, Scratch, Sink, SinkTarget};
use crate::write::split::portion::Portion;
use crate::write::timeline::order::TimeOrder;
use crate::write::timeline::sorted_writer::SortedWriter;
use crate::write::writer::Job;
use memchr::memchr_iter;
use rayon::ThreadPool;
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

/// Chunks to copy, or pieces of all events in the order of time, and their destination.
struct CopyWork<'a> {
    wanted: &'a [usize],
    /// Turn of the chunk with the first event, which must not begin with a comma; `None` if no
    /// chunk has events.
    first_turn: Option<usize>,
    next: AtomicUsize,
    sink: &'a Sink,
}

/// Copies the trace, or a part of it.
#[derive(Clone, Copy)]
pub(crate) struct TraceCopy<'a> {
    pub(crate) job: Job<'a>,
    /// Value of `otherData`.
    pub(crate) other_data: &'a Value,
    /// Tracks that a program adds to the trace, unless it is split.
    pub(crate) addition: &'a Addition,
    /// Order of the events, if they are sorted by time.
    pub(crate) order: Option<&'a TimeOrder<'a>>,
    /// Part of the trace to write, if it is split.
    pub(crate) portion: Option<&'a Portion<'a>>,
}

impl<'a> TraceCopy<'a> {
    /// Writes the trace, or its part, and returns its length and the number of flow events that
    /// link requests.
    pub(crate) fn write(
        &self,
        destination: &Destination,
        target: SinkTarget,
        pool: &ThreadPool,
    ) -> Result<(Length, LinkedEvents), Error> {
        reject_inputs(destination, self.job.recordings)?;
        let sink = Sink::new(target, destination.gzip);
        let linked = self.run(&sink, pool.current_num_threads());
        let path = destination.path.as_deref().unwrap_or(Path::new(""));
        let length = sink
            .finish()
            .map_err(|source| Error::from_write(path, source))?;
        Ok((length, linked))
    }

    /// Writes the whole trace, or its part, to the sink, which stores the first error. Returns the
    /// number of flow events that link requests.
    fn run(&self, sink: &Sink, threads: usize) -> LinkedEvents {
        let mut scratch = Scratch::default();
        scratch.text = self.head();
        if !sink.write_chunk(0, &mut scratch, false) {
            return LinkedEvents::default();
        }
        let wanted = self.wanted_chunks();
        let work = CopyWork {
            wanted: &wanted,
            first_turn: self.first_turn(&wanted),
            next: AtomicUsize::new(0),
            sink,
        };
        let linked = Mutex::new(LinkedEvents::default());
        std::thread::scope(|scope| {
            for _ in 0..threads.min(wanted.len()) {
                let work = || {
                    let written = self.work(&work);
                    *linked.lock().unwrap_or_else(PoisonError::into_inner) += written;
                };
                if Builder::new().spawn_scoped(scope, work).is_err() {
                    // No thread can be created: this thread and the existing ones do the rest.
                    work();
                    return;
                }
            }
        });
        scratch.text = self.tail();
        sink.write_chunk(wanted.len() + 1, &mut scratch, true);
        linked.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the text before the events.
    pub(crate) fn head(&self) -> Vec<u8> {
        let mut data = self.other_data.clone();
        if let Some(portion) = self.portion {
            data["part"] = portion.other_data();
        } else if !self.addition.view.is_null() {
            data["view"] = self.addition.view.clone();
        }
        format!("{{\"displayTimeUnit\":\"ns\",\"otherData\":{data},\"traceEvents\":[").into_bytes()
    }

    /// Returns the text after the events.
    pub(crate) fn tail(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let processes = &self.job.plan.processes;
        let metadata = (!self.job.verbatim).then(|| metadata_lines(processes));
        let added = self
            .portion
            .is_none()
            .then(|| self.addition.lines(&output_pids(processes)));
        for line in metadata.into_iter().chain(added).flatten() {
            text.extend_from_slice(b",\n");
            text.extend_from_slice(line.as_bytes());
        }
        text.extend_from_slice(b"\n]}\n"); // no empty object, because viewers count it as an error
        text
    }

    /// Returns the numbers of the chunks that may have anything to show, or of the pieces of the
    /// sorted events.
    pub(crate) fn wanted_chunks(&self) -> Vec<usize> {
        let is_wanted = |number: &usize| {
            let chunk = &self.job.chunks[*number];
            let recording = self.job.sources[chunk.source].recording;
            let overlaps = |portion: &Portion<'_>| portion.view(recording, *number).overlaps(chunk);
            self.portion.is_none_or(overlaps)
        };
        match self.order {
            Some(order) => (0..order.pieces()).collect(),
            None => (0..self.job.chunks.len()).filter(is_wanted).collect(),
        }
    }

    /// Returns the turn of the first chunk that shows anything.
    fn first_turn(&self, wanted: &[usize]) -> Option<usize> {
        if self.order.is_some() {
            return (!wanted.is_empty()).then_some(0);
        }
        let shows_any = |number: &usize| match self.portion {
            Some(_) => {
                let mut text = Vec::new();
                self.copy(*number, None, &mut text);
                !text.is_empty()
            }
            None => self.job.chunks[*number].events > 0,
        };
        wanted.iter().position(shows_any)
    }

    /// Copies chunks until there are none left, or the trace cannot be written. Returns the number
    /// of flow events that link requests.
    fn work(&self, work: &CopyWork<'_>) -> LinkedEvents {
        let mut lookup = self.job.links.and_then(Links::lookup);
        if let Some(order) = self.order {
            let mut writer = SortedWriter::new(&self.job, order, lookup.as_mut());
            self.copy_in_turn(work, |piece, out| {
                let done = writer.write_piece(piece, out);
                remove_invalid(writer.piece_fragments(), out);
                done
            });
        } else {
            self.copy_in_turn(work, |number, out| {
                let (chunk, fragment) = (&self.job.chunks[number], self.fragment(number));
                match self.job.verbatim {
                    true => self.copy_verbatim(chunk, out),
                    false => self.copy(number, lookup.as_mut(), out),
                }
                // Release the pages that were copied.
                let ends = chunk.parts.first().zip(chunk.parts.last());
                if let Some((fragment, (first, last))) = fragment.zip(ends) {
                    fragment.content.release(first.start, last.end);
                }
                remove_invalid(fragment.into_iter(), out);
                chunk.len()
            });
        }
        lookup.map_or_else(LinkedEvents::default, |lookup| lookup.written)
    }

    /// Takes turns at copying chunks or pieces. `copy` writes one and returns how many bytes of the
    /// inputs it has.
    fn copy_in_turn(&self, work: &CopyWork<'_>, mut copy: impl FnMut(usize, &mut Vec<u8>) -> u64) {
        let mut scratch = Scratch::default();
        loop {
            let turn = work.next.fetch_add(1, Ordering::Relaxed);
            let Some(number) = work.wanted.get(turn).copied() else {
                return;
            };
            scratch.text.clear();
            let done = copy(number, &mut scratch.text);
            let removed = fit_turn(turn, work.first_turn, &mut scratch.text);
            if let Some(fragment) = self.fragment(number).filter(|_| removed > 0) {
                fragment.watch.add_removed(removed);
            }
            if !work.sink.write_chunk(turn + 1, &mut scratch, false) {
                return;
            }
            self.job.progress.add(done, 0);
        }
    }

    /// Returns the fragment of a chunk, or `None` for the number of a piece, which has lines from
    /// many fragments.
    fn fragment(&self, number: usize) -> Option<&'a Fragment> {
        let chunk = self.job.chunks.get(number).filter(|_| self.order.is_none());
        let source = &self.job.sources[chunk?.source];
        source.fragment(self.job.recordings)
    }

    /// Writes the wanted events of a chunk to `out`.
    fn copy(&self, number: usize, lookup: Option<&mut Lookup<'a>>, out: &mut Vec<u8>) {
        let chunk = &self.job.chunks[number];
        let source = &self.job.sources[chunk.source];
        let mut writer = self.job.writer(number, lookup, out);
        let portion = self.portion;
        let view = portion.map(|portion| portion.view(source.recording, number));
        let partial = view.and_then(|mut view| (!view.shows_all(chunk)).then_some(view));
        if let Some(mut view) = partial {
            chunk.for_each_event(source.bytes, |nth, relation, event| {
                // A span may be in several parts, but flow events, such as those at its begin, are
                // in one part.
                let cut = chunk.cut(event);
                let shown = cut.as_ref().unwrap_or(event);
                let links = view.has_begin(shown);
                writer.write_event(event, view.relation(nth, relation, shown), links);
            });
        } else if chunk.needs_only_shift() && writer.moved.is_empty() {
            for part in chunk.parts.iter() {
                writer.write_canonical(source.bytes, *part);
            }
        } else {
            chunk.for_each_event(source.bytes, |_, relation, event| {
                writer.write_linked(event, relation);
            });
        }
    }

    fn copy_verbatim(&self, chunk: &Chunk, out: &mut Vec<u8>) {
        let source = &self.job.sources[chunk.source];
        let is_ours = self.job.recordings[source.recording].header().is_some();
        let targets = &self.job.plan.targets[source.recording];
        for part in chunk.parts.iter() {
            scan_part(source.bytes, *part, |at, found| match found {
                Found::Event(event) if is_left_out(&event) => {}
                Found::Event(event) => {
                    let target = targets.get(&(event.pid, event.tid)).filter(|_| is_ours);
                    out.extend_from_slice(b",\n");
                    write_verbatim(&event, target.map(|target| target.ordinal), out);
                }
                Found::Damage(kind) => {
                    if let Some(object) = object(source.bytes, *part, at, kind) {
                        out.extend_from_slice(b",\n");
                        out.extend_from_slice(&object);
                    }
                }
            });
        }
    }
}

/// Removes invalid lines from copied text if one of its fragments may have been changed since it
/// was opened.
fn remove_invalid<'f>(fragments: impl Iterator<Item = &'f Fragment>, text: &mut Vec<u8>) {
    let mut changed = fragments.filter(|fragment| fragment.may_have_changed());
    if let Some(fragment) = changed.next() {
        fragment.watch.add_removed(keep_valid_events(text));
    }
}

/// Written instead of a first chunk that has lost all its events, since the next chunk begins with
/// a comma. Viewers ignore unknown metadata.
const PLACEHOLDER: &[u8] =
    b",\n{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"sa_changed\",\"args\":{}}";

/// Removes lines that are not valid JSON events from `text`, in which every line follows a comma.
/// Returns how many it removed.
///
/// Lines are copied from the input without being parsed again. If another program has changed the
/// input since the first pass, they can contain anything.
pub(crate) fn keep_valid_events(text: &mut Vec<u8>) -> u64 {
    let mut removed = 0;
    let mut kept = Vec::new();
    let (mut start, mut is_first) = (0, true);
    let ends = memchr_iter(b'\n', text).chain([text.len()]);
    for end in ends {
        let line = &text[start..end];
        start = end + 1;
        // The first comma has a line of its own.
        if std::mem::take(&mut is_first) {
            continue;
        }
        let line = line.strip_suffix(b",").unwrap_or(line);
        if is_event(line) {
            kept.extend_from_slice(b",\n");
            kept.extend_from_slice(line);
        } else {
            removed += 1;
        }
    }
    if removed > 0 {
        *text = kept;
    }
    removed
}

/// Fits the text of a turn into the list of events, in which every event except the first follows a
/// comma. Returns how many lines it removed.
///
/// The turn with the first event is chosen before anything is copied. If another program has
/// changed the input since then, an earlier turn can have lines as well. They are removed.
pub(crate) fn fit_turn(turn: usize, first_turn: Option<usize>, text: &mut Vec<u8>) -> u64 {
    if first_turn == Some(turn) {
        if text.is_empty() {
            text.extend_from_slice(PLACEHOLDER);
        }
        text.remove(0);
    }
    if first_turn.is_some_and(|first| first <= turn) {
        return 0;
    }
    let removed = memchr_iter(b'\n', text).count() as u64;
    text.clear();
    removed
}

fn is_event(line: &[u8]) -> bool {
    let fields = scan_object(line).filter(|fields| !fields.odd_numbers && fields.ph.is_some());
    fields.is_some() && simdutf8::basic::from_utf8(line).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The input of a turn can gain its first events between the two passes.
    #[test]
    fn turns_before_the_first_event_stay_empty() {
        let event = br#"{"ph":"i","ts":1,"name":"a"}"#.as_slice();
        let lines = |n: usize| [b",\n", event].concat().repeat(n);
        let write = |first_turn: Option<usize>, turns: [usize; 3]| {
            let (mut list, mut removed) = (b"[".to_vec(), 0);
            for (turn, n) in turns.into_iter().enumerate() {
                let mut text = lines(n);
                removed += fit_turn(turn, first_turn, &mut text);
                list.extend_from_slice(&text);
            }
            list.push(b']');
            let list = serde_json::from_slice::<Vec<serde_json::Value>>(&list).ok();
            (list.map(|events| events.len()), removed)
        };
        assert_eq!(write(Some(1), [0, 2, 1]), (Some(3), 0));
        assert_eq!(write(Some(1), [2, 1, 1]), (Some(2), 2));
        assert_eq!(write(None, [0, 1, 1]), (Some(0), 2));
        assert_eq!(write(None, [0, 0, 0]), (Some(0), 0));
        // The first turn has lost its events, and gets the placeholder.
        assert_eq!(write(Some(0), [0, 1, 0]), (Some(2), 0));
    }
}
