//! Records in a vector, or in a mapped temporary file in which they have the same layout.
//!
//! The file has no name and is written before it is mapped, so no other program changes or truncates it. It contains the records with the layout that they have
//! in the memory of this process, and no other process reads it. A page that the disk cannot read back ends the process with SIGBUS.
#![expect(
    unsafe_code,
    reason = "records of a mapped file are read in place, like records in memory"
)]

use memmap2::{Mmap, MmapOptions};
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::path::Path;

/// A slice of records.
pub enum Records<T> {
    /// In memory.
    Memory(Vec<T>),
    /// In a temporary file.
    Mapped(Mapped<T>),
}

/// Records in a mapped temporary file.
pub struct Mapped<T> {
    map: Mmap,
    record: PhantomData<T>,
}

impl<T> Default for Records<T> {
    fn default() -> Self {
        Records::Memory(Vec::new())
    }
}

impl<T> Deref for Records<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Records::Memory(records) => records,
            Records::Mapped(mapped) => {
                // SAFETY: a `RecordFile` created the map. It consists of whole records, which are `Copy` and contain no borrowed reference. The map
                // begins at a page boundary, which is aligned for any record.
                let (_, records, _) = unsafe { mapped.map.align_to::<T>() };
                records
            }
        }
    }
}

impl<T: Copy> Records<T> {
    /// Calls `found` with each record.
    ///
    /// # Errors
    /// If `found` fails.
    pub fn each(&self, found: impl FnMut(T) -> io::Result<()>) -> io::Result<()> {
        self.iter().copied().try_for_each(found)
    }
}

/// A temporary file to which records are appended.
pub(crate) struct RecordFile<T> {
    file: File,
    len: usize,
    record: PhantomData<T>,
}

impl<T: Copy + 'static> RecordFile<T> {
    /// Creates an empty file in `folder`.
    pub(crate) fn new(folder: &Path) -> io::Result<RecordFile<T>> {
        Ok(RecordFile {
            file: tempfile::tempfile_in(folder)?,
            len: 0,
            record: PhantomData,
        })
    }

    /// Returns the number of records in the file.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Appends records. If this fails, the records in the file are the same as before.
    pub(crate) fn append(&mut self, records: &[T]) -> io::Result<()> {
        let (file, from) = (self.file.as_raw_fd(), records.as_ptr().cast::<u8>());
        let at = self.len * size_of::<T>();
        all_bytes(size_of_val(records), |done, rest| {
            let from = from.wrapping_add(done).cast();
            // SAFETY: `rest` bytes of `records` follow `from`. Some may be padding, which only the kernel reads.
            unsafe { libc::pwrite64(file, from, rest, offset(at + done)) }
        })?;
        self.len += records.len();
        Ok(())
    }

    /// Maps the records, or reads them if the file cannot be mapped.
    pub(crate) fn finish(self) -> io::Result<Records<T>> {
        let bytes = self.len * size_of::<T>();
        if bytes == 0 {
            return Ok(Records::default());
        }
        // SAFETY: no other program can open the file, because it has no name, and it is not written any more.
        match unsafe { MmapOptions::new().len(bytes).map(&self.file) } {
            Ok(map) => Ok(Records::Mapped(Mapped {
                map,
                record: PhantomData,
            })),
            Err(_) => self.read_back(),
        }
    }

    fn read_back(&self) -> io::Result<Records<T>> {
        let mut records: Vec<T> = Vec::new();
        records
            .try_reserve_exact(self.len)
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
        let (file, to) = (self.file.as_raw_fd(), records.as_mut_ptr().cast::<u8>());
        all_bytes(self.len * size_of::<T>(), |done, rest| {
            let to = to.wrapping_add(done).cast();
            // SAFETY: the vector has room for `rest` bytes from `to` on.
            unsafe { libc::pread64(file, to, rest, offset(done)) }
        })?;
        // SAFETY: `append` wrote the bytes of all these records.
        unsafe { records.set_len(self.len) };
        Ok(Records::Memory(records))
    }
}

/// Repeats a read or write call until all bytes are done. `call` gets the number of bytes done and left, and returns the number it did, or -1.
fn all_bytes(bytes: usize, mut call: impl FnMut(usize, usize) -> isize) -> io::Result<()> {
    let mut done = 0;
    while done < bytes {
        match usize::try_from(call(done, bytes - done)) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => done += more,
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
    Ok(())
}

/// Converts an offset to the type of system calls. An offset that is too large becomes -1, which they refuse.
fn offset(at: usize) -> libc::off64_t {
    libc::off64_t::try_from(at).unwrap_or(-1)
}

#[cfg(test)]
impl<T> RecordFile<T> {
    /// Makes all further writes fail.
    pub(crate) fn refuse_more(&mut self) {
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        self.file = File::open(path).unwrap();
    }
}
