//! `--export`: to which format, and for a format of several files to which folder.

use super::whole_file;
use crate::export::{ExportFile, FilesFormat, StackFormat};
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use trace_merge::Error;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Export {
    /// Stacks, to be printed.
    Stacks(StackFormat),
    /// Files, to be written to this folder.
    Files(FilesFormat, PathBuf),
}

/// Reads `speedscope`, or `nat=FOLDER`.
pub(super) fn parse_export(text: &str) -> Result<Export, String> {
    let expected = || {
        format!(
            "expected collapsed, speedscope, callgrind, nat=FOLDER or msserviceprofiler=FOLDER, found {text:?}"
        )
    };
    let found = match text.split_once('=') {
        None => StackFormat::from_str(text, false).map(Export::Stacks),
        Some((_, "")) => return Err(expected()),
        Some((format, folder)) => FilesFormat::from_str(format, false)
            .map(|format| Export::Files(format, PathBuf::from(folder))),
    };
    found.map_err(|_| expected())
}

/// Writes files to a folder, which is made where there is none. Says where they are.
pub(super) fn write(folder: &Path, files: &[ExportFile]) -> Result<String, Error> {
    std::fs::create_dir_all(folder).map_err(|source| Error::Write {
        path: folder.to_owned(),
        source,
    })?;
    for file in files {
        whole_file::write(&folder.join(file.name), file.text.as_bytes())?;
    }
    let names: Vec<&str> = files.iter().map(|file| file.name).collect();
    Ok(format!("{}: {}", folder.display(), names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_a_folder_or_none() {
        let stacks = Ok(Export::Stacks(StackFormat::Callgrind));
        assert_eq!(parse_export("callgrind"), stacks);
        let files = Export::Files(FilesFormat::Nat, PathBuf::from("out/a=b"));
        assert_eq!(parse_export("nat=out/a=b"), Ok(files));
        for wrong in ["", "nat", "nat=", "callgrind=out", "gprof", "gprof=out"] {
            let words = parse_export(wrong).unwrap_err();
            assert!(words.ends_with(&format!("found {wrong:?}")), "{words}");
        }
    }
}
