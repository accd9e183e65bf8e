//! The file the trace goes to: a temporary one beside it that takes its name at the end, so that nobody sees half a trace.

use crate::sink::Target;
use crate::{Error, Output};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Where a trace is being written.
pub(crate) enum Destination {
    /// A temporary file that becomes `path`.
    Replace(NamedTempFile, PathBuf),
    /// A device or pipe, written as it is.
    Direct(PathBuf),
    /// The standard output.
    Stdout,
}

impl Destination {
    /// Opens the destination.
    pub(crate) fn open(
        output: &Output,
        default_directory: Option<&Path>,
    ) -> Result<(Destination, Target), Error> {
        let path = match (output, default_directory) {
            (Output::Stdout, _) => {
                return Ok((Destination::Stdout, Target::Stream(Box::new(io::stdout()))));
            }
            (Output::File(path), _) => path.clone(),
            (Output::Default, Some(directory)) => directory.join(sa_recorder::format::TRACE_FILE),
            (Output::Default, None) => {
                return Err(Error::Usage("no output: name one with -o".to_owned()));
            }
        };
        let failed = |source| Error::Write {
            path: path.clone(),
            source,
        };
        let named = matches!(output, Output::File(_));
        let there = if named {
            fs::metadata(&path) // the user may name a link
        } else {
            fs::symlink_metadata(&path)
        };
        if there.as_ref().is_ok_and(fs::Metadata::is_dir) {
            return Err(failed(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        // In a run directory a pipe or a device was planted: it is replaced like any old trace.
        if named && there.is_ok_and(|metadata| !metadata.is_file()) {
            let file = File::options().write(true).open(&path).map_err(failed)?;
            return Ok((Destination::Direct(path), Target::Stream(Box::new(file))));
        }
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let temporary = tempfile::Builder::new()
            .prefix(&format!("{name}."))
            .suffix(".tmp")
            .tempfile_in(directory);
        let temporary = temporary.map_err(failed)?;
        let file = temporary.as_file().try_clone().map_err(failed)?;
        Ok((Destination::Replace(temporary, path), Target::File(file)))
    }

    /// Gives the trace its name; the path, unless it is the standard output.
    pub(crate) fn finish(self) -> Result<Option<PathBuf>, Error> {
        match self {
            Destination::Stdout => Ok(None),
            Destination::Direct(path) => Ok(Some(path)),
            Destination::Replace(temporary, path) => match temporary.persist(&path) {
                Ok(_) => Ok(Some(path)),
                Err(error) => Err(Error::Write {
                    path,
                    source: error.error,
                }),
            },
        }
    }

    /// The path that will be written.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Destination::Stdout => None,
            Destination::Direct(path) | Destination::Replace(_, path) => Some(path),
        }
    }

    /// Whether the trace is compressed.
    pub(crate) fn is_gzip(&self) -> bool {
        self.path()
            .is_some_and(|path| path.extension().is_some_and(|extension| extension == "gz"))
    }
}
