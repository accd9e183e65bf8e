//! The fragment file: header, whole-block appends, and what happens when the host, the disk or a limit gets in the way.

use std::ffi::OsStr;
use std::io::{self, BufRead};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ahead::Ahead;
use crate::clock;
use crate::config::RunPaths;
use crate::format::control::SwitchCause;
use crate::format::{
    ANCHOR_RECORD, FRAGMENT_PREFIX, FRAGMENT_RECORD, FRAGMENT_SUFFIX, FRAGMENTS_DIR,
    FragmentHeader, Metadata, RING_SUFFIX, RingKind,
};
use crate::loss::{Cause, is_metadata};
use crate::sys::dir::Dir;
use crate::sys::fd::{self, FileId};
use crate::tally::Tally;
use crate::wait;

/// How long a failed write is not repeated.
const RETRY_NS: u64 = 1_000_000_000;
/// The same where the descriptor was the trouble: the host has just closed it, and needs a moment to open its own files.
const SOON_NS: u64 = 20_000_000;

/// The fragment of this process.
#[derive(Debug)]
pub(crate) struct Fragment {
    path: PathBuf,
    place: Mutex<Place>,
    /// What is counted while it is written, if a control asks for a number. Not in the place: whoever has that may wait for the disk.
    tally: Mutex<Option<Tally>>,
}

/// The open file. Whoever holds the lock on it writes.
#[derive(Debug)]
pub(crate) struct Place {
    folder: Folder,
    stem: String,
    mode: u32,
    header: FragmentHeader,
    file: RawFd,
    id: FileId,
    size: u64,
    ahead: Ahead,
    /// The last write ended inside a line.
    torn: bool,
    failed: Option<(u64, Cause)>,
    /// Fragments that somebody removed, whose events are not told yet.
    removed: Vec<Removed>,
    /// The host closed our descriptor, and it is not open again yet.
    closed: bool,
}

/// Where the fragments are; what may stand there later is trusted as little as at the start.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    /// The run directory, which the user named.
    directory: PathBuf,
    /// The folder in it, if it is not the directory itself.
    name: Option<&'static str>,
}

impl Folder {
    /// The folder that a configuration names.
    pub(crate) fn of(paths: &RunPaths) -> Folder {
        Folder {
            directory: paths.directory.clone(),
            name: (paths.fragments != paths.directory).then_some(FRAGMENTS_DIR),
        }
    }

    /// Opens it; a link in its place, or another user's folder, is refused.
    fn open(&self) -> io::Result<Dir> {
        let directory = Dir::open_path(&self.directory)?;
        match self.name {
            Some(name) => directory.open_folder(name),
            None => Ok(directory),
        }
    }

    /// The path of a fragment in it.
    fn file(&self, stem: &str) -> PathBuf {
        let folder = match self.name {
            Some(name) => self.directory.join(name),
            None => self.directory.clone(),
        };
        folder.join(format!("{stem}{FRAGMENT_SUFFIX}"))
    }

    /// Opens it, making what is missing.
    fn create(&self, mode: u32) -> io::Result<Dir> {
        let directory = Dir::create_path(&self.directory, mode)?;
        match self.name {
            Some(name) => directory.create_folder(name, mode),
            None => Ok(directory),
        }
    }
}

/// Names a fragment and its ring so that neither exists yet, and makes both: the ring first and laid out, so that no fragment ever names
/// a ring that cannot be read.
pub(crate) fn create_files<R>(
    folder: &Dir,
    place: &Folder,
    header: &FragmentHeader,
    mode: u32,
    lay_out: impl Fn(OwnedFd, RingKind) -> io::Result<R>,
) -> io::Result<(Fragment, R)> {
    let short = format!("{FRAGMENT_PREFIX}{}", header.pid);
    let long = format!("{short}.{}", header.nonce);
    let make = |stem: &str| {
        let (file, kind) = create_ring(folder, stem, mode)?;
        let made = lay_out(file, kind).and_then(|ring| {
            let fragment = create_fragment(folder, place, stem, header, kind, mode)?;
            Ok((fragment, ring))
        });
        made.inspect_err(|_| remove_ring(folder, stem, kind))
    };
    match make(&short) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => make(&long),
        other => other,
    }
}

