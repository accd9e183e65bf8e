//! Encodes numbers, strings and times as JSON into a caller's buffer. No I/O, no allocation, no
//! panic: whether everything fitted is checked at the end.

use std::io::Write;

use crate::sys::memory::count_loss;
use sa_format::loss::Cause;

/// A text whose start is padded to 64 bytes, so that copying it takes a few vector moves instead of
/// a call.
#[derive(Clone, Debug)]
pub(crate) struct Padded {
    first: [u8; 64],
    /// The text after the first block.
    rest: &'static [u8],
    len: usize,
}

impl Padded {
    /// Creates a padded text, which is copied in blocks of 64 bytes, from bytes made at run time.
    /// Leaks the memory of a text that is longer than one block.
    pub(crate) fn leak(text: Vec<u8>) -> Padded {
        match text.len() {
            0..=64 => Padded::short(&text),
            _ => Padded::fixed(text.leak()),
        }
    }

    /// Creates a padded text, which is copied in blocks of 64 bytes, from a constant.
    pub(crate) const fn fixed(text: &'static [u8]) -> Padded {
        let len = text.len();
        let (start, rest) = text.split_at(if len < 64 { len } else { 64 });
        Padded {
            rest,
            len,
            ..Padded::short(start)
        }
    }

    /// Creates a padded text from at most 64 bytes, which fit into one block.
    const fn short(text: &[u8]) -> Padded {
        let mut first = [0; 64];
        let mut at = 0;
        while at < text.len() {
            first[at] = text[at];
            at += 1;
        }
        let (rest, len): (&[u8], _) = (&[], text.len());
        Padded { first, rest, len }
    }

    /// Returns the length of the text in bytes, without the padding.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// Number of bytes that a [`Line`] may write past its end, because it copies whole blocks.
pub(crate) const SLACK: usize = 128;

/// A line being written into a buffer. Before publishing it, the caller must check [`Line::fits`].
pub(crate) struct Line<'a> {
    out: &'a mut [u8],
    len: usize,
}

