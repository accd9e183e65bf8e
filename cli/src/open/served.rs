//! The trace that is served: a file and its address.

use super::content::{Head, check_trace};
use crate::error::Error;
use crate::http::privacy::is_private;
use crate::http::response::WholeFile;
use crate::http::token::Token;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use trace_merge::Bar;
use trace_report::{TraceView, read_findings};

/// The last bytes of a trace that a merge wrote.
const END: &[u8; 4] = b"\n]}\n";

/// A file to serve.
#[derive(Debug)]
pub(super) struct Served {
    /// The file that was checked, even if another file has its name by the time it is sent.
    pub(super) whole: WholeFile,
    /// File name as it is in links, without characters that need an escape.
    pub(super) name: String,
    /// The first part of its address; `None` if every user of this machine may read the file anyway.
    pub(super) token: Option<Token>,
    /// The members of its `otherData`.
    pub(super) head: Head,
}

impl Served {
    /// Opens a trace.
    ///
    /// # Errors
    /// Returns an error if the path does not lead to a trace.
    pub(super) fn open(path: &Path) -> Result<Served, Error> {
        let wrong = |what: &str| Error::Unusable(format!("{}: {what}", path.display()));
        let unusable = |error| Error::file(path, error);
        let file = open_without_waiting(path).map_err(unusable)?;
        let metadata = file.metadata().map_err(unusable)?;
        if metadata.is_dir() {
            return Err(wrong("expected a trace, found a directory"));
        }
        if !metadata.is_file() || metadata.len() == 0 {
            return Err(wrong("expected a trace, found nothing to read"));
        }
        let mut head =
            check_trace(&file).map_err(|found| wrong(&format!("expected a trace, {found}")))?;
        let token = is_private(&file).then(Token::random).transpose()?;
        let mut whole = WholeFile {
            file: Arc::new(file),
            bytes: metadata.len(),
            more: Arc::from(&[][..]),
            is_sent: Arc::default(),
        };
        if head.view.is_none() && head.tool == "trace-merge" {
            head.view = add_findings(path, &mut whole);
        }
        Ok(Served {
            whole,
            name: link_name(path),
            token,
            head,
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
        parts.is_some_and(|(shown, name)| token.matches(shown.as_bytes()) && name == self.name)
    }
}

/// Creates a report on a trace that was merged without one. Appends the findings to the bytes that are sent, unless the trace is compressed. Returns
/// the part to show first.
fn add_findings(path: &Path, whole: &mut WholeFile) -> Option<TraceView> {
    let bar = Bar::new(false);
    let found = read_findings(path.to_owned(), bar.progress());
    bar.end();
    let (view, lines) = found.ok()?;
    let mut end = [0; END.len()];
    let kept_bytes = whole
        .bytes
        .checked_sub(END.len() as u64)
        .filter(|at| whole.file.read_exact_at(&mut end, *at).is_ok());
    if let Some(bytes) = kept_bytes.filter(|_| end == *END) {
        let lines: String = lines.iter().map(|line| format!(",\n{line}")).collect();
        whole.more = [lines.as_bytes(), END].concat().into();
        whole.bytes = bytes;
    }
    Some(view)
}

/// Opens a file for reading. It must not wait if the file is a pipe without a writer.
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
