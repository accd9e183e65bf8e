//! A file that gets its name when it is complete.
//!
//! Until then it has no name, so that a merge that is killed leaves nothing behind. If the file
//! system does not support unnamed files, or if `/proc` does not lead to them, it has a temporary
//! name next to the final one.

use crate::base::access::Access;
use crate::base::folder::FileLocation;
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Maximum number of temporary names to try.
const TRIES: u64 = 1000;

/// A file that does not have its name yet. It is removed if it is dropped before that.
pub(super) struct OutputDraft {
    /// Final place of the file.
    pub(super) place: FileLocation,
    pub(super) file: File,
    /// Temporary name, unless the file is unnamed.
    temporary: Option<TemporaryName>,
}

/// A temporary name, which is removed when dropped.
struct TemporaryName(Option<FileLocation>);

impl OutputDraft {
    /// Opens an empty file for this place.
    pub(super) fn open(place: &FileLocation, access: Access) -> io::Result<OutputDraft> {
        // If an unnamed file is refused, a named one either works or returns the error to report.
        match unnamed(place, access) {
            Ok(file) => Ok(OutputDraft::new(place, file, None)),
            Err(_) => OutputDraft::temporary(place, access),
        }
    }

    fn temporary(place: &FileLocation, access: Access) -> io::Result<OutputDraft> {
        let mut names = unfinished();
        let (temporary, file) = create_next_to(place, |name| name.create(access))?;
        if let Some(names) = &mut names {
            names.extend(temporary.0.clone());
        }
        Ok(OutputDraft::new(place, file, Some(temporary)))
    }

    fn new(place: &FileLocation, file: File, temporary: Option<TemporaryName>) -> OutputDraft {
        OutputDraft {
            place: place.clone(),
            file,
            temporary,
        }
    }

    /// Gives the file its name, and replaces any file that has it.
    pub(super) fn publish(self) -> io::Result<()> {
        // While the lock is held, a signal cannot end the process between the two names.
        let mut names = unfinished();
        match self.temporary {
            None => give_name(&self.file, &self.place),
            Some(temporary) => {
                if let (Some(names), Some(name)) = (&mut names, &temporary.0) {
                    names.remove(name);
                }
                temporary.replace(&self.place)
            }
        }
    }
}

impl TemporaryName {
    /// Renames the file to `place`, and replaces any file there.
    fn replace(mut self, place: &FileLocation) -> io::Result<()> {
        if let Some(name) = &self.0 {
            name.rename(place)?;
        }
        self.0 = None;
        Ok(())
    }
}

impl Drop for TemporaryName {
    fn drop(&mut self) {
        if let Some(name) = &self.0 {
            let _ = name.remove(); // it may be gone already
        }
    }
}

/// Opens an unnamed file in the folder of `place`, if it can be named later.
fn unnamed(place: &FileLocation, access: Access) -> io::Result<File> {
    let file = place.folder().create_unnamed(access)?;
    let (ours, linked) = (file.metadata()?, fs::metadata(descriptor(&file))?);
    if (ours.dev(), ours.ino()) == (linked.dev(), linked.ino()) {
        Ok(file)
    } else {
        Err(io::Error::other("/proc leads elsewhere"))
    }
}

/// Returns the path under which the kernel shows an unnamed file. Linking the descriptor itself
/// would need a privilege.
fn descriptor(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Gives an unnamed file its name. A link needs a free name, so if `place` is taken, the file gets
/// a temporary name first. Only a process that is killed by SIGKILL between these two system calls
/// leaves that name behind.
fn give_name(file: &File, place: &FileLocation) -> io::Result<()> {
    let descriptor = descriptor(file);
    match place.link_descriptor(&descriptor) {
        Err(Errno::EXIST) => {
            let create = |other: &FileLocation| Ok(other.link_descriptor(&descriptor)?);
            let (temporary, ()) = create_next_to(place, create)?;
            temporary.replace(place)
        }
        named => Ok(named?),
    }
}

/// Calls `create` with temporary names next to `place` until one is free.
fn create_next_to<T>(
    place: &FileLocation,
    create: impl Fn(&FileLocation) -> io::Result<T>,
) -> io::Result<(TemporaryName, T)> {
    let name = place.name().to_string_lossy();
    let first = RandomState::new().hash_one(std::process::id());
    for number in 0..TRIES {
        let number = first.wrapping_add(number) & 0xff_ffff;
        let other = place.sibling(format!("{name}.{number:06x}.tmp"));
        match create(&other) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => {
                let created = created?;
                return Ok((TemporaryName(Some(other)), created));
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

type Names = Mutex<BTreeSet<FileLocation>>;

/// Temporary names, from the first call of [`Unfinished::track`] on. A name whose file is gone
/// stays in the set, because names are used once.
static NAMES: OnceLock<Names> = OnceLock::new();

/// Locks the temporary names, if they are tracked. The lock must be held while a file gets or loses
/// a name.
fn unfinished() -> Option<MutexGuard<'static, BTreeSet<FileLocation>>> {
    NAMES.get().map(lock)
}

fn lock(names: &'static Names) -> MutexGuard<'static, BTreeSet<FileLocation>> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The temporary files of all merges in this process, for programs that end on a signal.
///
/// Without it, merges do not need a lock.
#[derive(Clone, Copy, Debug)]
pub struct Unfinished(&'static Names);

impl Unfinished {
    /// Tracks the names from now on. Must be called before the first merge.
    pub fn track() -> Unfinished {
        Unfinished(NAMES.get_or_init(Names::default))
    }

    /// Removes the files and calls `end`, which should end the process. No trace gets its name
    /// until `end` returns.
    pub fn abandon(self, end: impl FnOnce()) {
        let names = lock(self.0);
        for name in names.iter() {
            let _ = name.remove(); // it may be gone already
        }
        end();
    }
}
