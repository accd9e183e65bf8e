//! One fragment that grows: its segments, read one after the other.

use super::followed_process::FollowedEnd;
use super::followed_run::FollowedRun;
use super::streams::Streams;
use super::tail::Tail;
use crate::base::folder::Place;
use crate::event::line::Event;
use crate::event::own_record::own_record;
use crate::event::scan::{Found, Part, scan_part};
use crate::events::{PlacedEvent, ThreadRow, mended};
use crate::fragment::blocks::Piece;
use sa_recorder::format::{
    ANCHOR_RECORD, Anchor, END_RECORD, FragmentHeader, LOSS_RECORD, TRACK_BASE, TRACK_RECORD,
    TrackRecord,
};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::Instant;

/// Most bytes of lines that wait for the record of their track.
const WAITING_BYTES: usize = 1 << 20;

/// What could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Blocks that do not match their checksum, or are incomplete and were not written again.
    pub blocks: u64,
    /// Lines outside of blocks that are no events.
    pub lines: u64,
    /// Events on a track that nothing described.
    pub events: u64,
    /// Segments that were removed before they were read, or written anew.
    pub segments: u64,
}

impl Skipped {
    pub(super) fn add(&mut self, other: Skipped) {
        self.blocks += other.blocks;
        self.lines += other.lines;
        self.events += other.events;
        self.segments += other.segments;
    }
}

/// A fragment.
#[derive(Debug)]
pub(super) struct FollowedFragment {
    pub(super) process: usize,
    header: FragmentHeader,
    /// Those that were not read to their end, and the newest.
    segments: BTreeMap<u32, Tail>,
    newest: u32,
    streams: Streams,
    threads: HashMap<(i64, i64), usize>,
    /// Lines of tracks that are not described yet.
    waiting: Vec<u8>,
    pub(super) skipped: Skipped,
    /// How its recorder ended, if it did.
    pub(super) end: Option<FollowedEnd>,
    /// When all that was there was read last.
    pub(super) caught_up: Instant,
}

#[derive(Deserialize)]
struct Record<A> {
    args: A,
}

#[derive(Deserialize)]
struct NameArgs {
    name: String,
}

#[derive(Deserialize)]
struct LossArgs {
    cause: String,
    #[serde(default)]
    events: u64,
    #[serde(default)]
    processes: u64,
    /// Only of records about removed segments.
    first: Option<u32>,
}

impl FollowedFragment {
    pub(super) fn new(process: usize, header: FragmentHeader) -> FollowedFragment {
        FollowedFragment {
            process,
            header,
            segments: BTreeMap::new(),
            newest: 0,
            streams: Streams::default(),
            threads: HashMap::new(),
            waiting: Vec::new(),
            skipped: Skipped::default(),
            end: None,
            caught_up: Instant::now(),
        }
    }

    /// Adds a segment.
    pub(super) fn add(&mut self, number: u32, place: &Place) -> io::Result<()> {
        self.segments.insert(number, Tail::open(place)?);
        self.newest = self.newest.max(number);
        Ok(())
    }

    /// Looks how much there is to read, in bytes.
    pub(super) fn look(&mut self) -> u64 {
        for tail in self.segments.values_mut() {
            let _ = tail.look(); // an open file has a length; if not, it is read on later
        }
        let unread = self.unread();
        if unread == 0 {
            self.caught_up = Instant::now();
        }
        unread
    }

    /// Bytes that are there and were not read.
    pub(super) fn unread(&self) -> u64 {
        self.segments.values().map(Tail::unread).sum()
    }