/// Whether the file system of an open file can hold rings. Where it cannot, they lie in memory, and what was not flushed is lost in a kill.
pub fn holds_rings(file: &std::fs::File) -> bool {
    fd::holds_shared_maps(file.as_raw_fd())
}

fn create_ring(folder: &Dir, stem: &str, mode: u32) -> io::Result<(OwnedFd, RingKind)> {
    let name = format!("{stem}{RING_SUFFIX}");
    let file = folder.create_file(&name, mode, libc::O_RDWR)?;
    if fd::holds_shared_maps(file.as_raw_fd()) {
        return Ok((file, RingKind::File));
    }
    remove_ring(folder, stem, RingKind::File);
    Ok((fd::memory_file()?, RingKind::Heap))
}

fn remove_ring(folder: &Dir, stem: &str, kind: RingKind) {
    if kind == RingKind::File {
        let _ = folder.remove(OsStr::new(&format!("{stem}{RING_SUFFIX}"))); // gone already is as good
    }
}

fn create_fragment(
    folder: &Dir,
    place: &Folder,
    stem: &str,
    header: &FragmentHeader,
    kind: RingKind,
    mode: u32,
) -> io::Result<Fragment> {
    let header = FragmentHeader {
        ring: kind,
        ..header.clone()
    };
    let file = create_locked(folder, stem, &header, mode)?;
    let id = fd::status(file.as_raw_fd())?.id;
    let (path, stem) = (folder.path(), stem.to_owned());
    let (folder, file) = (place.clone(), fd::into_number(file));
    Ok(Fragment {
        path: path.join(format!("{stem}{FRAGMENT_SUFFIX}")),
        place: Mutex::new(Place {
            folder,
            stem,
            mode,
            header,
            file,
            id,
            size: 0,
            ahead: Ahead::of(file),
            torn: false,
            failed: None,
            removed: Vec::new(),
            closed: false,
        }),
        tally: Mutex::default(),
    })
}

/// Makes the file, locks it and writes header and first anchor in one write of less than a page.
fn create_locked(
    folder: &Dir,
    stem: &str,
    header: &FragmentHeader,
    mode: u32,
) -> io::Result<OwnedFd> {
    let name = format!("{stem}{FRAGMENT_SUFFIX}");
    let file = folder.create_file(&name, mode, libc::O_RDWR | libc::O_APPEND)?;
    fd::try_lock(file.as_raw_fd());
    let text = [
        metadata_line(header.pid, FRAGMENT_RECORD, header),
        anchor_line(header.pid),
    ]
    .concat();
    let limited = text.len() as u64 > fd::file_size_limit();
    let written = if limited {
        Err(io::Error::from_raw_os_error(libc::EFBIG))
    } else {
        fd::write_vectored(file.as_raw_fd(), &[&text])
    };
    match written {
        Ok(written) if written == text.len() => Ok(file),
        other => {
            let _ = folder.remove(OsStr::new(&name)); // a fragment without a header helps nobody
            Err(other
                .err()
                .unwrap_or_else(|| io::Error::from_raw_os_error(libc::ENOSPC)))
        }
    }
}

