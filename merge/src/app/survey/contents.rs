//! What the fragments and rings of one process hold, counted.

use super::RunProcess;
use crate::event::line::parse_canonical;
use crate::event::scan::line_start;
use crate::fragment::blocks::{Piece, split};
use crate::fragment::file::{Fragment, RingFile};
use crate::fragment::load::{Opened, by_stem};
use memchr::{memchr_iter, memmem};
use rayon::prelude::*;
use sa_recorder::format::control::{SWITCH_RECORD, Switch};
use sa_recorder::format::{
    ANCHOR_RECORD, Anchor, END_RECORD, FRAGMENT_START, LOSS_RECORD, OWN_CATEGORY, REACH_RECORD,
    Reach,
};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::Range;

/// How every metadata line starts.
const METADATA_START: &[u8] = FRAGMENT_START.split_at(9).0;
/// Bytes of a fragment that one worker counts at a time.
const SHARE_PIECES: usize = 64;

/// What a process has recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Segments of its fragments.
    pub segments: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Events in its fragments and rings.
    pub events: u64,
    /// Events that it says it lost, by cause; of `children_refused` processes that could not record.
    pub lost: BTreeMap<String, u64>,
    /// The name it gave itself last.
    pub name: Option<String>,
    /// What the preload library says that it sees of it.
    pub reach: Option<Reach>,
    /// Its first reading of both clocks.
    pub began: Option<Anchor>,
    /// End of the latest event seen at the end of a block or ring, in ns of the monotonic clock of its time namespace.
    pub last_ns: Option<u64>,
    /// The last switch it told of.
    pub switch: Option<Switch>,
    /// Whether it ended recording itself.
    pub ended: bool,
    /// Whether a ring is left.
    pub ring: bool,
    /// Spans that are open, as a ring that is left tells; of a dead process whose ring was settled, those that were.
    pub open_spans: Option<u64>,
    /// What the newest segment so far tells of removed ones, and when the first of them was begun.
    removed: Option<(StatusLoss, Option<i64>)>,
}

/// A record of the recorder about itself, as far as a status shows it.
#[derive(Deserialize)]
struct StatusRecord<'a> {
    ph: &'a str,
    name: &'a str,
    #[serde(default)]
    cat: &'a str,
    #[serde(borrow)]
    args: Option<&'a serde_json::value::RawValue>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct StatusLoss {
    cause: String,
    #[serde(default)]
    events: u64,
    /// Children that could not record; only in records about those.
    #[serde(default)]
    processes: u64,
    /// The first segment that is not removed; only in records about removed ones.
    first: Option<u32>,
}

#[derive(Deserialize)]
struct EndArgs {
    open: Option<u64>,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

/// The position up to which each slot is in a segment.
type Ends = BTreeMap<u32, u64>;

/// What full segments hold: they never change again, and who asks again and again reads only the newest.
#[derive(Debug, Default)]
pub struct Known {
    /// By nonce, segment and length.
    segments: HashMap<(String, u32, usize), (Contents, Ends)>,
}

impl Known {
    /// Counts a segment, or remembers how it was counted.
    fn count(&mut self, fragment: &Fragment, is_full: bool) -> (Contents, Ends) {
        let bytes = fragment.content.bytes();
        let count = || {
            let (mut contents, mut ends) = (Contents::default(), Ends::new());
            contents.segments = 1;
            contents.bytes = bytes.len() as u64;
            contents.segment(bytes, &mut ends);
            (contents, ends)
        };
        match fragment.header.as_ref().filter(|_| is_full) {
            Some(header) => {
                let key = (header.nonce.clone(), header.segment, bytes.len());
                self.segments.entry(key).or_insert_with(count).clone()
            }
            None => count(),
        }
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
            all.add(of_fragment(Opened::of(&stem, &files), known)?);
        }
        Ok(all)
    }
}

