//! Records in the order in which they come: in memory while they are few, else in a temporary file.

use super::record::Record;
use super::sorted::{RunWriter, Sorted};
use crate::folders::in_first;
use std::io;
use std::path::PathBuf;

/// Takes records one after the other.
pub struct Log<'f, R> {
    /// Where its file is: in the first of these that takes it.
    folders: &'f [PathBuf],
    buffer: Vec<R>,
    capacity: usize,
    writer: Option<RunWriter<R>>,
}

impl<'f, R: Record> Log<'f, R> {
    /// One that holds at most `bytes` of records in memory.
    pub fn new(folders: &'f [PathBuf], bytes: usize) -> Log<'f, R> {
        Log {
            folders,
            buffer: Vec::new(),
            capacity: bytes / R::BYTES,
            writer: None,
        }
    }

    /// Takes a record.
    ///
    /// # Errors
    /// If no folder takes the file, or it cannot be written.
    pub fn push(&mut self, record: R) -> io::Result<()> {
        if let Some(writer) = &mut self.writer {
            return writer.push(&record);
        }
        self.buffer.push(record);
        if self.buffer.len() > self.capacity {
            self.writer = Some(self.spill()?);
            self.buffer = Vec::new();
        }
        Ok(())
    }

    fn spill(&self) -> io::Result<RunWriter<R>> {
        in_first(self.folders, |folder| {
            let mut writer = RunWriter::new(folder)?;
            let pushed = self
                .buffer
                .iter()
                .try_for_each(|record| writer.push(record));
            pushed.map(|()| writer)
        })
    }

    /// All records, as they came.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(self) -> io::Result<Sorted<R>> {
        match self.writer {
            Some(writer) => writer.finish(),
            None => Ok(Sorted::Memory(self.buffer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::Reader;
    use super::*;

    #[test]
    fn records_come_out_as_they_went_in() {
        let folders = [PathBuf::from("/nowhere"), std::env::temp_dir()];
        for (count, bytes) in [(0, 80), (10, 80), (11, 80), (9000, 80)] {
            let mut log = Log::new(&folders, bytes);
            let records: Vec<(u32, u32)> = (0..count).map(|number| (number % 7, number)).collect();
            for record in &records {
                log.push(*record).unwrap();
            }
            let written = log.finish().unwrap();
            assert_eq!(matches!(written, Sorted::File { .. }), count > 10);
            let mut reader = Reader::new(&written);
            for record in records {
                assert_eq!(reader.next().unwrap(), Some(record));
            }
            assert_eq!(reader.next().unwrap(), None);
        }
        let mut log = Log::new(&folders[..1], 8);
        assert!(log.push((1, 1)).and_then(|()| log.push((2, 2))).is_err());
    }
}
