//! Finds the blocks of a fragment, and the positions of each slot's stream that they cover (FORMAT.md §2.2, §4).

use crate::event::scan::line_start;
use memchr::memmem;
use sa_format::{BLOCK_START, BlockHeader, block_sum};
use std::collections::BTreeMap;
use std::ops::Range;

/// Kind of a range of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Lines outside of any block.
    Plain,
    /// The bytes of a complete block.
    Complete(BlockHeader),
    /// The remaining bytes of a block that is incomplete or does not match its checksum.
    Broken(BlockHeader),
}

/// Number of bytes after which progress is reported.
const PROGRESS_BYTES: usize = 1 << 20;

/// Splits a fragment into its pieces, in order. The header lines of blocks belong to no piece.
pub fn split(bytes: &[u8]) -> Vec<(Range<usize>, Piece)> {
    let mut pieces = Vec::new();
    let found = |range, piece| pieces.push((range, piece));
    split_range(bytes, 0..bytes.len(), |_| {}, found);
    pieces
}

/// Splits a range of a fragment that begins and ends at line boundaries. Calls `found` for each piece, in order, and `count` with the number of bytes
/// processed since the last call.
pub(crate) fn split_range(
    bytes: &[u8],
    range: Range<usize>,
    mut count: impl FnMut(usize),
    mut found: impl FnMut(Range<usize>, Piece),
) {
    let bytes = &bytes[..range.end];
    let mut splitter = Splitter::new(bytes);
    let (mut at, mut reported) = (range.start, range.start);
    let mut report = |done: usize| {
        if done - reported >= PROGRESS_BYTES || done == bytes.len() {
            count(done - reported);
            reported = done;
        }
    };
    while at < bytes.len() {
        let block = splitter.next_header_reporting(at, &mut report);
        splitter.add_plain(at..block.unwrap_or(bytes.len()), block.is_some());
        at = block.map_or(bytes.len(), |start| splitter.add_block(start));
        for (range, piece) in splitter.pieces.drain(..) {
            found(range, piece);
        }
        if block.is_some() {
            report(at);
        }
    }
}

struct Splitter<'a> {
    bytes: &'a [u8],
    finder: memmem::Finder<'a>,
    /// End that the mismatched blocks claim. A block below it is hashed only if it contains no other header. Thus no byte is hashed more than twice,
    /// however deeply headers are nested.
    suspect_end: usize,
    /// Pieces that were found and not yet passed on.
    pieces: Vec<(Range<usize>, Piece)>,
}

impl<'a> Splitter<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Splitter {
            bytes,
            finder: memmem::Finder::new(BLOCK_START),
            suspect_end: 0,
            pieces: Vec::new(),
        }
    }

    /// Returns the next line at or after the line start `at` that starts like a block header. Calls `report` with the offset that the search has
    /// passed.
    fn next_header_reporting(&self, at: usize, report: &mut impl FnMut(usize)) -> Option<usize> {
        let mut from = at;
        loop {
            let end = from.saturating_add(PROGRESS_BYTES).min(self.bytes.len());
            let found = self.next_header(from, end);
            if found.is_some() {
                return found;
            }
            report(end);
            if end == self.bytes.len() {
                return None;
            }
            from = end;
        }
    }

    /// Returns the next line that starts like a block header, at or after `at` and before `end`.
    fn next_header(&self, at: usize, end: usize) -> Option<usize> {
        let bytes = &self.bytes[..end.saturating_add(BLOCK_START.len()).min(self.bytes.len())];
        let mut from = at;
        loop {
            let start = from + self.finder.find(bytes.get(from..)?)?;
            if start >= end {
                return None;
            }
            if start == 0 || bytes[start - 1] == b'\n' {
                return Some(start);
            }
            from = start + 1;
        }
    }

    /// Adds lines outside of blocks. The beginning of a header directly before a block is left out: it comes from a write that was repeated.
    fn add_plain(&mut self, range: Range<usize>, before_block: bool) {
        let lines = self.bytes[range.clone()].strip_suffix(b"\n");
        let torn = lines
            .filter(|_| before_block)
            .map(|lines| &lines[line_start(lines, lines.len(), 0)..])
            .filter(|line| !line.is_empty() && BLOCK_START.starts_with(line));
        let end = range.end - torn.map_or(0, |line| line.len() + 1);
        if end > range.start {
            self.pieces.push((range.start..end, Piece::Plain));
        }
    }

    /// Adds the block whose header line starts at `start`. Returns where the next line starts.
    fn add_block(&mut self, start: usize) -> usize {
        let bytes = self.bytes;
        let Some(newline) = memchr::memchr(b'\n', &bytes[start..]) else {
            self.pieces.push((start..bytes.len(), Piece::Plain));
            return bytes.len();
        };
        let body = start + newline + 1;
        let Some(header) = BlockHeader::parse(&bytes[start..body - 1]) else {
            // After a short write the recorder writes the header again. Any other invalid header is a damaged line.
            if !bytes[body..].starts_with(BLOCK_START) {
                self.pieces.push((start..body, Piece::Plain));
            }
            return body;
        };
        let claimed = usize::try_from(header.len)
            .ok()
            .and_then(|len| body.checked_add(len))
            .filter(|end| *end <= bytes.len());
        if let Some(end) = claimed.filter(|end| self.is_complete(&header, body..*end)) {
            self.pieces.push((body..end, Piece::Complete(header)));
            return end;
        }
        let end = self.broken_end(body, claimed);
        self.pieces.push((body..end, Piece::Broken(header)));
        end
    }

    /// Returns where a broken block ends: at the next header, or after the line in which its claimed bytes end.
    fn broken_end(&self, body: usize, claimed: Option<usize>) -> usize {
        let len = self.bytes.len();
        let claimed = claimed.map_or(len, |end| end.max(body + 1).min(len));
        let line_end = || {
            let last = claimed.saturating_sub(1).max(body);
            memchr::memchr(b'\n', &self.bytes[last..]).map_or(len, |at| last + at + 1)
        };
        self.next_header(body, claimed).unwrap_or_else(line_end)
    }

    fn is_complete(&mut self, header: &BlockHeader, range: Range<usize>) -> bool {
        let body = &self.bytes[range.clone()];
        let is_suspect = range.start < self.suspect_end;
        if body.last() != Some(&b'\n')
            || is_suspect && self.next_header(range.start, range.end).is_some()
        {
            return false;
        }
        let sum = block_sum(header.slot, header.generation, header.from, body);
        if sum != header.sum {
            self.suspect_end = self.suspect_end.max(range.end);
        }
        sum == header.sum
    }
}

