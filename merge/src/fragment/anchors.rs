//! When the blocks of a fragment were written: the place of a time is found by a search, and little of the file is read.
//!
//! The recorder repeats anchors in slot 0 (FORMAT.md §2.2). What stands before the block with an anchor was recorded before the next anchor was read. What
//! was recorded before an anchor was read stands before the block with the next one.

use crate::fragment::walk::{Block, BlockWalk};
use crate::store::search::first;
use sa_recorder::format::{ANCHOR_RECORD, Anchor, BLOCK_START, BlockAnchor, Metadata, block_sum};
use std::ops::Range;

/// How far back is looked at first.
const BACK_BYTES: usize = 1 << 20;

/// A block with an anchor.
#[derive(Clone, Debug)]
pub(crate) struct Anchored {
    pub(crate) block: Block,
    /// The last one in it.
    pub(crate) anchor: BlockAnchor,
    /// When that was read, in the recording's own time.
    pub(crate) at_ns: i64,
}

impl Anchored {
    /// Nothing that stands behind the block with the next anchor began earlier, if what was told only afterwards was so at most `late_ns` after its begin.
    /// `None` if the recorder does not say.
    pub(crate) fn least_ns(&self, late_ns: i64) -> Option<i64> {
        let open_ns = i64::try_from(self.anchor.open_ns?).ok()?;
        Some(open_ns.min(self.at_ns.saturating_sub(late_ns)))
    }
}

/// The lines before the first good block of a segment, and that block. All there is, if there is no block.
pub(crate) fn front(bytes: &[u8]) -> Range<usize> {
    let first = BlockWalk::from(bytes, 0).find(|block| is_good(bytes, block));
    0..first.map_or(bytes.len(), |block| block.body.end)
}

pub(crate) fn is_good(bytes: &[u8], block: &Block) -> bool {
    let header = &block.header;
    let body = &bytes[block.body.clone()];
    block_sum(header.slot, header.generation, header.from, body) == header.sum
}

/// The anchor among the first lines of a segment, which says when it was begun.
pub(crate) fn first_anchor(bytes: &[u8]) -> Option<Anchor> {
    let lines = bytes.split(|byte| *byte == b'\n');
    let mut before_blocks = lines.take_while(|line| !line.starts_with(BLOCK_START));
    before_blocks.find_map(|line| Some(anchor(line)?.anchor))
}

fn anchor(line: &[u8]) -> Option<BlockAnchor> {
    let is_candidate = memchr::memmem::find(line, ANCHOR_RECORD.as_bytes()).is_some();
    let record: Metadata<BlockAnchor> =
        serde_json::from_slice(is_candidate.then_some(line)?).ok()?;
    (record.name == ANCHOR_RECORD).then_some(record.args)
}

/// The blocks with anchors that start in a stretch. Only blocks of slot 0 are looked into, and only those that match their checksum are believed.
pub(crate) fn anchored(bytes: &[u8], stretch: Range<usize>) -> impl Iterator<Item = Anchored> + '_ {
    let own = BlockWalk::within(bytes, stretch).filter(|block| block.header.slot == 0);
    let good = own.filter(|block| is_good(bytes, block));
    good.filter_map(|block| {
        let lines = bytes[block.body.clone()].split(|byte| *byte == b'\n');
        let anchors = lines.filter_map(anchor);
        let anchor = anchors.max_by_key(|one| one.anchor.monotonic_ns)?;
        let at_ns = i64::try_from(anchor.anchor.monotonic_ns).ok()?;
        Some(Anchored {
            block,
            anchor,
            at_ns,
        })
    })
}

/// The first block with an anchor that `is_reached`, as all behind it are.
pub(crate) fn first_anchored(
    bytes: &[u8],
    is_reached: impl Fn(&Anchored) -> bool,
) -> Option<Anchored> {
    let next = |stretch: Range<usize>| {
        let found = anchored(bytes, stretch).next()?;
        Some((found.block.start, found))
    };
    first(0..bytes.len(), next, is_reached)
}

/// From where on a segment must be read to find all that was recorded at `from_ns` or later: the last block with an anchor, behind which another one was
/// read before that time.
pub(crate) fn entry(bytes: &[u8], from_ns: i64) -> usize {
    let since = first_anchored(bytes, |found| found.at_ns >= from_ns);
    let since = since.map_or(bytes.len(), |found| found.block.start);
    let newest = last(bytes, since, |_| true);
    let before = newest.and_then(|newest| last(bytes, newest.block.start, |_| true));
    before.map_or(0, |before| before.block.start)
}

