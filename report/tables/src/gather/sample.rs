//! A value of a counter while all of them are sorted.

use trace_store::sorter::{Record, long_at, word_at};

/// A value of one series at a time. Samples have the order of their processes, times and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sample {
    pub(crate) process: u32,
    pub(crate) ts_ns: i64,
    /// In the order of the events.
    pub(crate) at: u64,
    /// The counter's name by its number.
    pub(crate) counter: u32,
    /// The bits of the value.
    pub(crate) bits: u64,
}

impl Sample {
    pub(crate) fn value(&self) -> f64 {
        f64::from_bits(self.bits)
    }
}

impl Record for Sample {
    const BYTES: usize = 32;

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.ts_ns.to_le_bytes());
        out.extend_from_slice(&self.at.to_le_bytes());
        out.extend_from_slice(&self.bits.to_le_bytes());
        out.extend_from_slice(&self.process.to_le_bytes());
        out.extend_from_slice(&self.counter.to_le_bytes());
    }

    fn load(bytes: &[u8]) -> Sample {
        Sample {
            ts_ns: long_at(bytes, 0).cast_signed(),
            at: long_at(bytes, 8),
            bits: long_at(bytes, 16),
            process: word_at(bytes, 24),
            counter: word_at(bytes, 28),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_read_as_it_was_stored() {
        let sample = Sample {
            process: 3,
            counter: 4,
            ts_ns: -5,
            at: 1 << 40,
            bits: (-2.5_f64).to_bits(),
        };
        let mut bytes = Vec::new();
        sample.store(&mut bytes);
        assert_eq!(bytes.len(), Sample::BYTES);
        assert_eq!(format!("{:?}", Sample::load(&bytes)), format!("{sample:?}"));
    }
}
