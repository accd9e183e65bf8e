//! What else may look at the events of the first pass, so that they are read once.

use crate::event::line::Event;
use crate::event::prefix_cache::Timed;
use crate::event::scan::Part;
use crate::pass::chunk::Chunk;
use crate::pass::source::Source;

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

    /// Takes an event of a phase whose line begins like an earlier one of the part that was entered, and stands at `at`.
    fn alike(&mut self, phase: u8, timed: Timed<'a>, line: &'a [u8], at: usize);

    /// Hands over what was found.
    fn merge(self);
}

/// Looks at nothing.
impl ChunkVisitor<'_> for () {
    fn enter(&mut self, _: Part) {}

    fn event(&mut self, _: &Event<'_>) {}

    fn alike(&mut self, _: u8, _: Timed<'_>, _: &[u8], _: usize) {}

    fn merge(self) {}
}