/// Counts what the segments of a fragment and its ring hold.
fn of_fragment(opened: Opened, known: &mut Known) -> io::Result<Contents> {
    if let Some((_, error)) = opened.failed.into_iter().next() {
        return Err(error);
    }
    let mut contents = Contents::default();
    let mut ends = Ends::new();
    for (at, fragment) in opened.fragments.iter().enumerate() {
        let (part, part_ends) = known.count(fragment, at + 1 < opened.fragments.len());
        contents.add(part);
        for (slot, end) in part_ends {
            let known = ends.entry(slot).or_default();
            *known = end.max(*known);
        }
    }
    contents.ring = matches!(opened.ring, Some(RingFile::Read(..) | RingFile::Bad(_)));
    if let Some(RingFile::Read(ring, _)) = &opened.ring {
        let of_threads = ring.slots.iter().map(|slot| slot.open.len());
        contents.open_spans = Some((of_threads.sum::<usize>() + ring.lanes.len()) as u64);
        // Beyond what the ring's copy has of slot 0 records may tell these losses.
        if ends.get(&0).is_none_or(|end| *end <= ring.told_to) {
            for loss in &ring.losses {
                *contents
                    .lost
                    .entry(loss.cause.name().to_owned())
                    .or_default() += loss.count;
            }
        }
        for slot in &ring.slots {
            let end = ends.get(&slot.slot);
            let known = end.map_or(0, |end: &u64| end.saturating_sub(slot.from));
            let known = usize::try_from(known).unwrap_or(usize::MAX);
            contents.lines(slot.bytes.get(known..).unwrap_or_default(), slot.slot);
        }
    }
    contents.tell_removed();
    Ok(contents)
}

impl Contents {
    /// Counts a segment; `ends` gets the position up to which each slot is in it.
    fn segment(&mut self, bytes: &[u8], ends: &mut Ends) {
        let pieces = split(bytes);
        for (_, piece) in &pieces {
            if let Piece::Complete(header) = piece {
                let end = ends.entry(header.slot).or_default();
                *end = (*end).max(header.from.saturating_add(header.len));
            }
        }
        let parts: Vec<Contents> = pieces
            .par_chunks(SHARE_PIECES)
            .map(|pieces| {
                let mut part = Contents::default();
                for (range, piece) in pieces {
                    part.piece(&bytes[range.clone()], *piece);
                }
                part
            })
            .collect();
        for part in parts {
            self.add(part);
        }
    }

    fn piece(&mut self, bytes: &[u8], piece: Piece) {
        match piece {
            Piece::Complete(header) => self.lines(bytes, header.slot),
            Piece::Plain | Piece::Broken(_) => self.each_line(bytes),
        }
    }

    /// Counts whole lines of a slot: those of slot 0 are the recorder's own.
    fn lines(&mut self, bytes: &[u8], slot: u32) {
        if slot == 0 {
            return self.each_line(bytes);
        }
        let metadata = memmem::find_iter(bytes, METADATA_START)
            .filter(|at| *at == 0 || bytes[at - 1] == b'\n');
        self.events += (memchr_iter(b'\n', bytes).count() - metadata.count()) as u64;
        self.note_last(&bytes[last_line(bytes)]);
    }

    fn each_line(&mut self, bytes: &[u8]) {
        let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        for line in lines.filter(|line| !line.is_empty()) {
            let metadata = line.starts_with(METADATA_START);
            let own = || memmem::find(line, OWN_CATEGORY.as_bytes()).is_some();
            let removed = (metadata || own()) && self.record(line);
            if !metadata && !removed {
                self.events += 1;
                self.note_last(line);
            }
        }
    }

    fn note_last(&mut self, line: &[u8]) {
        if let Some(event) = parse_canonical(line) {
            let end = u64::try_from(event.ts_ns.saturating_add(event.dur_ns)).ok();
            self.last_ns = self.last_ns.max(end);
        }
    }

