//! Values with the numbers of names, devices or other things → a distribution for each number.

use crate::statistics::quantiles::Quantiles;
use std::io;
use trace_store::sorter::{Record, Sorter};

/// Sorts values beyond memory, such as the durations of each name.
pub(crate) struct ValueSorter<'f> {
    sorter: Sorter<'f, ValueRecord>,
    /// The number of values of each thing.
    counts: Vec<usize>,
}

impl<'f> ValueSorter<'f> {
    pub(crate) fn new(sorter: Sorter<'f, ValueRecord>) -> ValueSorter<'f> {
        ValueSorter {
            sorter,
            counts: Vec::new(),
        }
    }

    /// Takes a value of the thing with this number.
    pub(crate) fn push(&mut self, of: u32, ns: i64) -> io::Result<()> {
        let number = of as usize;
        if number >= self.counts.len() {
            self.counts.resize(number + 1, 0);
        }
        self.counts[number] += 1;
        self.sorter.push(ValueRecord { of: of.into(), ns })
    }

    /// Returns the distributions by number, up to the last number that has a value.
    pub(crate) fn finish(self) -> io::Result<Vec<Quantiles>> {
        let sorted = self.sorter.finish()?;
        let mut rest = &sorted[..];
        let distribution = |count: usize| {
            let (values, others) = rest.split_at(count);
            rest = others;
            Quantiles::of_sorted(values, |value| value.ns)
        };
        Ok(self.counts.into_iter().map(distribution).collect())
    }
}

/// A time that belongs to something: a duration to a name, the time of a token to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ValueRecord {
    pub(crate) of: u64,
    pub(crate) ns: i64,
}

impl Record for ValueRecord {}
