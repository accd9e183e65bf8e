//! The trace that is served: a file, the name it has in links, and whether somebody has fetched it whole.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One file to serve.
#[derive(Debug)]
pub(crate) struct Served {
    path: PathBuf,
    /// Its name in links: nothing in it needs an escape.
    pub(crate) name: String,
    /// Set when a reader of it came to the end.
    fetched: Arc<AtomicBool>,
}

impl Served {
    /// Checks that there is something to serve: a trace, or the one in a run directory.
    pub(crate) fn open(path: &Path) -> Result<Served, String> {
        let of_run = ["trace.json", "trace.json.gz"].map(|name| path.join(name));
        let of_run = of_run.iter().find(|trace| trace.is_file());
        let path = of_run.map_or(path, PathBuf::as_path);
        let wrong = |what: &str| format!("{}: {what}", path.display());
        let file = File::open(path).map_err(|error| wrong(&error.to_string()))?;
        let metadata = file.metadata().map_err(|error| wrong(&error.to_string()))?;
        if metadata.is_dir() {
            return Err(wrong(
                "expected a trace, found a directory without trace.json: trace-merge makes it of a run directory",
            ));
        }
        if !metadata.is_file() || metadata.len() == 0 {
            return Err(wrong("expected a trace, found nothing to read"));
        }
        Ok(Served {
            path: path.to_owned(),
            name: link_name(path),
            fetched: Arc::default(),
        })
    }

    /// The file from its beginning, and its length. Nothing of it is kept in memory.
    pub(crate) fn read(&self) -> io::Result<(Whole, usize)> {
        let file = File::open(&self.path)?;
        let bytes = file.metadata()?.len();
        let length = usize::try_from(bytes).map_err(io::Error::other)?;
        let whole = Whole {
            file,
            left: bytes,
            fetched: Arc::clone(&self.fetched),
        };
        Ok((whole, length))
    }

    /// Whether the last byte was asked for.
    pub(crate) fn is_fetched(&self) -> bool {
        self.fetched.load(Ordering::Acquire)
    }
}

/// A reader of as many bytes as the file had; a file that shrinks meanwhile is an error, so that nobody takes half of it for all.
#[derive(Debug)]
pub(crate) struct Whole {
    file: File,
    left: u64,
    fetched: Arc<AtomicBool>,
}

impl Read for Whole {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            self.fetched.store(true, Ordering::Release);
            return Ok(0);
        }
        let wanted = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let read = self.file.read(&mut buffer[..wanted])?;
        if read == 0 && wanted > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        Ok(read)
    }
}

/// The file's name with everything but letters, digits, `.`, `_` and `-` replaced.
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

    #[test]
    fn a_name_in_a_link_needs_no_escape() {
        assert_eq!(
            link_name(Path::new("/a/b c#?&%ü.json.gz")),
            "b_c_____.json.gz"
        );
    }

    #[test]
    fn a_file_is_fetched_when_its_end_was_read_and_not_before() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("t.json");
        std::fs::write(&path, "0123456789").unwrap();
        let served = Served::open(&path).unwrap();
        let (mut whole, length) = served.read().unwrap();
        assert_eq!(length, 10);
        let mut buffer = [0; 6];
        assert_eq!(whole.read(&mut buffer).unwrap(), 6);
        assert_eq!(whole.read(&mut buffer).unwrap(), 4);
        assert!(!served.is_fetched());
        assert_eq!(whole.read(&mut buffer).unwrap(), 0);
        assert!(served.is_fetched());
    }

    #[test]
    fn a_file_that_shrinks_is_an_error_and_one_that_grows_is_cut() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("t.json");
        std::fs::write(&path, "0123456789").unwrap();
        let served = Served::open(&path).unwrap();
        let (mut whole, _) = served.read().unwrap();
        std::fs::write(&path, "0123").unwrap();
        let mut text = String::new();
        assert!(whole.read_to_string(&mut text).is_err() && !served.is_fetched());
        let (mut whole, _) = served.read().unwrap();
        std::fs::write(&path, "0123456789").unwrap();
        text.clear();
        whole.read_to_string(&mut text).unwrap();
        assert_eq!(text, "0123");
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let empty = root.path().join("empty");
        std::fs::write(&empty, "").unwrap();
        for (path, problem) in [
            (root.path(), "found a directory"),
            (&empty, "found nothing to read"),
            (&root.path().join("none"), "No such file"),
        ] {
            let refused = Served::open(path).unwrap_err();
            assert!(refused.contains(problem), "{refused}");
        }
    }
}