/// The last block with an anchor that starts before `end` and for which `is_wanted`; only what lies behind it is walked through.
pub(crate) fn last(
    bytes: &[u8],
    end: usize,
    is_wanted: impl Fn(&Block) -> bool,
) -> Option<Anchored> {
    let mut back = BACK_BYTES;
    loop {
        let at = end.saturating_sub(back);
        let wanted = anchored(bytes, at..end).filter(|found| is_wanted(&found.block));
        let found = wanted.last();
        if found.is_some() || at == 0 {
            return found;
        }
        back = back.saturating_mul(4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sa_recorder::format::BlockHeader;

    /// Adds a block of `body` to `bytes`.
    fn add(bytes: &mut Vec<u8>, slot: u32, from: &mut u64, body: &[u8]) {
        let header = BlockHeader {
            slot,
            generation: 0,
            from: *from,
            len: body.len() as u64,
            sum: block_sum(slot, 0, *from, body),
        };
        header.write(7, bytes);
        bytes.extend_from_slice(body);
        *from += header.len;
    }

    fn anchor_line(at_ns: u64) -> Vec<u8> {
        let anchor = Anchor {
            monotonic_ns: at_ns,
            realtime_ns: 1,
            uncertainty_ns: 1,
        };
        let mut line = serde_json::to_vec(&Metadata::new(7, ANCHOR_RECORD, anchor)).unwrap();
        line.push(b'\n');
        line
    }

    /// A segment of blocks of 10 kB with an anchor behind every tenth, read at 1000, 2000, …; the starts of the blocks with anchors, and when these were read.
    fn segment(anchors: u64) -> (Vec<u8>, Vec<(usize, i64)>) {
        let mut bytes = [&b"{}\n"[..], &anchor_line(5)].concat();
        let (mut own, mut other) = (0, 0);
        for number in 1..=anchors {
            for _ in 0..10 {
                let line = format!("{{\"ph\":\"i\",\"name\":\"{}\"}}\n", "x".repeat(9_900));
                add(&mut bytes, 1, &mut other, line.as_bytes());
            }
            add(&mut bytes, 0, &mut own, b"{\"ph\":\"i\"}\n");
            add(&mut bytes, 0, &mut own, &anchor_line(1000 * number));
        }
        let all = places(anchored(&bytes, 0..bytes.len()));
        (bytes, all)
    }

    fn places(found: impl IntoIterator<Item = Anchored>) -> Vec<(usize, i64)> {
        let place = |found: Anchored| (found.block.start, found.at_ns);
        found.into_iter().map(place).collect()
    }

    #[test]
    fn a_place_is_found_as_by_reading_all() {
        for anchors in [0, 1, 2, 50] {
            let (bytes, all) = segment(anchors);
            assert_eq!(all.len() as u64, anchors);
            for at_ns in (0..60_000).step_by(499) {
                let pairs = all.windows(2);
                let mut before = pairs.rev().filter(|pair| pair[1].1 < at_ns);
                let expected = before.next().map_or(0, |pair| pair[0].0);
                assert_eq!(entry(&bytes, at_ns), expected, "{anchors} {at_ns}");
                let mut since = all.iter().copied().filter(|one| one.1 >= at_ns);
                let found = places(first_anchored(&bytes, |found| found.at_ns >= at_ns));
                assert_eq!(found, Vec::from_iter(since.next()), "{anchors} {at_ns}");
            }
            let end = bytes.len();
            let newest = places(last(&bytes, end, |_| true));
            assert_eq!(newest, Vec::from_iter(all.last().copied()));
            let oldest = places(last(&bytes, end, |block| block.header.from < 100));
            assert_eq!(oldest, Vec::from_iter(all.first().copied()));
        }
    }

    #[test]
    fn what_does_not_match_its_checksum_says_nothing() {
        let (mut bytes, all) = segment(3);
        let digit = all[1].0 + 110 + anchor_line(2000).len() - 60;
        bytes[digit] ^= 1;
        let left = places(anchored(&bytes, 0..bytes.len()));
        assert_eq!(left, [all[0], all[2]]);
    }

    #[test]
    fn the_first_lines_say_when_a_segment_was_begun() {
        let (bytes, _) = segment(2);
        assert_eq!(
            first_anchor(&bytes).map(|anchor| anchor.monotonic_ns),
            Some(5)
        );
        assert_eq!(first_anchor(&bytes[3 + anchor_line(5).len()..]), None);
        let first = BlockWalk::from(&bytes, 0).next().unwrap();
        assert_eq!(front(&bytes), 0..first.body.end);
        assert_eq!(front(b"{}\n"), 0..3);
    }
}
