//! Records that are sorted strip by strip as they come, by many threads, and as a whole only piece by piece, when each is asked for.

use super::record::Record;
use super::sorted::{RunWriter, Sorted};
use rayon::prelude::*;
use std::io;
use std::path::Path;

/// Strips that have no more records together become one: strips of a few records each would be too many.
const STRIP: usize = 8192;
/// Records of a piece, as far as the samples tell.
const PIECE: usize = 8192;
/// Of so many records of a strip one is a sample.
const STEP: usize = 64;
/// Pieces that are sorted at once.
const AT_ONCE: usize = 64;

/// Takes strips: records in their order, of which each is another one and none joins another.
pub struct Strips<R> {
    strips: Vec<Vec<R>>,
    len: usize,
}

impl<R> Default for Strips<R> {
    fn default() -> Self {
        Strips {
            strips: Vec::new(),
            len: 0,
        }
    }
}

impl<R: Record + Sync> Strips<R> {
    /// How many records there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes a strip.
    pub fn push(&mut self, strip: Vec<R>) {
        if strip.is_empty() {
            return;
        }
        self.len += strip.len();
        self.strips.push(strip);
        // Only what is about as long becomes one, so that each record is moved a few times at most.
        while let [.., one, last] = self.strips.as_mut_slice()
            && one.len() <= 2 * last.len()
            && one.len() + last.len() <= STRIP
        {
            one.append(last);
            one.sort();
            self.strips.pop();
        }
    }

    /// All of them in their order.
    pub fn finish(self) -> Pieces<R> {
        let sampled = |strip: &Vec<R>| strip.iter().skip(STEP / 2).step_by(STEP).copied().collect();
        let mut samples: Vec<R> = self
            .strips
            .iter()
            .flat_map(|strip| -> Vec<R> { sampled(strip) })
            .collect();
        samples.par_sort_unstable();
        let firsts = samples.into_iter().skip(PIECE / STEP);
        Pieces {
            firsts: firsts.step_by(PIECE / STEP).collect(),
            ends: self
                .strips
                .iter()
                .filter_map(|strip| Some((*strip.first()?, *strip.last()?)))
                .collect(),
            strips: self.strips,
        }
    }
}

/// Records in the order of all, in pieces of about the same length, of which each is put together from the strips.
pub struct Pieces<R> {
    strips: Vec<Vec<R>>,
    /// The first and the last record of each strip.
    ends: Vec<(R, R)>,
    /// Where each piece but the first begins.
    firsts: Vec<R>,
}

impl<R: Record + Sync> Pieces<R> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self.strips.is_empty() {
            true => 0,
            false => self.firsts.len() + 1,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The records of one.
    pub fn piece(&self, number: usize) -> Vec<R> {
        let start = number
            .checked_sub(1)
            .and_then(|before| self.firsts.get(before));
        let end = self.firsts.get(number);
        let is_before = |record: &R, bound: Option<&R>, without: bool| {
            bound.map_or(without, |bound| record < bound)
        };
        let mut records = Vec::with_capacity(PIECE + PIECE / 4);
        for (strip, (first, last)) in self.strips.iter().zip(&self.ends) {
            if is_before(last, start, false) || !is_before(first, end, true) {
                continue;
            }
            let from = strip.partition_point(|record| is_before(record, start, false));
            let len = strip[from..].partition_point(|record| is_before(record, end, true));
            records.extend_from_slice(&strip[from..from + len]);
        }
        records.sort(); // which finds what is in order already
        records
    }

    /// Writes all as a run.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<Sorted<R>> {
        let mut writer = RunWriter::new(folder)?;
        for start in (0..self.len()).step_by(AT_ONCE) {
            let numbers = start..self.len().min(start + AT_ONCE);
            let pieces: Vec<Vec<R>> = numbers
                .into_par_iter()
                .map(|number| self.piece(number))
                .collect();
            let mut records = pieces.iter().flatten();
            records.try_for_each(|record| writer.push(record))?;
        }
        writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::Reader;
    use super::*;

    #[test]
    fn pieces_of_strips_are_in_order_however_long_the_strips() {
        let lens: [fn(u32) -> u32; 4] = [|_| 1, |_| 40_000, |nth| nth % 5, |nth| nth % 3 * 9000];
        for (count, of_strip) in [0, 1, 7, 50_000]
            .into_iter()
            .flat_map(|count| lens.map(|len| (count, len)))
        {
            let record = |number: u32| (number.wrapping_mul(2_654_435_761) % 1000, number);
            let (mut strips, mut start, mut expected) = (Strips::default(), 0, Vec::new());
            for nth in 0.. {
                let end = count.min(start + of_strip(nth));
                let mut strip: Vec<(u32, u32)> = (start..end).map(record).collect();
                expected.extend_from_slice(&strip);
                strip.sort_unstable();
                strips.push(strip);
                start = end;
                if start == count {
                    break;
                }
            }
            expected.sort_unstable();
            assert_eq!(strips.len(), expected.len());
            let pieces = strips.finish();
            let found: Vec<Vec<(u32, u32)>> = (0..pieces.len())
                .map(|number| pieces.piece(number))
                .collect();
            assert!(found.iter().all(|piece| piece.len() < 2 * PIECE + STRIP));
            assert_eq!(found.concat(), expected);
            let run = pieces.write(&std::env::temp_dir()).unwrap();
            let (mut reader, mut read) = (Reader::new(&run), Vec::new());
            while let Some(record) = reader.next().unwrap() {
                read.push(record);
            }
            assert_eq!(read, expected);
        }
    }
}
