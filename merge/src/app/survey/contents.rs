//! Contents of the fragments and rings of one process, counted in the same way as by a merge.

use super::RunProcess;
use crate::event::line::parse_canonical;
use crate::event::scan::Part;
use crate::fragment::assembly::Assembly;
use crate::fragment::blocks::{Piece, split};
use crate::fragment::exit::Exit;
use crate::fragment::file::Fragment;
use crate::fragment::load::{Opened, by_stem, recordings};
use crate::fragment::recording::Recording;
use crate::pass::first_pass::summarize;
use crate::pass::gaps::{gap_records, missing};
use crate::pass::summary::{ChunkSummary, Explained};
use memchr::memmem;
use rayon::prelude::*;
use sa_format::control::Switch;
use sa_format::loss::LossRecord;
use sa_format::{
    Anchor, End, FRAGMENT_START, OWN_CATEGORY, PROCESS_NAME, Reach, Record, parse_name,
};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::Range;

/// How every metadata line starts.
const METADATA_START: &[u8] = FRAGMENT_START.split_at(9).0;
/// Parts of a fragment that one worker counts at a time.
const SHARE_PARTS: usize = 64;

/// What a process has recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Segments of its fragments.
    pub segments: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Events in its fragments and rings, as many as a merge shows: names and unfinished spans are among them.
    pub events: u64,
    /// Lost events, by cause, and for `children_refused` the number of processes that could not record. Of `gap` there were at least so many.
    pub lost: BTreeMap<String, u64>,
    /// The name it gave itself last.
    pub name: Option<String>,
    /// What the preload library says that it sees of it.
    pub reach: Option<Reach>,
    /// Its first reading of both clocks.
    pub began: Option<Anchor>,
    /// End of its latest event, in ns of the monotonic clock of its time namespace.
    pub last_ns: Option<u64>,
    /// The last switch it told of.
    pub switch: Option<Switch>,
    /// Whether it ended recording itself.
    pub ended: bool,
    /// True if this is a snapshot, and the process was running when it was taken.
    pub was_running: bool,
    /// Whether a ring is left.
    pub ring: bool,
    /// Spans that are open, as a ring that is left tells; of a dead process whose ring was settled, those that were.
    pub open_spans: Option<u64>,
    /// How the process ended, if whoever settled its fragment knew.
    pub exit: Option<Exit>,
    /// What the newest segment so far tells of removed ones, and when the first of them was begun.
    removed: Option<((String, u64), Option<i64>)>,
    /// What decides which missing positions of the recording are losses that no record explains.
    gap_facts: GapFacts,
}

/// What a recording's lines say of its missing positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct GapFacts {
    /// Positions that a loss record explains.
    explained: Vec<Explained>,
    /// True if the recorder has stopped keeping events.
    stopped: bool,
    /// Begin of the first event and end of the last one.
    times_ns: Option<(i64, i64)>,
}

impl GapFacts {
    fn of(summary: ChunkSummary) -> GapFacts {
        GapFacts {
            times_ns: summary.range_ns(),
            explained: summary.explained,
            stopped: summary.stopped,
        }
    }

    fn append(&mut self, later: GapFacts) {
        self.explained.extend(later.explained);
        self.stopped |= later.stopped;
        let both = self.times_ns.zip(later.times_ns);
        let widest = both.map(|(one, other)| (one.0.min(other.0), one.1.max(other.1)));
        self.times_ns = widest.or(self.times_ns).or(later.times_ns);
    }
}

/// The blocks and lines of a segment.
type Pieces = Vec<(Range<usize>, Piece)>;

/// Full segments, which never change again: repeated looks read only the newest one.
#[derive(Debug, Default)]
pub struct Known {
    /// By nonce, segment and length.
    segments: HashMap<(String, u32, usize), KnownSegment>,
}

#[derive(Debug)]
struct KnownSegment {
    pieces: Pieces,
    contents: Option<Contents>,
}

