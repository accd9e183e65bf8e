//! One file of a fragment: it is created, checked before each write, and closed. The host may close
//! its number or remove the file at any time.

use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::segment::preallocate::Preallocation;
use crate::sys::dir::Dir;
use crate::sys::fd::{self, Numbered, Status};
use crate::sys::fork_fds;
use sa_format::loss::Cause;
use sa_format::segment_name;

/// An open segment.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    name: String,
    file: Numbered,
    /// Last known size in bytes.
    pub(crate) size: u64,
    /// Length of the first lines in bytes.
    pub(crate) preamble_bytes: u64,
    preallocated: Preallocation,
    /// True if the last write ended inside a line.
    pub(crate) torn: bool,
    /// True if the host closed our descriptor and it is not open again yet.
    closed: bool,
}

impl Segment {
    /// Creates the file of a segment, locks it and writes its first lines. `segment` is the
    /// segment's index in its fragment, and `text` contains the first lines.
    pub(crate) fn create(
        folder: &Dir,
        stem: &str,
        segment: u32,
        text: &[u8],
        mode: u32,
    ) -> io::Result<Segment> {
        let name = segment_name(stem, segment);
        let file = folder.create_file(&name, mode, libc::O_RDWR | libc::O_APPEND)?;
        let id = fd::status(file.as_raw_fd()).map(|status| status.id);
        if let Ok(id) = id {
            let number = file.as_raw_fd();
            fork_fds::register(fork_fds::NEXT, Numbered { number, id }); // a child that is forked from now on closes it
        }
        fd::try_lock(file.as_raw_fd());
        let whole = fd::write_whole(file.as_raw_fd(), text).and(id);
        let id = whole.inspect_err(|_| {
            let _ = folder.remove(&name); // a segment without a header is useless
            fork_fds::forget(fork_fds::NEXT);
        })?;
        let number = fd::into_number(file);
        let file = Numbered { number, id };
        fork_fds::register(fork_fds::NEXT, file); // its number has changed
        Ok(Segment {
            number: segment,
            name,
            file,
            size: text.len() as u64,
            preamble_bytes: text.len() as u64,
            preallocated: Preallocation::new(file.number, segment > 0),
            torn: false,
            closed: false,
        })
    }

    /// Registers this segment as the one that the child of a fork must close.
    pub(crate) fn register_for_fork(&self) {
        fork_fds::register(fork_fds::FRAGMENT, self.file);
        fork_fds::forget(fork_fds::NEXT);
    }

    /// Returns the status of the segment's file, or `None` if our descriptor number now belongs to
    /// another file.
    fn status(&self) -> Option<Status> {
        self.file.status().ok()
    }

    /// Returns the file's size in bytes, after checking that our descriptor number still refers to
    /// it. Returns `None` if somebody removed the file from `folder`. If the host has closed the
    /// number, the first call fails and the next one opens the file again.
    pub(crate) fn current_size(&mut self, folder: &Path) -> io::Result<Option<u64>> {
        let size = match self.file.status() {
            Ok(status) => return Ok((status.links > 0).then_some(status.size)),
            Err(error) if error.raw_os_error() != Some(libc::EBADF) => Err(error),
            // The host is closing everything and is about to open its own files. Our numbers must
            // not come between theirs.
            _ if !std::mem::replace(&mut self.closed, true) => {
                Err(io::Error::from_raw_os_error(libc::EBADF))
            }
            _ => self.reopen(&folder.join(&self.name)),
        };
        match size {
            Err(error) if fd::is_gone(&error) => Ok(None),
            size => size.map(Some),
        }
    }

    /// Opens the segment's file by its path after the host closed our descriptor. Returns its size
    /// in bytes.
    fn reopen(&mut self, path: &Path) -> io::Result<u64> {
        self.file = fd::open_again(path, self.file.id)?;
        fd::try_lock(self.file.number);
        self.register_for_fork();
        self.closed = false;
        Ok(self.file.status()?.size)
    }

