//! A cache of text that lines have in common. The lines of a recorder come from a few places in a program. For each place, the text before the time is always
//! the same, the thread usually, and the args often. Comparing text takes a fraction of the time of parsing it.
//!
//! A cached result depends only on the bytes of its text, so a line is parsed to the same event whatever lines precede it.

use super::{ARGS, has_good_args, parse_after_prefix, parse_end, parse_prefix};
use crate::event::Event;
use crate::json::{Scanner, Span};
use memchr::memchr;
use sa_format::{MAX_LINE_BYTES, Phase};
use trace_base::swar::eight;

/// Text of a line before the time.
#[derive(Clone, Copy)]
pub(super) struct Prefix<'a> {
    pub(super) text: &'a [u8],
    pub(super) phase: Phase,
    pub(super) ph: Span,
    pub(super) name: Span,
    pub(super) cat: Span,
    /// Ids of the last line with this prefix.
    pub(super) ids: Ids<'a>,
    /// Rest of that line, including its newline. Empty before the first line.
    pub(super) end: &'a [u8],
}

/// Ids of a line.
#[derive(Clone, Copy, Default)]
pub(super) struct Ids<'a> {
    /// Text of the ids and the byte after it. Empty if that byte could be part of a longer number.
    pub(super) text: &'a [u8],
    pub(super) pid: (i64, Span),
    pub(super) tid: (i64, Span),
}

/// Parses the first of several lines, if it ends with a newline and does not exceed the maximum length.
#[inline(always)]
pub(crate) fn parse_first<'a>(lines: &'a [u8], prefixes: &mut Prefixes<'a>) -> Option<Event<'a>> {
    let prefix = prefixes.get(lines)?;
    let (mut event, at) = parse_after_prefix(lines, prefix)?;
    if prefix.end.is_empty() || !lines[at..].starts_with(prefix.end) {
        prefix.end = checked_end(&lines[at..])?;
    }
    let end = at + prefix.end.len();
    if prefix.end.len() > ARGS.len() {
        event.fields.args = Span::new(at + ARGS.len(), end - "}\n".len());
    }
    event.line = &lines[..end - 1];
    (event.line.len() <= MAX_LINE_BYTES && has_good_args(&event)).then_some(event)
}

/// Checks the rest of a line after its ids. Returns it, including the newline.
#[inline]
fn checked_end(rest: &[u8]) -> Option<&[u8]> {
    let newline = memchr(b'\n', rest)?;
    let mut scanner = Scanner::new(&rest[..newline], 0);
    parse_end(&mut scanner)?;
    (scanner.at == newline && !scanner.odd_escapes).then(|| &rest[..=newline])
}

/// Parses the beginning of the first of several lines, like [`parse_front`](super::parse_front). The caller has to find the end of the line.
#[inline(always)]
pub(crate) fn parse_first_front<'a>(
    lines: &'a [u8],
    prefixes: &mut Prefixes<'a>,
) -> Option<(Event<'a>, usize)> {
    parse_after_prefix(lines, prefixes.get(lines)?)
}

/// Offset after `{"name":"`.
const KEY_START: usize = 9;
/// End of the bytes that select a bucket. The shortest prefix, with empty texts, ends at 34, so these bytes are always part of the prefix.
const KEY_END: usize = 33;
const BUCKETS: usize = 64;

/// Hash table of prefixes with two entries for each bucket, the newer one first.
#[derive(Default)]
pub(crate) struct Prefixes<'a>(Vec<[Option<Prefix<'a>>; 2]>);

impl<'a> Prefixes<'a> {
    /// Returns the prefix of the first of several lines. Parses it if it is not in the table.
    #[inline(always)]
    pub(super) fn get(&mut self, lines: &'a [u8]) -> Option<&mut Prefix<'a>> {
        let number = bucket(lines)?;
        let matches = |prefix: &Option<Prefix<'_>>| {
            let text = prefix.as_ref().map(|prefix| prefix.text);
            text.is_some_and(|text| lines.starts_with(text))
        };
        let bucket = self.0.get(number);
        match bucket.and_then(|bucket| bucket.iter().position(matches)) {
            Some(entry) => self.0[number][entry].as_mut(),
            None => self.insert(number, lines),
        }
    }

