//! A vector that keeps its first records in memory and moves to a temporary file when it grows. The file is mapped once it is complete.
//!
//! The file has no name and is written before it is mapped, so no other program changes or truncates it. If no folder accepts the file, or the disk is full,
//! the remaining records stay in memory.

use crate::records::{RecordFile, Records};
use crate::temporary::{named_temporary, try_folders};
use std::io;
use std::mem::{size_of, take};
use std::ops::{Deref, Range};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of records in memory before they are written to the file.
const MEMORY_BYTES: usize = 1 << 20;
/// Bytes of records that a [`Writer`] buffers.
const WRITER_BYTES: usize = 1 << 14;

/// Collects records from several threads.
pub struct Spill<'f, T> {
    /// Candidates for the folder of the file. The first one that accepts it is used.
    folders: &'f [PathBuf],
    added: Mutex<Added<T>>,
}

struct Added<T> {
    /// The file and its folder.
    file: Option<(RecordFile<T>, PathBuf)>,
    /// Records after those in the file.
    memory: Vec<T>,
    /// True if a write to the file failed, so that all further records stay in memory.
    full: bool,
}

impl<'f, T: Copy + 'static> Spill<'f, T> {
    /// Creates an empty vector. Its file will be in the first of these folders that accepts it.
    pub fn new(folders: &'f [PathBuf]) -> Spill<'f, T> {
        let added = Added {
            file: None,
            memory: Vec::new(),
            full: false,
        };
        Spill {
            folders,
            added: Mutex::new(added),
        }
    }

    /// Adds records without a gap between them. Returns their numbers.
    pub fn append(&self, records: &[T]) -> Range<usize> {
        let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        let in_file = added.file.as_ref().map_or(0, |(file, _)| file.len());
        let start = in_file + added.memory.len();
        added.memory.extend_from_slice(records);
        if added.memory.len() * size_of::<T>() >= MEMORY_BYTES && !added.full {
            added.full = added.write(self.folders).is_err();
        }
        start..start + records.len()
    }

    /// Returns all records for reading.
    ///
    /// # Errors
    /// If the file can neither be mapped nor read. The error names its folder.
    pub fn finish(self) -> io::Result<Spilled<T>> {
        let added = self.added.into_inner();
        let mut added = added.unwrap_or_else(PoisonError::into_inner);
        let filed = added.file.map(|(file, folder)| {
            let filed = file.finish();
            filed.map_err(|error| named_temporary(&folder, error))
        });
        added.memory.shrink_to_fit();
        Ok(Spilled {
            filed: filed.transpose()?.unwrap_or_default(),
            memory: added.memory,
        })
    }
}

impl<T: Copy + 'static> Added<T> {
    /// Moves the records in memory to the end of a temporary file, which it creates first if there
    /// is none. Tries `folders` in turn.
    fn write(&mut self, folders: &[PathBuf]) -> io::Result<()> {
        if let Some((file, _)) = &mut self.file {
            file.append(&self.memory)?;
        } else {
            self.file = Some(try_folders(folders, |folder| {
                let mut file = RecordFile::new(folder)?;
                file.append(&self.memory)?;
                Ok((file, folder.to_owned()))
            })?);
        }
        self.memory.clear();
        Ok(())
    }
}

/// Buffers the records of one list and adds them in portions.
pub struct Writer<'s, 'f, T> {
    spill: &'s Spill<'f, T>,
    records: Vec<T>,
    list: List,
}

/// Numbers of the records of a list, in order.
pub type List = Vec<Range<usize>>;

impl<'s, 'f, T: Copy + 'static> Writer<'s, 'f, T> {
    /// Creates a writer that adds its records to `spill`.
    pub fn new(spill: &'s Spill<'f, T>) -> Writer<'s, 'f, T> {
        Writer {
            spill,
            records: Vec::new(),
            list: List::new(),
        }
    }

    /// Adds a record to the list.
    pub fn push(&mut self, record: T) {
        self.records.push(record);
        if self.records.len() * size_of::<T>() >= WRITER_BYTES {
            self.flush();
        }
    }

    /// Ends the list, and returns the numbers of the records that were pushed since the last call.
    pub fn end(&mut self) -> List {
        self.flush();
        self.list.shrink_to_fit();
        take(&mut self.list)
    }

    fn flush(&mut self) {
        if self.records.is_empty() {
            return;
        }
        let added = self.spill.append(&self.records);
        self.records.clear();
        match self.list.last_mut() {
            Some(last) if last.end == added.start => last.end = added.end,
            _ => self.list.push(added),
        }
    }
}

/// All records of a [`Spill`], for reading.
pub struct Spilled<T> {
    filed: Records<T>,
    /// Records after those in the file.
    memory: Vec<T>,
}

