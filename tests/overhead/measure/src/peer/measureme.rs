//! The crate measureme, rustc's own profiler.

use std::hint::black_box;
use std::io;
use std::mem::size_of;
use std::ops::Range;
use std::path::{Path, PathBuf};

use measureme::{EventId, EventIdBuilder, Profiler, RawEvent, StringId};

use super::contract::{Peer, each};
use crate::{Beat, Kind};

/// measureme: binary records in pages of 256 KiB, written by whoever fills one. Arguments are strings of its string table.
pub struct Measureme {
    profiler: Profiler,
    kind: StringId,
    label: StringId,
    phase: StringId,
    path: PathBuf,
}

impl Measureme {
    /// Starts it with a file in `directory`.
    ///
    /// # Errors
    ///
    /// If the file cannot be made.
    pub fn start(directory: &Path) -> Result<Self, String> {
        let stem = directory.join("peer");
        let profiler = Profiler::new(&stem).map_err(|error| error.to_string())?;
        Ok(Measureme {
            kind: profiler.alloc_string("bench"),
            label: profiler.alloc_string("decode"),
            phase: profiler.alloc_string("prefill"),
            profiler,
            path: stem.with_extension(measureme::file_header::FILE_EXTENSION),
        })
    }

    /// Returns the steps of the finished spans in a file that one thread wrote: as many as it has whole events.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn finished(path: &Path) -> io::Result<Vec<u64>> {
        let header_bytes = measureme::file_header::FILE_HEADER_SIZE;
        let bytes = std::fs::read(path)?;
        let events = event_bytes(&bytes, header_bytes).saturating_sub(header_bytes);
        Ok((0..(events / size_of::<RawEvent>()) as u64).collect())
    }

    fn event_id(&self, kind: Kind, step: u64) -> EventId {
        let builder = EventIdBuilder::new(&self.profiler);
        let text = |text: &str| self.profiler.alloc_string(text);
        match kind {
            Kind::Span => EventId::from_label(self.label),
            Kind::Span3 => {
                let share = text(&black_box(0.25).to_string());
                let args = [text(&step.to_string()), self.phase, share];
                builder.from_label_and_args(self.label, &args)
            }
            _ => builder.from_label_and_arg(self.label, text(&step.to_string())),
        }
    }
}

/// Sums the bytes of the event pages; a page is a tag, a length and that many bytes, the last one perhaps torn.
fn event_bytes(file: &[u8], header_bytes: usize) -> usize {
    const EVENTS: u8 = measureme::PageTag::Events as u8;
    let (mut rest, mut sum) = (file.get(header_bytes..).unwrap_or_default(), 0);
    while let [tag, a, b, c, d, after @ ..] = rest {
        let length = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
        let (page, next) = after.split_at(length.min(after.len()));
        if *tag == EVENTS {
            sum += page.len();
        }
        rest = next;
    }
    sum
}

impl Peer for Measureme {
    fn record(&self, kind: Kind, steps: Range<u64>, beat: &mut impl Beat) {
        each(steps, beat, |step| {
            let id = self.event_id(kind, step);
            let span = self
                .profiler
                .start_recording_interval_event(self.kind, id, 1);
            black_box(&span);
        });
    }

    /// Every page is written when it is full; the last ones only at the end.
    fn settle(&self) {}

    fn finish(self) -> Option<PathBuf> {
        drop(self.profiler);
        Some(self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_summed_up_to_a_torn_one() {
        let file = b"headhead\0\x03\0\0\0abc\x01\x02\0\0\0xy\0\x09\0\0\0defg";
        assert_eq!(event_bytes(file, 8), 7);
        assert_eq!(event_bytes(b"he", 8), 0);
    }
}
