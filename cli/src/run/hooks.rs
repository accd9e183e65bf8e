//! Checks the file of `--hooks` before the command starts, so that its mistakes are reported once and not by each process.

use crate::words::say;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the absolute path of a file of hooks. Says on stderr what the file contains without a meaning here.
///
/// # Errors
/// Returns a description of the mistake in the file.
pub(crate) fn check(path: &Path) -> Result<PathBuf, String> {
    let file = sa_hooks::read(path).map_err(|error| format!("--hooks: {error}"))?;
    if let Some(ignored) = file.ignored {
        say(&format!("{}: ignored: {ignored}", path.display()));
    }
    fs::canonicalize(path).map_err(|error| format!("--hooks: {}: {error}", path.display()))
}
