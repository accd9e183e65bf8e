//! A vector that keeps its first records in memory and moves to a temporary file when it grows. The file is mapped once it is complete.
//!
//! The file has no name and is written before it is mapped, so nobody changes or truncates it. Where no folder takes it, or the disk is full,
//! what is left stays in memory.
#![expect(
    unsafe_code,
    reason = "records of a mapped file are read where they are, as those in memory"
)]

use crate::temporary::{in_first, named_temporary};
use memmap2::Mmap;
use std::fs::File;
use std::io;
use std::mem::{offset_of, size_of, take};
use std::ops::{Deref, Range};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use trace_base::part::Part;

/// Bytes of records that are in memory before they go to the file.
const MEMORY_BYTES: usize = 1 << 20;
/// Bytes of records that a [`Writer`] holds.
const WRITER_BYTES: usize = 1 << 14;

/// A record that can be read where it lies in a file.
///
/// # Safety
/// [`Flat::store`] must append exactly the bytes that the record has in memory; those of its padding may be any.
pub unsafe trait Flat: Copy {
    /// Appends its bytes.
    fn store(&self, bytes: &mut Vec<u8>);
    /// Reads what was stored.
    fn load(bytes: &[u8]) -> Self;

    /// Appends the bytes of several.
    fn store_all(records: &[Self], bytes: &mut Vec<u8>) {
        records.iter().for_each(|record| record.store(bytes));
    }
}

// SAFETY: `start`, `end` and `trusted` in this order without gaps, as asserted below, and then padding; `true` is one byte that is 1.
unsafe impl Flat for Part {
    fn store(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.start.to_ne_bytes());
        bytes.extend_from_slice(&self.end.to_ne_bytes());
        bytes.push(u8::from(self.trusted));
        bytes.resize(bytes.len() + size_of::<usize>() - 1, 0);
    }

    fn load(bytes: &[u8]) -> Part {
        let word = |nth: usize| {
            let word = bytes[nth * size_of::<usize>()..].first_chunk().copied();
            word.map_or(0, usize::from_ne_bytes)
        };
        Part {
            start: word(0),
            end: word(1),
            trusted: bytes[2 * size_of::<usize>()] == 1,
        }
    }
}

const _: () = assert!(
    offset_of!(Part, start) == 0
        && offset_of!(Part, end) == size_of::<usize>()
        && offset_of!(Part, trusted) == 2 * size_of::<usize>()
        && size_of::<Part>() == 3 * size_of::<usize>()
);

// SAFETY: an array of numbers, one after the other.
unsafe impl<const N: usize> Flat for [u64; N] {
    fn store(&self, bytes: &mut Vec<u8>) {
        let words = self.iter().flat_map(|word| word.to_ne_bytes());
        bytes.extend(words);
    }

    fn load(bytes: &[u8]) -> [u64; N] {
        std::array::from_fn(|nth| {
            let word = bytes[nth * size_of::<u64>()..].first_chunk().copied();
            word.map_or(0, u64::from_ne_bytes)
        })
    }
}

// SAFETY: a byte.
unsafe impl Flat for u8 {
    fn store(&self, bytes: &mut Vec<u8>) {
        bytes.push(*self);
    }

    fn load(bytes: &[u8]) -> u8 {
        bytes[0]
    }

    fn store_all(records: &[u8], bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(records);
    }
}

/// Takes records of several threads.
pub struct Spill<'f, T> {
    /// Where its file is: in the first of these that takes it.
    folders: &'f [PathBuf],
    taken: Mutex<Taken<T>>,
}

struct Taken<T> {
    /// The file, and the folder that it is in.
    file: Option<(File, PathBuf)>,
    /// Records in the file; the others follow them.
    filed: usize,
    memory: Vec<T>,
    /// Whether the file takes no more.
    full: bool,
}

