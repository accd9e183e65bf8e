//! What else may look at the events of the first pass, so that they are read once.

use crate::event::line::Event;
use crate::event::prefix_cache::Timed;
use crate::event::scan::Part;
use crate::pass::chunk::Chunk;
use crate::pass::source::Source;
use sa_format::Phase;

/// A line that begins like an earlier one, which says what its event is.
#[derive(Clone, Copy)]
pub(crate) struct CachedLine<'a> {
    pub(crate) phase: Phase,
    /// Its time, and what stands behind that.
    pub(crate) timed: Timed<'a>,
    pub(crate) text: &'a [u8],
    /// Where it begins in the bytes of its source.
    pub(crate) start: usize,
    /// Process and thread, as recorded.
    pub(crate) thread: (i64, i64),
}

/// Looks at the events of all chunks, which many threads read.
pub(crate) trait Visitor: Sync {
    /// What looks at the events of one chunk.
    type OfChunk<'a>: ChunkVisitor<'a>
    where
        Self: 'a;

    /// Begins with a chunk of a source.
    fn chunk<'a>(&'a self, chunk: &'a Chunk, source: &Source<'a>) -> Self::OfChunk<'a>;
}

/// Looks at the events of one chunk; those of a part come in order.
pub(crate) trait ChunkVisitor<'a> {
    /// Begins with a part that a checksum vouches for.
    fn enter(&mut self, part: Part);

    /// Takes an event.
    fn event(&mut self, event: &Event<'a>);

    /// Takes an event whose line begins like an earlier one of the part that was entered.
    fn cached(&mut self, line: CachedLine<'a>);

    /// Hands over what was found.
    fn merge(self);
}

/// Looks at nothing.
impl ChunkVisitor<'_> for () {
    fn enter(&mut self, _: Part) {}

    fn event(&mut self, _: &Event<'_>) {}

    fn cached(&mut self, _: CachedLine<'_>) {}

    fn merge(self) {}
}
