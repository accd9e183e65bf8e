//! Contents of the fragments and rings of one process, counted in the same way as by a merge.

use super::RunProcess;
use crate::event::line::parse_canonical;
use crate::event::scan::Part;
use crate::fragment::blocks::{Piece, split};
use crate::fragment::exit::Exit;
use crate::fragment::file::Fragment;
use crate::fragment::load::{Opened, by_stem, recordings};
use crate::fragment::recording::Recording;
use crate::summary::chunk_summary::ChunkSummary;
use crate::summary::gaps::{gap_records, missing};
use crate::summary::summarize::summarize;
use rayon::prelude::*;
use sa_format::control::Switch;
use sa_format::{Anchor, Visibility};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::Range;

/// Number of parts of a fragment that one worker counts at a time.
const SHARE_PARTS: usize = 64;

/// Events and losses that a process recorded, and records about the process itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Number of segments of its fragments.
    pub segments: usize,
    /// Size of the segments in bytes.
    pub bytes: u64,
    /// Number of events in its fragments and rings, counted like the events of a merged trace: including names and unfinished spans.
    pub events: u64,
    /// Number of lost events by cause. For `children_refused` it is the number of processes that could not record. The number for `gap` is a lower
    /// bound.
    pub lost: BTreeMap<String, u64>,
    /// The last name that the process set.
    pub name: Option<String>,
    /// Calls of the process that the preload library sees.
    pub visibility: Option<Visibility>,
    /// Its first reading of both clocks.
    pub began: Option<Anchor>,
    /// End of its latest event, in ns of the monotonic clock of its time namespace.
    pub last_ns: Option<u64>,
    /// Its last switch.
    pub switch: Option<Switch>,
    /// True if the process ended the recording itself.
    pub ended: bool,
    /// True if this is a snapshot that was taken while the process was running.
    pub was_running: bool,
    /// True if a ring is left.
    pub ring: bool,
    /// Number of open spans, if a ring is left. For a dead process whose ring was settled, the number that were open when it died.
    pub open_spans: Option<u64>,
    /// How the process ended, if the reader that settled its fragment knew.
    pub exit: Option<Exit>,
}

/// The blocks and lines of a segment.
type Pieces = Vec<(Range<usize>, Piece)>;

/// Cache of full segments, which never change again. A repeated count reads only the newest segment.
#[derive(Default)]
pub struct SegmentCache {
    /// Cached segments by nonce, segment number and length.
    segments: HashMap<(String, u32, usize), CachedSegment>,
}

struct CachedSegment {
    pieces: Pieces,
    summary: Option<ChunkSummary>,
}

impl SegmentCache {
    /// Returns the entry of a segment, or `None` if the segment may still grow or has no header.
    fn entry(&mut self, fragment: &Fragment, is_full: bool) -> Option<&mut CachedSegment> {
        let header = fragment.header.as_ref().filter(|_| is_full)?;
        let bytes = fragment.content.bytes();
        let key = (header.nonce.clone(), header.segment, bytes.len());
        let split = || CachedSegment {
            pieces: split(bytes),
            summary: None,
        };
        Some(self.segments.entry(key).or_insert_with(split))
    }

    fn pieces(&mut self, fragment: &Fragment, is_full: bool) -> Pieces {
        self.entry(fragment, is_full).map_or_else(
            || split(fragment.content.bytes()),
            |segment| segment.pieces.clone(),
        )
    }

    /// Summarizes what a merge would show of a recording.
    fn summary(&mut self, recording: &Recording) -> ChunkSummary {
        let fragments = || recording.fragments.iter().enumerate();
        // A record of removed segments counts until a newer segment has one.
        let is_full = |at: usize| {
            let newer = &recording.fragments[at + 1..];
            let is_final = recording.fragments[at].removal.is_none();
            !newer.is_empty() && (is_final || newer.iter().any(|newer| newer.removal.is_some()))
        };
        let pieces: Vec<Pieces> = fragments()
            .map(|(at, fragment)| self.pieces(fragment, is_full(at)))
            .collect();
        let assembly = recording.assemble(&pieces);
        let mut all = ChunkSummary::default();
        for (at, fragment) in fragments() {
            let sum_up = || {
                let parts: Vec<Part> = assembly.parts(at).collect();
                summarize_shared(fragment.content.bytes(), &parts)
            };
            all.append(match self.entry(fragment, is_full(at)) {
                Some(segment) => segment.summary.get_or_insert_with(sum_up).clone(),
                None => sum_up(),
            });
        }
        let mut add_lines = |lines: &[u8]| all.append(summarize(lines, &[Part::whole(lines)]));
        add_lines(&assembly.loss_lines);
        add_lines(&assembly.open_lines);
        if let Some((ring, _)) = &recording.ring {
            for (slot, parts) in &assembly.tail {
                all.append(summarize(&ring.slots[*slot].bytes, parts));
            }
            let open = memchr::memchr_iter(b'\n', &assembly.open_lines).count();
            all.open = all.open.or((!all.ended).then_some(open as u64));
        }
        // A merge adds a record for each loss that no record explains.
        let missing = missing(&assembly, &all.explained, all.stopped);
        let lines = gap_records(recording, &missing, all.range_ns(), None);
        all.append(summarize(&lines, &[Part::whole(&lines)]));
        all
    }
}