impl<'f, T: Flat> Spill<'f, T> {
    /// One whose file is in the first of these folders that takes it.
    pub fn new(folders: &'f [PathBuf]) -> Spill<'f, T> {
        let taken = Taken {
            file: None,
            filed: 0,
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
        let start = taken.filed + taken.memory.len();
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
        let map = taken.map()?;
        taken.memory.shrink_to_fit();
        Ok(Spilled {
            map,
            filed: taken.filed,
            memory: taken.memory,
        })
    }
}

impl<T: Flat> Taken<T> {
    /// Maps the file, if there is one; what cannot be mapped is read into memory.
    fn map(&mut self) -> io::Result<Option<Mmap>> {
        let Some((file, folder)) = self.file.take() else {
            return Ok(None);
        };
        // SAFETY: the file has no name, and nobody writes it any more (module doc).
        if let Ok(map) = unsafe { Mmap::map(&file) } {
            return Ok(Some(map));
        }
        let read = self.read_back(&file);
        read.map_err(|error| named_temporary(&folder, error))?;
        Ok(None)
    }

    /// Brings all that is in the file back to memory.
    fn read_back(&mut self, file: &File) -> io::Result<()> {
        let mut bytes = vec![0; self.filed * size_of::<T>()];
        file.read_exact_at(&mut bytes, 0)?;
        let filed = bytes.chunks_exact(size_of::<T>()).map(T::load);
        self.memory = filed.chain(self.memory.drain(..)).collect();
        self.filed = 0;
        Ok(())
    }

    /// Brings what is in memory to the file.
    fn write(&mut self, folders: &[PathBuf]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(self.memory.len() * size_of::<T>());
        T::store_all(&self.memory, &mut bytes);
        let at = self.filed as u64 * size_of::<T>() as u64;
        if let Some((file, _)) = &self.file {
            file.write_all_at(&bytes, at)?;
        } else {
            self.file = Some(in_first(folders, |folder| begun(folder, &bytes))?);
        }
        self.filed += self.memory.len();
        self.memory.clear();
        Ok(())
    }
}

/// A file with these bytes.
fn begun(folder: &Path, bytes: &[u8]) -> io::Result<(File, PathBuf)> {
    let file = tempfile::tempfile_in(folder)?;
    file.write_all_at(bytes, 0)?;
    Ok((file, folder.to_owned()))
}

/// Takes the records of one list in portions.
pub struct Writer<'s, 'f, T> {
    spill: &'s Spill<'f, T>,
    records: Vec<T>,
    list: List,
}

/// Where the records of a list are, in order.
pub type List = Vec<Range<usize>>;

impl<'s, 'f, T: Flat> Writer<'s, 'f, T> {
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
    map: Option<Mmap>,
    /// Records in the file; the others follow them.
    filed: usize,
    memory: Vec<T>,
}

impl<T: Flat> Spilled<T> {
    /// What was added at this number, and all behind it that lies with it in the file or in memory: at least what was added together.
    pub fn rest(&self, number: usize) -> &[T] {
        let end = match number < self.filed {
            true => self.filed,
            false => self.filed + self.memory.len(),
        };
        self.get(number.min(end)..end)
    }

    /// Some of them that were added together or one after the other by nobody else.
    pub fn get(&self, numbers: Range<usize>) -> &[T] {
        if numbers.start >= self.filed {
            return &self.memory[numbers.start - self.filed..numbers.end - self.filed];
        }
        let map = self.map.as_deref().unwrap_or_default();
        let bytes = &map[numbers.start * size_of::<T>()..numbers.end * size_of::<T>()];
        // SAFETY: the bytes are those of records (`Flat`), which were written one behind the other from the start of the file, and a mapping
        // starts at a page.
        let (_, records, _) = unsafe { bytes.align_to::<T>() };
        records
    }

    /// The records of a list.
    pub fn list<'a>(&'a self, list: &'a List) -> impl Iterator<Item = T> + 'a {
        list.iter().flat_map(|range| self.range(range.clone()))
    }

    fn range(&self, range: Range<usize>) -> impl Iterator<Item = T> + '_ {
        let middle = self.filed.clamp(range.start, range.end);
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
            map: None,
            filed: 0,
            memory,
        };
        Together {
            of: Arc::new(of),
            numbers,
        }
    }
}

impl<T: Flat> Deref for Together<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.of.get(self.numbers.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
                assert_eq!(spilled.map.is_some(), filed, "{count}");
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
            assert_eq!((taken.filed, taken.memory.len()), (parts.len(), 0));
            // Nothing can be written to it any more.
            let (file, folder) = taken.file.take().unwrap();
            let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
            taken.file = Some((File::open(path).unwrap(), folder));
        }
        let rest = spill.append(&parts);
        let more = spill.append(&parts[..7]);
        assert!(spill.taken.lock().unwrap().full);
        let spilled = Arc::new(spill.finish().unwrap());
        assert!(spilled.map.is_some() && spilled.filed == parts.len());
        for (numbers, expected) in [(filed, &parts[..]), (rest, &parts), (more, &parts[..7])] {
            assert_eq!(*Together::new(&spilled, numbers), *expected);
        }
    }

    #[test]
    fn what_cannot_be_mapped_is_read() {
        let parts: Vec<Part> = (0..100).map(part).collect();
        let (filed, memory) = parts.split_at(60);
        let mut bytes = Vec::new();
        filed.iter().for_each(|part| part.store(&mut bytes));
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        let mut taken = Taken {
            file: None,
            filed: filed.len(),
            memory: memory.to_vec(),
            full: true,
        };
        taken.read_back(&file).unwrap();
        assert!(taken.filed == 0 && taken.memory == parts);
        let stretch: [u64; 7] = [1, 2, 3, u64::MAX, 5, 6, 7];
        let mut bytes = Vec::new();
        stretch.store(&mut bytes);
        assert_eq!(<[u64; 7]>::load(&bytes), stretch);
    }
}