impl<T: Copy> Spilled<T> {
    /// Returns the record of this number and all that follow it in the same memory: at least the ones that were added by the same call.
    pub fn rest(&self, number: usize) -> &[T] {
        match number.checked_sub(self.filed.len()) {
            Some(at) => self.memory.get(at..).unwrap_or_default(),
            None => &self.filed[number..],
        }
    }

    /// Returns the records of these numbers. They must have been added by the same call, or by consecutive calls with no others between them.
    pub fn get(&self, numbers: Range<usize>) -> &[T] {
        &self.rest(numbers.start)[..numbers.len()]
    }

    /// Iterates over the records of a list.
    pub fn list<'a>(&'a self, list: &'a List) -> impl Iterator<Item = T> + 'a {
        list.iter().flat_map(|range| self.range(range.clone()))
    }

    fn range(&self, range: Range<usize>) -> impl Iterator<Item = T> + '_ {
        let middle = self.filed.len().clamp(range.start, range.end);
        let (filed, rest) = (self.get(range.start..middle), self.get(middle..range.end));
        filed.iter().chain(rest).copied()
    }
}

/// Records that were added by the same call, as a slice that shares ownership of all records.
#[derive(Clone)]
pub struct Together<T> {
    spilled: Arc<Spilled<T>>,
    numbers: Range<usize>,
}

impl<T> Together<T> {
    /// Returns the records of these numbers.
    pub fn new(spilled: &Arc<Spilled<T>>, numbers: Range<usize>) -> Together<T> {
        Together {
            spilled: Arc::clone(spilled),
            numbers,
        }
    }

    /// Removes all records from the slice.
    pub fn clear(&mut self) {
        self.numbers = 0..0;
    }
}

impl<T> From<Vec<T>> for Together<T> {
    fn from(memory: Vec<T>) -> Together<T> {
        let numbers = 0..memory.len();
        let spilled = Spilled {
            filed: Records::Memory(memory),
            memory: Vec::new(),
        };
        Together {
            spilled: Arc::new(spilled),
            numbers,
        }
    }
}

impl<T: Copy> Deref for Together<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.spilled.get(self.numbers.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_base::part::Part;

    fn part(number: usize) -> Part {
        Part {
            start: number,
            end: 2 * number,
            trusted: number.is_multiple_of(3),
        }
    }

    #[test]
    fn records_are_read_as_they_were_added() {
        let nowhere = PathBuf::from("/nowhere");
        let folders = [nowhere, std::env::temp_dir()];
        let most = MEMORY_BYTES / size_of::<Part>();
        for count in [0, 1, 1000, most, most + 1, 3 * most + 5] {
            // Two more are added below.
            let exceeds_memory = count + 2 > most;
            for (folders, filed) in [(&folders[..], exceeds_memory), (&folders[..1], false)] {
                let spill = Spill::new(folders);
                let mut writers = [Writer::new(&spill), Writer::new(&spill)];
                for number in 0..count {
                    writers[number % 7 % 2].push(part(number));
                }
                let lists = writers.map(|mut writer| writer.end());
                let some = [part(1), part(3)];
                let together = spill.append(&some);
                let spilled = Arc::new(spill.finish().unwrap());
                assert_eq!(!spilled.filed.is_empty(), filed, "{count}");
                for (writer, list) in lists.iter().enumerate() {
                    let numbers = (0..count).filter(|number| number % 7 % 2 == writer);
                    assert!(spilled.list(list).eq(numbers.map(part)), "{count}");
                }
                assert!(spilled.rest(together.start).starts_with(&some));
                assert!(spilled.rest(together.end).is_empty());
                assert_eq!(*Together::new(&spilled, together), some);
            }
        }
        let few = Together::from(vec![part(3)]);
        assert_eq!(*few, [part(3)]);
    }

    #[test]
    fn records_stay_in_memory_if_the_file_cannot_be_written() {
        let parts: Vec<Part> = (0..MEMORY_BYTES / size_of::<Part>() + 1)
            .map(part)
            .collect();
        let folders = [std::env::temp_dir()];
        let spill = Spill::new(&folders);
        let filed = spill.append(&parts);
        {
            let mut added = spill.added.lock().unwrap();
            let (file, _) = added.file.as_mut().unwrap();
            assert_eq!(file.len(), parts.len());
            file.refuse_more();
            assert!(added.memory.is_empty());
        }
        let rest = spill.append(&parts);
        let more = spill.append(&parts[..7]);
        assert!(spill.added.lock().unwrap().full);
        let spilled = Arc::new(spill.finish().unwrap());
        assert_eq!(spilled.filed.len(), parts.len());
        for (numbers, expected) in [(filed, &parts[..]), (rest, &parts), (more, &parts[..7])] {
            assert_eq!(*Together::new(&spilled, numbers), *expected);
        }
    }
}
