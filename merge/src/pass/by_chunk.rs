//! What is known of single events, found again by their chunk.

use crate::Error;
use crate::pass::chunk::EventRef;
use crate::store::sorter::{Record, Sorted};
use std::cmp::Ordering;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Says something of one event. Its order begins with which event that is.
pub(crate) trait OfEvent: Record {
    /// The event.
    fn at(&self) -> EventRef;
}

/// Records of events in the order of these, and where those of each chunk begin.
#[derive(Default)]
pub(crate) struct ByChunk<R> {
    records: Sorted<R>,
    /// One more than there are chunks; empty if there are no records.
    starts: Vec<u64>,
    /// Where the file is, if there is one.
    folder: PathBuf,
}

impl<R: OfEvent> ByChunk<R> {
    /// Records of events in so many chunks, with their file in `folder`.
    pub(crate) fn new(records: Sorted<R>, chunks: usize, folder: &Path) -> io::Result<ByChunk<R>> {
        let mut starts = vec![0; chunks + 1];
        records.each(|one| {
            let chunk = usize::try_from(one.at().chunk).map_err(io::Error::other)?;
            starts[chunk + 1] += 1;
            Ok(())
        })?;
        for chunk in 0..chunks {
            starts[chunk + 1] += starts[chunk];
        }
        Ok(ByChunk {
            records,
            starts,
            folder: folder.to_owned(),
        })
    }

    /// The records of one chunk's events. An error says in itself where the file is.
    pub(crate) fn of_chunk(&self, number: usize) -> io::Result<OfChunk<R>> {
        let mut records = Vec::new();
        self.read(self.range(number), &mut records)?;
        Ok(OfChunk {
            left: records.into_iter().peekable(),
            nth: 0,
        })
    }

    /// Returns the record of one event. An error says in itself where the file is.
    pub(crate) fn find(&self, at: EventRef) -> io::Result<Option<R>> {
        let mut left = self.range(usize::try_from(at.chunk).map_err(io::Error::other)?);
        let mut record = Vec::new();
        while !left.is_empty() {
            let middle = left.start.midpoint(left.end);
            record.clear();
            self.read(middle..middle + 1, &mut record)?;
            match record.first().map(|record| (record.at().cmp(&at), *record)) {
                Some((Ordering::Less, _)) => left.start = middle + 1,
                Some((Ordering::Equal, record)) => return Ok(Some(record)),
                _ => left.end = middle,
            }
        }
        Ok(None)
    }

    /// Returns which records are those of one chunk.
    fn range(&self, number: usize) -> Range<u64> {
        match self.starts.get(number..number + 2) {
            Some([start, end]) => *start..*end,
            _ => 0..0,
        }
    }

    fn read(&self, range: Range<u64>, records: &mut Vec<R>) -> io::Result<()> {
        let named = |error| io::Error::other(Error::of_temporary(&self.folder, error));
        self.records.read(range, records).map_err(named)
    }
}

/// The records of a chunk's events, asked for in the order of these.
pub(crate) struct OfChunk<R> {
    left: std::iter::Peekable<std::vec::IntoIter<R>>,
    nth: u32,
}

impl<R: OfEvent> OfChunk<R> {
    /// Whether there are none left.
    pub(crate) fn is_empty(&self) -> bool {
        self.left.len() == 0
    }

    /// The record of the next event, if it has one.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<R> {
        let nth = self.nth;
        self.nth += 1;
        self.left.next_if(|next| next.at().nth == nth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sorter::word_at;

    /// An event and what is said of it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct TestRecord(EventRef, u32);

    impl OfEvent for TestRecord {
        fn at(&self) -> EventRef {
            self.0
        }
    }

    impl Record for TestRecord {
        const BYTES: usize = 12;

        fn store(&self, out: &mut Vec<u8>) {
            for word in [self.0.chunk, self.0.nth, self.1] {
                out.extend_from_slice(&word.to_le_bytes());
            }
        }

        fn load(bytes: &[u8]) -> Self {
            let [chunk, nth, said] = [0, 4, 8].map(|at| word_at(bytes, at));
            TestRecord(EventRef { chunk, nth }, said)
        }
    }

    #[test]
    fn records_are_found_by_chunk_and_number() {
        let one = |chunk, nth, said| TestRecord(EventRef { chunk, nth }, said);
        let all = vec![one(0, 3, 1), one(2, 0, 2), one(2, 1, 1), one(2, 9, 2)];
        let by_chunk = ByChunk::new(Sorted::Memory(all), 3, Path::new("/")).unwrap();
        let said = |chunk: usize| {
            let mut of_chunk = by_chunk.of_chunk(chunk).unwrap();
            let said: Vec<u32> = (0..11)
                .map(|_| of_chunk.next().map_or(0, |said| said.1))
                .collect();
            assert!(of_chunk.is_empty());
            said
        };
        assert_eq!(said(0), [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(said(1), [0; 11]);
        assert_eq!(said(2), [2, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
        assert_eq!(said(3), [0; 11]);
        let find = |chunk, nth| {
            let found = by_chunk.find(EventRef { chunk, nth }).unwrap();
            found.map_or(0, |said| said.1)
        };
        assert_eq!([0, 3, 4].map(|nth| find(0, nth)), [0, 1, 0]);
        assert_eq!([0, 1, 2, 9, 10].map(|nth| find(2, nth)), [2, 1, 0, 2, 0]);
        assert_eq!([1, 3, 9].map(|chunk| find(chunk, 0)), [0; 3]);
    }

    #[test]
    fn a_file_that_cannot_be_read_again_is_named() {
        let by_chunk = ByChunk::<TestRecord> {
            records: Sorted::File {
                file: tempfile::tempfile().unwrap(),
                len: 3,
            },
            starts: vec![0, 3],
            folder: "/scratch".into(),
        };
        let Err(error) = by_chunk.of_chunk(0) else {
            panic!("an empty file was read");
        };
        let error = Error::of_write(Path::new("trace.json"), error);
        let Error::Temporary { folder, source } = error else {
            panic!("{error}");
        };
        assert_eq!(folder, Path::new("/scratch"));
        assert_eq!(source.kind(), io::ErrorKind::UnexpectedEof);
    }
}