    /// Parses a prefix and stores it in place of the older one in its bucket.
    #[inline(never)]
    fn insert(&mut self, number: usize, lines: &'a [u8]) -> Option<&mut Prefix<'a>> {
        let prefix = parse_prefix(lines)?;
        if self.0.is_empty() {
            self.0.resize(BUCKETS, [None; 2]); // Most parts between our own blocks never need the table.
        }
        let bucket = &mut self.0[number];
        bucket.swap(0, 1);
        bucket[0] = Some(prefix);
        bucket[0].as_mut()
    }
}

/// Returns the bucket for the prefix of a line, or `None` if the line is too short to have a prefix.
#[inline(always)]
fn bucket(line: &[u8]) -> Option<usize> {
    const FACTORS: [u64; 3] = [
        0x9e37_79b9_7f4a_7c15,
        0xbf58_476d_1ce4_e5b9,
        0x94d0_49bb_1331_11eb,
    ];
    let key = line.get(KEY_START..KEY_END)?;
    let word = |number: usize| eight(key, 8 * number).wrapping_mul(FACTORS[number]);
    let mixed = word(0) ^ word(1) ^ word(2);
    usize::try_from(mixed >> (64 - BUCKETS.ilog2())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damage::Kind;
    use crate::line::{parse_again, parse_any};
    use crate::pypto::tests::LINES;
    use crate::sample::mutate;
    use crate::scan::{Found, Part, general, lines, rescan_part, scan_part};

    type Lines<'a> = Vec<(usize, Result<Event<'a>, Kind>)>;

    fn add<'a>(lines: &mut Lines<'a>, at: usize, found: Found<'a>) {
        lines.push(match found {
            Found::Event(event) => (at, Ok(event)),
            Found::Damage(kind) => (at, Err(kind)),
        });
    }

    /// Compares what the first pass finds in a text with what it finds in each line separately.
    fn check_first_pass(text: &[u8]) {
        let (mut found, mut expected) = (Lines::new(), Lines::new());
        scan_part(text, Part::whole(text), |at, one| {
            add(&mut found, at, one);
        });
        for (line, at) in lines(text, Part::whole(text)) {
            general(line, at, None, &mut |at, one| add(&mut expected, at, one));
        }
        let begin = &text[..text.len().min(10_000)];
        assert!(found == expected, "{}", String::from_utf8_lossy(begin));
    }

    fn check_second_pass(text: &[u8]) {
        let mut found = Vec::new();
        rescan_part(text, Part::whole(text), |event| found.push(event));
        let lines = lines(text, Part::whole(text)).map(|(line, _)| line.trim_ascii());
        let expected: Vec<_> = lines.filter_map(parse_again).collect();
        assert_eq!(found, expected, "{}", String::from_utf8_lossy(text));
    }

    /// Consecutive mutated lines have the same prefix, or a similar one.
    #[test]
    fn consecutive_lines_are_parsed_like_separate_ones() {
        let (mut text, mut good, mut rounds) = (Vec::new(), Vec::new(), 0);
        mutate(&LINES.map(str::as_bytes), 100_000, |line| {
            rounds += 1;
            // Text that is not UTF-8 is checked line by line.
            if rounds % 1000 == 0 || std::str::from_utf8(line).is_ok() {
                text.extend_from_slice(line);
                text.push(b'\n');
            }
            if parse_any(line).is_ok_and(|event| !event.fields.repeated) {
                good.extend_from_slice(line);
                good.push(b'\n');
            }
            if rounds % 50 == 0 {
                check_first_pass(&text);
                check_second_pass(&good);
                text.clear();
                good.clear();
            }
        });
    }

    #[test]
    fn a_line_over_the_limit_is_damage_here_too() {
        for len in [MAX_LINE_BYTES - 200, MAX_LINE_BYTES + 1] {
            let long = LINES[0]
                .replace("kernel", "k")
                .replace("a\\\"b", &"x".repeat(len));
            check_first_pass(format!("{long}\n{long}\n").as_bytes());
        }
    }
}
