//! Numbers, strings and times → JSON text in a caller's buffer. No I/O, no allocation, no panic: what does not fit is noticed at the end.

/// Text cut to its padded blocks: copied 64 bytes at a time, so that the copy is a few vector moves instead of a call.
#[derive(Clone, Debug)]
pub(crate) struct Padded {
    blocks: Box<[[u8; 64]]>,
    len: usize,
}

impl Padded {
    pub(crate) fn new(text: &[u8]) -> Padded {
        let mut blocks = vec![[0; 64]; text.len().div_ceil(64)];
        for (block, part) in blocks.iter_mut().zip(text.chunks(64)) {
            block[..part.len()].copy_from_slice(part);
        }
        Padded {
            blocks: blocks.into_boxed_slice(),
            len: text.len(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// Bytes that a [`Line`] may write past its end: it copies whole blocks.
pub(crate) const SLACK: usize = 128;

/// A line being written into a buffer. Whoever publishes it must ask [`Line::fits`] first.
pub(crate) struct Line<'a> {
    out: &'a mut [u8],
    len: usize,
}

impl<'a> Line<'a> {
    #[inline(always)]
    pub(crate) fn new(out: &'a mut [u8]) -> Line<'a> {
        Line { out, len: 0 }
    }

    /// Bytes written so far.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether everything written is really in the buffer.
    #[inline(always)]
    pub(crate) fn fits(&self) -> bool {
        self.len <= self.out.len()
    }

    /// Copies a whole block of which `len` bytes count.
    #[inline(always)]
    pub(crate) fn block<const N: usize>(&mut self, block: &[u8; N], len: usize) {
        if let Some(room) = self
            .out
            .get_mut(self.len..)
            .and_then(|rest| rest.first_chunk_mut::<N>())
        {
            *room = *block;
            self.len += len;
        } else {
            self.slow(&block[..len]);
        }
    }

    #[inline(always)]
    pub(crate) fn padded(&mut self, text: &Padded) {
        let mut left = text.len;
        for block in &text.blocks {
            self.block(block, left.min(64));
            left = left.saturating_sub(64);
        }
    }

    #[inline(always)]
    pub(crate) fn literal<const N: usize>(&mut self, text: &[u8; N]) {
        self.block(text, N);
    }

    /// Copies a text of any length.
    #[inline(always)]
    pub(crate) fn text(&mut self, text: &[u8]) {
        if text.len() <= 32 && self.short(text) {
            return;
        }
        self.slow(text);
    }

    /// Copies up to 32 bytes as overlapping halves: two moves whatever the length.
    #[inline(always)]
    fn short(&mut self, text: &[u8]) -> bool {
        let Some(room) = self.out.get_mut(self.len..self.len + text.len()) else {
            return false;
        };
        match text.len() {
            16..=32 => halves::<16>(room, text),
            8..=15 => halves::<8>(room, text),
            4..=7 => halves::<4>(room, text),
            _ => room.iter_mut().zip(text).for_each(|(to, from)| *to = *from),
        }
        self.len += text.len();
        true
    }

    #[cold]
    #[inline(never)]
    fn slow(&mut self, text: &[u8]) {
        if let Some(room) = self.out.get_mut(self.len..self.len + text.len()) {
            room.copy_from_slice(text);
        }
        self.len += text.len(); // past the end: `fits` tells
    }

    #[inline(always)]
    pub(crate) fn integer(&mut self, value: impl itoa::Integer) {
        self.text(itoa::Buffer::new().format(value).as_bytes());
    }

    /// Writes up to 16 characters that stand in a register, as two words.
    #[inline(always)]
    fn register(&mut self, text: u128, len: usize) {
        let Some(room) = self
            .out
            .get_mut(self.len..)
            .and_then(|rest| rest.first_chunk_mut::<16>())
        else {
            return self.slow(&text.to_le_bytes()[..len]);
        };
        let half = |text: u128| u64::try_from(text & u128::from(u64::MAX)).unwrap_or(0);
        if let ([front, ..], [back]) = room.as_chunks_mut::<8>().0.split_at_mut(1) {
            *front = half(text).to_le_bytes();
            *back = half(text >> 64).to_le_bytes();
        }
        self.len += len;
    }

    /// Replaces a byte already written.
    #[inline(always)]
    pub(crate) fn replace(&mut self, at: usize, byte: u8) {
        if let Some(old) = self.out.get_mut(at) {
            *old = byte;
        }
    }

    /// Writes the µs with three decimals below one second: `uuuuuu.nnn`, always ten bytes.
    #[inline(always)]
    pub(crate) fn second_part(&mut self, ns: u32) {
        self.register(fixed(ns), 10);
    }

    /// Writes a time in ns as µs with three decimals, without leading zeros.
    #[inline(always)]
    pub(crate) fn micros(&mut self, ns: u64) {
        if ns >= 1_000_000_000 {
            return self.long_micros(ns);
        }
        let ns = u32::try_from(ns).unwrap_or(0);
        let us = ns / 1000;
        let zeros = 5
            - (usize::from(us >= 10)
                + usize::from(us >= 100)
                + usize::from(us >= 1_000)
                + usize::from(us >= 10_000)
                + usize::from(us >= 100_000));
        self.register(fixed(ns) >> (8 * zeros), 10 - zeros);
    }

    #[cold]
    fn long_micros(&mut self, ns: u64) {
        self.integer(ns / 1_000_000_000);
        self.second_part(u32::try_from(ns % 1_000_000_000).unwrap_or(0));
    }
}

#[inline(always)]
fn halves<const N: usize>(room: &mut [u8], text: &[u8]) {
    if let (Some(to), Some(from)) = (room.first_chunk_mut::<N>(), text.first_chunk::<N>()) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (room.last_chunk_mut::<N>(), text.last_chunk::<N>()) {
        *to = *from;
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "digits; a const fn cannot convert otherwise"
)]
const fn pairs() -> [[u8; 2]; 100] {
    let mut table = [[0; 2]; 100];
    let mut value = 0;
    while value < 100 {
        table[value] = [b'0' + (value / 10) as u8, b'0' + (value % 10) as u8];
        value += 1;
    }
    table
}

static PAIRS: [[u8; 2]; 100] = pairs();

/// `uuuuuu.nnn` of less than a second, first character in the lowest byte. Put together in a register: small stores into a buffer
/// that is then copied as a whole would wait for each other.
#[inline(always)]
fn fixed(ns: u32) -> u128 {
    let (us, rest) = (ns / 1000, ns % 1000);
    let (high, low) = (us / 10_000, us % 10_000);
    let front = pair(high) | pair(low / 100) << 16 | pair(low % 100) << 32 | u64::from(b'.') << 48;
    let back = pair(rest / 10) | (u64::from(b'0') + u64::from(rest % 10)) << 16;
    u128::from(front) | u128::from(back) << 56
}

#[inline(always)]
fn pair(value: u32) -> u64 {
    u64::from(u16::from_le_bytes(PAIRS[(value % 100) as usize]))
}

/// Numbers below have at most eight digits.
pub(crate) const SMALL_NUMBERS: u32 = 100_000_000;

/// Appends a number below [`SMALL_NUMBERS`]: eight digits from a register, without those that lead with zeros.
#[inline(always)]
pub(crate) fn small_number(out: &mut Vec<u8>, value: u32) {
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    let (high, low) = (value / 10_000, value % 10_000);
    let digits = pair(high / 100) | pair(high) << 16 | pair(low / 100) << 32 | pair(low) << 48;
    let zeros = ((digits ^ ZEROS).trailing_zeros() / 8).min(7);
    out.extend_from_slice(&(digits >> (8 * zeros)).to_le_bytes());
    out.truncate(out.len() - zeros as usize);
}

/// Appends a JSON string with its quotes; longer text than `bound` bytes is cut at a character and marked.
pub(crate) fn string(out: &mut Vec<u8>, text: &str, bound: usize) {
    let cut = if text.len() <= bound {
        text.len()
    } else {
        text.floor_char_boundary(bound)
    };
    out.push(b'"');
    escape(out, &text.as_bytes()[..cut]);
    if cut < text.len() {
        out.extend_from_slice(format!("…[+{} bytes]", text.len() - cut).as_bytes());
    }
    out.push(b'"');
}

fn escape(out: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text;
    while let Some(at) = rest
        .iter()
        .position(|byte| *byte < 0x20 || *byte == b'"' || *byte == b'\\')
    {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            control => out.extend_from_slice(format!("\\u{control:04x}").as_bytes()),
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
    fn micros_have_three_decimals() {
        for (ns, text) in [
            (0, "0.000"),
            (1, "0.001"),
            (999, "0.999"),
            (1000, "1.000"),
            (99_999, "99.999"),
            (100_000, "100.000"),
            (123_456_789, "123456.789"),
            (999_999_999, "999999.999"),
            (1_000_000_000, "1000000.000"),
            (81_234_567_891, "81234567.891"),
            (u64::MAX, "18446744073709551.615"),
        ] {
            assert_eq!(line(|line| line.micros(ns)), text);
        }
    }

    #[test]
    fn texts_of_every_length_are_whole() {
        let all: Vec<u8> = (0..200).map(|at| b'a' + at % 26).collect();
        for len in 0..all.len() {
            let text = std::str::from_utf8(&all[..len]).unwrap();
            assert_eq!(line(|line| line.text(text.as_bytes())), text);
            assert_eq!(
                line(|line| line.padded(&Padded::new(text.as_bytes()))),
                text
            );
        }
    }

    #[test]
    fn what_does_not_fit_is_noticed_and_writes_nothing_outside() {
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
        }
    }

    #[test]
    fn strings_are_json() {
        let text: String = (0..300)
            .filter_map(char::from_u32)
            .chain("\u{1F600}\u{FFFD}".chars())
            .collect();
        let mut out = Vec::new();
        string(&mut out, &text, 1 << 20);
        assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
    }

    #[test]
    fn long_strings_are_cut_at_a_character() {
        let mut out = Vec::new();
        string(&mut out, "ééé", 3);
        assert_eq!(
            serde_json::from_slice::<String>(&out).unwrap(),
            "é…[+4 bytes]"
        );
    }
}
