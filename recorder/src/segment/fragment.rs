//! The fragment of a process: its consecutive segments, and how it copes with the host, the disk or
//! a limit getting in the way.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::run::config::Config;
use crate::run::folder::has_segment;
use crate::segment::active_segment::ActiveSegment;
use crate::segment::file::UnlinkedSegment;
use crate::segment::tally::Tally;
use crate::sys::dir::Dir;
use crate::sys::{fd, wait};
use sa_format::control::SwitchCause;
use sa_format::{FRAGMENT_PREFIX, FragmentHeader, RingKind, ring_name, segment_name};

/// The fragment of this process.
#[derive(Debug)]
pub(crate) struct Fragment {
    /// Path of the first segment.
    pub(crate) path: PathBuf,
    active: Mutex<ActiveSegment>,
    /// True while the thread that has the segment writes a line that is not in any ring.
    writes_line: AtomicBool,
    /// Counts of written events or steps, if a control file asks for a number of them. It has its
    /// own lock, because the thread that has the segment may be waiting for the disk.
    tally: Mutex<Option<Tally>>,
}

/// Chooses a name for a fragment and its ring that neither has yet, and creates both files.
/// `lay_out` initialises the ring's file and returns the ring. The ring is created first, so that
/// no fragment ever names an unreadable ring.
pub(crate) fn create_files<R>(
    folder: &Dir,
    config: &Config,
    header: &FragmentHeader,
    lay_out: impl Fn(OwnedFd, RingKind) -> io::Result<R>,
) -> io::Result<(Fragment, R)> {
    let short = format!("{FRAGMENT_PREFIX}{}", header.pid);
    let long = format!("{short}.{}", header.nonce);
    let make = |stem: &str| {
        let (ring, kind) = create_ring(folder, stem, config.mode, &lay_out)?;
        let header = FragmentHeader {
            ring: kind,
            ..header.clone()
        };
        let active = ActiveSegment::create(folder, config, stem, header);
        let fragment = Fragment {
            path: folder.path().join(segment_name(stem, 0)),
            active: Mutex::new(active.inspect_err(|_| remove_ring(folder, stem, kind))?),
            writes_line: AtomicBool::new(false),
            tally: Mutex::default(),
        };
        Ok((fragment, ring))
    };
    // An earlier process may have left segments of this name, even if the first one and the ring
    // are gone.
    if has_segment(&folder.names().unwrap_or_default(), &short) {
        return make(&long);
    }
    match make(&short) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => make(&long),
        other => other,
    }
}

/// Returns true if the file system of an open file can hold rings (the threads' event buffers).
/// Otherwise rings are in memory, and events that were not flushed are lost in a kill.
pub fn holds_rings(file: &std::fs::File) -> bool {
    fd::holds_shared_maps(file.as_raw_fd())
}

/// Creates a ring in a file, or in memory if the file system does not support rings. That is the
/// case for an unknown file system, and for an overlay on one that cannot reserve blocks. `lay_out`
/// initialises the open file and returns the ring.
fn create_ring<R>(
    folder: &Dir,
    stem: &str,
    mode: u32,
    lay_out: impl Fn(OwnedFd, RingKind) -> io::Result<R>,
) -> io::Result<(R, RingKind)> {
    let file = folder.create_file(&ring_name(stem), mode, libc::O_RDWR)?;
    let in_file = fd::holds_shared_maps(file.as_raw_fd()).then(|| lay_out(file, RingKind::File));
    if let Some(Ok(ring)) = in_file {
        return Ok((ring, RingKind::File));
    }
    remove_ring(folder, stem, RingKind::File);
    match in_file {
        Some(Err(error)) if !is_refusal(&error) => Err(error),
        _ => Ok((lay_out(fd::memory_file()?, RingKind::Heap)?, RingKind::Heap)),
    }
}

/// Returns true if this error from creating a ring means that the file system never supports rings,
/// rather than a temporary problem.
fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::ENODEV | libc::EACCES | libc::EPERM)
    )
}

fn remove_ring(folder: &Dir, stem: &str, kind: RingKind) {
    if kind == RingKind::File {
        let _ = folder.remove(ring_name(stem)); // it may already be gone
    }
}

impl Fragment {
    /// Locks the fragment's newest segment for writing. Waits without limit because the writer may
    /// hang in the file system. Only the recorder's helper thread calls this.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ActiveSegment> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the fragment's newest segment for writing, or returns `None` if it is not free by
    /// `end_ns`. The writer may even be this very thread, interrupted by a signal handler.
    pub(crate) fn lock_until(&self, end_ns: u64) -> Option<MutexGuard<'_, ActiveSegment>> {
        wait::lock_until(&self.active, end_ns)
    }

    /// Marks that the calling thread starts to write a line that is not in any ring. If the write
    /// never returns, the end of the process counts the line as lost.
    pub(crate) fn begin_line(&self) {
        self.writes_line.store(true, Ordering::Release);
    }

    /// Marks the end of the write that [`Fragment::begin_line`] announced. Returns true if such a
    /// write was in progress.
    pub(crate) fn end_line(&self) -> bool {
        self.writes_line.swap(false, Ordering::AcqRel)
    }

    /// Starts counting written events or engine steps, as a control file requests. `None` ends the
    /// counting.
    pub(crate) fn set_tally(&self, tally: Option<Tally>) {
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner) = tally;
    }

    /// Adds the lines of a block that was written to the counts that a control file requested.
    pub(crate) fn add_to_tally(&self, lines: &[u8]) {
        if let Some(mut tally) = wait::try_lock(&self.tally)
            && let Some(tally) = tally.as_mut()
        {
            tally.add(lines);
        }
    }

    /// Returns which limit of the control file was reached (events or steps), or `None` if neither
    /// was.
    pub(crate) fn reached_limit(&self) -> Option<SwitchCause> {
        wait::try_lock(&self.tally)?.as_ref()?.reached_limit()
    }

    /// Locks the fragment's newest segment for writing, or returns `None` if another thread is
    /// writing.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, ActiveSegment>> {
        wait::try_lock(&self.active)
    }

    /// Closes the files of deleted segments, unless another thread is writing to the fragment.
    pub(crate) fn close_removed(&self) {
        let unlinked = self.try_lock().map(|mut active| active.drain_unlinked());
        unlinked
            .into_iter()
            .flatten()
            .for_each(UnlinkedSegment::close);
    }
}
