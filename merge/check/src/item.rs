//! What an event does on the timeline, as a record of fixed size: there may be more of them than memory shall hold.

use super::arrow::{Arrow, Step};
use super::finding::Place;
use std::cmp::Ordering;
use trace_store::sorter::{Record, long_at, word_at};

/// What viewers find the begin of a span by; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) name: u64,
    pub(super) cat: u64,
}

/// What an event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// A span of so many ns; an instant is one of none.
    Span(i64),
    Begin(Words),
    End(Words),
    Arrow(Step, Arrow),
}

/// Where it does that, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    Thread(u32),
    /// On the track that async events of this key have at the time.
    Async(u32),
}

/// An event on the timeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) ts: i64,
    /// The place among those of the same time: ends (E) come first, then whole spans, the longest first, then all others.
    pub(super) rank: i64,
    pub(super) row: Row,
    pub(super) act: Act,
    pub(super) place: Place,
}

impl Item {
    /// A span comes before the arrow that it brings with it.
    fn order(&self) -> (i64, i64, u64, bool) {
        let is_arrow = matches!(self.act, Act::Arrow(..));
        (self.ts, self.rank, self.place.event, is_arrow)
    }
}

impl Ord for Item {
    fn cmp(&self, other: &Item) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Item) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Item) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Item {}

impl Act {
    /// What it is, and two words of what.
    fn words(self) -> (u8, [u64; 2]) {
        match self {
            Act::Span(dur) => (0, [dur.cast_unsigned(), 0]),
            Act::Begin(words) => (1, [words.name, words.cat]),
            Act::End(words) => (2, [words.name, words.cat]),
            Act::Arrow(step, arrow) => {
                let step = match step {
                    Step::Start => 0,
                    Step::Reach => 1,
                    Step::EndNext => 2,
                };
                match arrow {
                    Arrow::Named(id) => (3, [step, id]),
                    Arrow::Bound(id) => (4, [step, id]),
                }
            }
        }
    }

    fn of_words(kind: u8, [one, two]: [u64; 2]) -> Act {
        let words = Words {
            name: one,
            cat: two,
        };
        let step = match one {
            0 => Step::Start,
            1 => Step::Reach,
            _ => Step::EndNext,
        };
        match kind {
            0 => Act::Span(one.cast_signed()),
            1 => Act::Begin(words),
            2 => Act::End(words),
            3 => Act::Arrow(step, Arrow::Named(two)),
            _ => Act::Arrow(step, Arrow::Bound(two)),
        }
    }
}

impl Record for Item {
    const BYTES: usize = 54;

    fn store(&self, out: &mut Vec<u8>) {
        let (kind, [one, two]) = self.act.words();
        let (is_async, row) = match self.row {
            Row::Thread(row) => (0, row),
            Row::Async(row) => (1, row),
        };
        let Place { offset, event } = self.place;
        let (ts, rank) = (self.ts.cast_unsigned(), self.rank.cast_unsigned());
        for word in [ts, rank, offset, event, one, two] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&row.to_le_bytes());
        out.extend_from_slice(&[is_async, kind]);
    }

    fn load(bytes: &[u8]) -> Item {
        let word = |at: usize| long_at(bytes, 8 * at);
        let row = word_at(bytes, 48);
        Item {
            ts: word(0).cast_signed(),
            rank: word(1).cast_signed(),
            row: match bytes[52] {
                0 => Row::Thread(row),
                _ => Row::Async(row),
            },
            act: Act::of_words(bytes[53], [word(4), word(5)]),
            place: Place {
                offset: word(2),
                event: word(3),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_what_was_stored() {
        let words = Words { name: 7, cat: 0 };
        let arrows = [Step::Start, Step::Reach, Step::EndNext]
            .map(|step| [Arrow::Named(9), Arrow::Bound(u64::MAX)].map(|one| Act::Arrow(step, one)));
        let acts = [Act::Span(-5), Act::Begin(words), Act::End(words)];
        for act in acts.into_iter().chain(arrows.into_iter().flatten()) {
            for row in [Row::Thread(3), Row::Async(u32::MAX)] {
                let place = Place {
                    offset: 1 << 40,
                    event: 5,
                };
                let item = Item {
                    ts: -1,
                    rank: i64::MIN,
                    row,
                    act,
                    place,
                };
                let mut bytes = Vec::new();
                item.store(&mut bytes);
                assert_eq!(bytes.len(), Item::BYTES);
                let loaded = Item::load(&bytes);
                assert_eq!((loaded.ts, loaded.rank), (item.ts, item.rank));
                assert_eq!((loaded.row, loaded.act, loaded.place), (row, act, place));
            }
        }
    }
}
