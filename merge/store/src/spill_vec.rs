//! A vector that keeps its first records in memory and moves to a temporary file when it grows. The file is mapped once it is complete.
//!
//! The file has no name and is written before it is mapped, so nobody changes or truncates it. Where no folder takes it, or the disk is full,
//! what is left stays in memory.

use crate::records::{RecordFile, Records};
use crate::temporary::{in_first, named_temporary};
use std::io;
use std::mem::{size_of, take};
use std::ops::{Deref, Range};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of records that are in memory before they go to the file.
const MEMORY_BYTES: usize = 1 << 20;
/// Bytes of records that a [`Writer`] holds.
const WRITER_BYTES: usize = 1 << 14;

/// Takes records of several threads.
pub struct Spill<'f, T> {
    /// Where its file is: in the first of these that takes it.
    folders: &'f [PathBuf],
    taken: Mutex<Taken<T>>,
}

struct Taken<T> {
    /// The file, and the folder that it is in.
    file: Option<(RecordFile<T>, PathBuf)>,
    /// Records that follow those in the file.
    memory: Vec<T>,
    /// Whether the file takes no more.
    full: bool,
}

impl<'f, T: Copy + 'static> Spill<'f, T> {
    /// One whose file is in the first of these folders that takes it.
    pub fn new(folders: &'f [PathBuf]) -> Spill<'f, T> {
        let taken = Taken {
            file: None,
            memory: Vec::new(),
            full: false,
        };
        Spill {
            folders,
            taken: Mutex::new(taken),
        }
    }

    /// Adds records one after the other; gives their numbers.
    pub fn append(&self, records: &[T]) -> Range<usize> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let filed = taken.file.as_ref().map_or(0, |(file, _)| file.len());
        let start = filed + taken.memory.len();
        taken.memory.extend_from_slice(records);
        if taken.memory.len() * size_of::<T>() >= MEMORY_BYTES && !taken.full {
            taken.full = taken.write(self.folders).is_err();
        }
        start..start + records.len()
    }

    /// All records, to be read.
    ///
    /// # Errors
    /// If the file can neither be mapped nor read; it says which folder that is in.
    pub fn finish(self) -> io::Result<Spilled<T>> {
        let taken = self.taken.into_inner();
        let mut taken = taken.unwrap_or_else(PoisonError::into_inner);
        let filed = taken.file.map(|(file, folder)| {
            let filed = file.finish();
            filed.map_err(|error| named_temporary(&folder, error))
        });
        taken.memory.shrink_to_fit();
        Ok(Spilled {
            filed: filed.transpose()?.unwrap_or_default(),
            memory: taken.memory,
        })
    }
}

impl<T: Copy + 'static> Taken<T> {
    /// Brings what is in memory to the file.
    fn write(&mut self, folders: &[PathBuf]) -> io::Result<()> {
        if let Some((file, _)) = &mut self.file {
            file.append(&self.memory)?;
        } else {
            self.file = Some(in_first(folders, |folder| {
                let mut file = RecordFile::new(folder)?;
                file.append(&self.memory)?;
                Ok((file, folder.to_owned()))
            })?);
        }
        self.memory.clear();
        Ok(())
    }
}

/// Takes the records of one list in portions.
pub struct Writer<'s, 'f, T> {
    spill: &'s Spill<'f, T>,
    records: Vec<T>,
    list: List,
}

/// Where the records of a list are, in order.
pub type List = Vec<Range<usize>>;

impl<'s, 'f, T: Copy + 'static> Writer<'s, 'f, T> {
    /// One that hands its records to `spill`.
    pub fn new(spill: &'s Spill<'f, T>) -> Writer<'s, 'f, T> {
        Writer {
            spill,
            records: Vec::new(),
            list: List::new(),
        }
    }

    /// Takes a record of the list.
    pub fn push(&mut self, record: T) {
        self.records.push(record);
        if self.records.len() * size_of::<T>() >= WRITER_BYTES {
            self.flush();
        }
    }

    /// What was pushed since the last call.
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

