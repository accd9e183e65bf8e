//! The args of ends that are not written, because they are added to the begins of their spans.

use crate::pass::by_chunk::OfEvent;
use crate::pass::chunk::EventRef;
use crate::pass::source::Source;
use crate::span::span_half::ArgsPlace;
use crate::store::sorter::{Record, word_at};

/// The place of the args of an end, and the begin that they are added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EndArgs {
    pub(super) begin: EventRef,
    /// The number of the source.
    pub(super) source: u32,
    pub(super) args: ArgsPlace,
}

impl EndArgs {
    /// Returns the args as a JSON object. They may be anything if the source was overwritten.
    pub(crate) fn text<'a>(&self, sources: &[Source<'a>]) -> &'a [u8] {
        let source = sources.get(self.source as usize);
        source.map_or(&[], |source| self.args.text(source.bytes))
    }
}

impl OfEvent for EndArgs {
    fn at(&self) -> EventRef {
        self.begin
    }
}

impl Record for EndArgs {
    const BYTES: usize = 12 + ArgsPlace::BYTES;

    fn store(&self, out: &mut Vec<u8>) {
        for word in [self.begin.chunk, self.begin.nth, self.source] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        self.args.store(out);
    }

    fn load(bytes: &[u8]) -> Self {
        EndArgs {
            begin: EventRef {
                chunk: word_at(bytes, 0),
                nth: word_at(bytes, 4),
            },
            source: word_at(bytes, 8),
            args: ArgsPlace::load(&bytes[12..]),
        }
    }
}
