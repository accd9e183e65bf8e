//! Summarizes the lines in parts of a file.

use crate::event::damage::Kind;
use crate::event::era::Era;
use crate::event::json::{Fields, Span};
use crate::event::line::Event;
use crate::event::prefix_cache::Timed;
use crate::event::scan::{Found, Part, scan_part};
use crate::event::verbatim::object;
use crate::summary::chunk_summary::ChunkSummary;
use crate::summary::summary_builder::SummaryBuilder;
use sa_format::Phase;

/// Scans the lines in some parts (byte ranges) of a file and returns their summary.
pub fn summarize(bytes: &[u8], parts: &[Part]) -> ChunkSummary {
    summarize_era(bytes, parts, None)
}

/// Scans the lines in some parts (byte ranges) of a file and returns their summary. Events with times outside of `era`, if one is given, count as
/// damage.
pub fn summarize_era(bytes: &[u8], parts: &[Part], era: Option<Era>) -> ChunkSummary {
    summarize_with(bytes, parts, None::<()>, era)
}

/// Scans the lines in some parts (byte ranges) of a file, passes each event to `visitor`, and returns the summary. Events with times outside of
/// `era`, if one is given, count as damage and are not passed on.
pub fn summarize_with<'a>(
    bytes: &'a [u8],
    parts: &[Part],
    visitor: Option<impl ChunkVisitor<'a>>,
    era: Option<Era>,
) -> ChunkSummary {
    let mut builder = SummaryBuilder::with_nesting(visitor);
    builder.summary.canonical = true;
    for part in parts {
        if let Some(era) = era {
            builder.summary.canonical = false;
            scan_part(bytes, *part, |at, found| match found {
                Found::Event(event) if !era.holds_event(&event) => {
                    builder.damage(at, Kind::BadTime);
                }
                found => builder.found(at, found),
            });
            continue;
        }
        if part.trusted {
            builder.trusted(bytes, *part);
            continue;
        }
        scan_part(bytes, *part, |at, found| {
            builder.summary.canonical = false; // not called for the empty lines that fill up blocks
            builder.found(at, found);
        });
    }
    builder.finish()
}

/// Summarizes parts (byte ranges) of a file in which every JSON object counts, even one that is not an event. Objects that are not events are
/// counted in `objects` instead of as damage.
pub fn summarize_objects(bytes: &[u8], parts: &[Part]) -> ChunkSummary {
    let mut builder = SummaryBuilder::new(None::<()>);
    for part in parts {
        scan_part(bytes, *part, |at, found| match found {
            Found::Event(event) => builder.event(&event),
            Found::Damage(kind) if object(bytes, *part, at, kind).is_some() => {
                builder.summary.odd = true;
                builder.summary.objects += 1;
            }
            Found::Damage(kind) => builder.damage(at, kind),
        });
    }
    builder.finish()
}

/// A line that begins like an earlier one, from which the kind of its event is known.
#[derive(Clone, Copy)]
pub struct CachedLine<'a> {
    /// Phase of the event.
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
    /// Creates the event of this line without a full parse. The event's `fields` locate only the time and the id of a flow. Returns `None` if the
    /// line must be parsed completely.
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

/// Visitor of the events of one chunk. The events of each part come in order.
pub trait ChunkVisitor<'a> {
    /// Receives a part whose lines a checksum verifies, before the events of that part.
    fn enter(&mut self, _part: Part) {}

    /// Receives an event whose line was parsed completely.
    fn event(&mut self, _event: &Event<'a>) {}

    /// Receives an event whose line begins like an earlier one of the current part, so that it need not be parsed completely. Such an event is
    /// not passed to `event`.
    fn cached(&mut self, _line: CachedLine<'a>) {}

    /// Ends the visit after the last event of the chunk. The visitor adds what it collected to the shared result of all chunks.
    fn merge(self);
}

/// Visitor that ignores all events.
impl ChunkVisitor<'_> for () {
    fn merge(self) {}
}
