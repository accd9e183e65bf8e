//! Times as they stand in lines, read and written by what changes. Lines that stand together are of nearly the same time. So all but the last digits of
//! their times are those of the line before.

use crate::number::{put_front, three_decimals, write_micros};
use crate::swar::{digits_len, eight, eight_digits, eight_value};

/// The last eight digits, which are looked at each time: 100 ms.
const TURN_NS: u64 = 100_000_000;
/// How many of them stand before the point.
const WHOLE: usize = 5;
/// What they take with the point.
const LEN: usize = 9;

/// Five digits, and three behind the point, as eight.
const BEFORE: u64 = (1 << (8 * WHOLE)) - 1;
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// Writes times.
#[derive(Default)]
pub struct Stamp {
    /// The digits before the last eight: a number, and its text.
    high: u64,
    text: [u8; 16],
    len: usize,
}

impl Stamp {
    /// Appends nanoseconds as microseconds with three decimals.
    #[inline(always)]
    pub fn write(&mut self, ns: u64, out: &mut Vec<u8>) {
        let (high, low) = (ns / TURN_NS, ns % TURN_NS);
        if high != self.high {
            self.turn(high);
        }
        if high == 0 {
            return write_micros(ns, out);
        }
        let digits = eight_digits(low) | ZEROS;
        let before = digits & BEFORE | u64::from(b'.') << (8 * WHOLE);
        let behind = u128::from(digits >> (8 * WHOLE)) << (8 * (WHOLE + 1));
        put_front(&self.text, self.len, out);
        put_front(&(u128::from(before) | behind).to_le_bytes(), LEN, out);
    }

    #[cold]
    fn turn(&mut self, high: u64) {
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(high).as_bytes();
        self.text[..digits.len()].copy_from_slice(digits);
        (self.high, self.len) = (high, digits.len());
    }
}

/// Reads times.
#[derive(Clone, Copy, Default)]
pub struct Glance {
    /// The digits before the last eight, in a word, of which `mask` has ones in their place.
    text: u64,
    mask: u64,
    len: usize,
    ns: i64,
}

impl Glance {
    /// Reads digits, a point and exactly three decimals at the front, as [`three_decimals`] does.
    #[inline(always)]
    pub fn read(&mut self, text: &[u8]) -> Option<(i64, usize)> {
        if (eight(text, 0) ^ self.text) & self.mask == 0
            && let Some(low) = low_digits(text, self.len)
        {
            return Some((self.ns + low, self.len + LEN));
        }
        self.turn(text)
    }

    #[cold]
    fn turn(&mut self, text: &[u8]) -> Option<(i64, usize)> {
        let (ns, end) = three_decimals(text)?;
        let len = end.saturating_sub(LEN);
        if (1..=8).contains(&len) {
            let mask = u64::MAX >> (64 - 8 * len);
            let high = ns - ns % TURN_NS.cast_signed();
            *self = Glance {
                text: eight(text, 0) & mask,
                mask,
                len,
                ns: high,
            };
        }
        Some((ns, end))
    }
}

/// The value of eight digits, five of them before a point, if they stand at `at` and no other behind them.
#[inline(always)]
fn low_digits(text: &[u8], at: usize) -> Option<i64> {
    let [first @ .., last, behind] = text.get(at..)?.first_chunk::<{ LEN + 1 }>()?;
    let word = u64::from_le_bytes(*first);
    let digits = word & BEFORE | word >> (8 * (WHOLE + 1)) << (8 * WHOLE) | u64::from(*last) << 56;
    let is_time = first[WHOLE] == b'.' && digits_len(digits) == 8;
    (is_time && !behind.is_ascii_digit()).then(|| eight_value(digits).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times that share their first digits with others, and some that share none.
    fn around() -> Vec<u64> {
        let powers = [
            1_u64,
            1_000,
            100_000_000,
            10_000_000_000,
            1_000_000_000_000_000,
        ];
        let near = powers.into_iter().flat_map(|ns| [ns - 1, ns, ns + 1]);
        let later = [123_456_789_012, 123_456_789_013, 123_556_789_013];
        let others = [
            1_000_000_100_000_000,
            1_795_248_902_123_456_789,
            u64::MAX / 4,
        ];
        near.chain(later).chain(others).collect()
    }

    /// Each time after each other one.
    fn pairs() -> impl Iterator<Item = u64> {
        let pair = |first| around().into_iter().flat_map(move |second| [first, second]);
        around().into_iter().flat_map(pair)
    }

    #[test]
    fn every_time_is_written_as_by_itself() {
        let mut stamp = Stamp::default();
        for ns in pairs() {
            let (mut found, mut expected) = (Vec::new(), Vec::new());
            stamp.write(ns, &mut found);
            write_micros(ns, &mut expected);
            assert_eq!(found, expected, "{ns}");
        }
    }

    #[test]
    fn every_time_is_read_as_by_itself() {
        let mut glance = Glance::default();
        let mut read = |text: &str| {
            let found = glance.read(text.as_bytes());
            assert_eq!(found, three_decimals(text.as_bytes()), "{text}");
        };
        for ns in pairs() {
            let text = format!("{}.{:03}", ns / 1000, ns % 1000);
            for behind in ["", ",", "}", "0", "7,\"dur\":12345678.123"] {
                read(&format!("{text}{behind}"));
            }
            read(&text[..text.len() - 1]);
            for at in 0..text.len() {
                for other in ["x", ".", "0", "-"] {
                    read(&[&text[..at], other, &text[at + 1..]].concat());
                    read(&[&text[..at], other, &text[at..]].concat());
                }
                read(&[&text[..at], &text[at + 1..]].concat());
            }
        }
    }
}
