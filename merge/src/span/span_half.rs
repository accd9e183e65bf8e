//! Begin or end of a span, as an event of its own.

use crate::base::begun_spans::{BegunSpans, Half};
use crate::event::json::scan_object;
use crate::event::line::Event;
use crate::event::whole::has_members;
use crate::pass::chunk::EventRef;
use crate::pass::labels::Labels;
use crate::pass::source::Source;
use crate::span::group_key::{GroupKey, ThreadNumber};
use crate::store::sorter::{Record, Sorted, long_at, word_at};
use sa_format::Phase;
use std::io;

/// Which half of a span an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// `E`
    End,
    /// `B`
    Begin,
}

/// Begin or end of a span. Its order is that of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SpanHalf {
    /// Halves of one row belong together.
    pub(crate) row: GroupKey,
    pub(crate) start: i64,
    pub(crate) at: EventRef,
    pub(crate) side: Side,
    pub(crate) labels: Labels,
    /// The place of its args, if this is an end.
    pub(crate) args: ArgsPlace,
}

/// The place of args in the bytes of a source. Without args, or if they are empty, the length is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ArgsPlace {
    /// Number of the source.
    source: u32,
    len: u32,
    start: u64,
}

impl ArgsPlace {
    /// Bytes of a stored place.
    pub(crate) const BYTES: usize = 16;

    /// Finds the args of an event whose line is part of the bytes of the source with this number.
    pub(super) fn of(event: &Event<'_>, number: usize, source: &Source<'_>) -> ArgsPlace {
        // Of most lines only the front was scanned, up to the time.
        let fields = scan_object(event.line).unwrap_or(event.fields);
        let args = fields.args.of(event.line);
        if !has_members(args) {
            return ArgsPlace::default();
        }
        ArgsPlace {
            source: u32::try_from(number).unwrap_or(u32::MAX),
            len: u32::try_from(args.len()).unwrap_or(0),
            start: (args.as_ptr().addr() - source.bytes.as_ptr().addr()) as u64,
        }
    }

    /// Returns the args as a JSON object. They may be anything if the source was overwritten, and are empty if it has become too short.
    pub(crate) fn text<'a>(self, sources: &[Source<'a>]) -> &'a [u8] {
        let bytes = sources.get(self.source as usize).map(|source| source.bytes);
        let start = usize::try_from(self.start).unwrap_or(usize::MAX);
        let rest = bytes.and_then(|bytes| bytes.get(start..));
        rest.and_then(|rest| rest.get(..self.len as usize))
            .unwrap_or_default()
    }

    pub(crate) fn store(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.source.to_le_bytes());
        out.extend_from_slice(&self.len.to_le_bytes());
        out.extend_from_slice(&self.start.to_le_bytes());
    }

    pub(crate) fn load(bytes: &[u8]) -> ArgsPlace {
        ArgsPlace {
            source: word_at(bytes, 0),
            len: word_at(bytes, 4),
            start: long_at(bytes, 8),
        }
    }
}

impl SpanHalf {
    /// Returns an event of a thread as a half, without its args, or `None` if it is none.
    pub(super) fn of(
        event: &Event<'_>,
        thread: ThreadNumber,
        at: EventRef,
        shift_ns: i64,
    ) -> Option<SpanHalf> {
        let side = match event.phase {
            Phase::Begin => Side::Begin,
            Phase::End => Side::End,
            _ => return None,
        };
        Some(SpanHalf {
            row: GroupKey::Thread(thread),
            start: event.ts_ns + shift_ns,
            at,
            side,
            labels: Labels::of(event),
            args: ArgsPlace::default(),
        })
    }
}

impl Half for SpanHalf {
    type Place = EventRef;

    fn time_ns(&self) -> i64 {
        self.start
    }

    fn place(&self) -> EventRef {
        self.at
    }

    fn is_named(&self) -> bool {
        self.labels.name != 0
    }

    fn can_end(&self, begin: &SpanHalf) -> bool {
        self.labels.end(begin.labels)
    }
}

impl Record for SpanHalf {
    const BYTES: usize = 25 + ArgsPlace::BYTES + GroupKey::BYTES;

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.start.to_le_bytes());
        self.at.store(out);
        self.labels.store(out);
        out.push(u8::from(self.side == Side::Begin));
        self.args.store(out);
        self.row.store(out);
    }

    fn load(bytes: &[u8]) -> Self {
        SpanHalf {
            row: GroupKey::load(&bytes[25 + ArgsPlace::BYTES..]),
            start: long_at(bytes, 0).cast_signed(),
            side: if bytes[24] == 1 {
                Side::Begin
            } else {
                Side::End
            },
            at: EventRef::load(bytes, 8),
            labels: Labels::load(bytes, 16),
            args: ArgsPlace::load(&bytes[25..]),
        }
    }
}

