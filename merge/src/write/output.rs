//! The output file. It gets its name at the end, so that nobody sees half a trace.

mod draft;
mod parts;

pub use draft::Unfinished;
pub(crate) use parts::part_places;

use crate::base::access::Access;
use crate::base::file_status::FileId;
use crate::base::folder::{FileLocation, Folder};
use crate::fragment::recording::Recording;
use crate::write::sink::SinkTarget;
use crate::{Error, Options, Output};
use draft::OutputDraft;
use rustix::fs::FileType;
use rustix::process::geteuid;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum number of symbolic links to follow from a named output. The kernel has the same limit.
const MAX_LINKS: u32 = 40;

/// Destination of a trace that is being written.
pub(crate) struct Destination {
    /// Path as given by the user; `None` for the standard output.
    pub(crate) path: Option<PathBuf>,
    /// File that gets its name at the end. `None` for a device or pipe, which is written directly.
    draft: Option<OutputDraft>,
    /// True if the trace is compressed.
    pub(crate) gzip: bool,
}

/// Options and folder that decide the name of a trace, and its access.
#[derive(Clone, Copy)]
pub(crate) struct OutputTarget<'a> {
    pub(crate) options: &'a Options,
    pub(crate) default_directory: Option<&'a Folder>,
    /// Access to the files.
    pub(crate) access: Access,
}

impl Destination {
    /// Opens the destination of a trace that is one file.
    pub(crate) fn open(target: OutputTarget<'_>) -> Result<(Destination, SinkTarget), Error> {
        let (gzip, access) = (target.options.gzip, target.access);
        match &target.options.output {
            Output::Stdout => {
                let destination = Destination {
                    path: None,
                    draft: None,
                    gzip,
                };
                Ok((destination, SinkTarget::Stream(Box::new(io::stdout()))))
            }
            Output::File(path) => Destination::new(path.clone(), gzip, open_named(path, access)),
            // In a run directory, another user may have planted a link or device, so it is replaced
            // like an old trace.
            Output::Default => {
                let place = default_destination(gzip, target.default_directory)?;
                Destination::part(&place, gzip, access)
            }
        }
    }

    /// Gives the trace its name. Returns the path, unless it is the standard output.
    pub(crate) fn finish(self) -> Result<Option<PathBuf>, Error> {
        if let Some(draft) = self.draft {
            let path = draft.place.path().to_owned();
            let published = draft.publish();
            published.map_err(|source| Error::Write { path, source })?;
        }
        Ok(self.path)
    }

    /// Opens the file of a part of a trace.
    pub(crate) fn part(
        place: &FileLocation,
        gzip: bool,
        access: Access,
    ) -> Result<(Destination, SinkTarget), Error> {
        let opened = replace(place, access);
        Destination::new(place.path().to_owned(), gzip, opened)
    }

    fn new(
        path: PathBuf,
        gzip: bool,
        opened: io::Result<Opened>,
    ) -> Result<(Destination, SinkTarget), Error> {
        let (target, draft) = opened.map_err(|source| Error::from_write(&path, source))?;
        let gzip = gzip || path.extension().is_some_and(|extension| extension == "gz");
        let destination = Destination {
            path: Some(path),
            draft,
            gzip,
        };
        Ok((destination, target))
    }

