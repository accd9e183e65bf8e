//! Where a fragment's blocks are, and which positions of each slot's stream they cover (FORMAT.md §2.2, §4).

use memchr::memmem;
use sa_recorder::format::{BLOCK_START, BlockHeader, block_sum};
use std::collections::BTreeMap;
use std::ops::Range;

/// What a stretch of a fragment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Lines outside of any block.
    Plain,
    /// The bytes of a complete block.
    Complete(BlockHeader),
    /// What is there of a block that is incomplete or does not match.
    Broken(BlockHeader),
}

/// Splits a fragment into its pieces, in order. Block header lines belong to none.
pub fn split(bytes: &[u8]) -> Vec<(Range<usize>, Piece)> {
    let finder = memmem::Finder::new(BLOCK_START);
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let block = next_header(bytes, at, &finder);
        let plain_end = block.unwrap_or(bytes.len());
        if plain_end > at {
            pieces.push((at..plain_end, Piece::Plain));
        }
        let Some(start) = block else { break };
        at = one_block(bytes, start, &finder, &mut pieces);
    }
    pieces
}

/// The next line that starts like a block header, from the line start `at` on.
fn next_header(bytes: &[u8], at: usize, finder: &memmem::Finder<'_>) -> Option<usize> {
    let mut from = at;
    loop {
        let start = from + finder.find(bytes.get(from..)?)?;
        if start == at || bytes[start - 1] == b'\n' {
            return Some(start);
        }
        from = start + 1;
    }
}

/// Takes the block whose header line starts at `start`; gives where the next line starts.
fn one_block(
    bytes: &[u8],
    start: usize,
    finder: &memmem::Finder<'_>,
    pieces: &mut Vec<(Range<usize>, Piece)>,
) -> usize {
    let Some(newline) = memchr::memchr(b'\n', &bytes[start..]) else {
        pieces.push((start..bytes.len(), Piece::Plain));
        return bytes.len();
    };
    let body = start + newline + 1;
    let Some(header) = BlockHeader::parse(&bytes[start..body - 1]) else {
        // A header that a short write tore is followed by another try; any other is a damaged line.
        if !bytes[body..].starts_with(BLOCK_START) {
            pieces.push((start..body, Piece::Plain));
        }
        return body;
    };
    let claimed = usize::try_from(header.len)
        .ok()
        .and_then(|len| body.checked_add(len));
    let claimed = claimed.filter(|end| *end <= bytes.len());
    if let Some(end) = claimed.filter(|end| is_complete(&header, &bytes[body..*end])) {
        pieces.push((body..end, Piece::Complete(header)));
        return end;
    }
    let limit = claimed.map_or(bytes.len(), |end| {
        memchr::memchr(b'\n', &bytes[end.max(body + 1) - 1..])
            .map_or(bytes.len(), |at| end.max(body + 1) + at)
    });
    let end = next_header(&bytes[..limit], body, finder).unwrap_or(limit);
    pieces.push((body..end, Piece::Broken(header)));
    end
}

fn is_complete(header: &BlockHeader, body: &[u8]) -> bool {
    body.last() == Some(&b'\n')
        && block_sum(header.slot, header.generation, header.from, body) == header.sum
}

/// A set of positions as disjoint ranges.
#[derive(Clone, Debug, Default)]
pub(crate) struct Positions(BTreeMap<u64, u64>);

impl Positions {
    /// Adds a range; gives the parts of it that were not there yet.
    pub(crate) fn add(&mut self, range: Range<u64>) -> Vec<Range<u64>> {
        let fresh = self.missing(range.clone());
        if range.start >= range.end {
            return fresh;
        }
        let (mut start, mut end) = (range.start, range.end);
        while let Some((&s, &e)) = self.0.range(..=end).next_back() {
            if e < start {
                break;
            }
            start = start.min(s);
            end = end.max(e);
            self.0.remove(&s);
        }
        self.0.insert(start, end);
        fresh
    }