    /// Appends whole lines (header, lines, padding) to the file, whose size is `size` bytes. Disk
    /// blocks may be reserved up to offset `end`. If the write is cut short, tries to truncate the
    /// file to its old size.
    pub(crate) fn write(
        &mut self,
        parts: [&[u8]; 3],
        mut size: u64,
        end: u64,
    ) -> Result<(), Cause> {
        let newline: &[u8] = if self.torn { b"\n" } else { b"" };
        let [header, lines, padding] = parts;
        let parts = [newline, header, lines, padding];
        let wanted = parts.iter().map(|part| part.len()).sum::<usize>();
        // Reserving blocks takes time in which the host may close the number.
        let (number, after) = (self.file.number, size + wanted as u64);
        if self.preallocated.extend(number, size, after, end) {
            let Some(status) = self.status() else {
                self.closed = true;
                return Err(Cause::WriteError);
            };
            size = status.size;
        }
        let written = fd::write_vectored(self.file.number, parts)
            .map_err(|error| write_error_cause(&error))?;
        if written == wanted {
            self.torn = false;
            self.size = size + wanted as u64;
            return Ok(());
        }
        // Only this process writes here, so a write that was cut short can be truncated away. If
        // that fails, the next write ends the torn line.
        let is_ours = self.status().is_some();
        self.torn |= written > 0 && !(is_ours && fd::set_end(self.file.number, size).is_ok());
        Err(Cause::DiskFull)
    }

    /// Returns true if nobody has removed the segment's file, so that it still has a name.
    pub(crate) fn is_in_place(&self) -> bool {
        self.status().is_some_and(|status| status.links > 0)
    }

    /// Releases the disk blocks that were reserved beyond the file's end, because nothing more is
    /// written.
    pub(crate) fn release_blocks(&mut self) {
        if let Some(status) = self.status() {
            self.preallocated.release(self.file.number, status.size);
        }
    }

    /// Closes the segment's file and releases its reserved disk blocks, because another segment
    /// follows or the file is gone.
    pub(crate) fn close(&mut self) {
        self.release_blocks();
        self.file.close();
    }

    /// Closes the last segment of a fragment. The child of a fork then no longer has to close its
    /// descriptor.
    pub(crate) fn end(&mut self) {
        fork_fds::forget_if(fork_fds::FRAGMENT, self.file.number);
        self.close();
    }
}

/// A deleted segment that stays open until a thread has time to close it. Closing frees its blocks,
/// which may take long.
#[derive(Debug)]
pub(crate) struct UnlinkedSegment {
    file: Numbered,
    /// Its index in [`fork_fds`].
    place: usize,
}

impl UnlinkedSegment {
    /// Removes the name of a segment file from `folder`, but keeps the file open. Returns `None` if
    /// there is nothing left to close: the file could not be opened, or no index was free to
    /// register it for the child of a fork.
    pub(crate) fn remove(folder: &Dir, name: &str) -> Option<UnlinkedSegment> {
        let place = fork_fds::free_removed_index();
        let opened = place.map(|_| folder.open_file(name).ok());
        let _ = folder.remove(name); // it may already be gone
        let (file, status) = opened.flatten()?;
        let (number, id) = (fd::into_number(file), status.id);
        let (file, place) = (Numbered { number, id }, place?);
        fork_fds::register(place, file);
        Some(UnlinkedSegment { file, place })
    }

    /// Closes the deleted segment's file, and the kernel then frees its disk blocks.
    pub(crate) fn close(self) {
        self.file.close();
        fork_fds::forget(self.place);
    }
}

/// Converts the error of a failed write to the cause that loss records report: disk full, file size
/// limit, or any other write error.
pub(crate) fn write_error_cause(error: &io::Error) -> Cause {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => Cause::DiskFull,
        Some(libc::EFBIG) => Cause::FileSizeLimit,
        _ => Cause::WriteError,
    }
}
