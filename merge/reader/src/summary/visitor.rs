//! A visitor sees the events while they are summed up, so that lines are read only once.

use crate::event::json::{Fields, Span};
use crate::event::line::Event;
use crate::event::prefix_cache::Timed;
use crate::event::scan::Part;
use sa_format::Phase;

/// A line that begins like an earlier one, which says what its event is.
#[derive(Clone, Copy)]
pub struct CachedLine<'a> {
    /// Its phase.
    pub phase: Phase,
    /// Its time, and the text after it.
    pub timed: Timed<'a>,
    /// The line without its newline.
    pub text: &'a [u8],
    /// Its offset in the bytes of its source.
    pub start: usize,
    /// Process and thread, as recorded.
    pub thread: (i64, i64),
}

impl<'a> CachedLine<'a> {
    /// Returns the event, with the places of its time and of a flow's id only. Returns `None` if it needs a closer look.
    #[inline(always)]
    pub fn event(&self) -> Option<Event<'a>> {
        let CachedLine { timed, text, .. } = *self;
        let (mut fields, mut dur_ns) = (Fields::default(), 0);
        fields.ts.end = text.len() - timed.rest.len();
        if self.phase == Phase::Complete {
            dur_ns = timed.dur_ns()?;
        } else if self.phase.is_flow() {
            let (_, rest) = timed.flow_id()?;
            fields.id2 = Span::new(fields.ts.end + 1, text.len() - rest.len());
        }
        Some(Event {
            ts_ns: timed.ts_ns,
            dur_ns,
            ..Event::untimed(text, self.phase, self.thread, fields)
        })
    }
}

/// Looks at the events of one chunk, those of each part in order.
pub trait ChunkVisitor<'a> {
    /// Begins with a part that a checksum vouches for.
    fn enter(&mut self, _part: Part) {}

    /// Takes an event.
    fn event(&mut self, _event: &Event<'a>) {}

    /// Takes an event whose line begins like an earlier one of the part that was entered.
    fn cached(&mut self, _line: CachedLine<'a>) {}

    /// Hands over what was found.
    fn merge(self);
}

/// Looks at nothing.
impl ChunkVisitor<'_> for () {
    fn merge(self) {}
}
