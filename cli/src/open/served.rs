//! The trace that is served: a file, and its address.

use super::content::check_trace;
use crate::error::Error;
use crate::http::privacy::is_private;
use crate::http::response::WholeFile;
use crate::http::token::Token;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

/// One file to serve.
#[derive(Debug)]
pub(super) struct Served {
    /// The file that was checked, whatever has its name by the time it is sent.
    pub(super) whole: WholeFile,
    /// The file's name as links have it: nothing in it needs an escape.
    pub(super) name: String,
    /// The first part of its address; `None` if every user of this machine may read the file anyway.
    pub(super) token: Option<Token>,
}

impl Served {
    /// Opens a trace.
    ///
    /// # Errors
    /// If the path does not lead to a trace.
    pub(super) fn open(path: &Path) -> Result<Served, Error> {
        let wrong = |what: &str| Error::Unusable(format!("{}: {what}", path.display()));
        let unusable = |error| Error::of_file(path, error);
        let file = open_without_waiting(path).map_err(unusable)?;
        let metadata = file.metadata().map_err(unusable)?;
        if metadata.is_dir() {
            return Err(wrong("expected a trace, found a directory"));
        }
        if !metadata.is_file() || metadata.len() == 0 {
            return Err(wrong("expected a trace, found nothing to read"));
        }
        check_trace(&file).map_err(|found| wrong(&format!("expected a trace, {found}")))?;
        let token = is_private(&file).then(Token::random).transpose()?;
        let whole = WholeFile {
            file: Arc::new(file),
            bytes: metadata.len(),
            is_sent: Arc::default(),
        };
        Ok(Served {
            whole,
            name: link_name(path),
            token,
        })
    }

    /// Returns the path of the file's address.
    pub(super) fn link_path(&self) -> String {
        match &self.token {
            Some(token) => format!("/{}/{}", token.in_link(), self.name),
            None => format!("/{}", self.name),
        }
    }

    /// Returns true if `path` is the address of the file.
    pub(super) fn is_at(&self, path: &str) -> bool {
        let path = path.strip_prefix('/').unwrap_or_default();
        let Some(token) = &self.token else {
            return path == self.name;
        };
        let parts = path.split_once('/');
        parts.is_some_and(|(shown, name)| token.is(shown.as_bytes()) && name == self.name)
    }
}

/// Opens a file to read. A pipe that nobody writes to must not keep the command waiting.
fn open_without_waiting(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
}

/// Returns the file's name with everything but letters, digits, `.`, `_` and `-` replaced.
fn link_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '_'
        }
    };
    name.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_name_in_a_link_needs_no_escape() {
        let name = link_name(Path::new("/a/b c#?&%ü.json.gz"));
        assert_eq!(name, "b_c_____.json.gz");
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let [empty, words, pipe] = ["empty", "words", "pipe"].map(|name| root.path().join(name));
        fs::write(&empty, "").unwrap();
        fs::write(&words, "root:x:0:0:root:/root:/bin/bash\n").unwrap();
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for (path, problem) in [
            (root.path(), "found a directory"),
            (&empty, "found nothing to read"),
            (&pipe, "found nothing to read"),
            (&words, "found no JSON"),
            (&root.path().join("none"), "No such file"),
        ] {
            let refused = Served::open(path).unwrap_err().to_string();
            assert!(refused.contains(problem), "{refused}");
        }
    }
}
