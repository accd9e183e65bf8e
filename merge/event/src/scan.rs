//! Splits bytes into lines, and finds events and damage with the offset of each.
//!
//! A [`Part`] is a range that ends at a newline. Threads process parts in parallel.

pub use trace_base::part::Part;

use crate::damage::Kind;
use crate::line::{Event, parse, parse_again, parse_canonical, parse_utf8};
use crate::pypto::{self, Prefixes};
use memchr::{memchr, memchr_iter, memrchr};
use sa_format::MAX_LINE_BYTES;

const BOM: &[u8] = b"\xef\xbb\xbf";
/// Desired size of a part: large enough to be worth passing to another thread, and small enough to stay in a core's cache.
pub const PART_BYTES: usize = 1 << 20;

/// Result of scanning a line.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "passed once for each event; a box would need an allocation each time"
)]
pub enum Found<'a> {
    /// An event.
    Event(Event<'a>),
    /// Damage.
    Damage(Kind),
}

/// Splits a part into parts of about `size` bytes that end at newlines.
pub fn cut(bytes: &[u8], part: Part, size: usize, parts: &mut Vec<Part>) {
    let mut start = part.start;
    while start < part.end {
        let mut end = (start + size).min(part.end);
        if end < part.end {
            end = memchr(b'\n', &bytes[end - 1..part.end]).map_or(part.end, |at| end + at);
        }
        parts.push(Part { start, end, ..part });
        start = end;
    }
}

/// Calls `found` with each event and damage of a part, and its offset in `bytes`, in order. Lines of a trusted part may be in canonical order, of which only
/// the beginning is checked. The last one need not have a newline.
#[inline]
pub fn scan_part<'a>(bytes: &'a [u8], part: Part, mut found: impl FnMut(usize, Found<'a>)) {
    if !part.trusted {
        return checked(bytes, part, &mut found);
    }
    for (line, at) in lines(bytes, part) {
        match parse_canonical(line) {
            Some(event) => found(at, Found::Event(event)),
            None => general(line, at, None, &mut found),
        }
    }
}

/// Calls `found` with each event of a part in which [`scan_part`] found only plain events: no damage, and nothing to mend. Lines are not checked again.
#[inline]
pub fn rescan_part<'a>(bytes: &'a [u8], part: Part, mut found: impl FnMut(Event<'a>)) {
    let range = &bytes[part.start..part.end];
    let mut prefixes = Prefixes::default();
    let mut start = 0;
    while start < range.len() {
        let rest = &range[start..];
        let front = pypto::parse_first_front(rest, &mut prefixes);
        let parsed = front.map_or(0, |(_, at)| at);
        let len = memchr(b'\n', &rest[parsed..]).map_or(rest.len(), |at| parsed + at);
        let line = rest[..len].trim_ascii();
        if let Some((event, _)) = front {
            found(Event { line, ..event });
        } else if let Some(event) = parse_again(line) {
            found(event);
        }
        start += len + 1;
    }
}

/// Iterates over the lines of a part, without their newlines, and the offset of each in `bytes`.
#[inline]
pub fn lines(bytes: &[u8], part: Part) -> impl Iterator<Item = (&[u8], usize)> {
    let range = &bytes[part.start..part.end];
    let mut start = 0;
    let ends = memchr_iter(b'\n', range).chain([range.len()]);
    ends.map(move |end| {
        let (line, at) = (&range[start..end], part.start + start);
        start = (end + 1).min(range.len());
        (line, at)
    })
}

#[inline]
fn checked<'a>(bytes: &'a [u8], part: Part, found: &mut impl FnMut(usize, Found<'a>)) {
    let mut start = part.start;
    if start == 0 && bytes.starts_with(BOM) && part.end >= BOM.len() {
        found(0, Found::Damage(Kind::Bom));
        start = BOM.len();
    }
    // Checking the whole range at once takes less time than checking each line. Only if this fails, the lines are checked separately.
    let all_utf8 = simdutf8::basic::from_utf8(&bytes[start..part.end]).is_ok();
    let mut prefixes = Prefixes::default();
    while start < part.end {
        let rest = &bytes[start..part.end];
        let first = all_utf8.then(|| pypto::parse_first(rest, &mut prefixes));
        let end = if let Some(Some(event)) = first {
            found(start, Found::Event(event));
            start + event.line.len()
        } else if let Some(newline) = memchr(b'\n', rest) {
            general(&rest[..newline], start, Some(all_utf8), found);
            start + newline
        } else {
            return tail(rest, start, part.end == bytes.len(), found);
        };
        start = end + 1;
    }
}

/// Scans a line without a newline. At the end of a file, it may be torn.
fn tail<'a>(line: &'a [u8], at: usize, is_last: bool, found: &mut impl FnMut(usize, Found<'a>)) {
    let text = line.trim_ascii_end();
    let may_be_torn = is_last && !text.is_empty() && text.len() <= MAX_LINE_BYTES;
    if may_be_torn && memchr(0, text).is_none() && parse(text).is_err() {
        found(at, Found::Damage(Kind::TornTail));
    } else {
        general(line, at, None, found);
    }
}

/// Scans a line of any form. `utf8` is `Some(true)` if it is known to be UTF-8.
#[inline]
pub fn general<'a>(
    line: &'a [u8],
    at: usize,
    utf8: Option<bool>,
    found: &mut impl FnMut(usize, Found<'a>),
) {
    if line.len() > MAX_LINE_BYTES {
        return found(at, Found::Damage(Kind::LineTooLong));
    }
    let indent = line.len() - line.trim_ascii_start().len();
    let text = line.trim_ascii();
    if text.is_empty() {
        return;
    }
    let parsed = if utf8 == Some(true) {
        parse_utf8(text)
    } else {
        parse(text)
    };
    match parsed {
        Ok(event) => found(at + indent, Found::Event(event)),
        Err(kind) if memchr(0, text).is_none() => found(at + indent, Found::Damage(kind)),
        Err(_) => around_nuls(line, at, found),
    }
}

/// Scans a line with NUL bytes in it. Each run of them is damage. The text between two runs may still be an event. Otherwise, it is part of the same damage.
fn around_nuls<'a>(line: &'a [u8], at: usize, found: &mut impl FnMut(usize, Found<'a>)) {
    let mut start = 0;
    while start < line.len() {
        let rest = &line[start..];
        let len = memchr(0, rest).unwrap_or(rest.len());
        let text = rest[..len].trim_ascii();
        if let Ok(event) = parse(text) {
            let indent = len - rest[..len].trim_ascii_start().len();
            found(at + start + indent, Found::Event(event));
        }
        start += len;
        let nuls = line[start..].iter().take_while(|byte| **byte == 0).count();
        if nuls > 0 {
            found(at + start, Found::Damage(Kind::Nul));
        }
        start += nuls;
    }
}

/// Returns the offset of the line that contains the byte at `at`, but not before `least`.
#[inline]
pub fn line_start(bytes: &[u8], at: usize, least: usize) -> usize {
    memrchr(b'\n', &bytes[least..at]).map_or(least, |newline| least + newline + 1)
}
