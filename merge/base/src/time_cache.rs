//! Writes times by what changes from one to the next. Neighbouring lines have nearly the same time, so only the last digits of their times differ.

use crate::number::{put_front, write_micros};
use crate::swar::eight_digits;

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
}
