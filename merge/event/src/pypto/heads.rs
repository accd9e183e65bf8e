//! What a line has in common with those before it. A recorder's lines come from a few places of a program: what each writes before the
//! time is always the same, its thread mostly, its args often. Comparing costs a fraction of reading.
//!
//! What is kept of a text follows from its bytes alone, so the lines that came before make no difference to what is read.

use super::{ARGS, has_good_args, parse_behind, parse_end, parse_head};
use crate::event::Event;
use crate::json::{Scanner, Span};
use memchr::memchr;
use sa_format::{MAX_LINE_BYTES, Phase};
use trace_base::swar::eight;

/// What stands before the time in a line.
#[derive(Clone, Copy)]
pub(super) struct Head<'a> {
    pub(super) text: &'a [u8],
    pub(super) phase: Phase,
    pub(super) ph: Span,
    pub(super) name: Span,
    pub(super) cat: Span,
    /// What came after the times in the last line with this head.
    pub(super) ids: Ids<'a>,
    /// The rest of that line, with its newline. Empty before the first line.
    pub(super) end: &'a [u8],
}

/// The ids of a line.
#[derive(Clone, Copy, Default)]
pub(super) struct Ids<'a> {
    /// Their text with the byte behind it; empty if that could be one of a longer number.
    pub(super) text: &'a [u8],
    pub(super) pid: (i64, Span),
    pub(super) tid: (i64, Span),
}

/// Parses the first of some lines, if it ends with a newline and is not longer than lines may be.
#[inline(always)]
pub(crate) fn parse_first<'a>(lines: &'a [u8], heads: &mut Heads<'a>) -> Option<Event<'a>> {
    let head = heads.of(lines)?;
    let (mut event, at) = parse_behind(lines, head)?;
    if head.end.is_empty() || !lines[at..].starts_with(head.end) {
        head.end = read_end(&lines[at..])?;
    }
    let end = at + head.end.len();
    if head.end.len() > ARGS.len() {
        event.fields.args = Span::new(at + ARGS.len(), end - "}\n".len());
    }
    event.line = &lines[..end - 1];
    (event.line.len() <= MAX_LINE_BYTES && has_good_args(&event)).then_some(event)
}

/// Reads what comes after the ids, up to the newline and with it.
#[inline]
fn read_end(rest: &[u8]) -> Option<&[u8]> {
    let newline = memchr(b'\n', rest)?;
    let mut scanner = Scanner::new(&rest[..newline], 0);
    parse_end(&mut scanner)?;
    (scanner.at == newline && !scanner.odd_escapes).then(|| &rest[..=newline])
}

/// Parses the front of the first of some lines, as [`parse_front`] does; whoever calls knows where the line ends.
#[inline(always)]
pub(crate) fn parse_first_front<'a>(
    lines: &'a [u8],
    heads: &mut Heads<'a>,
) -> Option<(Event<'a>, usize)> {
    parse_behind(lines, heads.of(lines)?)
}

/// Behind `{"name":"`.
const KEY_START: usize = 9;
/// The shortest head, with empty texts, goes on to 34: a key has nothing in it but its head.
const KEY_END: usize = 33;
const BUCKETS: usize = 64;

/// The last two heads for each of some keys.
#[derive(Default)]
pub(crate) struct Heads<'a>(Vec<[Option<Head<'a>>; 2]>);

impl<'a> Heads<'a> {
    /// The head of the first of some lines.
    #[inline(always)]
    pub(super) fn of(&mut self, lines: &'a [u8]) -> Option<&mut Head<'a>> {
        let number = bucket(lines)?;
        let begins = |head: &Option<Head<'_>>| {
            let text = head.as_ref().map(|head| head.text);
            text.is_some_and(|text| lines.starts_with(text))
        };
        let bucket = self.0.get(number);
        match bucket.and_then(|bucket| bucket.iter().position(begins)) {
            Some(way) => self.0[number][way].as_mut(),
            None => self.read(number, lines),
        }
    }

    /// Reads a head and keeps it in place of the older one.
    #[inline(never)]
    fn read(&mut self, number: usize, lines: &'a [u8]) -> Option<&mut Head<'a>> {
        let head = parse_head(lines)?;
        if self.0.is_empty() {
            self.0.resize(BUCKETS, [None; 2]); // most parts between our own blocks never need it
        }
        let bucket = &mut self.0[number];
        bucket.swap(0, 1);
        bucket[0] = Some(head);
        bucket[0].as_mut()
    }
}

/// Where the head of a line is kept; `None` if the line is too short to have one.
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

    fn note<'a>(lines: &mut Lines<'a>, at: usize, found: Found<'a>) {
        lines.push(match found {
            Found::Event(event) => (at, Ok(event)),
            Found::Damage(kind) => (at, Err(kind)),
        });
    }

    /// What the first pass finds in a text, and what it should: in each line by itself.
    fn check_first_pass(text: &[u8]) {
        let (mut found, mut expected) = (Lines::new(), Lines::new());
        scan_part(text, Part::all_of(text), |at, one| {
            note(&mut found, at, one);
        });
        for (line, at) in lines(text, Part::all_of(text)) {
            general(line, at, None, &mut |at, one| note(&mut expected, at, one));
        }
        let begin = &text[..text.len().min(10_000)];
        assert!(found == expected, "{}", String::from_utf8_lossy(begin));
    }

    fn check_second_pass(text: &[u8]) {
        let mut found = Vec::new();
        rescan_part(text, Part::all_of(text), |event| found.push(event));
        let lines = lines(text, Part::all_of(text)).map(|(line, _)| line.trim_ascii());
        let expected: Vec<_> = lines.filter_map(parse_again).collect();
        assert_eq!(found, expected, "{}", String::from_utf8_lossy(text));
    }

    /// Mutated lines below one another share their heads, or what looks like one.
    #[test]
    fn lines_below_one_another_are_read_as_each_by_itself() {
        let (mut text, mut good, mut rounds) = (Vec::new(), Vec::new(), 0);
        mutate(&LINES.map(str::as_bytes), 100_000, |line| {
            rounds += 1;
            // A text that is no UTF-8 is read line by line.
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
