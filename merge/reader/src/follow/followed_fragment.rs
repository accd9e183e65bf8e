//! Follows one growing fragment, whose segments are read one after the other.

use super::broken_blocks::{BrokenBlock, BrokenBlocks};
use super::followed_run::{FollowedEnd, FollowedRun};
use super::streams::Streams;
use super::tail::Tail;
use crate::base::file_status::FileId;
use crate::base::folder::FileLocation;
use crate::event::line::{Event, own_record};
use crate::event::scan::{Found, Part, scan_part};
use crate::fragment::blocks::Piece;
use crate::placed_event::{PlacedEvent, ThreadTrack, with_repairs};
use sa_format::loss::LossRecord;
use sa_format::{
    Anchor, End, FragmentHeader, PROCESS_NAME, Phase, Record, RemovedStreams, THREAD_NAME,
    TRACK_BASE, TrackRecord, parse_name,
};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::Instant;

/// Maximum number of bytes of lines that wait for the record of their track.
const WAITING_BYTES: usize = 1 << 20;
/// Maximum number of distinct threads. All further threads share one entry.
const MOST_THREADS: usize = 1 << 14;

/// Counts of data that could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Number of blocks that do not match their checksum, or are incomplete and were not written again.
    pub blocks: u64,
    /// Number of lines outside of blocks that are not events.
    pub lines: u64,
    /// Number of events on tracks that no record describes.
    pub events: u64,
    /// Number of segments that were removed before they were read completely, or became shorter than the part that was read.
    pub segments: u64,
    /// Number of bytes that recorders wrote, that were not found, and that no loss record explains. This includes the bytes of damaged blocks.
    pub missing_bytes: u64,
}

impl Skipped {
    /// Adds the counts of data that could not be read in another fragment.
    pub(super) fn add(&mut self, other: Skipped) {
        self.blocks += other.blocks;
        self.lines += other.lines;
        self.events += other.events;
        self.segments += other.segments;
        self.missing_bytes += other.missing_bytes;
    }
}

/// The run to which a fragment adds processes and threads, and the function that receives its events.
pub(super) struct Sink<'a> {
    pub(super) run: &'a mut FollowedRun,
    pub(super) on_event: &'a mut dyn FnMut(&FollowedRun, &PlacedEvent<'_>),
}

/// A fragment that is followed.
#[derive(Debug)]
pub(super) struct FollowedFragment {
    pub(super) process: usize,
    header: FragmentHeader,
    /// Existing segments.
    segments: BTreeMap<u32, Tail>,
    newest: u32,
    /// Number of the segment that is being read.
    reading: u32,
    streams: Streams,
    broken: BrokenBlocks,
    /// Number of events of each segment: those that were read and those that it reports as lost. After segments were removed, entries before the
    /// first remaining one are deleted.
    events: BTreeMap<u32, u64>,
    removed: RemovedEvents,
    is_stopped: bool,
    threads: HashMap<(i64, i64), usize>,
    /// The entry that all threads above the maximum share.
    other_threads: Option<usize>,
    /// Lines of tracks that are not described yet.
    waiting: Vec<u8>,
    pub(super) skipped: Skipped,
    /// True if nothing will be added any more.
    pub(super) is_over: bool,
    /// How its recorder ended, if it did.
    pub(super) end: Option<FollowedEnd>,
    /// Last time when everything in it had been read.
    pub(super) caught_up: Instant,
}

/// Counts for removed segments.
#[derive(Debug, Default)]
struct RemovedEvents {
    /// The first of the two records about a removal, until the second one is read.
    pending: Option<RemovedStreams>,
    /// Number of their events that were read.
    read: u64,
    /// Number of their events that were not read.
    lost: u64,
}

