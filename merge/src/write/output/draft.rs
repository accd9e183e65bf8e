//! A file that takes its name when it is whole.
//!
//! Until then it has none, so that a merge that is killed leaves nothing behind. Where the file system has no such files, or no `/proc`
//! leads to them, it has a temporary name beside the one that it is to get.

use crate::base::access::Access;
use crate::base::folder::Place;
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Temporary names that are tried.
const TRIES: u64 = 1000;

/// A file on its way to a name; gone when dropped before.
pub(super) struct OutputDraft {
    /// The place that it is to take.
    pub(super) place: Place,
    pub(super) file: File,
    /// The name that it has until then; `None` if it has none.
    temporary: Option<TemporaryName>,
}

/// A temporary name, which is taken away when dropped.
struct TemporaryName(Option<Place>);

impl OutputDraft {
    /// Opens an empty file that is to take the name.
    pub(super) fn open(place: &Place, access: Access) -> io::Result<OutputDraft> {
        // Whoever refuses a file without a name either takes a named one or says why nothing can be written here.
        match unnamed(place, access) {
            Ok(file) => Ok(OutputDraft::new(place, file, None)),
            Err(_) => OutputDraft::temporary(place, access),
        }
    }

    fn temporary(place: &Place, access: Access) -> io::Result<OutputDraft> {
        let mut names = unfinished();
        let (temporary, file) = beside(place, |name| name.create(access))?;
        if let Some(names) = &mut names {
            names.extend(temporary.0.clone());
        }
        Ok(OutputDraft::new(place, file, Some(temporary)))
    }

    fn new(place: &Place, file: File, temporary: Option<TemporaryName>) -> OutputDraft {
        OutputDraft {
            place: place.clone(),
            file,
            temporary,
        }
    }

    /// Gives it its name, in place of what has it.
    pub(super) fn publish(self) -> io::Result<()> {
        // A signal that ends the process waits until the second name is gone.
        let mut names = unfinished();
        match self.temporary {
            None => name(&self.file, &self.place),
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
    /// Puts the file in the place of another.
    fn replace(mut self, place: &Place) -> io::Result<()> {
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
            let _ = name.remove(); // perhaps it is gone already
        }
    }
}

/// Opens a file without a name in the folder of `place`, if it can be given one later.
fn unnamed(place: &Place, access: Access) -> io::Result<File> {
    let file = place.folder().create_unnamed(access)?;
    let (ours, led_to) = (file.metadata()?, fs::metadata(descriptor(&file))?);
    if (ours.dev(), ours.ino()) == (led_to.dev(), led_to.ino()) {
        Ok(file)
    } else {
        Err(io::Error::other("/proc leads elsewhere"))
    }
}

/// Where the kernel shows a file without a name. Naming the descriptor itself instead takes a privilege.
fn descriptor(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Names a file that has no name. Only a free name can be given, so where `place` is taken it gets another one first: between these two
/// system calls alone a process that is killed, and not told to end, leaves that one behind.
fn name(file: &File, place: &Place) -> io::Result<()> {
    let descriptor = descriptor(file);
    match place.link_descriptor(&descriptor) {
        Err(Errno::EXIST) => {
            let make = |other: &Place| Ok(other.link_descriptor(&descriptor)?);
            let (temporary, ()) = beside(place, make)?;
            temporary.replace(place)
        }
        named => Ok(named?),
    }
}

/// What `make` makes under a temporary name beside `place`.
fn beside<T>(
    place: &Place,
    make: impl Fn(&Place) -> io::Result<T>,
) -> io::Result<(TemporaryName, T)> {
    let name = place.name().to_string_lossy();
    let first = RandomState::new().hash_one(std::process::id());
    for number in 0..TRIES {
        let number = first.wrapping_add(number) & 0xff_ffff;
        let other = place.beside(format!("{name}.{number:06x}.tmp"));
        match make(&other) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => {
                let made = made?;
                return Ok((TemporaryName(Some(other)), made));
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

type Names = Mutex<BTreeSet<Place>>;

/// Nothing is kept before a program asks for it. A name whose file is gone stays: names are used once.
static NAMES: OnceLock<Names> = OnceLock::new();

/// The names, if they are kept; whoever gives a file a name, or takes one away, holds this meanwhile.
fn unfinished() -> Option<MutexGuard<'static, BTreeSet<Place>>> {
    NAMES.get().map(lock)
}

fn lock(names: &'static Names) -> MutexGuard<'static, BTreeSet<Place>> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The files that merges of this process have under temporary names, for programs that a signal ends.
///
/// In a process that has none, merges wait for nobody.
#[derive(Clone, Copy, Debug)]
pub struct Unfinished(&'static Names);

impl Unfinished {
    /// Keeps the names from now on; to be called before the first merge.
    pub fn track() -> Unfinished {
        Unfinished(NAMES.get_or_init(Names::default))
    }

    /// Removes the files and calls `end`, which should end the process: until it returns no trace gets its name.
    pub fn abandon(self, end: impl FnOnce()) {
        let names = lock(self.0);
        for name in names.iter() {
            let _ = name.remove(); // perhaps it is gone already
        }
        end();
    }
}
