//! Begin or end of a span, as an event of its own.

use crate::base::begun_spans::Half;
use crate::event::json::scan_object;
use crate::event::line::Event;
use crate::event::whole::has_members;
use crate::pass::chunk::EventRef;
use crate::pass::labels::Labels;
use crate::span::group_key::{GroupKey, ThreadNumber};
use crate::store::sorter::{Record, long_at, word_at};
use sa_format::Phase;

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

/// The place of args in the bytes of their source. Without args, or if they are empty, the length is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ArgsPlace {
    start: u64,
    len: u32,
}

impl ArgsPlace {
    /// Bytes of a stored place.
    pub(super) const BYTES: usize = 12;

    /// Finds the args of an event whose line is part of `bytes`.
    pub(super) fn of(event: &Event<'_>, bytes: &[u8]) -> ArgsPlace {
        // Of most lines only the front was scanned, up to the time.
        let fields = scan_object(event.line).unwrap_or(event.fields);
        let args = fields.args.of(event.line);
        match has_members(args) {
            true => ArgsPlace {
                start: (args.as_ptr().addr() - bytes.as_ptr().addr()) as u64,
                len: u32::try_from(args.len()).unwrap_or(0),
            },
            false => ArgsPlace::default(),
        }
    }

    pub(super) fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns the args, which are empty if the source has become too short.
    pub(super) fn text(self, bytes: &[u8]) -> &[u8] {
        let start = usize::try_from(self.start).unwrap_or(usize::MAX);
        let rest = bytes.get(start..).unwrap_or_default();
        rest.get(..self.len as usize).unwrap_or_default()
    }

    pub(super) fn store(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.start.to_le_bytes());
        out.extend_from_slice(&self.len.to_le_bytes());
    }

    pub(super) fn load(bytes: &[u8]) -> ArgsPlace {
        ArgsPlace {
            start: long_at(bytes, 0),
            len: word_at(bytes, 8),
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
        let (at, labels) = (self.at, self.labels);
        for word in [at.chunk, at.nth, labels.category, labels.name] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.push(u8::from(self.side == Side::Begin));
        self.args.store(out);
        self.row.store(out);
    }

    fn load(bytes: &[u8]) -> Self {
        let [chunk, nth, category, name] = [8, 12, 16, 20].map(|at| word_at(bytes, at));
        SpanHalf {
            row: GroupKey::load(&bytes[25 + ArgsPlace::BYTES..]),
            start: long_at(bytes, 0).cast_signed(),
            side: if bytes[24] == 1 {
                Side::Begin
            } else {
                Side::End
            },
            at: EventRef { chunk, nth },
            labels: Labels { category, name },
            args: ArgsPlace::load(&bytes[25..]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::line::parse;

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
                    start: 1 << 40,
                    len: 7,
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
        let mut place = || ArgsPlace::of(&parse(lines.next().unwrap()).unwrap(), bytes);
        let (full, empty) = (place(), place());
        assert_eq!(full.text(bytes), br#"{"k":1}"#);
        assert_eq!(full.text(&bytes[..35]), b"");
        assert!(empty.is_empty() && !full.is_empty());
    }
}