    /// Notes a record of the recorder; tells whether it is one about removed segments, of which only the last counts.
    fn record(&mut self, line: &[u8]) -> bool {
        let Ok(record) = serde_json::from_slice::<StatusRecord<'_>>(line) else {
            return false;
        };
        let args = record.args.map_or("null", |args| args.get());
        match (record.ph, record.name) {
            ("M", "process_name") => {
                let name = serde_json::from_str::<Name>(args).ok();
                self.name = name.map(|name| name.name).or(self.name.take());
            }
            ("i", REACH_RECORD) if record.cat == OWN_CATEGORY => {
                self.reach = serde_json::from_str(args).ok().or(self.reach.take());
            }
            ("M", ANCHOR_RECORD) if self.began.is_none() => {
                self.began = serde_json::from_str(args).ok();
            }
            ("M", END_RECORD) => match serde_json::from_str::<EndArgs>(args) {
                // A reader wrote it, for a process that had not ended recording itself.
                Ok(EndArgs { open: Some(open) }) => self.open_spans = Some(open),
                _ => self.ended = true,
            },
            ("i", LOSS_RECORD) if record.cat == OWN_CATEGORY => {
                let Ok(loss) = serde_json::from_str::<StatusLoss>(args) else {
                    return false;
                };
                if loss.first.is_some() {
                    let began_ns = parse_canonical(line).map(|event| event.ts_ns);
                    self.removed = Some((loss, began_ns));
                    return true;
                }
                self.lose(loss);
            }
            ("i", SWITCH_RECORD) if record.cat == OWN_CATEGORY => {
                self.switch = serde_json::from_str(args).ok().or(self.switch.take());
            }
            _ => {}
        }
        false
    }

    fn lose(&mut self, loss: StatusLoss) {
        *self.lost.entry(loss.cause).or_default() += loss.events + loss.processes;
    }

    /// Counts what the newest segment tells of removed ones, in the first of which recording began.
    fn tell_removed(&mut self) {
        let Some((loss, began_ns)) = self.removed.take() else {
            return;
        };
        self.events += 1;
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
        for (cause, events) in later.lost {
            *self.lost.entry(cause).or_default() += events;
        }
        self.name = later.name.or(self.name.take());
        self.reach = later.reach.or(self.reach.take());
        self.began = self.began.or(later.began);
        self.last_ns = self.last_ns.max(later.last_ns);
        self.switch = later.switch.or(self.switch.take());
        self.ended |= later.ended;
        self.ring |= later.ring;
        if let Some(open) = later.open_spans {
            *self.open_spans.get_or_insert(0) += open;
        }
        self.removed = later.removed.or(self.removed.take());
    }
}

/// The last of whole lines, without its newline.
fn last_line(bytes: &[u8]) -> Range<usize> {
    let end = bytes.len().saturating_sub(1);
    line_start(bytes, end, 0)..end
}

#[cfg(test)]
mod tests {
    use super::*;
    use sa_recorder::format::{BlockHeader, block_sum};

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
        let (mut contents, mut ends) = (Contents::default(), BTreeMap::new());
        contents.segment(&bytes, &mut ends);
        assert_eq!((contents.events, contents.last_ns), (4, Some(7_500)));
        assert_eq!(contents.lost, BTreeMap::from([("busy".to_owned(), 4)]));
        assert_eq!(contents.name.as_deref(), Some("new"));
        let switch = contents.switch.unwrap();
        assert_eq!(switch.control.as_deref(), Some("0123456789abcdef"));
        assert!(contents.ended);
        assert_eq!(
            ends,
            BTreeMap::from([(0, OWN.len() as u64), (1, SPANS.len() as u64)])
        );
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
            contents.segment(text.as_bytes(), &mut BTreeMap::new());
        }
        contents.tell_removed();
        assert_eq!(contents.events, 1);
        assert_eq!(
            contents.lost,
            BTreeMap::from([("disk_bound".to_owned(), 25)])
        );
        let began = contents.began.unwrap();
        assert_eq!((began.monotonic_ns, began.realtime_ns), (2000, 12000));
    }
}