impl FollowedFragment {
    /// Creates the reading state of a new fragment. `process` is the index of its process in the run.
    pub(super) fn new(process: usize, header: FragmentHeader) -> FollowedFragment {
        FollowedFragment {
            process,
            header,
            segments: BTreeMap::new(),
            newest: 0,
            reading: 0,
            streams: Streams::default(),
            broken: BrokenBlocks::default(),
            events: BTreeMap::new(),
            removed: RemovedEvents::default(),
            is_stopped: false,
            threads: HashMap::new(),
            other_threads: None,
            waiting: Vec::new(),
            skipped: Skipped::default(),
            is_over: false,
            end: None,
            caught_up: Instant::now(),
        }
    }

    /// Records the current location and length in bytes of the segment file with this number. Adds the segment if it is new.
    pub(super) fn update_segment(
        &mut self,
        number: u32,
        place: FileLocation,
        id: FileId,
        len: u64,
    ) {
        self.newest = self.newest.max(number);
        match self.segments.get_mut(&number) {
            Some(tail) => self.skipped.segments += u64::from(tail.update(place, len)),
            None => drop(self.segments.insert(number, Tail::new(place, id, len))),
        }
    }

    /// Forgets the segment with this number, whose file does not exist any more. Counts it as skipped if it had unread bytes.
    pub(super) fn remove_segment(&mut self, number: u32) {
        let gone = self.segments.remove(&number);
        let was_unread = gone.is_some_and(|tail| tail.unread(true) > 0);
        self.skipped.segments += u64::from(was_unread);
    }

    /// Returns the number of bytes of the fragment that could be read now. Broken blocks that are held back count only once nothing will be added
    /// to the fragment.
    pub(super) fn unread(&self) -> u64 {
        let unread = |(number, tail): (&u32, &Tail)| tail.unread(self.is_final(*number));
        let held = if self.is_over { self.broken.bytes() } else { 0 };
        self.segments.iter().map(unread).sum::<u64>() + held as u64
    }

    /// Returns true if the recorder will not add anything to the segment with this number.
    fn is_final(&self, number: u32) -> bool {
        self.is_over || number < self.newest
    }