/// Makes a metadata line.
pub(crate) fn metadata_line<A: serde::Serialize>(pid: u32, name: &str, args: A) -> Vec<u8> {
    let mut line = serde_json::to_vec(&Metadata::new(pid, name, args)).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Makes an anchor line of now.
pub(crate) fn anchor_line(pid: u32) -> Vec<u8> {
    metadata_line(pid, ANCHOR_RECORD, clock::anchor())
}

impl Fragment {
    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for the file, without end: the writer may hang in a file system that does. For the helper only.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the file until `end_ns`. The writer may even be this very thread, below a signal handler.
    pub(crate) fn lock_until(&self, end_ns: u64) -> Option<MutexGuard<'_, Place>> {
        wait::lock_until(&self.place, end_ns)
    }

    /// Counts from now on what a control asks for, or nothing.
    pub(crate) fn count(&self, tally: Option<Tally>) {
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner) = tally;
    }

    /// Counts the lines of a block that was written.
    pub(crate) fn add_to_count(&self, lines: &[u8]) {
        if let Some(tally) = wait::try_lock(&self.tally)
            .as_mut()
            .and_then(|tally| tally.as_mut())
        {
            tally.add(lines);
        }
    }

    /// Which number that is counted was reached.
    pub(crate) fn reached(&self) -> Option<SwitchCause> {
        wait::try_lock(&self.tally)?.as_ref()?.reached()
    }

    /// Takes the file if nobody is writing.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Place>> {
        wait::try_lock(&self.place)
    }
}

impl Place {
    /// The descriptor number and what it must refer to.
    pub(crate) fn descriptor(&self) -> (RawFd, FileId) {
        (self.file, self.id)
    }

    /// The file's size as far as is known.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Appends a block: its header, its lines, and what fills it up. What was cut short is repeated once as a whole.
    pub(crate) fn append(
        &mut self,
        header: &[u8],
        lines: &[u8],
        padding: &[u8],
    ) -> Result<(), Cause> {
        if let Some((at, cause)) = self.failed
            && clock::now_ns() < at + retry_ns(cause)
        {
            return Err(cause);
        }
        let outcome = self.append_whole(header, lines, padding).or_else(|cause| {
            if self.torn {
                self.append_whole(header, lines, padding)
            } else {
                Err(cause)
            }
        });
        self.failed = outcome.err().map(|cause| (clock::now_ns(), cause));
        outcome
    }

