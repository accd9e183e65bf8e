//! Names outside of what is read of a window.
//!
//! Threads name themselves in their own slots. Slot 0 names lanes, tracks and the process. Names of earlier segments are among the first lines of the next one. A
//! thread's name is looked for in the segment in which the window begins: later its id may be another thread's. A process has the last name that it gave itself,
//! whatever the window is, so that is looked for in the newest segment.

use crate::event::line::{Event, parse_canonical};
use crate::event::scan::{Part, line_start};
use crate::fragment::anchors::is_good;
use crate::fragment::recording::Recording;
use crate::fragment::walk::{Block, BlockWalk};
use crate::pass::chunk::Chunk;
use crate::pass::first_pass::summarize;
use crate::pass::source::Source;
use crate::select::seek::Sought;
use crate::store::search::first;
use rayon::prelude::*;
use sa_recorder::format::{LANE_BASE, TRACK_RECORD};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// How far behind the begin of a thread or of the process another name is looked for: programs name them when these begin.
const RENAMED_BYTES: usize = 1 << 20;
/// How far back slot 0 is looked at first.
const BACK_BYTES: usize = 1 << 20;

/// Adds the lines that name what has events and no name; gives how many bytes were read for them.
pub(crate) fn add_names(
    recordings: &[Recording],
    sought: &Sought,
    sources: &mut [Source<'_>],
    chunks: &mut Vec<Chunk>,
) -> u64 {
    let found: Vec<[Option<Named>; 2]> = {
        let sources = &*sources;
        let of = |number: usize| {
            let recording = &recordings[number];
            let of_rows = named(recording, number, sought, sources);
            [of_rows, process_name(recording)]
        };
        (0..recordings.len()).into_par_iter().map(of).collect()
    };
    let numbered = found.into_iter().enumerate();
    let named = numbered.flat_map(|(recording, found)| {
        let found = found.into_iter().flatten();
        found.map(move |named| (recording, named))
    });
    let mut read = 0;
    for (recording, mut named) in named {
        read += named.read;
        named.lines.sort_unstable_by_key(|line| line.start);
        let segment = Some(named.segment);
        let mut numbered = sources.iter_mut().enumerate();
        let source = numbered.find(|(_, of)| (of.recording, of.segment) == (recording, segment));
        let Some((number, source)) = source.filter(|_| !named.lines.is_empty()) else {
            continue;
        };
        let summary = summarize(source.bytes, &named.lines);
        chunks.push(Chunk::of(number, named.lines, &summary));
        source.summary.append(summary);
    }
    read as u64
}

/// Lines of a segment that name something, and how many bytes were read for them.
struct Named {
    segment: usize,
    lines: Vec<Part>,
    read: usize,
}

fn named(
    recording: &Recording,
    number: usize,
    sought: &Sought,
    sources: &[Source<'_>],
) -> Option<Named> {
    let (segment, entry) = recording.entry?;
    let fragment = recording.fragments.get(segment)?;
    let hole = fragment
        .holes()
        .into_iter()
        .find(|hole| hole.end == entry)?;
    let mut nameless = Nameless::of(number, sought, sources);
    let mut named = Named {
        segment,
        lines: Vec::new(),
        read: 0,
    };
    let bytes = fragment.content.bytes();
    for (tid, slot) in nameless.slots(bytes, entry) {
        named.thread(bytes, &hole, (tid, slot));
    }
    let (mut end, mut back) = (hole.end, BACK_BYTES);
    while !nameless.rows.is_empty() && end > hole.start {
        let begin = hole.end.saturating_sub(back).max(hole.start);
        named.rows(bytes, begin..end, &mut nameless);
        (end, back) = (begin, back.saturating_mul(4));
    }
    Some(named)
}

impl Named {
    /// Finds the name of a thread: the first line that it wrote into its slot, or one soon after that.
    fn thread(&mut self, bytes: &[u8], hole: &Range<usize>, (tid, slot): (i64, u32)) {
        let next = |stretch: Range<usize>| {
            let of_slot =
                BlockWalk::within(bytes, stretch).filter(|block| block.header.slot == slot);
            let mut owned = of_slot.filter_map(|block| Some((owner(bytes, &block)?, block)));
            owned
                .next()
                .map(|(owner, block)| (block.start, (owner, block)))
        };
        let reached = first(hole.clone(), next, |(owner, _)| *owner == tid);
        let Some((_, begun)) = reached else { return };
        let end = begun.body.end.saturating_add(RENAMED_BYTES).min(hole.end);
        let blocks = BlockWalk::within(bytes, begun.start..end);
        self.last_of(bytes, blocks, slot, |event| {
            event.name() == b"thread_name" && event.tid == tid
        });
    }

    /// Adds the last metadata in blocks of a slot that `is_wanted`.
    fn last_of(
        &mut self,
        bytes: &[u8],
        blocks: BlockWalk<'_>,
        slot: u32,
        is_wanted: impl Fn(&Event<'_>) -> bool,
    ) {
        let mut found = None;
        for block in blocks.filter(|block| block.header.slot == slot) {
            self.read += block.body.len();
            found = last_line(bytes, &block, &is_wanted).or(found);
        }
        self.lines.extend(found);
    }

    /// Finds the last names of rows in a stretch.
    fn rows(&mut self, bytes: &[u8], stretch: Range<usize>, nameless: &mut Nameless) {
        let own = BlockWalk::within(bytes, stretch).filter(|block| block.header.slot == 0);
        let own: Vec<Block> = own.collect();
        for block in own.iter().rev() {
            self.read += block.body.len();
            while let Some(line) = last_line(bytes, block, |event| nameless.names(event)) {
                let event = parse_canonical(bytes[line.start..line.end].trim_ascii_end());
                let Some(event) = event else { break };
                nameless.rows.remove(&(event.pid, event.tid));
                self.lines.push(line);
            }
        }
    }
}

/// Returns the last name that a process gave itself, if it is not among what is read.
fn process_name(recording: &Recording) -> Option<Named> {
    let segment = recording.fragments.len().checked_sub(1)?;
    let fragment = &recording.fragments[segment];
    let holes = fragment.holes();
    if holes.is_empty() || fragment.header.is_none() {
        return None;
    }
    let bytes = fragment.content.bytes();
    let mut named = Named {
        segment,
        lines: Vec::new(),
        read: 0,
    };
    let is_name = |event: &Event<'_>| event.name() == b"process_name";
    let blocks = || BlockWalk::within(bytes, 0..bytes.len());
    named.last_of(bytes, blocks(), 0, is_name);
    if named.lines.is_empty() {
        // The first lines have the name that was in force when the segment began.
        let front = blocks().next().map_or(bytes.len(), |block| block.start);
        named.lines.extend(last_line_in(bytes, 0..front, is_name));
    }
    let line = named.lines.first()?;
    named.read = line.end - line.start;
    let is_unread = holes.iter().any(|hole| hole.contains(&line.start));
    is_unread.then_some(named)
}

/// The thread that wrote the end of a block.
fn owner(bytes: &[u8], block: &Block) -> Option<i64> {
    let mut end = block.body.end.saturating_sub(1);
    while end > block.body.start {
        let start = line_start(bytes, end, block.body.start);
        let event = parse_canonical(&bytes[start..end]);
        if let Some(event) = event.filter(|event| event.tid < i64::from(LANE_BASE)) {
            return Some(event.tid);
        }
        end = start.saturating_sub(1);
    }
    None
}

/// The last metadata in a good block that `is_wanted`.
fn last_line(bytes: &[u8], block: &Block, is_wanted: impl Fn(&Event<'_>) -> bool) -> Option<Part> {
    let is_good = is_good(bytes, block);
    is_good.then(|| last_line_in(bytes, block.body.clone(), is_wanted))?
}

/// Returns the last metadata in some lines that `is_wanted`.
fn last_line_in(
    bytes: &[u8],
    range: Range<usize>,
    is_wanted: impl Fn(&Event<'_>) -> bool,
) -> Option<Part> {
    let (mut start, mut last) = (range.start, None);
    let lines = bytes[range].split_inclusive(|byte| *byte == b'\n');
    for line in lines {
        let end = start + line.len();
        let event = parse_canonical(line.trim_ascii_end());
        if event.is_some_and(|event| event.is_metadata() && is_wanted(&event)) {
            last = Some(Part {
                start,
                end,
                trusted: false,
            });
        }
        start = end;
    }
    last
}

/// What has events and no name in what was read of a recording.
#[derive(Default)]
struct Nameless {
    threads: HashSet<i64>,
    /// Lanes and tracks.
    rows: HashSet<(i64, i64)>,
}

impl Nameless {
    fn of(recording: usize, sought: &Sought, sources: &[Source<'_>]) -> Nameless {
        let mut nameless = Nameless::default();
        let of_recording = || sources.iter().filter(|of| of.recording == recording);
        let threads = of_recording().flat_map(|source| &source.summary.threads);
        for ((pid, tid), activity) in threads {
            if !sought.may_show(recording, activity.first_ns) {
                continue;
            }
            match *tid < i64::from(LANE_BASE) {
                true => nameless.threads.insert(*tid),
                false => nameless.rows.insert((*pid, *tid)),
            };
        }
        for summary in of_recording().map(|source| &source.summary) {
            for thread in summary.thread_names.keys() {
                nameless.threads.remove(&thread.1);
                nameless.rows.remove(thread);
            }
            for track in summary.tracks.keys() {
                nameless.rows.remove(track);
            }
        }
        nameless
    }

    /// The slots of the threads, as the blocks behind `entry` show.
    fn slots(&self, bytes: &[u8], entry: usize) -> HashMap<i64, u32> {
        let mut slots = HashMap::new();
        let mut blocks = BlockWalk::from(bytes, entry);
        while slots.len() < self.threads.len()
            && let Some(block) = blocks.next()
        {
            let owner = owner(bytes, &block).filter(|owner| self.threads.contains(owner));
            if let Some(owner) = owner {
                slots.entry(owner).or_insert(block.header.slot);
            }
        }
        slots
    }

    /// Whether a line names a row that has no name.
    fn names(&self, event: &Event<'_>) -> bool {
        let is_name = [b"thread_name", TRACK_RECORD.as_bytes()].contains(&event.name());
        is_name && self.rows.contains(&(event.pid, event.tid))
    }
}