    /// Reads about `most` unread bytes of one segment and passes their events to `to`. Returns the number of bytes that were read; 0 if there are
    /// none or the file cannot be read now.
    pub(super) fn read(&mut self, buffer: &mut Vec<u8>, most: usize, to: &mut Sink<'_>) -> u64 {
        let is_over = self.is_over;
        let is_final = |number: &u32| is_over || *number < self.newest;
        let mut segments = self.segments.iter_mut();
        let unread = segments.find(|(number, tail)| tail.unread(is_final(number)) > 0);
        let Some((&number, tail)) = unread else {
            let left = if is_over {
                self.broken.remove_all()
            } else {
                Vec::new()
            };
            return self.broken_lines(&left, to);
        };
        let read = match tail.read(buffer, most, is_final(&number)) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.remove_segment(number);
                return 0;
            }
            Err(_) => return 0, // counts as unread until another attempt succeeds
        };
        self.reading = number;
        let bytes = std::mem::take(buffer);
        for (range, piece) in read.pieces {
            match piece {
                Piece::Plain => {
                    let part = Part::from_range(range, false);
                    self.lines(&bytes, part, to);
                }
                Piece::Broken(header) if self.streams.contains(&header) => {}
                Piece::Broken(header) => {
                    self.skipped.blocks += u64::from(self.streams.add_broken(&header));
                    self.broken.hold(BrokenBlock {
                        header,
                        segment: number,
                        bytes: bytes[range].to_vec(),
                    });
                }
                Piece::Complete(header) => {
                    let fresh = self.streams.add_block(&header);
                    self.skipped.blocks -= fresh.replaced_blocks;
                    let before = self.broken.remove_before(&header);
                    self.broken_lines(&before, to);
                    for part in fresh.parts {
                        let part = range.start + part.start..range.start + part.end;
                        self.lines(&bytes, Part::from_range(part, true), to);
                    }
                }
            }
        }
        *buffer = bytes;
        self.skipped.missing_bytes = match self.is_stopped {
            true => 0,
            false => self.streams.missing(),
        };
        to.run.processes[self.process].bytes += read.bytes;
        read.bytes
    }

    /// Reads lines of broken blocks that no other block contains, and passes their events to `to`. Returns the total size of the blocks in bytes.
    fn broken_lines(&mut self, blocks: &[BrokenBlock], to: &mut Sink<'_>) -> u64 {
        let reading = self.reading;
        let lines = self.streams.lines_of_broken(blocks);
        for (block, lines) in blocks.iter().zip(lines) {
            self.reading = block.segment;
            for part in lines {
                self.lines(&block.bytes, Part::from_range(part, false), to);
            }
        }
        self.reading = reading;
        blocks.iter().map(|block| block.bytes.len() as u64).sum()
    }

    /// Reads the lines in a part (byte range) of `bytes`: processes their metadata and passes their events to `to`.
    fn lines(&mut self, bytes: &[u8], part: Part, to: &mut Sink<'_>) {
        scan_part(bytes, part, |_, found| match found {
            Found::Damage(_) => self.skipped.lines += 1,
            Found::Event(event) if event.is_metadata() => self.metadata(&event, to),
            Found::Event(event) => self.event(&event, to),
        });
    }

    /// Counts an event and passes it, with its place in the trace, to the callback of `to`. If no record has described the event's track yet,
    /// only keeps its line for later.
    fn event(&mut self, event: &Event<'_>, to: &mut Sink<'_>) {
        let Sink { run, on_event } = to;
        let is_loss = event.phase == Phase::Instant && event.name() == LossRecord::NAME.as_bytes();
        if is_loss && !self.loss(event, run) {
            return;
        }
        let Some(thread) = self.thread(event, run) else {
            return self.keep_waiting(event);
        };
        let shift_ns = run.clocks.shift_ns(&self.header);
        let place = ThreadTrack {
            thread: u32::try_from(thread).unwrap_or(u32::MAX),
            track: 0,
            ordinal: self.process as u64,
        };
        let segment_events = self.events.entry(self.reading).or_default();
        let mut emit = |event: &Event<'_>| {
            *segment_events = segment_events.saturating_add(1);
            let placed = PlacedEvent::new(event, place, shift_ns);
            let process_number = run.threads[thread].process;
            let process = &mut run.processes[process_number];
            process.events += 1;
            let end_ns = placed.ts_ns.saturating_add(placed.dur_ns);
            process.last_ns = process.last_ns.max(Some(end_ns));
            on_event(run, &placed);
        };
        match event.fields.is_mended() {
            true => with_repairs(event, emit),
            false => emit(event),
        }
    }

    /// Returns the index in the run's threads of the thread or track of an event. Adds the thread if it is new. Returns `None` for a track that
    /// no record has described yet.
    fn thread(&mut self, event: &Event<'_>, run: &mut FollowedRun) -> Option<usize> {
        let key = (event.pid, event.tid);
        if let Some(thread) = self.threads.get(&key) {
            return Some(*thread);
        }
        if event.tid >= i64::from(TRACK_BASE) {
            return None;
        }
        if self.threads.len() >= MOST_THREADS {
            let other = || run.add_thread(self.process, event.tid);
            return Some(*self.other_threads.get_or_insert_with(other));
        }
        let new = || run.add_thread(self.process, event.tid);
        Some(*self.threads.entry(key).or_insert_with(new))
    }

    /// Keeps an event's line until a record describes its track, which may follow in another block. Counts the event as skipped if too many lines
    /// wait.
    fn keep_waiting(&mut self, event: &Event<'_>) {
        if self.waiting.len() + event.line.len() >= WAITING_BYTES {
            self.skipped.events += 1;
            return;
        }
        self.waiting.extend_from_slice(event.line);
        self.waiting.push(b'\n');
    }

    /// Processes a metadata record: the name of a process or thread, or a record of the recorder, such as an anchor or the end of the recording.
    fn metadata(&mut self, event: &Event<'_>, to: &mut Sink<'_>) {
        let own = own_record(event);
        // All other metadata is in a merged trace, too, and counts as events in its report.
        to.run.processes[self.process].events += u64::from(own.is_none());
        match (own, event.name()) {
            (Some(Anchor::NAME), _) => {
                if let Some(anchor) = Anchor::parse(event.line) {
                    to.run.add_anchor(self.process, &anchor);
                }
            }
            (Some(End::NAME), _) => {
                // A reader writes this record, too, when it settles the fragment of a dead process or copies the fragment of a live one.
                self.end = Some(match End::parse(event.line) {
                    Some(End { running: true, .. }) => FollowedEnd::Running,
                    Some(End { open: Some(_), .. }) => FollowedEnd::Died,
                    _ => FollowedEnd::Ended,
                });
            }
            (Some(RemovedStreams::NAME), _) => {
                self.removed.pending = RemovedStreams::parse(event.line);
            }
            (Some(TrackRecord::NAME), _) => {
                if let Some(record) = TrackRecord::parse(event.line) {
                    self.track(event, record, to);
                }
            }
            (None, b"process_name") => {
                if let Some(name) = parse_name(event.line, PROCESS_NAME) {
                    to.run.processes[self.process].name = Some(name);
                }
            }
            (None, b"thread_name") => {
                let name = parse_name(event.line, THREAD_NAME);
                let named = name.zip(self.thread(event, to.run));
                if let Some((name, thread)) = named {
                    to.run.threads[thread].name = Some(name);
                }
            }
            _ => {}
        }
    }

    /// Adds the track that a record describes as a thread, and reads the lines that waited for it.
    fn track(&mut self, event: &Event<'_>, record: TrackRecord, to: &mut Sink<'_>) {
        let key = (event.pid, event.tid);
        if self.threads.contains_key(&key) {
            return;
        }
        let thread = to.run.add_track(self.process, event.tid, record);
        self.threads.insert(key, thread);
        let waiting = std::mem::take(&mut self.waiting);
        self.lines(&waiting, Part::whole(&waiting), to);
    }

    /// Counts the lost events that a loss record reports, by their cause. Returns false if the record is not shown as an event, because it is
    /// about removed segments.
    fn loss(&mut self, event: &Event<'_>, run: &mut FollowedRun) -> bool {
        let Some(loss) = LossRecord::parse(event.line) else {
            return true;
        };
        let lost = match loss.first {
            Some(first) => self.removed(first, loss.events),
            None => loss.events.saturating_add(loss.processes),
        };
        let by_cause = &mut run.processes[self.process].lost;
        let cause_events = by_cause.entry(loss.cause.to_string()).or_default();
        *cause_events = cause_events.saturating_add(lost);
        if loss.first.is_some() {
            return false;
        }
        self.is_stopped |= loss.stopped;
        if let Some(((slot, generation), positions)) = loss.positions() {
            self.streams.explain(slot, generation, positions);
        }
        let segment_events = self.events.entry(self.reading).or_default();
        *segment_events = segment_events.saturating_add(loss.lost_events());
        true
    }

    /// Processes a report that the recorder removed all segments before segment `first`, which contained `events` events (FORMAT.md §2.5).
    /// Returns how many of these events were neither read nor counted as lost by an earlier report.
    fn removed(&mut self, first: u32, events: u64) -> u64 {
        let is_possible = (1..=self.reading).contains(&first);
        let agrees = |record: &RemovedStreams| (record.first, record.events) == (first, events);
        let pending = self.removed.pending.take();
        let Some(removed) = pending.filter(|record| is_possible && agrees(record)) else {
            return 0;
        };
        for (slot, generation, to) in removed.streams {
            self.streams.explain(slot, generation, 0..to);
        }
        let remaining = self.events.split_off(&first);
        let removed = std::mem::replace(&mut self.events, remaining);
        let add = |sum: u64, events| sum.saturating_add(events);
        self.removed.read = removed.into_values().fold(self.removed.read, add);
        let lost = events.saturating_sub(self.removed.read);
        let more = lost.saturating_sub(self.removed.lost);
        self.removed.lost += more;
        more
    }
}
