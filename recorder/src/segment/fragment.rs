//! The fragment of a process: its segments one after the other, and what happens when the host, the disk or a limit gets in the way.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::run::config::Config;
use crate::run::folder::has_segment;
use crate::segment::active_segment::ActiveSegment;
use crate::segment::file::Doomed;
use crate::segment::tally::Tally;
use crate::sys::dir::Dir;
use crate::sys::{fd, wait};
use sa_format::control::SwitchCause;
use sa_format::{FRAGMENT_PREFIX, FragmentHeader, RingKind, ring_name, segment_name};

/// The fragment of this process.
#[derive(Debug)]
pub(crate) struct Fragment {
    /// The path of its first segment.
    pub(crate) path: PathBuf,
    active: Mutex<ActiveSegment>,
    /// Whoever has the segment writes a line that stands in no ring.
    writes_line: AtomicBool,
    /// What is counted while it is written, if a control asks for a number. Not with the segment: whoever has that may wait for the disk.
    tally: Mutex<Option<Tally>>,
}

/// Names a fragment and its ring so that neither exists yet, and makes both. The ring comes first and is laid out, so that no fragment
/// ever names a ring that cannot be read.
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
    // An earlier process may have left segments of this name, even if the first one and the ring are gone.
    if has_segment(&folder.names().unwrap_or_default(), &short) {
        return make(&long);
    }
    match make(&short) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => make(&long),
        other => other,
    }
}

/// Whether the file system of an open file can hold rings. Where it cannot, they lie in memory, and what was not flushed is lost in a kill.
pub fn holds_rings(file: &std::fs::File) -> bool {
    fd::holds_shared_maps(file.as_raw_fd())
}

/// Makes a ring in a file, or in memory where the file system takes none: a kind that is not known, or an overlay upon one that cannot reserve blocks.
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

/// Whether a file system says that it never does what a ring needs, rather than not now.
fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::ENODEV | libc::EACCES | libc::EPERM)
    )
}

fn remove_ring(folder: &Dir, stem: &str, kind: RingKind) {
    if kind == RingKind::File {
        let _ = folder.remove(ring_name(stem)); // gone already is as good
    }
}

impl Fragment {
    /// Waits for the file, without end: the writer may hang in a file system that does. For the helper only.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ActiveSegment> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the file until `end_ns`. The writer may even be this very thread, below a signal handler.
    pub(crate) fn lock_until(&self, end_ns: u64) -> Option<MutexGuard<'_, ActiveSegment>> {
        wait::lock_until(&self.active, end_ns)
    }

    /// Notes that a line is written that stands in no ring.
    pub(crate) fn begin_line(&self) {
        self.writes_line.store(true, Ordering::Release);
    }

    /// Notes that it is not any more; whether it was.
    pub(crate) fn take_line(&self) -> bool {
        self.writes_line.swap(false, Ordering::AcqRel)
    }

    /// Counts from now on what a control asks for, or nothing.
    pub(crate) fn count(&self, tally: Option<Tally>) {
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner) = tally;
    }

    /// Counts the lines of a block that was written.
    pub(crate) fn add_to_count(&self, lines: &[u8]) {
        if let Some(mut tally) = wait::try_lock(&self.tally)
            && let Some(tally) = tally.as_mut()
        {
            tally.add(lines);
        }
    }

    /// Which number that is counted was reached.
    pub(crate) fn reached(&self) -> Option<SwitchCause> {
        wait::try_lock(&self.tally)?.as_ref()?.reached()
    }

    /// Takes the file if nobody is writing.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, ActiveSegment>> {
        wait::try_lock(&self.active)
    }

    /// Closes the segments that were removed, if nobody is writing.
    pub(crate) fn close_removed(&self) {
        let doomed = self.try_lock().map(|mut active| active.take_doomed());
        doomed.into_iter().flatten().for_each(Doomed::close);
    }
}
