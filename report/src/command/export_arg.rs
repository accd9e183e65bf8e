//! `--export`: to which format, and for a format of several files to which folder.

use super::whole_file::{ReadyFile, Replaced};
use crate::export::{ExportFile, StackFormat};
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use trace_merge::Error;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Export {
    /// Stacks, to be printed.
    Stacks(StackFormat),
    /// The files of NeMo Agent Toolkit, to be written to this folder.
    Nat(PathBuf),
}

/// Reads `speedscope`, or `nat=FOLDER`.
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

/// Writes files to a folder, which is made where there is none. Says where they are. Whether it can be written is known before `files` are; if that fails, no folder and no file is new.
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
    // All files before the first of them has its name.
    let ready = files().and_then(|files| files.into_iter().map(write).collect());
    if ready.is_err() && is_new {
        // One that others wrote to meanwhile stays.
        let _ = std::fs::remove_dir(folder);
    }
    let (ready, names): (Vec<ReadyFile>, Vec<&str>) = ready?;
    ready.into_iter().try_for_each(ReadyFile::put)?;
    Ok(format!("{}: {}", folder.display(), names.join(", ")))
}