    /// Gives all files their names, or none of them.
    pub(crate) fn finish_all(destinations: Vec<Destination>) -> Result<(), Error> {
        let mut named = Vec::new();
        for destination in destinations {
            let draft = destination.draft.as_ref();
            let place = draft.map(|draft| draft.place.clone());
            match destination.finish() {
                Ok(_) => named.extend(place),
                Err(error) => {
                    for place in named {
                        let _ = place.remove(); // the first error is reported
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Returns the id of the file that is written or replaced, if there is one.
    pub(crate) fn replaced(&self) -> Option<FileId> {
        if let Some(draft) = &self.draft {
            return draft.place.target_id().ok();
        }
        let status = fs::metadata(self.path.as_ref()?).ok()?;
        Some(FileId::from_metadata(&status))
    }
}

/// Returns an error if the trace would overwrite one of its inputs.
pub(crate) fn reject_inputs(
    destination: &Destination,
    recordings: &[Recording],
) -> Result<(), Error> {
    let Some(id) = destination.replaced() else {
        return Ok(());
    };
    let is_input = |recording: &Recording| {
        let ring = recording.ring.iter().any(|(_, ring)| *ring == id);
        ring || recording.left_out_files.contains(&id)
            || recording.fragments.iter().any(|fragment| fragment.id == id)
    };
    if recordings.iter().any(is_input) {
        return Err(Error::Usage(format!(
            "{}: the output is one of the inputs",
            destination.path.clone().unwrap_or_default().display()
        )));
    }
    Ok(())
}

/// Returns the default destination of the trace.
fn default_destination(gzip: bool, directory: Option<&Folder>) -> Result<FileLocation, Error> {
    let directory =
        directory.ok_or_else(|| Error::Usage("no output: name one with -o".to_owned()))?;
    let name = sa_format::TRACE_FILE;
    let suffix = if gzip { ".gz" } else { "" };
    Ok(directory.place(format!("{name}{suffix}")))
}

/// Returns the folder of the trace's file, or `None` for a device, a pipe or the standard output.
pub(crate) fn folder(output: &Output, default_directory: Option<&Folder>) -> Option<PathBuf> {
    let in_folder = |folder: &Folder| parent_folder(&folder.path().join("x")).to_owned();
    let path = match output {
        Output::Stdout => return None,
        Output::Default => return default_directory.map(in_folder),
        Output::File(path) => path,
    };
    let status = fs::metadata(path).ok();
    let file = linked_file(path).ok().flatten()?;
    let is_file = status.as_ref().is_none_or(Metadata::is_file);
    is_file.then(|| parent_folder(&file).to_owned())
}

type Opened = (SinkTarget, Option<OutputDraft>);

/// Opens an output that the user named. Links are followed, and anything but a regular file is
/// written directly. If a file is replaced, the new one is not readable for users who could not
/// read the old one.
fn open_named(path: &Path, access: Access) -> io::Result<Opened> {
    let status = fs::metadata(path).ok();
    let is_file = status.as_ref().is_none_or(Metadata::is_file);
    if status.as_ref().is_some_and(Metadata::is_dir) {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    match linked_file(path)? {
        Some(file) if is_file => {
            // Another user's file has no influence on the access to the trace.
            let user = geteuid().as_raw();
            let old = status.filter(|old| old.uid() == user);
            let access = old.map_or(access, |old| access.no_wider_than(&old));
            let folder = Folder::open(parent_folder(&file))?;
            replace(&folder.place(file.file_name().unwrap_or_default()), access)
        }
        // Appending makes no difference for devices and pipes. If the output is a descriptor's
        // file, it preserves its old contents.
        _ => {
            let file = File::options().append(true).open(path)?;
            Ok((SinkTarget::Stream(Box::new(file)), None))
        }
    }
}

/// Returns the file at the end of the links that start at `path`, even if it does not exist.
/// Returns `None` if they go through `/proc`, because its links to descriptors cannot be replaced.
fn linked_file(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut file = path.to_owned();
    for _ in 0..MAX_LINKS {
        let folder = parent_folder(&file).to_owned();
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

fn parent_folder(path: &Path) -> &Path {
    let parent = path.parent().unwrap_or(Path::new(""));
    match parent.as_os_str().is_empty() {
        true => Path::new("."),
        false => parent,
    }
}

/// Opens a file that will replace `place`.
fn replace(place: &FileLocation, access: Access) -> io::Result<Opened> {
    let is_folder = |mode| FileType::from_raw_mode(mode) == FileType::Directory;
    if place.status().is_ok_and(|status| is_folder(status.st_mode)) {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    let draft = OutputDraft::open(place, access)?;
    let file = draft.file.try_clone()?;
    Ok((SinkTarget::File(file), Some(draft)))
}
