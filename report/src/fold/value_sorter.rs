//! Computes a distribution of values for each name, device or other numbered thing.

use crate::statistics::quantiles::Quantiles;
use std::io;
use trace_store::sorter::{Record, Sorter};

/// Sorts values by their number, in temporary files if necessary. An example is the durations of each name.
pub(crate) struct ValueSorter<'f> {
    sorter: Sorter<'f, ValueRecord>,
    /// Number of values for each number.
    counts: Vec<usize>,
}

impl<'f> ValueSorter<'f> {
    pub(crate) fn new(sorter: Sorter<'f, ValueRecord>) -> ValueSorter<'f> {
        ValueSorter {
            sorter,
            counts: Vec::new(),
        }
    }

    /// Adds a value for this number.
    pub(crate) fn push(&mut self, number: u32, ns: i64) -> io::Result<()> {
        let index = number as usize;
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
        let number = number.into();
        self.sorter.push(ValueRecord { number, ns })
    }

    /// Returns the distributions by number, up to the highest number that has a value.
    pub(crate) fn finish(self) -> io::Result<Vec<Quantiles>> {
        let sorted = self.sorter.finish()?;
        let mut rest = &sorted[..];
        let distribution = |count: usize| {
            let (values, others) = rest.split_at(count);
            rest = others;
            Quantiles::from_sorted(values, |value| value.ns)
        };
        Ok(self.counts.into_iter().map(distribution).collect())
    }
}

/// A time that belongs to a numbered thing: a duration to a name, or the time of a token to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ValueRecord {
    pub(crate) number: u64,
    pub(crate) ns: i64,
}

impl Record for ValueRecord {}