impl Known {
    /// Returns the entry of a segment, or `None` if the segment may still grow or has no header.
    fn entry(&mut self, fragment: &Fragment, is_full: bool) -> Option<&mut KnownSegment> {
        let header = fragment.header.as_ref().filter(|_| is_full)?;
        let bytes = fragment.content.bytes();
        let key = (header.nonce.clone(), header.segment, bytes.len());
        let split = || KnownSegment {
            pieces: split(bytes),
            contents: None,
        };
        Some(self.segments.entry(key).or_insert_with(split))
    }

    fn pieces(&mut self, fragment: &Fragment, is_full: bool) -> Pieces {
        let known = self.entry(fragment, is_full);
        let known = known.map(|known| known.pieces.clone());
        known.unwrap_or_else(|| split(fragment.content.bytes()))
    }
}

impl RunProcess {
    /// Counts what the process has recorded so far.
    ///
    /// # Errors
    /// When a fragment cannot be read.
    pub fn contents(&self, known: &mut Known) -> io::Result<Contents> {
        let mut all = Contents::default();
        for (stem, files) in by_stem(&self.files) {
            let mut opened = Opened::of(&stem, &files);
            if let Some((_, error)) = opened.failed.pop() {
                return Err(error);
            }
            for recording in recordings(opened, &[std::env::temp_dir()])? {
                all.add(Contents::of_recording(&recording, known));
            }
        }
        Ok(all)
    }
}

impl Contents {
    /// Counts what a merge shows of a recording.
    fn of_recording(recording: &Recording, known: &mut Known) -> Contents {
        let fragments = || {
            let last = recording.fragments.len().saturating_sub(1);
            let numbered = recording.fragments.iter().enumerate();
            numbered.map(move |(at, fragment)| (at, fragment, at < last))
        };
        let pieces: Vec<Pieces> = fragments()
            .map(|(_, fragment, is_full)| known.pieces(fragment, is_full))
            .collect();
        let assembly = recording.assemble(&pieces);
        let mut contents = Contents::default();
        for (at, fragment, is_full) in fragments() {
            let bytes = fragment.content.bytes();
            let count = || {
                let parts: Vec<Part> = assembly.parts(at).collect();
                Contents::of_segment(bytes, &pieces[at], &parts)
            };
            contents.add(match known.entry(fragment, is_full) {
                Some(known) => known.contents.get_or_insert_with(count).clone(),
                None => count(),
            });
        }
        contents.ring(recording, &assembly);
        contents.gaps(recording, &assembly);
        contents.add_removed();
        contents
    }

    /// Counts the parts of a segment that a merge shows, and reads the recorder's own records.
    fn of_segment(bytes: &[u8], pieces: &Pieces, parts: &[Part]) -> Contents {
        let mut contents = Contents {
            segments: 1,
            bytes: bytes.len() as u64,
            ..Contents::default()
        };
        for (range, piece) in pieces {
            // Slot 0 is the recorder's own.
            if !matches!(piece, Piece::Complete(header) if header.slot > 0) {
                contents.records(&bytes[range.clone()]);
            }
        }
        let counts = parts.par_chunks(SHARE_PARTS).map(|parts| {
            let summary = summarize(bytes, parts);
            (summary.events(), GapFacts::of(summary))
        });
        for (events, facts) in counts.collect::<Vec<_>>() {
            contents.count(events, facts);
        }
        contents
    }

    /// Counts what only the ring holds.
    fn ring(&mut self, recording: &Recording, assembly: &Assembly) {
        self.ring = recording.ring.is_some() || recording.bad_ring.is_some();
        let Some((ring, _)) = &recording.ring else {
            return;
        };
        for (slot, parts) in &assembly.tail {
            let slot = &ring.slots[*slot];
            self.lines(&slot.bytes, parts);
            if slot.slot == 0 {
                for part in parts {
                    self.records(&slot.bytes[part.start..part.end]);
                }
            }
        }
        self.lines(&assembly.loss_lines, &[Part::all_of(&assembly.loss_lines)]);
        self.records(&assembly.loss_lines);
        self.lines(&assembly.open_lines, &[Part::all_of(&assembly.open_lines)]);
        let open = memchr::memchr_iter(b'\n', &assembly.open_lines).count();
        self.open_spans = Some(open as u64);
    }