    /// Reads on for some `most` bytes. Nothing is added any more where the process `is_over`. Gives how many were read.
    pub(super) fn read(
        &mut self,
        buffer: &mut Vec<u8>,
        most: usize,
        is_over: bool,
        run: &mut FollowedRun,
        of_event: &mut dyn FnMut(&FollowedRun, &PlacedEvent<'_>),
    ) -> u64 {
        let newest = self.newest;
        self.segments
            .retain(|number, tail| *number == newest || tail.unread() > 0);
        let Some(mut oldest) = self.segments.first_entry() else {
            return 0;
        };
        let number = *oldest.key();
        let is_full = number < self.newest;
        let Ok(read) = oldest.get_mut().read(buffer, most, is_full || is_over) else {
            oldest.remove();
            self.skipped.segments += 1;
            return 0;
        };
        self.skipped.segments += u64::from(read.is_cut);
        let bytes = std::mem::take(buffer);
        for (range, piece) in read.pieces {
            match piece {
                Piece::Plain => {
                    let part = Part::all_of(&bytes).within(range);
                    self.lines(&bytes, part, run, of_event);
                }
                Piece::Broken(header) => {
                    self.skipped.blocks += u64::from(self.streams.note_broken(&header));
                }
                Piece::Complete(header) => {
                    let fresh = self.streams.take(&header);
                    self.skipped.blocks -= u64::from(fresh.mends);
                    for part in fresh.parts {
                        let part = Part {
                            start: range.start + part.start,
                            end: range.start + part.end,
                            trusted: true,
                        };
                        self.lines(&bytes, part, run, of_event);
                    }
                }
            }
        }
        *buffer = bytes;
        run.process_mut(self.process).bytes += read.bytes;
        read.bytes
    }

    fn lines(
        &mut self,
        bytes: &[u8],
        part: Part,
        run: &mut FollowedRun,
        of_event: &mut dyn FnMut(&FollowedRun, &PlacedEvent<'_>),
    ) {
        scan_part(bytes, part, |_, found| match found {
            Found::Damage(_) => self.skipped.lines += 1,
            Found::Event(event) if event.is_metadata() => self.metadata(&event, run, of_event),
            Found::Event(event) => self.event(&event, run, of_event),
        });
    }

    fn event(
        &mut self,
        event: &Event<'_>,
        run: &mut FollowedRun,
        of_event: &mut dyn FnMut(&FollowedRun, &PlacedEvent<'_>),
    ) {
        if event.phase == b'i' && event.name() == LOSS_RECORD.as_bytes() {
            self.loss(event, run);
        }
        let Some(thread) = self.thread(event, run) else {
            return self.wait(event);
        };
        let shift_ns = run.clocks.shift_ns(&self.header);
        let place = ThreadRow {
            thread: u32::try_from(thread).unwrap_or(u32::MAX),
            row: 0,
            ordinal: self.process as u64,
        };
        let mut tell = |event: Event<'_>| {
            let placed = PlacedEvent::new(event, place, shift_ns);
            let of_thread = run.threads()[thread].process;
            let process = run.process_mut(of_thread);
            process.events += 1;
            let end_ns = placed.ts_ns.saturating_add(placed.dur_ns);
            process.last_ns = process.last_ns.max(Some(end_ns));
            of_event(run, &placed);
        };
        match event.fields.is_mended() {
            true => mended(event, tell),
            false => tell(*event),
        }
    }

    /// The thread of an event; `None` of a track that is not described yet.
    fn thread(&mut self, event: &Event<'_>, run: &mut FollowedRun) -> Option<usize> {
        let key = (event.pid, event.tid);
        if let Some(thread) = self.threads.get(&key) {
            return Some(*thread);
        }
        if event.tid >= i64::from(TRACK_BASE) {
            return None;
        }
        let thread = run.add_thread(self.process, event.tid);
        self.threads.insert(key, thread);
        Some(thread)
    }

    /// Keeps a line until its track is described: the record may stand behind it, in another block.
    fn wait(&mut self, event: &Event<'_>) {
        if self.waiting.len() + event.line.len() >= WAITING_BYTES {
            self.skipped.events += 1;
            return;
        }
        self.waiting.extend_from_slice(event.line);
        self.waiting.push(b'\n');
    }

    fn metadata(
        &mut self,
        event: &Event<'_>,
        run: &mut FollowedRun,
        of_event: &mut dyn FnMut(&FollowedRun, &PlacedEvent<'_>),
    ) {
        let own = own_record(event);
        // A trace has the others, and its report counts them.
        run.process_mut(self.process).events += u64::from(own.is_none());
        match (own, event.name()) {
            (Some(ANCHOR_RECORD), _) => {
                if let Some(anchor) = args::<Anchor>(event) {
                    run.take_anchor(self.process, &anchor);
                }
            }
            (Some(END_RECORD), _) => {
                // Who settles the fragment of a dead process says so as well, with the spans that were open.
                self.end = Some(match args::<SettledEnd>(event) {
                    Some(SettledEnd { open: Some(_) }) => FollowedEnd::Died,
                    _ => FollowedEnd::Ended,
                });
            }
            (Some(TRACK_RECORD), _) => {
                if let Some(record) = args::<TrackRecord>(event) {
                    self.track(event, record, run, of_event);
                }
            }
            (None, b"process_name") => {
                if let Some(NameArgs { name }) = args(event) {
                    run.process_mut(self.process).name = Some(name);
                }
            }
            (None, b"thread_name") => {
                let named = args::<NameArgs>(event).zip(self.thread(event, run));
                if let Some((NameArgs { name }, thread)) = named {
                    run.name_thread(thread, name);
                }
            }
            _ => {}
        }
    }

    fn track(
        &mut self,
        event: &Event<'_>,
        record: TrackRecord,
        run: &mut FollowedRun,
        of_event: &mut dyn FnMut(&FollowedRun, &PlacedEvent<'_>),
    ) {
        let key = (event.pid, event.tid);
        if self.threads.contains_key(&key) {
            return;
        }
        let thread = run.add_track(self.process, event.tid, record);
        self.threads.insert(key, thread);
        let waiting = std::mem::take(&mut self.waiting);
        self.lines(&waiting, Part::all_of(&waiting), run, of_event);
    }

    fn loss(&mut self, event: &Event<'_>, run: &mut FollowedRun) {
        let Some(loss) = args::<LossArgs>(event) else {
            return;
        };
        let process = run.process_mut(self.process);
        let known = process.lost.entry(loss.cause).or_default();
        match loss.first {
            // Each segment says again how many went so far.
            Some(_) => {
                let more = loss.events.saturating_sub(process.removed_events);
                process.removed_events += more;
                *known += more;
            }
            None => *known += loss.events + loss.processes,
        }
    }
}

#[derive(Deserialize)]
struct SettledEnd {
    open: Option<u64>,
}

fn args<A: for<'de> Deserialize<'de>>(event: &Event<'_>) -> Option<A> {
    let record: Option<Record<A>> = serde_json::from_slice(event.line).ok();
    record.map(|record| record.args)
}
