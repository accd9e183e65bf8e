//! The crate measureme, rustc's own profiler.

use std::hint::black_box;
use std::io;
use std::mem::size_of;
use std::ops::Range;
use std::path::{Path, PathBuf};

use measureme::file_header::{FILE_EXTENSION, FILE_HEADER_SIZE};
use measureme::{EventId, EventIdBuilder, PageTag, Profiler, RawEvent, StringId};

use super::{Beat, Kind, Peer, each};

/// measureme: binary records in pages of 256 KiB, written by whoever fills one. Arguments are strings of its string table.
pub(crate) struct Measureme {
    profiler: Profiler,
    kind: StringId,
    label: StringId,
    phase: StringId,
    path: PathBuf,
}

impl Measureme {
    /// Starts it with a file in `directory`.
    pub(crate) fn start(directory: &Path) -> Result<Self, String> {
        let path = Self::path(directory);
        let profiler = Profiler::new(path.with_extension("")).map_err(|error| error.to_string())?;
        Ok(Measureme {
            kind: profiler.alloc_string("bench"),
            label: profiler.alloc_string("decode"),
            phase: profiler.alloc_string("prefill"),
            profiler,
            path,
        })
    }

    /// Returns the path of its file in `directory`.
    pub(crate) fn path(directory: &Path) -> PathBuf {
        directory.join("peer").with_extension(FILE_EXTENSION)
    }

    /// Counts the finished spans in a file that one thread wrote. A page is a tag, a length and that many bytes, the last one perhaps torn.
    pub(crate) fn finished(path: &Path) -> io::Result<u64> {
        const EVENTS: u8 = PageTag::Events as u8;
        let file = std::fs::read(path)?;
        let mut rest = file.get(FILE_HEADER_SIZE..).unwrap_or_default();
        let mut bytes = 0;
        while let [tag, a, b, c, d, after @ ..] = rest {
            let length = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
            let (page, next) = after.split_at(length.min(after.len()));
            bytes += if *tag == EVENTS { page.len() } else { 0 };
            rest = next;
        }
        // The stream of events begins with a header of its own.
        Ok((bytes.saturating_sub(FILE_HEADER_SIZE) / size_of::<RawEvent>()) as u64)
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

impl Peer for Measureme {
    fn record(&self, kind: Kind, steps: Range<u64>, beat: &mut impl Beat) {
        each(steps, beat, |step| {
            let id = self.event_id(kind, step);
            let profiler = &self.profiler;
            black_box(&profiler.start_recording_interval_event(self.kind, id, 1));
        });
    }

    fn finish(self) -> Option<PathBuf> {
        drop(self.profiler);
        Some(self.path)
    }
}
