//! The crate measureme, rustc's own profiler.

use std::hint::black_box;
use std::io;
use std::mem::size_of;
use std::ops::Range;
use std::path::{Path, PathBuf};

use measureme::file_header::{FILE_EXTENSION, FILE_HEADER_SIZE};
use measureme::{EventIdBuilder, PageTag, Profiler, RawEvent, StringId};

use super::{Beat, Kind, Peer, each};

/// measureme: binary records in pages of 256 KiB, written by whoever fills one. Arguments are strings of its string table.
pub(crate) struct Measureme {
    profiler: Profiler,
    kind: StringId,
    label: StringId,
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
}

impl Peer for Measureme {
    fn record(&self, _: Kind, steps: Range<u64>, beat: &mut impl Beat) {
        each(steps, beat, |step| {
            let profiler = &self.profiler;
            let text = profiler.alloc_string(step.to_string().as_str());
            let id = EventIdBuilder::new(profiler).from_label_and_arg(self.label, text);
            black_box(&profiler.start_recording_interval_event(self.kind, id, 1));
        });
    }

    fn finish(self) -> Option<PathBuf> {
        drop(self.profiler);
        Some(self.path)
    }
}
