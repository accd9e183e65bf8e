//! Parses `--export` and writes the files of a format that needs a folder.

use super::whole_file::{ReadyFile, Replaced};
use crate::export::{ExportFile, StackFormat};
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use trace_merge::Error;

/// Requested format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Export {
    /// Stacks, printed to standard output.
    Stacks(StackFormat),
    /// The files of NeMo Agent Toolkit, written to this folder.
    Nat(PathBuf),
}

/// Parses the value of `--export`, such as `speedscope` or `nat=FOLDER`.
pub(super) fn parse_export(text: &str) -> Result<Export, String> {
    let stacks = |format| StackFormat::from_str(format, false).map(Export::Stacks);
    let found = match text.split_once('=') {
        None => stacks(text).ok(),
        Some((format, folder)) if format == "nat" && !folder.is_empty() => {
            Some(Export::Nat(PathBuf::from(folder)))
        }
        Some(_) => None,
    };
    let expected = "expected collapsed, speedscope, callgrind or nat=FOLDER";
    found.ok_or_else(|| format!("{expected}, found {text:?}"))
}

/// Writes exported files to a folder, which is created if necessary, and returns a message for the user that names
/// them. `files` computes their contents, and is called only if the folder is writable. If it fails, or a file cannot
/// be written, no new file remains, and the folder is removed if it is new.
pub(super) fn write(
    folder: &Path,
    files: impl FnOnce() -> Result<Vec<ExportFile>, Error>,
) -> Result<String, Error> {
    let failed = |source| Error::Write {
        path: folder.to_owned(),
        source,
    };
    let is_new = !folder.exists();
    std::fs::create_dir_all(folder).map_err(failed)?;
    drop(NamedTempFile::new_in(folder).map_err(failed)?);
    let write = |file: ExportFile| {
        let path = folder.join(file.name);
        let ready = ReadyFile::write(&path, Replaced::Same, file.text.as_bytes())?;
        Ok((ready, file.name))
    };
    // All files are written before the first one is renamed, so a failure leaves no partial set.
    let ready = files().and_then(|files| files.into_iter().map(write).collect());
    if ready.is_err() && is_new {
        // This fails if another program has created a file in the folder meanwhile, so that file is kept.
        let _ = std::fs::remove_dir(folder);
    }
    let (ready, names): (Vec<ReadyFile>, Vec<&str>) = ready?;
    ready.into_iter().try_for_each(ReadyFile::persist)?;
    Ok(format!("{}: {}", folder.display(), names.join(", ")))
}
