//! The file the trace goes to: one that takes its name at the end, so that nobody sees half a trace.

mod draft;
mod parts;
mod unfinished;

pub(crate) use parts::part_paths;
pub use unfinished::Unfinished;

use crate::sink::Target;
use crate::{Error, Output};
use draft::Draft;
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Most links followed from a named output, as many as the kernel follows.
const MAX_LINKS: u32 = 40;

/// Where a trace is being written.
pub(crate) struct Destination {
    /// As it was named; `None` for the standard output.
    path: Option<PathBuf>,
    /// What takes the name of a file at the end; a device or pipe is written as it is.
    draft: Option<Draft>,
    gzip: bool,
}

impl Destination {
    /// Opens the destination; `gzip` tells whether the trace is compressed whatever its name.
    pub(crate) fn open(
        output: &Output,
        gzip: bool,
        default_directory: Option<&Path>,
    ) -> Result<(Destination, Target), Error> {
        let Some(path) = path(output, gzip, default_directory)? else {
            let destination = Destination {
                path: None,
                draft: None,
                gzip,
            };
            return Ok((destination, Target::Stream(Box::new(io::stdout()))));
        };
        let opened = match output {
            Output::File(_) => open_named(&path),
            // In a run directory anything may have been planted: it is replaced like any old trace.
            _ => replace(&path, fs::symlink_metadata(&path).ok().as_ref()),
        };
        Destination::new(&path, gzip, opened)
    }

    /// Gives the trace its name; the path, unless it is the standard output.
    pub(crate) fn finish(self) -> Result<Option<PathBuf>, Error> {
        if let Some(draft) = self.draft {
            let path = draft.path().to_owned();
            draft
                .publish()
                .map_err(|source| Error::Write { path, source })?;
        }
        Ok(self.path)
    }

    /// Opens the file of a part of a trace.
    pub(crate) fn part(path: &Path, gzip: bool) -> Result<(Destination, Target), Error> {
        let opened = replace(path, fs::symlink_metadata(path).ok().as_ref());
        Destination::new(path, gzip, opened)
    }

    fn new(
        path: &Path,
        gzip: bool,
        opened: io::Result<Opened>,
    ) -> Result<(Destination, Target), Error> {
        let (target, draft) = opened.map_err(|source| Error::of_write(path, source))?;
        let destination = Destination {
            path: Some(path.to_owned()),
            draft,
            gzip: gzip || path.extension().is_some_and(|extension| extension == "gz"),
        };
        Ok((destination, target))
    }

    /// Gives all of them their names, or none.
    pub(crate) fn finish_all(destinations: Vec<Destination>) -> Result<(), Error> {
        let mut named = Vec::new();
        for destination in destinations {
            match destination.finish() {
                Ok(path) => named.extend(path),
                Err(error) => {
                    for path in named {
                        let _ = fs::remove_file(path); // the first error is the one to tell
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// The path that will be written.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Whether the trace is compressed.
    pub(crate) fn is_gzip(&self) -> bool {
        self.gzip
    }
}

/// The path that an output means; `None` for the standard output.
fn path(
    output: &Output,
    gzip: bool,
    default_directory: Option<&Path>,
) -> Result<Option<PathBuf>, Error> {
    match (output, default_directory) {
        (Output::Stdout, _) => Ok(None),
        (Output::File(path), _) => Ok(Some(path.clone())),
        (Output::Default, Some(directory)) => {
            let name = sa_recorder::format::TRACE_FILE;
            Ok(Some(match gzip {
                true => directory.join(format!("{name}.gz")),
                false => directory.join(name),
            }))
        }
        (Output::Default, None) => Err(Error::Usage("no output: name one with -o".to_owned())),
    }
}

/// The folder of the file that a trace goes to; none if that is a device, a pipe or the standard output.
pub(crate) fn folder(output: &Output, default_directory: Option<&Path>) -> Option<PathBuf> {
    let path = match output {
        Output::Stdout => return None,
        Output::Default => return default_directory.map(Path::to_owned),
        Output::File(path) => path,
    };
    let there = fs::metadata(path).ok();
    let file = linked_file(path).ok().flatten()?;
    let is_file = there.as_ref().is_none_or(Metadata::is_file);
    is_file.then(|| folder_of(&file).to_owned())
}

type Opened = (Target, Option<Draft>);

/// Opens an output that the user named: a link is followed, and what is no file is written as it is.
fn open_named(path: &Path) -> io::Result<Opened> {
    let there = fs::metadata(path).ok();
    let is_file = there.as_ref().is_none_or(Metadata::is_file);
    let is_folder = there.as_ref().is_some_and(Metadata::is_dir);
    match linked_file(path)? {
        Some(file) if is_file || is_folder => replace(&file, there.as_ref()),
        // Appending is the same for devices and pipes, and leaves alone what a descriptor's file held before.
        _ => {
            let file = File::options().append(true).open(path)?;
            Ok((Target::Stream(Box::new(file)), None))
        }
    }
}

/// The file at the end of the links that start at `path`, whether it is there or not; `None` if they lead through `/proc`, whose links to
/// descriptors cannot be replaced.
fn linked_file(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut file = path.to_owned();
    for _ in 0..MAX_LINKS {
        let folder = folder_of(&file).to_owned();
        if fs::canonicalize(&folder)?.starts_with("/proc") {
            return Ok(None);
        }
        match fs::read_link(&file) {
            Ok(to) => file = folder.join(to),
            Err(_) => return Ok(Some(file)),
        }
    }
    Err(io::Error::other("too many links"))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Opens a file that becomes `path`, with the mode of what is there.
fn replace(path: &Path, there: Option<&Metadata>) -> io::Result<Opened> {
    if there.is_some_and(Metadata::is_dir) {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    let draft = Draft::open(path)?;
    let file = draft.file().try_clone()?;
    // Another user's file has no say in who may read the trace.
    let user = file.metadata()?.uid();
    if let Some(old) = there.filter(|old| old.is_file() && old.uid() == user) {
        file.set_permissions(Permissions::from_mode(old.mode() & 0o777))?;
    }
    Ok((Target::File(file), Some(draft)))
}
