//! Reverses arrows from launches to kernels that end before they begin because the clocks of host and device differ.
//!
//! Viewers drop the end of such an arrow. So the arrow is reversed: its end becomes the start, and its start becomes a step, which still leads to the
//! other ends. This changes one byte in each of two lines that are already written.

use crate::base::number::unquoted;
use crate::device::category::is_launch_arrow;
use crate::event::flow::trace_id;
use crate::event::json::scan_object;
use crate::event::line::Event;
use crate::store::sorter::{Record, Sorter};
use sa_format::Phase;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The start or end of a launch arrow. Sorted, the start of an arrow comes before its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ArrowEnd {
    key: u64,
    is_end: bool,
    ns: i64,
    /// File offset of its phase, once its line is written.
    at: u64,
}

impl ArrowEnd {
    /// Creates the arrow end of a flow event that is the start or end of a launch arrow; returns `None` for all other events. The offset of the
    /// event's line is set later.
    pub(super) fn from_event(event: &Event<'_>) -> Option<ArrowEnd> {
        let is_end = match event.phase {
            Phase::FlowStart => false,
            Phase::FlowEnd => true,
            _ => return None,
        };
        let [category, name] =
            [event.fields.cat, event.fields.name].map(|field| field.slice(event.line));
        if !std::str::from_utf8(unquoted(category)).is_ok_and(is_launch_arrow) {
            return None;
        }
        let (id, _) = trace_id(event, 0)?;
        let key = xxh3_64_with_seed(category, id);
        Some(ArrowEnd {
            key: xxh3_64_with_seed(name, key),
            is_end,
            ns: event.ts_ns,
            at: 0,
        })
    }
}

impl Record for ArrowEnd {}

/// Collects launch arrows while lines are written.
pub(super) struct EarlyArrows<'f> {
    ends: Sorter<'f, ArrowEnd>,
}

impl<'f> EarlyArrows<'f> {
    /// Creates an empty collection of launch arrows. If there are many, they are sorted in temporary files in `folder`.
    pub(super) fn new(folder: &'f Path) -> EarlyArrows<'f> {
        EarlyArrows {
            ends: Sorter::new(folder),
        }
    }

    /// Adds the start or end of an arrow. `line` is its event's line, which is written at offset `at` of the file.
    pub(super) fn add(&mut self, end: ArrowEnd, line: &[u8], at: u64) -> io::Result<()> {
        let Some(fields) = scan_object(line.trim_ascii_end()) else {
            return Ok(());
        };
        self.ends.push(ArrowEnd {
            at: at + fields.ph.start as u64 + 1,
            ..end
        })
    }

    /// Reverses the arrows that end before they begin, by changing the phases of their events in `file`: the first early end becomes the start, and
    /// the old start a step. Returns the number of early ends.
    pub(super) fn reverse(self, file: &File) -> io::Result<u64> {
        let (ends, mut reversed) = (self.ends.finish()?, 0);
        for arrow in ends.chunk_by(|one, next| one.key == next.key) {
            // Without a start, or with several, it is unclear which ends belong together.
            let starts = arrow.partition_point(|end| !end.is_end);
            let ([start], ends) = arrow.split_at(starts) else {
                continue;
            };
            let early = &ends[..ends.partition_point(|end| end.ns < start.ns)];
            if let Some(first) = early.first() {
                file.write_all_at(b"s", first.at)?;
                file.write_all_at(b"t", start.at)?;
                reversed += early.len() as u64;
            }
        }
        Ok(reversed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::line::parse;
    use std::io::Write;

    /// Reverses early arrows among these starts and ends (id, phase, time: one digit or letter each). Returns their number, and all phases.
    fn reversed(ends: &str, category: &str) -> (u64, String) {
        let folder = tempfile::tempdir().unwrap();
        let mut file = tempfile::tempfile_in(folder.path()).unwrap();
        let (mut arrows, mut at) = (EarlyArrows::new(folder.path()), 0);
        for end in ends.split(' ') {
            let (id, phase, ts) = (&end[..1], &end[1..2], &end[2..]);
            let line = format!(
                r#"{{"id":{id}, "ph": "{phase}","pid":1,"ts":{ts},"cat":"{category}","name":"{category}"}}"#
            );
            file.write_all(line.as_bytes()).unwrap();
            let end = ArrowEnd::from_event(&parse(line.as_bytes()).unwrap());
            if let Some(end) = end {
                arrows.add(end, line.as_bytes(), at).unwrap();
            }
            at += line.len() as u64;
        }
        let count = arrows.reverse(&file).unwrap();
        let mut text = vec![0; usize::try_from(at).unwrap()];
        file.read_exact_at(&mut text, 0).unwrap();
        let text = String::from_utf8(text).unwrap();
        let phases = text.split(r#""ph": ""#).skip(1);
        (count, phases.map(|rest| &rest[..1]).collect())
    }

    #[test]
    fn an_arrow_that_ends_before_it_begins_is_reversed() {
        for (ends, expected) in [
            ("1s5 1f9", (0, "sf")),
            ("1s5 1f5", (0, "sf")),
            ("1s5 1f3", (1, "ts")),
            ("1f3 2s1 1s5", (1, "sst")),
            // The other ends have a start before them.
            ("1s5 1f3 1f9 1f2", (2, "tffs")),
            // Two arrows, or none.
            ("1s5 1f3 1s6", (0, "sfs")),
            ("1f3 1f2", (0, "ff")),
        ] {
            let (count, phases) = reversed(ends, "ac2g");
            assert_eq!((count, phases.as_str()), expected, "{ends}");
        }
        assert_eq!(reversed("1s5 1f3", "fwdbwd"), (0, "sf".to_owned()));
    }
}