    /// Counts the losses that no record explains: a merge adds a record for each.
    fn gaps(&mut self, recording: &Recording, assembly: &Assembly) {
        let facts = std::mem::take(&mut self.gap_facts);
        let missing = missing(assembly, &facts.explained, facts.stopped);
        let lines = gap_records(recording, &missing, facts.times_ns, None);
        self.lines(&lines, &[Part::all_of(&lines)]);
        self.records(&lines);
        self.gap_facts = GapFacts::default();
    }

    fn lines(&mut self, bytes: &[u8], parts: &[Part]) {
        let summary = summarize(bytes, parts);
        self.count(summary.events(), GapFacts::of(summary));
    }

    fn count(&mut self, events: u64, facts: GapFacts) {
        self.events += events;
        let last_ns = facts.times_ns.and_then(|(_, ns)| u64::try_from(ns).ok());
        self.last_ns = self.last_ns.max(last_ns);
        self.gap_facts.append(facts);
    }

    /// Reads the recorder's records among some lines.
    fn records(&mut self, bytes: &[u8]) {
        let own = memmem::Finder::new(OWN_CATEGORY);
        let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        for line in lines {
            if line.starts_with(METADATA_START) || own.find(line).is_some() {
                self.record(line);
            }
        }
    }

    /// Notes a record of the recorder. Of those about removed segments only the last counts.
    fn record(&mut self, line: &[u8]) {
        #[derive(Deserialize)]
        struct Named<'a> {
            name: &'a str,
        }
        let Ok(Named { name }) = serde_json::from_slice(line) else {
            return;
        };
        match name {
            PROCESS_NAME => self.name = parse_name(line, name).or(self.name.take()),
            Reach::NAME => self.reach = Reach::parse(line).or(self.reach.take()),
            Anchor::NAME => self.began = self.began.or_else(|| Anchor::parse(line)),
            End::NAME => match End::parse(line) {
                Some(End { running: true, .. }) => self.was_running = true,
                // A reader wrote it, for a process that had not ended recording itself.
                Some(End {
                    open: Some(open),
                    exit,
                    ..
                }) => (self.open_spans, self.exit) = (Some(open), exit),
                _ => self.ended = true,
            },
            LossRecord::NAME => {
                let Some(loss) = LossRecord::parse(line) else {
                    return;
                };
                if loss.first.is_some() {
                    let began_ns = parse_canonical(line).map(|event| event.ts_ns);
                    self.removed = Some((lost(&loss), began_ns));
                    return;
                }
                self.lose(lost(&loss));
            }
            Switch::NAME => self.switch = Switch::parse(line).or(self.switch.take()),
            _ => {}
        }
    }

    fn lose(&mut self, (cause, count): (String, u64)) {
        let of_cause = self.lost.entry(cause).or_default();
        *of_cause = of_cause.saturating_add(count);
    }

    /// Adds what the newest segment says of removed ones. Recording began in the first of these.
    fn add_removed(&mut self) {
        let Some((loss, began_ns)) = self.removed.take() else {
            return;
        };
        self.lose(loss);
        let began_ns = began_ns.and_then(|ns| u64::try_from(ns).ok());
        if let (Some(anchor), Some(began_ns)) = (&mut self.began, began_ns) {
            let since_ns = anchor.monotonic_ns.saturating_sub(began_ns);
            anchor.monotonic_ns -= since_ns;
            anchor.realtime_ns = anchor.realtime_ns.saturating_sub(since_ns);
        }
    }

    /// Adds what comes later.
    fn add(&mut self, later: Contents) {
        self.segments += later.segments;
        self.bytes += later.bytes;
        self.events += later.events;
        later.lost.into_iter().for_each(|lost| self.lose(lost));
        self.name = later.name.or(self.name.take());
        self.reach = later.reach.or(self.reach.take());
        self.began = self.began.or(later.began);
        self.last_ns = self.last_ns.max(later.last_ns);
        self.switch = later.switch.or(self.switch.take());
        self.ended |= later.ended;
        self.was_running |= later.was_running;
        self.ring |= later.ring;
        self.exit = later.exit.or(self.exit.take());
        if let Some(open) = later.open_spans {
            *self.open_spans.get_or_insert(0) += open;
        }
        self.removed = later.removed.or(self.removed.take());
        self.gap_facts.append(later.gap_facts);
    }
}