impl<'a> Line<'a> {
    /// Starts an empty line in the buffer `out`.
    #[inline(always)]
    pub(crate) fn new(out: &'a mut [u8]) -> Line<'a> {
        Line { out, len: 0 }
    }

    /// Returns the number of bytes written to the line so far.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns true if everything written to the line fitted into the buffer.
    #[inline(always)]
    pub(crate) fn fits(&self) -> bool {
        self.len <= self.out.len()
    }

    /// Returns the next `N` bytes of the buffer after the line, or `None` if there are fewer.
    #[inline(always)]
    fn room<const N: usize>(&mut self) -> Option<&mut [u8; N]> {
        let room = self.out.get_mut(self.len..self.len + N)?;
        room.first_chunk_mut()
    }

    /// Copies a whole block of `N` bytes to the end of the line. Only the first `len` of them
    /// become part of the line.
    #[inline(always)]
    pub(crate) fn block<const N: usize>(&mut self, block: &[u8; N], len: usize) {
        if let Some(room) = self.room::<N>() {
            *room = *block;
            self.len += len.min(N); // tells the compiler the maximum length of a short line
        } else {
            self.len = copy_slow(self.out, self.len, &block[..len]);
        }
    }

    /// Appends a padded text to the line.
    #[inline(always)]
    pub(crate) fn padded(&mut self, text: &Padded) {
        self.block(&text.first, text.len.min(64));
        if !text.rest.is_empty() {
            self.text(text.rest);
        }
    }

    /// Appends a text whose length is known at compile time.
    #[inline(always)]
    pub(crate) fn literal<const N: usize>(&mut self, text: &[u8; N]) {
        self.block(text, N);
    }

    /// Appends a text of any length to the line, without escaping it.
    #[inline(always)]
    pub(crate) fn text(&mut self, text: &[u8]) {
        if text.len() <= 32 && self.short(text) {
            return;
        }
        self.len = copy_slow(self.out, self.len, text);
    }

    /// Appends a text of up to 32 bytes as two overlapping parts: two moves for any length. Returns
    /// false if it does not fit.
    #[inline(always)]
    fn short(&mut self, text: &[u8]) -> bool {
        let Some(room) = self.out.get_mut(self.len..self.len + text.len()) else {
            return false;
        };
        match text.len() {
            16..=32 => copy_overlapping::<16>(room, text),
            8..=15 => copy_overlapping::<8>(room, text),
            4..=7 => copy_overlapping::<4>(room, text),
            _ => room.iter_mut().zip(text).for_each(|(to, from)| *to = *from),
        }
        self.len += text.len();
        true
    }

    /// Appends a number of any integer type in decimal digits.
    #[inline(always)]
    pub(crate) fn integer(&mut self, value: impl itoa::Integer) {
        self.text(itoa::Buffer::new().format(value).as_bytes());
    }

    /// Appends a number in decimal digits. Fast for numbers of up to eight digits, which fit into a
    /// register.
    #[inline(always)]
    pub(crate) fn number(&mut self, value: u32) {
        if value >= SMALL_NUMBERS {
            return self.integer(value);
        }
        let (digits, zeros) = significant_digits(value);
        self.write_register(u128::from(digits), 8 - zeros);
    }

    /// Appends the first `len` of up to 16 characters in a register, with the first character in
    /// the lowest byte. Writes them as two words.
    #[inline(always)]
    fn write_register(&mut self, text: u128, len: usize) {
        let Some(room) = self.room::<16>() else {
            self.len = copy_slow(self.out, self.len, &text.to_le_bytes()[..len]);
            return;
        };
        let low_u64 = |text: u128| u64::try_from(text & u128::from(u64::MAX)).unwrap_or(0);
        if let ([front, ..], [back]) = room.as_chunks_mut::<8>().0.split_at_mut(1) {
            *front = low_u64(text).to_le_bytes();
            *back = low_u64(text >> 64).to_le_bytes();
        }
        self.len += len;
    }

    /// Replaces the byte at offset `at` of the line.
    #[inline(always)]
    pub(crate) fn replace(&mut self, at: usize, byte: u8) {
        if let Some(old) = self.out.get_mut(at) {
            *old = byte;
        }
    }

    /// Appends the part of a time below one second, given in ns, as µs with three decimals:
    /// `uuuuuu.nnn`, always ten bytes.
    #[inline(always)]
    pub(crate) fn second_part(&mut self, ns: u32) {
        self.write_register(Micros::new(ns).text(), MICROS_BYTES);
    }

    /// Appends a time given in ns as µs with three decimals, without leading zeros.
    #[inline(always)]
    pub(crate) fn micros(&mut self, ns: u64) {
        let Some(micros) = Micros::below_second(ns) else {
            self.len = long_micros(self.out, self.len, ns);
            return;
        };
        let zeros = micros.zeros();
        self.write_register(micros.text() >> (8 * zeros), MICROS_BYTES - zeros);
    }

    /// Appends `,"dur":` and a duration given in ns, which is written as by [`Line::micros`].
    #[inline(always)]
    pub(crate) fn duration(&mut self, ns: u64) {
        const KEY: [u8; 7] = *b",\"dur\":";
        let (Some(room), Some(micros)) = (self.room::<32>(), Micros::below_second(ns)) else {
            self.literal(&KEY);
            return self.micros(ns);
        };
        // The digits are written far enough to the left for the key to overwrite their leading
        // zeros.
        let (zeros, text) = (micros.zeros(), micros.text().to_le_bytes());
        if let Some(place) = room.get_mut(KEY.len() - zeros..KEY.len() - zeros + text.len()) {
            place.copy_from_slice(&text);
        }
        room[..KEY.len()].copy_from_slice(&KEY);
        self.len += KEY.len() + MICROS_BYTES - zeros;
    }
}

/// Copies `text` to offset `at` of a line's buffer and returns the line's new length. If the text
/// does not fit, copies nothing and returns a length beyond the buffer, which [`Line::fits`]
/// detects. Not a method: a line whose address is passed on is kept in memory instead of registers.
#[cold]
#[inline(never)]
fn copy_slow(out: &mut [u8], at: usize, text: &[u8]) -> usize {
    let end = at + text.len();
    if let Some(room) = out.get_mut(at..end) {
        room.copy_from_slice(text);
    }
    end
}

/// Writes a time of one second or more, given in ns, as µs with three decimals to offset `at` of a
/// line's buffer. Returns the line's new length.
#[cold]
#[inline(never)]
fn long_micros(out: &mut [u8], at: usize, ns: u64) -> usize {
    let mut line = Line { out, len: at };
    line.integer(ns / 1_000_000_000);
    line.second_part(u32::try_from(ns % 1_000_000_000).unwrap_or(0));
    line.len
}

/// Copies a text of `N` to `2 * N` bytes into `room`, which has the same length, as two overlapping
/// parts.
#[inline(always)]
fn copy_overlapping<const N: usize>(room: &mut [u8], text: &[u8]) {
    if let (Some(to), Some(from)) = (room.first_chunk_mut::<N>(), text.first_chunk::<N>()) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (room.last_chunk_mut::<N>(), text.last_chunk::<N>()) {
        *to = *from;
    }
}

/// Length of `uuuuuu.nnn` in bytes.
const MICROS_BYTES: usize = 10;
/// The character 0 in every byte.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// Returns the eight decimal digits of a number below 10^8 as the bytes of a word, the first in the
/// lowest byte. Works in one register on two, four and eight digits at a time.
#[inline(always)]
const fn digits(number: u32) -> u64 {
    let (high, low) = (number / 10_000, number % 10_000);
    let fours = high as u64 | (low as u64) << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (twos - 10 * tens) << 8
}

/// A time below one second as µs with three decimals, assembled in registers. Small stores into a
/// buffer that is then copied as a whole would stall on each other.
#[derive(Clone, Copy)]
struct Micros {
    /// Six digits of µs and two of ns.
    digits: u64,
    /// Last digit of the ns.
    last: u32,
}

impl Micros {
    /// Splits a time below one second, given in ns, into its decimal digits.
    #[inline(always)]
    fn new(ns: u32) -> Micros {
        Micros {
            digits: digits(ns / 10),
            last: ns % 10,
        }
    }