/// Records that were taken.
pub struct Spilled<T> {
    filed: Records<T>,
    /// Records that follow those in the file.
    memory: Vec<T>,
}

impl<T: Copy> Spilled<T> {
    /// What was added at this number, and all behind it that lies with it in the file or in memory: at least what was added together.
    pub fn rest(&self, number: usize) -> &[T] {
        match number.checked_sub(self.filed.len()) {
            Some(at) => self.memory.get(at..).unwrap_or_default(),
            None => &self.filed[number..],
        }
    }

    /// Some of them that were added together or one after the other by nobody else.
    pub fn get(&self, numbers: Range<usize>) -> &[T] {
        &self.rest(numbers.start)[..numbers.len()]
    }

    /// The records of a list.
    pub fn list<'a>(&'a self, list: &'a List) -> impl Iterator<Item = T> + 'a {
        list.iter().flat_map(|range| self.range(range.clone()))
    }

    fn range(&self, range: Range<usize>) -> impl Iterator<Item = T> + '_ {
        let middle = self.filed.len().clamp(range.start, range.end);
        let (filed, rest) = (self.get(range.start..middle), self.get(middle..range.end));
        filed.iter().chain(rest).copied()
    }
}

/// Records that were added together.
#[derive(Clone)]
pub struct Together<T> {
    of: Arc<Spilled<T>>,
    numbers: Range<usize>,
}

impl<T> Together<T> {
    /// The records with these numbers.
    pub fn new(of: &Arc<Spilled<T>>, numbers: Range<usize>) -> Together<T> {
        Together {
            of: Arc::clone(of),
            numbers,
        }
    }

    /// Leaves nothing of them.
    pub fn clear(&mut self) {
        self.numbers = 0..0;
    }
}

impl<T> From<Vec<T>> for Together<T> {
    fn from(memory: Vec<T>) -> Together<T> {
        let numbers = 0..memory.len();
        let of = Spilled {
            filed: Records::Memory(memory),
            memory: Vec::new(),
        };
        Together {
            of: Arc::new(of),
            numbers,
        }
    }
}

impl<T: Copy> Deref for Together<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.of.get(self.numbers.clone())
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
    fn records_come_out_as_they_went_in() {
        let nowhere = PathBuf::from("/nowhere");
        let folders = [nowhere, std::env::temp_dir()];
        let most = MEMORY_BYTES / size_of::<Part>();
        for count in [0, 1, 1000, most, most + 1, 3 * most + 5] {
            // Two more are added below.
            let is_too_much = count + 2 > most;
            for (folders, filed) in [(&folders[..], is_too_much), (&folders[..1], false)] {
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
                for (of, list) in lists.iter().enumerate() {
                    let numbers = (0..count).filter(|number| number % 7 % 2 == of);
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
    fn what_the_file_does_not_take_stays_in_memory() {
        let parts: Vec<Part> = (0..MEMORY_BYTES / size_of::<Part>() + 1)
            .map(part)
            .collect();
        let folders = [std::env::temp_dir()];
        let spill = Spill::new(&folders);
        let filed = spill.append(&parts);
        {
            let mut taken = spill.taken.lock().unwrap();
            let (file, _) = taken.file.as_mut().unwrap();
            assert_eq!(file.len(), parts.len());
            file.refuse_more();
            assert!(taken.memory.is_empty());
        }
        let rest = spill.append(&parts);
        let more = spill.append(&parts[..7]);
        assert!(spill.taken.lock().unwrap().full);
        let spilled = Arc::new(spill.finish().unwrap());
        assert_eq!(spilled.filed.len(), parts.len());
        for (numbers, expected) in [(filed, &parts[..]), (rest, &parts), (more, &parts[..7])] {
            assert_eq!(*Together::new(&spilled, numbers), *expected);
        }
    }
}