    /// The parts of a range that are not in the set.
    pub(crate) fn missing(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut at = range.start;
        if let Some((_, &end)) = self.0.range(..=range.start).next_back() {
            at = at.max(end);
        }
        let mut missing = Vec::new();
        if at < range.end {
            for (&start, &end) in self.0.range(at..range.end) {
                if start > at {
                    missing.push(at..start);
                }
                at = at.max(end);
            }
        }
        if at < range.end {
            missing.push(at..range.end);
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(from: u64, body: &str) -> Vec<u8> {
        let sum = block_sum(2, 0, from, body.as_bytes());
        let mut out = Vec::new();
        BlockHeader {
            slot: 2,
            generation: 0,
            from,
            len: body.len() as u64,
            sum,
        }
        .write(7, &mut out);
        out.extend_from_slice(body.as_bytes());
        out
    }

    fn kinds(bytes: &[u8]) -> Vec<(char, String)> {
        let text = |range: Range<usize>| String::from_utf8_lossy(&bytes[range]).into_owned();
        split(bytes)
            .into_iter()
            .map(|(range, piece)| match piece {
                Piece::Plain => ('p', text(range)),
                Piece::Complete(_) => ('c', text(range)),
                Piece::Broken(_) => ('b', text(range)),
            })
            .collect()
    }

    fn expect(bytes: &[u8], expected: &[(char, &str)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(kind, text)| (*kind, (*text).to_owned()))
            .collect();
        assert_eq!(kinds(bytes), expected);
    }

    #[test]
    fn complete_blocks_and_plain_lines() {
        let bytes = [
            b"header\n".to_vec(),
            block(0, "a\nb\n"),
            b"big\n".to_vec(),
            block(4, "c\n"),
        ]
        .concat();
        expect(
            &bytes,
            &[
                ('p', "header\n"),
                ('c', "a\nb\n"),
                ('p', "big\n"),
                ('c', "c\n"),
            ],
        );
    }

    #[test]
    fn a_torn_block_ends_at_the_next_header() {
        let torn = &block(0, "a\nb\nc\n")[..block(0, "a\nb\nc\n").len() - 3];
        let bytes = [torn.to_vec(), b"\n".to_vec(), block(0, "a\nb\nc\n")].concat();
        expect(
            &bytes,
            &[('b', "a\nb\n"), ('c', "a\nb\nc\n")].map(|(k, t)| (k, t)),
        );
    }

    #[test]
    fn a_changed_byte_breaks_one_block() {
        let mut bytes = [block(0, "a\nb\n"), block(4, "c\n")].concat();
        let at = block(0, "a\nb\n").len() - 2;
        bytes[at] = b'x';
        expect(&bytes, &[('b', "a\nx\n"), ('c', "c\n")]);
    }

    #[test]
    fn a_length_beyond_the_file_is_broken() {
        let mut header = Vec::new();
        BlockHeader {
            slot: 0,
            generation: 0,
            from: 0,
            len: u64::MAX,
            sum: 0,
        }
        .write(7, &mut header);
        header.extend_from_slice(b"a\n");
        expect(&header, &[('b', "a\n")]);
    }

    #[test]
    fn cut_at_every_byte_keeps_the_complete_blocks() {
        let bytes = [
            block(0, "a\nb\n"),
            block(4, "c\n"),
            b"plain\n".to_vec(),
            block(6, "d\n"),
        ]
        .concat();
        for end in 0..=bytes.len() {
            let complete = kinds(&bytes[..end])
                .iter()
                .filter(|(kind, _)| *kind == 'c')
                .count();
            let expected = [
                block(0, "a\nb\n").len(),
                block(0, "a\nb\n").len() + block(4, "c\n").len(),
                bytes.len(),
            ];
            assert_eq!(
                complete,
                expected.iter().filter(|whole| end >= **whole).count(),
                "cut at {end}"
            );
        }
    }

    #[test]
    fn positions_tell_what_is_new_and_what_is_missing() {
        let mut set = Positions::default();
        assert_eq!(set.add(0..10), vec![0..10]);
        assert_eq!(set.add(20..30), vec![20..30]);
        assert_eq!(set.add(5..25), vec![10..20]);
        assert_eq!(set.add(0..30), Vec::<Range<u64>>::new());
        assert_eq!(set.add(40..41), vec![40..41]);
        assert_eq!(set.missing(0..50), vec![30..40, 41..50]);
        assert_eq!(set.add(5..5), Vec::<Range<u64>>::new());
    }
}