/// Returns cause and number of the events or processes that a record reports.
fn lost(loss: &LossRecord<'_>) -> (String, u64) {
    (
        loss.cause.to_string(),
        loss.events.saturating_add(loss.processes),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use sa_format::{BlockHeader, block_sum};

    fn block(slot: u32, from: u64, lines: &str) -> Vec<u8> {
        let mut out = Vec::new();
        BlockHeader {
            slot,
            generation: 0,
            from,
            len: lines.len() as u64,
            sum: block_sum(slot, 0, from, lines.as_bytes()),
        }
        .write(7, &mut out);
        out.extend_from_slice(lines.as_bytes());
        out
    }

    const SPANS: &str = r#"{"ph":"M","pid":7,"tid":8,"name":"thread_name","args":{"name":"t"}}
{"ph":"X","pid":7,"tid":8,"ts":1.000,"dur":2.000,"name":"a","cat":"c"}
{"ph":"X","pid":7,"tid":8,"ts":5.000,"dur":2.500,"name":"a","cat":"c"}
"#;
    const OWN: &str = r#"{"ph":"M","pid":7,"tid":7,"name":"process_name","args":{"name":"old"}}
{"ph":"M","pid":7,"tid":7,"name":"process_name","args":{"name":"new"}}
{"ph":"i","pid":7,"tid":7,"ts":3.000,"s":"p","name":"sa_loss","cat":"sa_profile","args":{"cause":"busy","events":4}}
{"ph":"i","pid":7,"tid":7,"ts":4.000,"s":"p","name":"sa_switch","cat":"sa_profile","args":{"levels":[],"cause":"stop","control":"0123456789abcdef"}}
{"ph":"M","pid":7,"tid":7,"name":"sa_end","args":{"monotonic_ns":9}}
"#;

    #[test]
    fn events_are_counted_and_own_records_read() {
        let bytes = [block(1, 0, SPANS), b"\n\n\n".to_vec(), block(0, 0, OWN)].concat();
        let contents = Contents::of_segment(&bytes, &split(&bytes), &[Part::all_of(&bytes)]);
        assert_eq!((contents.events, contents.last_ns), (7, Some(7_500)));
        assert_eq!(contents.lost, BTreeMap::from([("busy".to_owned(), 4)]));
        assert_eq!(contents.name.as_deref(), Some("new"));
        let switch = contents.switch.unwrap();
        assert_eq!(switch.control.as_deref(), Some("0123456789abcdef"));
        assert!(contents.ended);
    }

    #[test]
    fn of_removed_segments_the_newest_record_counts() {
        let segment = |anchor: u64, events: u64, first: u32| {
            format!(
                r#"{{"ph":"M","pid":7,"tid":7,"name":"sa_anchor","args":{{"monotonic_ns":{anchor},"realtime_ns":1{anchor},"uncertainty_ns":9}}}}
{{"ph":"i","pid":7,"tid":7,"ts":2.000,"s":"p","name":"sa_loss","cat":"sa_profile","args":{{"cause":"disk_bound","events":{events},"first":{first}}}}}
"#
            )
        };
        let mut contents = Contents::default();
        for (anchor, events, first) in [(5000, 10, 1), (7000, 25, 2)] {
            let text = segment(anchor, events, first);
            contents.records(text.as_bytes());
        }
        contents.add_removed();
        assert_eq!(
            contents.lost,
            BTreeMap::from([("disk_bound".to_owned(), 25)])
        );
        let began = contents.began.unwrap();
        assert_eq!((began.monotonic_ns, began.realtime_ns), (2000, 12000));
    }
}