/// A set of positions as disjoint ranges.
#[derive(Clone, Debug, Default)]
pub struct Positions(BTreeMap<u64, u64>);

impl Positions {
    /// Adds a range. Returns the parts of it that were not in the set before.
    pub fn add(&mut self, range: Range<u64>) -> Vec<Range<u64>> {
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

    /// Returns the number of disjoint ranges.
    pub fn range_count(&self) -> usize {
        self.0.len()
    }

    /// Keeps the last `most` ranges, and treats everything before them as covered.
    pub fn fill_oldest(&mut self, most: usize) {
        while self.0.len() > most.max(1) {
            self.0.pop_first();
            if let Some((_, end)) = self.0.pop_first() {
                self.0.insert(0, end);
            }
        }
    }

    /// Returns the parts of a range that are not in the set.
    pub fn missing(&self, range: Range<u64>) -> Vec<Range<u64>> {
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
        crate::fragment::settle::block(7, (2, 0), from, body.as_bytes())
    }

    #[test]
    fn a_header_is_found_wherever_progress_is_reported() {
        let header = block(0, "a\n");
        for before in PROGRESS_BYTES - header.len() - 2..=PROGRESS_BYTES + 2 {
            let mut bytes = vec![b'x'; before - 1];
            bytes.push(b'\n');
            bytes.extend_from_slice(&header);
            assert_eq!(kinds(&bytes), "pc", "{before}");
        }
        // In the middle of a line it is not a header, even if progress is reported there.
        let bytes = [vec![b'x'; PROGRESS_BYTES], header].concat();
        assert_eq!(split(&bytes).len(), 1);
    }

    /// Returns the kinds of the pieces of some bytes, one letter each: plain, complete, broken.
    fn kinds(bytes: &[u8]) -> String {
        let kind = |(_, piece): &(_, Piece)| match piece {
            Piece::Plain => 'p',
            Piece::Complete(_) => 'c',
            Piece::Broken(_) => 'b',
        };
        split(bytes).iter().map(kind).collect()
    }

    #[test]
    fn nested_headers_that_do_not_match_are_not_hashed_again_and_again() {
        let header = BlockHeader {
            slot: 0,
            generation: 0,
            from: 0,
            len: 20_000_000,
            sum: 0,
        };
        let mut bytes = Vec::new();
        for _ in 0..100_000 {
            header.write(7, &mut bytes);
        }
        assert!(bytes.len() < 20_000_000);
        bytes.resize(41_000_000, b'\n');
        let whole = block(0, "a\n");
        bytes.extend_from_slice(&whole);
        let begun = std::time::Instant::now();
        assert_eq!(kinds(&bytes).matches('c').count(), 1);
        assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    }
}
