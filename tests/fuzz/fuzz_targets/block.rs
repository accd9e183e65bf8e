//! A fragment of whole, torn and lying blocks between raw bytes: never a panic, and every whole block is found.
//!
//! No mutation guesses a checksum, so the input is a recipe: stretches that end in 0xFF, the first byte of each says what becomes of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sa_format::{BLOCK_START, BlockHeader, block_sum};
use std::ops::Range;
use trace_merge::blocks::{Piece, split};
use trace_merge::scan::{Found, Part, scan_part};

fuzz_target!(|data: &[u8]| {
    check(data, &[]);
    let (fragment, whole) = build(data);
    check(&fragment, &whole);
});

/// A whole block, and the range of its body.
type Whole = (BlockHeader, Range<usize>);

/// Builds the fragment of a recipe; gives its whole blocks too.
fn build(recipe: &[u8]) -> (Vec<u8>, Vec<Whole>) {
    let (mut out, mut whole) = (Vec::new(), Vec::new());
    for (number, stretch) in (0_u64..).zip(recipe.split(|byte| *byte == 0xff)) {
        let Some((kind, text)) = stretch.split_first() else {
            continue;
        };
        if kind % 5 == 0 {
            out.extend_from_slice(text);
            continue;
        }
        if out.last().is_some_and(|byte| *byte != b'\n') {
            out.push(b'\n');
        }
        let mut body = text.to_vec();
        body.push(b'\n');
        let mut header = header_of(number << 20, &body);
        match kind % 5 {
            1 => {}
            2 => header.sum ^= 1,
            3 => header.len = header.len.wrapping_mul(u64::from(*kind) << (kind / 4)),
            _ => body.truncate(text.len() / 2),
        }
        header.write(u32::from(*kind), &mut out);
        let start = out.len();
        out.extend_from_slice(&body);
        if kind % 5 == 1 {
            whole.push((header, start..out.len()));
        }
    }
    (out, whole)
}

/// Returns true if a line begins like the header of a block.
fn has_header(body: &[u8]) -> bool {
    body.split(|byte| *byte == b'\n')
        .any(|line| line.starts_with(BLOCK_START))
}

fn header_of(from: u64, body: &[u8]) -> BlockHeader {
    let (slot, generation) = (3, 1);
    let sum = block_sum(slot, generation, from, body);
    BlockHeader {
        slot,
        generation,
        from,
        len: body.len() as u64,
        sum,
    }
}

fn check(bytes: &[u8], whole: &[Whole]) {
    let mut at = 0;
    let mut found = Vec::new();
    let mut broken = Vec::new();
    for (range, piece) in split(bytes) {
        assert!(
            at <= range.start && range.start <= range.end && range.end <= bytes.len(),
            "pieces are in order"
        );
        at = range.end;
        if let Piece::Complete(header) = piece {
            let body = &bytes[range.clone()];
            assert_eq!(
                block_sum(header.slot, header.generation, header.from, body),
                header.sum
            );
            found.push(header);
        }
        if let Piece::Broken(header) = piece {
            let len = usize::try_from(header.len).unwrap_or(usize::MAX);
            broken.push(range.start..range.start.saturating_add(len));
        }
        let trusted = matches!(piece, Piece::Complete(_));
        check_lines(
            bytes,
            Part {
                start: range.start,
                end: range.end,
                trusted,
            },
        );
    }
    for (header, body) in whole {
        // No recorder writes a line like a header into a block. Within the bytes that a damaged header claims, the reader takes it for one.
        let is_claimed = broken.iter().any(|claimed| claimed.contains(&body.start));
        let is_hidden = is_claimed && has_header(&bytes[body.clone()]);
        assert!(
            found.contains(header) || is_hidden,
            "a whole block was not found"
        );
    }
}

fn check_lines(bytes: &[u8], part: Part) {
    let mut last = part.start;
    scan_part(bytes, part, |offset, found| {
        assert!(
            last <= offset && offset < part.end,
            "what is found is in order and inside"
        );
        last = offset;
        if let Found::Event(event) = found {
            assert!(
                bytes[offset..part.end].starts_with(event.line),
                "the offset is the event's"
            );
        }
    });
}
