//! Parquet's [hybrid of runs and packed numbers](https://parquet.apache.org/docs/file-format/data-pages/encodings/#RLE). A repeated number is stored once with a
//! count. Other numbers are packed with as many bits as the largest one needs.

use crate::gather::entry::write_number;

/// Count of numbers that are packed together.
const GROUP: usize = 8;

/// An encoder of numbers with a fixed width.
pub(super) struct Hybrid {
    /// Number of bits of each number.
    width: u32,
    bytes: Vec<u8>,
    /// Numbers to pack: complete groups and an incomplete one.
    unpacked: Vec<u32>,
}

impl Hybrid {
    /// Creates an encoder for numbers up to `most`, which appends to `bytes`.
    pub(super) fn new(most: u32, bytes: Vec<u8>) -> Hybrid {
        Hybrid {
            width: Hybrid::width(most),
            bytes,
            unpacked: Vec::new(),
        }
    }

    /// Returns the number of bits for numbers up to `most`.
    pub(super) fn width(most: u32) -> u32 {
        u32::BITS - most.leading_zeros()
    }

    /// Adds `number` `count` times. Eight or more repetitions are stored once, with a count.
    #[inline]
    pub(super) fn push(&mut self, number: u32, mut count: usize) {
        while count > 0 && !self.unpacked.len().is_multiple_of(GROUP) {
            self.unpacked.push(number);
            count -= 1;
        }
        if count < GROUP {
            self.unpacked.extend(std::iter::repeat_n(number, count));
            return;
        }
        self.pack();
        write_number(&mut self.bytes, (count as u64) << 1);
        let bytes = number.to_le_bytes();
        let len = self.width.div_ceil(8) as usize;
        self.bytes.extend_from_slice(&bytes[..len]);
    }

    /// Returns the bytes of all numbers. An incomplete group of eight is padded with zeros, because
    /// readers know how many numbers there are.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let groups = self.unpacked.len().div_ceil(GROUP);
        self.unpacked.resize(groups * GROUP, 0);
        self.pack();
        self.bytes
    }

    fn pack(&mut self) {
        if self.unpacked.is_empty() {
            return;
        }
        let groups = (self.unpacked.len() / GROUP) as u64;
        write_number(&mut self.bytes, groups << 1 | 1);
        let (mut bits, mut count) = (0_u64, 0);
        for number in self.unpacked.drain(..) {
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