    fn append_whole(&mut self, header: &[u8], lines: &[u8], padding: &[u8]) -> Result<(), Cause> {
        let newline: &[u8] = if self.torn { b"\n" } else { b"" };
        let parts = [newline, header, lines, padding];
        let wanted = parts.iter().map(|part| part.len()).sum::<usize>();
        let limit = fd::file_size_limit();
        // Nothing stands between this look and the write: the host may close the number and open its own file at any time.
        let mut size = self.look().map_err(|error| cause_of(&error))?;
        if size.saturating_add(wanted as u64) > limit {
            return Err(Cause::FileSizeLimit);
        }
        let reach = size + wanted as u64;
        if self.ahead.reach(self.file, size, reach, limit) {
            size = self.look().map_err(|error| cause_of(&error))?;
        }
        let written = loop {
            match fd::write_vectored(self.file, &parts) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other.map_err(|error| cause_of(&error))?,
            }
        };
        if written == wanted {
            self.torn = false;
            self.size = size + wanted as u64;
            return Ok(());
        }
        // Only this process writes here: what was cut short can be taken back. Where it cannot, the next write ends the torn line.
        let ours = fd::status(self.file).is_ok_and(|status| status.id == self.id);
        self.torn |= written > 0 && !(ours && fd::shorten(self.file, size).is_ok());
        Err(Cause::DiskFull)
    }

    /// The file's size, after making sure that the number is still our file and the file still has its name; else opens it again or starts another.
    fn look(&mut self) -> io::Result<u64> {
        let status = fd::status(self.file);
        let ours = status.as_ref().is_ok_and(|status| status.id == self.id);
        match status {
            Ok(status) if ours && status.links > 0 => return Ok(status.size),
            // The host is closing everything, and about to open its own: our numbers must not come between them.
            _ if !ours && !std::mem::replace(&mut self.closed, true) => {
                return Err(io::Error::from_raw_os_error(libc::EBADF));
            }
            _ if !ours && self.reopen().is_ok() => self.closed = false,
            _ => self.restart(ours)?,
        }
        match fd::status(self.file)? {
            status if status.id == self.id => Ok(status.size),
            _ => Err(io::Error::from_raw_os_error(libc::EBADF)),
        }
    }

    /// Opens the file by its path after the host closed our descriptor.
    fn reopen(&mut self) -> io::Result<()> {
        self.file = fd::open_again(&self.folder.file(&self.stem), self.id)?;
        fd::try_lock(self.file);
        crate::held::hold(crate::held::FRAGMENT, self.file, self.id);
        Ok(())
    }

    /// Starts the fragment anew after somebody removed it, counting what was in it.
    fn restart(&mut self, open: bool) -> io::Result<()> {
        let folder = self.folder.create(crate::run::folder_mode(self.mode))?;
        let file = create_locked(&folder, &self.stem, &self.header, self.mode)?;
        if open {
            self.removed.push(Removed {
                file: self.file,
                id: self.id,
            });
        }
        self.id = fd::status(file.as_raw_fd())?.id;
        self.file = fd::into_number(file);
        self.torn = false;
        self.size = 0;
        self.ahead = Ahead::of(self.file);
        crate::held::hold(crate::held::FRAGMENT, self.file, self.id);
        Ok(())
    }

    /// Takes the removed fragments; counting what was in them needs no lock.
    pub(crate) fn take_removed(&mut self) -> Vec<Removed> {
        std::mem::take(&mut self.removed)
    }

    /// Why the last write failed, if it did.
    pub(crate) fn failure(&self) -> Option<Cause> {
        self.failed.map(|(_, cause)| cause)
    }

    /// Whether the file has the name it was made with.
    pub(crate) fn is_in_place(&self) -> bool {
        fd::status(self.file).is_ok_and(|status| status.id == self.id && status.links > 0)
    }

    /// Gives back the blocks beyond the file's end: nothing more is written.
    pub(crate) fn give_back_blocks(&mut self) {
        if let Ok(status) = fd::status(self.file)
            && status.id == self.id
        {
            self.ahead.give_back(self.file, status.size);
        }
    }

    /// Removes the ring's file.
    pub(crate) fn remove_ring(&self, ring: FileId) {
        let Ok(folder) = self.folder.open() else {
            return;
        };
        let name = format!("{}{RING_SUFFIX}", self.stem);
        let same = folder
            .open_file(OsStr::new(&name), libc::O_RDONLY)
            .is_ok_and(|(_, status)| status.id == ring);
        if same {
            let _ = folder.remove(OsStr::new(&name)); // a ring that stays is settled by the next merge
        }
    }
}

/// A fragment without a name, still open under a number that the host may have closed since.
#[derive(Debug)]
pub(crate) struct Removed {
    file: RawFd,
    id: FileId,
}

impl Removed {
    /// Counts the events that went with it, a line at a time, and closes it.
    pub(crate) fn count_and_close(self) -> u64 {
        let ours = fd::status(self.file).is_ok_and(|status| status.id == self.id);
        let file = ours.then(|| std::fs::File::open(format!("/proc/self/fd/{}", self.file)));
        fd::close_if(self.file, self.id);
        match file {
            Some(Ok(file)) => count_events(file),
            _ => 0,
        }
    }
}

fn count_events(file: std::fs::File) -> u64 {
    let mut reader = io::BufReader::with_capacity(64 << 10, file);
    let (mut line, mut events) = (Vec::new(), 0);
    while reader
        .read_until(b'\n', &mut line)
        .is_ok_and(|bytes| bytes > 0)
    {
        events += u64::from(line != b"\n" && !is_metadata(&line));
        line.clear();
    }
    events
}

fn retry_ns(cause: Cause) -> u64 {
    match cause {
        Cause::WriteError => SOON_NS,
        _ => RETRY_NS,
    }
}

fn cause_of(error: &io::Error) -> Cause {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => Cause::DiskFull,
        Some(libc::EFBIG) => Cause::FileSizeLimit,
        _ => Cause::WriteError,
    }
}