    /// Splits a time given in ns into its decimal digits, or returns `None` if it is one second or
    /// more.
    #[inline(always)]
    fn below_second(ns: u64) -> Option<Micros> {
        let ns = u32::try_from(ns).ok()?;
        (ns < 1_000_000_000).then(|| Micros::new(ns))
    }

    /// Returns the number of leading zeros that can be left out: those among the first five digits.
    #[inline(always)]
    fn zeros(self) -> usize {
        (self.digits | 1 << 40).trailing_zeros() as usize / 8
    }

    /// Returns the time as the ten characters `uuuuuu.nnn`, with the first one in the lowest byte.
    #[inline(always)]
    fn text(self) -> u128 {
        const US: u64 = (1 << 48) - 1;
        let digits = self.digits | ZEROS;
        let front = digits & US | u64::from(b'.') << 48 | (digits & !US) << 8;
        let back = digits >> 56 | (u64::from(b'0') + u64::from(self.last)) << 8;
        u128::from(front) | u128::from(back) << 64
    }
}

/// Upper bound of the numbers with at most eight digits.
pub(crate) const SMALL_NUMBERS: u32 = 100_000_000;

/// Appends the decimal digits of a number below [`SMALL_NUMBERS`], without leading zeros.
#[inline(always)]
pub(crate) fn small_number(out: &mut Vec<u8>, value: u32) {
    let (digits, zeros) = significant_digits(value);
    out.extend_from_slice(&digits.to_le_bytes());
    out.truncate(out.len() - zeros);
}

/// Returns the characters of a number below [`SMALL_NUMBERS`] without its leading zeros, with the
/// first one in the lowest byte. Also returns how many zeros were removed from its eight digits.
#[inline(always)]
fn significant_digits(value: u32) -> (u64, usize) {
    let digits = digits(value);
    let zeros = (digits | 1 << 56).trailing_zeros() / 8;
    ((digits | ZEROS) >> (8 * zeros), zeros as usize)
}

/// Appends `text` as a JSON string with quotes and escapes. A text longer than `bound` bytes is cut
/// at a character boundary, marked as cut, and counted.
pub(crate) fn string(out: &mut Vec<u8>, text: &str, bound: usize) {
    if text.len() <= bound && is_plain(text.as_bytes()) {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        return out.push(b'"');
    }
    let cut = text.floor_char_boundary(bound);
    out.push(b'"');
    let kept = &text.as_bytes()[..cut];
    match kept.strip_suffix(b"\\") {
        // Perfetto takes `\\"` for an escaped quote wherever it occurs, and then loads nothing of
        // the trace.
        Some(rest) if cut == text.len() => {
            escape(out, rest);
            out.extend_from_slice(b"\\u005c");
        }
        _ => escape(out, kept),
    }
    if cut < text.len() {
        count_loss(Cause::Cut);
        let _ = write!(out, "…[+{} bytes]", text.len() - cut); // writing to a `Vec` cannot fail
    }
    out.push(b'"');
}

/// Returns the maximum number of bytes that [`string`] appends for the same arguments.
#[inline]
pub(crate) fn string_bytes(text: &str, bound: usize) -> usize {
    /// Length of the longest escape in bytes.
    const ESCAPED: usize = 6;
    /// Texts up to this length are assumed to consist of escapes, because counting takes longer.
    const SHORT: usize = 64;
    /// Length of the quotes and of the mark for a cut text.
    const MARKS: usize = 48;
    let kept = text.len().min(bound);
    let escaped = match kept {
        0..=SHORT => kept,
        _ => text.bytes().filter(|byte| is_escaped(*byte)).count(),
    };
    kept + escaped * (ESCAPED - 1) + MARKS
}

/// Returns true if a text certainly needs no escapes in JSON. Short texts, as most keys are, take
/// two word comparisons. For texts of up to three bytes the answer is always false.
#[inline(always)]
fn is_plain(text: &[u8]) -> bool {
    let (words, ends) = (text.as_chunks::<8>().0, text.as_rchunks::<8>().1);
    if let ([front, ..], [.., back]) = (words, ends) {
        let both = [front, back].map(|word| u64::from_le_bytes(*word));
        return both.into_iter().all(is_plain_word) && (text.len() <= 16 || are_plain(words));
    }
    let (Some(front), Some(back)) = (text.first_chunk(), text.last_chunk()) else {
        return false;
    };
    let parts = [front, back].map(|part| u64::from(u32::from_le_bytes(*part)));
    is_plain_word(parts[0] | parts[1] << 32)
}

/// Returns true if no byte of these 8-byte words needs an escape in JSON. For longer texts, such as
/// ids.
#[inline(never)]
fn are_plain(words: &[[u8; 8]]) -> bool {
    let mut words = words.iter();
    words.all(|word| is_plain_word(u64::from_le_bytes(*word)))
}

/// Returns true if no byte of a word needs an escape in JSON. Because of borrows from lower bytes,
/// it may also return false for a word without escapes.
#[inline(always)]
const fn is_plain_word(word: u64) -> bool {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let quotes = word ^ (ONES * b'"' as u64);
    let backslashes = word ^ (ONES * b'\\' as u64);
    (bytes_below(word, 0x20) | bytes_below(quotes, 1) | bytes_below(backslashes, 1)) & HIGH == 0
}

/// Compares each byte of `word` with `bound`. In the result, the highest bit of a byte is set if
/// that byte is lower. Because of borrows, it may also be set in the byte after such a byte. All
/// other bits have no meaning.
#[inline(always)]
const fn bytes_below(word: u64, bound: u64) -> u64 {
    word.wrapping_sub(u64::MAX / 255 * bound) & !word
}

/// Returns true if JSON requires an escape for this byte.
#[inline]
fn is_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Appends the contents of a JSON string: `text` with escapes where they are required.
fn escape(out: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| is_escaped(*byte)) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            control => {
                let _ = write!(out, "\\u{control:04x}"); // writing to a `Vec` cannot fail
            }
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(write: impl FnOnce(&mut Line<'_>)) -> String {
        let mut buffer = [0; 256];
        let mut line = Line::new(&mut buffer);
        write(&mut line);
        let len = line.len();
        assert!(line.fits());
        String::from_utf8(buffer[..len].to_vec()).unwrap()
    }

    #[test]
    fn a_character_is_escaped_wherever_it_stands() {
        let odd = (0..=0x100).filter_map(char::from_u32).chain([
            '\u{7ff}',
            '界',
            '\u{fffd}',
            '\u{1f600}',
        ]);
        for odd in odd.map(String::from).chain([String::new()]) {
            for len in 0..40 {
                for at in 0..=len {
                    let text = format!("{}{odd}{}", "a".repeat(at), "b".repeat(len - at));
                    let mut out = Vec::new();
                    string(&mut out, &text, 100);
                    let read = serde_json::from_slice::<String>(&out);
                    assert_eq!(read.unwrap(), text);
                }
            }
        }
    }

    #[test]
    fn micros_have_three_decimals() {
        let powers = (0..20).map(|power| 10_u64.pow(power));
        let around = powers.flat_map(|power| [power - 1, power]);
        for ns in around.chain([81_234_567_891, u64::MAX]) {
            let text = format!("{}.{:03}", ns / 1000, ns % 1000);
            assert_eq!(line(|line| line.micros(ns)), text);
        }
    }

    #[test]
    fn every_four_digits_are_right_in_either_half() {
        for four in 0..10_000 {
            let number = four * 10_000 + (9_999 - four);
            let text = (digits(number) | ZEROS).to_le_bytes();
            assert_eq!(text.as_slice(), format!("{number:08}").as_bytes());
        }
    }

    #[test]
    fn a_duration_is_its_key_and_micros_however_much_room_is_left() {
        for ns in [0, 7, 70_900]
            .into_iter()
            .chain((6..10).map(|power| 10_u64.pow(power)))
        {
            let expected = format!(",\"dur\":{}", line(|line| line.micros(ns)));
            assert_eq!(line(|line| line.duration(ns)), expected);
            for room in expected.len()..64 {
                let mut buffer = [b'.'; 64];
                let mut line = Line::new(&mut buffer[..room]);
                line.duration(ns);
                assert!(line.fits());
                let len = line.len();
                assert_eq!(&buffer[..len], expected.as_bytes(), "{room}");
                assert!(buffer[room..].iter().all(|byte| *byte == b'.'));
            }
        }
    }

    #[test]
    fn texts_of_every_length_are_whole() {
        let all: Vec<u8> = (0..200).map(|at| b'a' + at % 26).collect();
        for len in 0..all.len() {
            let text = std::str::from_utf8(&all[..len]).unwrap();
            assert_eq!(line(|line| line.text(text.as_bytes())), text);
            assert_eq!(
                line(|line| line.padded(&Padded::leak(text.as_bytes().to_vec()))),
                text
            );
        }
    }

    #[test]
    fn text_that_does_not_fit_is_detected_and_nothing_is_written_outside() {
        let mut buffer = [b'.'; 20];
        let mut line = Line::new(&mut buffer[..10]);
        line.text(b"0123456");
        assert!(line.fits());
        line.text(b"789abcd");
        assert!(!line.fits());
        assert_eq!(&buffer[10..], b"..........");
    }

    #[test]
    fn small_numbers_have_no_leading_zeros() {
        let powers = (0..8).map(|power| 10_u32.pow(power));
        let around = powers.flat_map(|power| [power - 1, power, power + 1, power * 7]);
        for value in around.chain([12_345_678, 90_000_009, SMALL_NUMBERS - 1]) {
            let mut out = b"x".to_vec();
            small_number(&mut out, value);
            assert_eq!(out, format!("x{value}").as_bytes());
            assert_eq!(line(|line| line.number(value)), value.to_string());
        }
    }

    #[test]
    fn issue_19_a_trailing_backslash_is_readable_and_cuts_keep_characters_whole() {
        for (text, bound, json) in [
            ("C:\\", 64, r#""C:\u005c""#),
            ("\\\\", 64, r#""\\\u005c""#),
            ("a\\b", 64, r#""a\\b""#),
            ("ééé", 3, "\"é…[+4 bytes]\""),
        ] {
            let mut out = Vec::new();
            string(&mut out, text, bound);
            assert_eq!(String::from_utf8_lossy(&out), json, "{text}");
        }
    }
}
