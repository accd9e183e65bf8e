//! Reads files of hooks. Such a file names Python functions, and the args that the spans of their calls have:
//!
//! ```
//! let text = "
//! hooks:
//!   - symbol: vllm.v1.core.sched.scheduler:Scheduler.schedule
//!     args:
//!       tokens: result.total_num_scheduled_tokens
//! ";
//! let file = sa_hooks::parse(text, "hooks.yaml".as_ref())?;
//! assert_eq!(file.hooks[0].function, "Scheduler.schedule");
//! # Ok::<(), sa_hooks::Error>(())
//! ```
//!
//! **Data flow.** A file becomes a tree with line numbers (`document`). A mapping with the key `hooks` is a file of ours and is checked strictly (`hook`).
//! A list is one of msServiceProfiler's or `ms_service_metric`'s files (`foreign`), where parts without a meaning here are collected and ignored.
//! The args of both are paths (`path`), which the Python package follows.
//!
//! This crate knows no Python. The extension of the package reads the file in each process, and `sa-profile run --hooks` before it starts the program.

mod document;
mod foreign;
mod hook;
mod ignored;
mod path;
mod version;

use std::fs;
use std::io::{self, Read};
use std::path::{Path as FilePath, PathBuf};

use document::{Problem, Value};

pub use hook::{Arg, Hook, Level};
pub use path::{Path, Root, Step};
pub use version::is_version_between;

/// Maximum size of a file. The lists of other profilers have about 5 kB. Each process reads the file, and compares each key with the others.
const MAX_BYTES: u64 = 1 << 17;

/// The hooks of a file.
#[derive(Debug)]
pub struct HookFile {
    /// The hooks, in the order of the file.
    pub hooks: Vec<Hook>,
    /// Parts of the file that have no meaning here, as a text for one line of stderr.
    pub ignored: Option<String>,
}

/// A reason why no hook of a file is used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        source: io::Error,
    },
    /// The file contains a mistake.
    #[error("{}:{line}: {problem}", path.display())]
    Wrong {
        /// Path of the file.
        path: PathBuf,
        /// Line of the mistake, from 1.
        line: usize,
        /// Description of what was expected and found.
        problem: String,
    },
}

/// Reads a file of hooks.
///
/// # Errors
/// Returns [`Error::Unreadable`] for a file that cannot be read, is not a regular file, is larger than 128 KiB or is not UTF-8. Otherwise returns the errors of
/// [`parse`].
pub fn read(path: &FilePath) -> Result<HookFile, Error> {
    let text = read_text(path).map_err(|source| Error::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    parse(&text, path)
}

fn read_text(path: &FilePath) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("expected a regular file"));
    }
    let mut text = String::new();
    let mut start = fs::File::open(path)?.take(MAX_BYTES + 1);
    if start.read_to_string(&mut text)? as u64 > MAX_BYTES {
        return Err(io::Error::other("expected at most 128 KiB"));
    }
    Ok(text)
}

/// Parses the text of a file of hooks. The path is only used in errors.
///
/// # Errors
/// Returns [`Error::Wrong`] if the text is not YAML, or if a file of ours contains something unknown.
pub fn parse(text: &str, path: &FilePath) -> Result<HookFile, Error> {
    hooks_in(text).map_err(|problem| Error::Wrong {
        path: path.to_owned(),
        line: problem.line,
        problem: problem.text,
    })
}

fn hooks_in(text: &str) -> Result<HookFile, Problem> {
    let root = document::parse(text)?;
    match &root.value {
        Value::List(entries) => Ok(foreign::from_list(entries)),
        Value::Map(members) if foreign::is_map_of_symbols(members) => {
            Ok(foreign::from_map(members))
        }
        Value::Map(members) => hook::from_map(members, root.line),
        _ => {
            let problem = format!("expected `hooks:` with a list, found {}", root.kind());
            Err(Problem::new(root.line, problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_read_is_an_error_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, content).unwrap();
            path
        };
        for (path, expected) in [
            (folder.path().join("none.yaml"), "none.yaml: No such file"),
            (folder.path().to_owned(), "expected a regular file"),
            (
                file("latin.yaml", b"\xe4"),
                "latin.yaml: stream did not contain valid UTF-8",
            ),
            (
                file("large.yaml", &vec![b'#'; 1 << 18]),
                "expected at most 128 KiB",
            ),
            (
                file("broken.yaml", b"hooks:\n  - ["),
                "broken.yaml:2: not YAML",
            ),
        ] {
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(
            read(&file("good.json", b"{\"hooks\": []}"))
                .unwrap()
                .hooks
                .is_empty()
        );
    }

    #[test]
    fn no_text_causes_a_panic() {
        let text =
            "hooks: [{symbol: 'a:b', args: {x: \"len(y[0])\"}}]\n- &a |\n  é\n--- !t\n? [*a]\n";
        for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
            let _ = hooks_in(&text[..end]);
            let _ = hooks_in(&text[end..]);
        }
        for deep in ["[", "- ", "{a: ", "? "] {
            let error = hooks_in(&deep.repeat(100_000)).unwrap_err();
            assert_eq!(error.line, 1, "{error:?}");
        }
    }
}
