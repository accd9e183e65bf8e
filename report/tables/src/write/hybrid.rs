//! Parquet's [hybrid of runs and packed numbers](https://parquet.apache.org/docs/file-format/data-pages/encodings/#RLE): a number that comes often in a row
//! stands there once, others in as few bits as the largest one needs.

use crate::gather::entry::write_number;

/// Numbers are packed eight at a time.
const GROUP: usize = 8;

/// Takes numbers of a width.
pub(super) struct Hybrid {
    /// Bits of a number.
    width: u32,
    bytes: Vec<u8>,
    /// To be packed: whole groups, and the one that has begun.
    packed: Vec<u32>,
}

impl Hybrid {
    /// One for numbers up to `most`, behind what is in `bytes`.
    pub(super) fn new(most: u32, bytes: Vec<u8>) -> Hybrid {
        Hybrid {
            width: Hybrid::width(most),
            bytes,
            packed: Vec::new(),
        }
    }

    /// The bits of numbers up to `most`.
    pub(super) fn width(most: u32) -> u32 {
        u32::BITS - most.leading_zeros()
    }

    /// Takes a number that comes `count` times.
    #[inline]
    pub(super) fn push(&mut self, number: u32, mut count: usize) {
        while count > 0 && !self.packed.len().is_multiple_of(GROUP) {
            self.packed.push(number);
            count -= 1;
        }
        if count < GROUP {
            self.packed.extend(std::iter::repeat_n(number, count));
            return;
        }
        self.pack();
        write_number(&mut self.bytes, (count as u64) << 1);
        let bytes = number.to_le_bytes();
        let len = self.width.div_ceil(8) as usize;
        self.bytes.extend_from_slice(&bytes[..len]);
    }

    /// All that was taken. A last group that has begun is filled up: the reader knows how many numbers there are.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let groups = self.packed.len().div_ceil(GROUP);
        self.packed.resize(groups * GROUP, 0);
        self.pack();
        self.bytes
    }

    fn pack(&mut self) {
        if self.packed.is_empty() {
            return;
        }
        let groups = (self.packed.len() / GROUP) as u64;
        write_number(&mut self.bytes, groups << 1 | 1);
        let (mut bits, mut count) = (0_u64, 0);
        for number in self.packed.drain(..) {
            bits |= u64::from(number) << count;
            count += self.width;
            while count >= 8 {
                self.bytes.push(bits.to_le_bytes()[0]);
                bits >>= 8;
                count -= 8;
            }
        }
    }
}