/// Finds the end of each begun span, as [`BegunSpans`] says, and calls `found` with each begin, and its end if it has one.
pub(crate) fn join(
    halves: &Sorted<SpanHalf>,
    mut found: impl FnMut(&SpanHalf, Option<&SpanHalf>) -> io::Result<()>,
) -> io::Result<()> {
    // Begins of one row in the order of times.
    let mut open = BegunSpans::<SpanHalf>::default();
    halves.each(|half| {
        if open.first().is_some_and(|first| first.row != half.row) {
            open.drain().try_for_each(|begin| found(&begin, None))?;
        }
        match half.side {
            Side::Begin => {
                let first = open.begin(half);
                first.map_or(Ok(()), |first| found(&first, None))
            }
            Side::End => {
                let begin = open.end(&half);
                begin.map_or(Ok(()), |begin| found(&begin, Some(&half)))
            }
        }
    })?;
    open.drain().try_for_each(|begin| found(&begin, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::line::parse;
    use std::path::Path;

    #[test]
    fn a_half_comes_back_from_a_file_as_it_was() {
        for side in [Side::Begin, Side::End] {
            let half = SpanHalf {
                row: GroupKey::Thread(7),
                start: -3,
                side,
                at: EventRef {
                    chunk: 1 << 20,
                    nth: 9,
                },
                labels: Labels {
                    category: u32::MAX,
                    name: 5,
                },
                args: ArgsPlace {
                    source: 3,
                    len: 7,
                    start: 1 << 40,
                },
            };
            let mut bytes = Vec::new();
            half.store(&mut bytes);
            assert_eq!(
                (bytes.len(), SpanHalf::load(&bytes)),
                (SpanHalf::BYTES, half)
            );
        }
    }

    #[test]
    fn args_are_found_again_in_their_source() {
        let bytes = br#"{"ph":"E","ts":1,"pid":1,"args":{"k":1}}
{"ph":"E","ts":1,"pid":1,"args":{ }}"#;
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let source = |bytes| Source::of_lines(0, Path::new(""), bytes);
        let whole = source(bytes);
        let mut place = || ArgsPlace::of(&parse(lines.next().unwrap()).unwrap(), 1, &whole);
        let (full, empty) = (place(), place());
        let text = |place: ArgsPlace, len| place.text(&[source(b""), source(&bytes[..len])]);
        assert_eq!(text(full, bytes.len()), br#"{"k":1}"#);
        assert_eq!(text(full, 35), b"");
        assert_eq!(text(empty, bytes.len()), b"");
    }

    use crate::pass::chunk::EventRef;
    use crate::pass::labels::Labels;
    use crate::span::group_key::GroupKey;
    use crate::span::span_half::ArgsPlace;
    use crate::store::sorter::Sorter;

    /// Joins halves by row, phase, time and name. Returns the row of each begin, when it was, and when it ended.
    fn joined(halves: &[(u32, Side, i64, u32)]) -> Vec<(GroupKey, i64, Option<i64>)> {
        let folder = std::env::temp_dir();
        let mut sorter = Sorter::new(&folder);
        for ((row, side, start, name), nth) in halves.iter().zip(0..) {
            let half = SpanHalf {
                row: GroupKey::Thread(*row),
                start: *start,
                side: *side,
                at: EventRef { chunk: 0, nth },
                labels: Labels {
                    category: 1,
                    name: *name,
                },
                args: ArgsPlace::default(),
            };
            sorter.push(half).unwrap();
        }
        let mut found = Vec::new();
        join(&sorter.finish().unwrap(), |begin, end| {
            found.push((begin.row, begin.start, end.map(|end| end.start)));
            Ok(())
        })
        .unwrap();
        found.sort_unstable();
        found
    }

    const B: Side = Side::Begin;
    const E: Side = Side::End;

    #[test]
    fn halves_of_one_row_belong_together() {
        let halves = [
            (0, B, 1, 7),
            (1, B, 2, 7),
            (0, B, 3, 7),
            (0, E, 4, 0),
            (1, E, 5, 7),
            (2, E, 6, 7),
        ];
        let [first, second] = [0, 1].map(GroupKey::Thread);
        let expected = [(first, 1, None), (first, 3, Some(4)), (second, 2, Some(5))];
        assert_eq!(joined(&halves), expected);
    }
}
