//! The page as a file.

use super::whole_file::{ReadyFile, Replaced};
use crate::page::page;
use crate::table::RunReport;
use std::path::{Path, PathBuf};
use trace_merge::Error;

/// Writes the page of a report on these paths. Says where it is.
pub(super) fn write(
    path: &Path,
    report: &RunReport,
    paths: &[PathBuf],
    is_newest: bool,
) -> Result<String, Error> {
    let of: Vec<String> = paths.iter().map(|path| shown(path)).collect();
    let of = of.join(" ");
    let page = page(report, &of, opened(paths, is_newest).as_deref())?;
    ReadyFile::write(path, Replaced::Page, page.as_bytes())?.put()?;
    let kb = page.len().div_ceil(1_000);
    Ok(format!(
        "{} ({kb} kB): open it in a browser",
        path.display()
    ))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Returns the argument with which `sa-profile open` shows these paths. It takes a trace or a run directory, and shows the newest run in it.
pub(super) fn opened(paths: &[PathBuf], is_newest: bool) -> Option<String> {
    match paths {
        [only] if is_newest => Some(quoted(&shown(only))),
        _ => None,
    }
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
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
        assert_eq!(quoted("profile_out/trace.json"), "profile_out/trace.json");
        assert_eq!(quoted("my run; rm"), "'my run; rm'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
