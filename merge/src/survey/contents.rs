//! What the fragments and rings of one process hold, counted.

use super::RunProcess;
use crate::blocks::{Piece, split};
use crate::fragment::{Fragment, RingFile, read_ring, ring_path};
use crate::line::parse_canonical;
use crate::scan::line_start;
use memchr::{memchr_iter, memmem};
use rayon::prelude::*;
use sa_recorder::format::control::{SWITCH_RECORD, Switch};
use sa_recorder::format::{
    ANCHOR_RECORD, Anchor, END_RECORD, FRAGMENT_START, LOSS_RECORD, OWN_CATEGORY,
};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;

/// How every metadata line starts.
const METADATA_START: &[u8] = FRAGMENT_START.split_at(9).0;
/// Bytes of a fragment that one worker counts at a time.
const SHARE_PIECES: usize = 64;

/// What a process has recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Bytes of its fragments.
    pub bytes: u64,
    /// Events in its fragments and rings.
    pub events: u64,
    /// Events that it says it lost, by cause.
    pub lost: BTreeMap<String, u64>,
    /// The name it gave itself last.
    pub name: Option<String>,
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
}

/// A record of the recorder about itself, as far as a status shows it.
#[derive(Deserialize)]
struct Record<'a> {
    ph: &'a str,
    name: &'a str,
    #[serde(default)]
    cat: &'a str,
    #[serde(borrow)]
    args: Option<&'a serde_json::value::RawValue>,
}

#[derive(Deserialize)]
struct Loss {
    cause: String,
    #[serde(default)]
    events: u64,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

impl RunProcess {
    /// Counts what the process has recorded so far.
    ///
    /// # Errors
    /// When a fragment cannot be read.
    pub fn contents(&self) -> io::Result<Contents> {
        let rings: BTreeSet<_> = self
            .fragments
            .iter()
            .filter_map(|path| ring_path(path))
            .collect();
        let rings: Vec<_> = rings.iter().map(|path| (path, read_ring(path))).collect();
        let mut contents = Contents::default();
        let mut ends = BTreeMap::new();
        for path in &self.fragments {
            let fragment = Fragment::open(path, false)?;
            let nonce = fragment.header.as_ref().map(|header| header.nonce.clone());
            contents.bytes += fragment.content.bytes().len() as u64;
            contents.fragment(
                fragment.content.bytes(),
                nonce.unwrap_or_default(),
                &mut ends,
            );
        }
        for (_, ring) in &rings {
            contents.ring |= !matches!(ring, RingFile::Absent);
            let RingFile::Read(ring, _) = ring else {
                continue;
            };
            for slot in &ring.slots {
                let end = ends.get(&(format!("{:016x}", ring.nonce), slot.slot));
                let known = end.map_or(0, |end: &u64| end.saturating_sub(slot.from));
                let known = usize::try_from(known).unwrap_or(usize::MAX);
                contents.lines(slot.bytes.get(known..).unwrap_or_default(), slot.slot);
            }
        }
        Ok(contents)
    }
}

impl Contents {
    /// Counts a fragment; `ends` gets the position up to which each slot of its recorder is in it.
    fn fragment(&mut self, bytes: &[u8], nonce: String, ends: &mut BTreeMap<(String, u32), u64>) {
        let pieces = split(bytes);
        for (_, piece) in &pieces {
            if let Piece::Complete(header) = piece {
                let end = ends.entry((nonce.clone(), header.slot)).or_default();
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
            if metadata || own() {
                self.record(line);
            }
            if !metadata {
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

    fn record(&mut self, line: &[u8]) {
        let Ok(record) = serde_json::from_slice::<Record<'_>>(line) else {
            return;
        };
        let args = record.args.map_or("null", |args| args.get());
        match (record.ph, record.name) {
            ("M", "process_name") => {
                let name = serde_json::from_str::<Name>(args).ok();
                self.name = name.map(|name| name.name).or(self.name.take());
            }
            ("M", ANCHOR_RECORD) if self.began.is_none() => {
                self.began = serde_json::from_str(args).ok();
            }
            ("M", END_RECORD) => self.ended = true,
            ("i", LOSS_RECORD) if record.cat == OWN_CATEGORY => {
                if let Ok(loss) = serde_json::from_str::<Loss>(args) {
                    *self.lost.entry(loss.cause).or_default() += loss.events;
                }
            }
            ("i", SWITCH_RECORD) if record.cat == OWN_CATEGORY => {
                self.switch = serde_json::from_str(args).ok().or(self.switch.take());
            }
            _ => {}
        }
    }

    /// Adds what comes later in the same fragment.
    fn add(&mut self, later: Contents) {
        self.events += later.events;
        for (cause, events) in later.lost {
            *self.lost.entry(cause).or_default() += events;
        }
        self.name = later.name.or(self.name.take());
        self.began = self.began.or(later.began);
        self.last_ns = self.last_ns.max(later.last_ns);
        self.switch = later.switch.or(self.switch.take());
        self.ended |= later.ended;
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
        contents.fragment(&bytes, "n".to_owned(), &mut ends);
        assert_eq!((contents.events, contents.last_ns), (4, Some(7_500)));
        assert_eq!(contents.lost, BTreeMap::from([("busy".to_owned(), 4)]));
        assert_eq!(contents.name.as_deref(), Some("new"));
        let switch = contents.switch.unwrap();
        assert_eq!(switch.control.as_deref(), Some("0123456789abcdef"));
        assert!(contents.ended);
        let end = |slot| ends[&("n".to_owned(), slot)];
        assert_eq!((end(0), end(1)), (OWN.len() as u64, SPANS.len() as u64));
    }
}
