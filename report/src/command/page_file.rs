//! The page as a file.

use super::whole_file::{ReadyFile, Replaced};
use crate::page::page;
use crate::table::RunReport;
use std::path::{Path, PathBuf};
use trace_merge::Error;

/// Writes a report as an HTML page to the file `path`, and returns a message for the user with the file's path and
/// size.
/// `paths` are the paths that the report was read from, and `is_newest` is true if it covers their newest run.
pub(super) fn write(
    path: &Path,
    report: &RunReport,
    paths: &[PathBuf],
    is_newest: bool,
) -> Result<String, Error> {
    let inputs: Vec<String> = paths.iter().map(|path| shown(path)).collect();
    let inputs = inputs.join(" ");
    let page = page(report, &inputs, open_argument(paths, is_newest).as_deref())?;
    ReadyFile::write(path, Replaced::Page, page.as_bytes())?.persist()?;
    let kb = page.len().div_ceil(1_000);
    Ok(format!(
        "{} ({kb} kB): open it in a browser",
        path.display()
    ))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Returns the argument with which `sa-profile open` shows these paths, or `None` if it cannot. `open` accepts one
/// trace or run directory, and shows its newest run.
pub(super) fn open_argument(paths: &[PathBuf], is_newest: bool) -> Option<String> {
    match paths {
        [only] if is_newest => Some(shell_quoted(&shown(only))),
        _ => None,
    }
}

/// Quotes a text so that a shell reads it as one word.
fn shell_quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:@%".contains(letter);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word() {
        assert_eq!(
            shell_quoted("profile_out/trace.json"),
            "profile_out/trace.json"
        );
        assert_eq!(shell_quoted("my run; rm"), "'my run; rm'");
        assert_eq!(shell_quoted("it's"), r"'it'\''s'");
        assert_eq!(shell_quoted(""), "''");
    }
}