/// Summarizes the parts of a segment in parallel.
fn summarize_shared(bytes: &[u8], parts: &[Part]) -> ChunkSummary {
    let shares = parts.par_chunks(SHARE_PARTS);
    let summaries = shares.map(|parts| summarize(bytes, parts));
    summaries.reduce(ChunkSummary::default, |mut sum, later| {
        sum.append(later);
        sum
    })
}

impl RunProcess {
    /// Counts what the process has recorded so far.
    ///
    /// # Errors
    /// Returns an error if a fragment cannot be read.
    pub fn contents(&self, cache: &mut SegmentCache) -> io::Result<Contents> {
        let mut contents = Contents::default();
        for (stem, files) in by_stem(&self.files) {
            let mut opened = Opened::open(&stem, &files);
            if let Some((_, error)) = opened.failed.pop() {
                return Err(error);
            }
            for recording in recordings(opened, &[std::env::temp_dir()])? {
                let summary = cache.summary(&recording);
                contents.add(&recording, summary);
            }
        }
        Ok(contents)
    }
}

impl Contents {
    /// Adds another recording of the process, later than the ones before.
    fn add(&mut self, recording: &Recording, mut summary: ChunkSummary) {
        let lens = recording
            .fragments
            .iter()
            .map(|fragment| fragment.content.bytes().len());
        self.segments += recording.fragments.len();
        self.bytes += lens.sum::<usize>() as u64;
        self.ring |= recording.ring.is_some() || recording.bad_ring.is_some();
        self.events += summary.events();
        for ((_, _, cause), loss) in summary.losses.iter() {
            let lost = self.lost.entry(cause.clone()).or_default();
            *lost = lost.saturating_add(loss.events.saturating_add(loss.processes));
        }
        let pid = recording.header().map_or(0, |header| header.pid.into());
        self.name = summary.process_names.remove(&pid).or(self.name.take());
        self.visibility = summary.visibility.remove(&pid).or(self.visibility.take());
        self.began = self.began.or_else(|| began(recording, &summary));
        let last_ns = summary.last_ns().and_then(|ns| u64::try_from(ns).ok());
        self.last_ns = self.last_ns.max(last_ns);
        let switch = summary.switch.map(|switch| *switch);
        self.switch = switch.or(self.switch.take());
        // In all other cases a reader wrote the end record.
        self.ended |= summary.ended && summary.open.is_none() && !summary.was_running;
        self.was_running |= summary.was_running;
        self.exit = summary.exit.or(self.exit.take());
        if let Some(open) = summary.open {
            let all = self.open_spans.get_or_insert(0);
            *all = all.saturating_add(open);
        }
    }
}

/// Returns the first reading of both clocks. If the first segment is removed, it is calculated from the time when the recording began.
fn began(recording: &Recording, summary: &ChunkSummary) -> Option<Anchor> {
    let first = recording.fragments.first()?;
    let mut anchor = first.begin.or(summary.anchors.first().copied())?;
    let removal = |fragment: &Fragment| {
        let line = fragment.removal.as_ref()?.line.clone();
        let event = parse_canonical(fragment.content.bytes()[line].trim_ascii_end())?;
        u64::try_from(event.ts_ns).ok()
    };
    let newest = recording.fragments.iter().rev().find_map(removal);
    if let Some(began_ns) = newest {
        let since_ns = anchor.monotonic_ns.saturating_sub(began_ns);
        anchor.monotonic_ns -= since_ns;
        anchor.realtime_ns = anchor.realtime_ns.saturating_sub(since_ns);
    }
    Some(anchor)
}
