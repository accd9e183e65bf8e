//! Where the spans of some threads begin and end, and what belongs to them, in the order in which viewers take events.

use crate::base::number::unquoted;
use crate::event::flow::binds_to_next;
use crate::event::json::scan_object;
use crate::event::line::Event;
use crate::pass::history::Place;
use crate::span::matcher::join;
use crate::span::thread_scan::Look;
use crate::store::sorter::{Record, Sorted, Sorter, long_at, word_at};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// The end of a span that has none.
pub(crate) const UNFINISHED: i64 = i64::MAX;

/// An event by its chunk and its number among the chunk's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    pub(crate) chunk: u32,
    pub(crate) nth: u32,
}

/// Of what happens at one time, viewers take ends first, then complete spans, then the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// `E`
    End,
    /// `X`
    Complete,
    /// `B`
    Begin,
    /// A flow that ends at the next span.
    Next,
    /// An instant or a flow in a span.
    Point,
}

/// A place in the time of a thread. Its order is that of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark {
    /// Which of the threads.
    pub(crate) row: u32,
    pub(crate) start: i64,
    pub(crate) kind: Kind,
    /// Of complete spans that begin together the longest is the first.
    pub(crate) longest: i64,
    pub(crate) at: At,
    /// The end of a span, [`UNFINISHED`] if it has none.
    pub(crate) end: i64,
    /// The event that ends a begun span, if there is one. Before that is known: what its name and category are told by.
    pub(crate) end_at: Option<At>,
}

impl Mark {
    fn of(event: &Event<'_>, (row, at): (u32, At), shift_ns: i64) -> Option<Mark> {
        let start = event.ts_ns + shift_ns;
        let (kind, end) = match event.phase {
            b'X' => (Kind::Complete, start + event.dur_ns),
            b'B' => (Kind::Begin, UNFINISHED),
            b'E' => (Kind::End, start),
            b'f' if binds_to_next(event) => (Kind::Next, start),
            b's' | b't' | b'f' => (Kind::Point, start),
            b'i' | b'I' if is_of_thread(event) => (Kind::Point, start),
            _ => return None,
        };
        let is_half = matches!(kind, Kind::Begin | Kind::End);
        Some(Mark {
            row,
            start,
            kind,
            longest: if kind == Kind::Complete {
                -event.dur_ns
            } else {
                0
            },
            at,
            end,
            end_at: is_half.then(|| labels(event)),
        })
    }
}

/// Name and category, 0 for one that is not there.
pub(crate) fn labels(event: &Event<'_>) -> At {
    // They may stand behind the front, which alone has been read of most lines.
    let fields = scan_object(event.line).unwrap_or(event.fields);
    let hash = |text: &[u8]| match &*unescaped(text) {
        b"" => 0,
        text => u32::try_from(xxh3_64(text) >> 32).map_or(1, |hash| hash.max(1)),
    };
    At {
        chunk: hash(fields.cat.of(event.line)),
        nth: hash(fields.name.of(event.line)),
    }
}

/// What a JSON string says: two writers may escape the same name differently.
fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', text).is_some()
        && let Ok(plain) = serde_json::from_slice::<String>(text)
    {
        return Cow::Owned(plain.into_bytes());
    }
    Cow::Borrowed(unquoted(text))
}

/// Tells whether an instant is drawn on its thread's row.
fn is_of_thread(event: &Event<'_>) -> bool {
    #[derive(serde::Deserialize)]
    struct Scoped<'a> {
        #[serde(borrow)]
        s: Option<std::borrow::Cow<'a, str>>,
    }
    let scope = serde_json::from_slice::<Scoped<'_>>(event.line).ok();
    let scope = scope.and_then(|scoped| scoped.s);
    !matches!(scope.as_deref(), Some("p" | "g"))
}

/// All marks of the threads that `rows` numbers; what is too much for memory goes to files in `folder`.
pub(crate) fn marks(
    look: &Look<'_>,
    rows: &HashMap<Place, u32>,
    folder: &Path,
) -> io::Result<Sorted<Mark>> {
    let (mut marks, mut halves) = (Sorter::new(folder), Sorter::new(folder));
    let mark = |place: Place, at: At, event: &Event<'_>| {
        let row = *rows.get(&place)?;
        Mark::of(event, (row, at), look.shifts_ns[place.0])
    };
    look.each(rows.keys().copied(), mark, |mark| match mark.kind {
        Kind::Begin | Kind::End => halves.push(mark),
        _ => marks.push(mark),
    })?;
    let halves = halves.finish()?;
    join(&halves, &mut marks)?;
    drop(halves);
    marks.finish()
}

impl Record for Mark {
    const BYTES: usize = 46;

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.row.to_le_bytes());
        for time in [self.start, self.longest, self.end] {
            out.extend_from_slice(&time.to_le_bytes());
        }
        let end_at = self.end_at.unwrap_or(At { chunk: 0, nth: 0 });
        for at in [self.at, end_at] {
            out.extend_from_slice(&at.chunk.to_le_bytes());
            out.extend_from_slice(&at.nth.to_le_bytes());
        }
        out.extend_from_slice(&[self.kind as u8, u8::from(self.end_at.is_some())]);
    }

    fn load(bytes: &[u8]) -> Self {
        let (words, tail) = bytes.split_at(44);
        let at = |at: usize| At {
            chunk: word_at(words, at),
            nth: word_at(words, at + 4),
        };
        let kinds = [Kind::End, Kind::Complete, Kind::Begin, Kind::Next];
        Mark {
            row: word_at(words, 0),
            start: long_at(words, 4).cast_signed(),
            longest: long_at(words, 12).cast_signed(),
            end: long_at(words, 20).cast_signed(),
            at: at(28),
            end_at: (tail[1] == 1).then(|| at(36)),
            kind: kinds
                .get(usize::from(tail[0]))
                .copied()
                .unwrap_or(Kind::Point),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_however_it_is_escaped() {
        for text in [r#""ab""#, r#""a\u0062""#, r#""\u0061b""#] {
            assert_eq!(&*unescaped(text.as_bytes()), b"ab", "{text}");
        }
        assert_eq!(&*unescaped(b""), b"");
        assert_eq!(&*unescaped(br#""a\x""#), br"a\x", "no JSON");
    }

    #[test]
    fn a_mark_comes_back_from_a_file_as_it_was() {
        let at = |chunk, nth| At { chunk, nth };
        let kinds = [
            Kind::End,
            Kind::Complete,
            Kind::Begin,
            Kind::Next,
            Kind::Point,
        ];
        for kind in kinds {
            for end_at in [None, Some(at(0, 0)), Some(at(u32::MAX, 5))] {
                let mark = Mark {
                    row: 7,
                    start: -3,
                    kind,
                    longest: i64::MIN,
                    at: at(1 << 20, 9),
                    end: i64::MAX,
                    end_at,
                };
                let mut bytes = Vec::new();
                mark.store(&mut bytes);
                assert_eq!((bytes.len(), Mark::load(&bytes)), (Mark::BYTES, mark));
            }
        }
    }
}
