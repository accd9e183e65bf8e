//! This program: its words and its exit code, its children, and their directories.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use tempfile::TempDir;

/// Bytes that a child writes and removes before it starts: the file's pages then come from memory this machine has touched.
const WARM_BYTES: usize = 128 << 20;

/// Returns the words of the command line, except for the one that cargo adds.
pub fn words() -> Vec<String> {
    let words = std::env::args().skip(1);
    words.filter(|word| word != "--bench").collect()
}

/// Returns the exit code of a program, and prints its error.
#[expect(clippy::print_stderr, reason = "it is a program's error")]
pub fn exit_code(done: Result<(), String>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A child process to start.
#[derive(Debug)]
pub struct Child(Command);

impl Child {
    /// Prepares this program with these words, and without any variable that turns recording on.
    ///
    /// # Errors
    ///
    /// If the path of this program is not known.
    pub fn new<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Result<Child, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("SA_PROFILE_") {
                command.env_remove(name);
            }
        }
        Ok(Child(command))
    }

    /// Lets it record into `directory`.
    #[must_use]
    pub fn recording_in(self, directory: &Path) -> Child {
        self.variable("SA_PROFILE_DIR", directory)
    }

    /// Sets one of its environment variables.
    #[must_use]
    pub fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Child {
        self.0.env(name, value);
        self
    }

    /// Returns the command, for whoever watches or kills the child.
    pub fn into_command(self) -> Command {
        self.0
    }

    /// Runs it to its end and returns the lines that it printed.
    ///
    /// # Errors
    ///
    /// If it cannot be started, or fails.
    pub fn lines(mut self) -> Result<Vec<String>, String> {
        let output = self.0.stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| format!("{:?}: {error}", self.0))?;
        if !output.status.success() {
            return Err(format!("{:?}: {}", self.0, output.status));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().map(str::to_owned).collect())
    }
}

/// Returns the numbers of the line `word number number …` that has exactly `N` of them.
///
/// # Errors
///
/// If no line is one.
pub fn figures<const N: usize>(lines: &[String], word: &str) -> Result<[f64; N], String> {
    let parse = |line: &String| -> Option<[f64; N]> {
        let fields = line.strip_prefix(word)?.strip_prefix(' ')?.split(' ');
        let numbers: Option<Vec<f64>> = fields.map(|field| field.parse().ok()).collect();
        numbers?.try_into().ok()
    };
    let found = lines.iter().find_map(parse);
    found.ok_or_else(|| format!("expected a line {word} with {N} numbers, found {lines:?}"))
}

/// Makes a fresh directory in the build folder, which is removed when dropped.
///
/// # Errors
///
/// If it cannot be made.
pub fn scratch() -> Result<TempDir, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = program.parent().unwrap_or(Path::new("."));
    let made = tempfile::Builder::new().prefix("bench-").tempdir_in(folder);
    made.map_err(|error| format!("{}: {error}", folder.display()))
}

/// Writes and removes a file in `directory`.
///
/// # Errors
///
/// If it cannot be written.
pub fn warm_page_cache(directory: &Path) -> Result<(), String> {
    let path = directory.join("warm");
    let write = || -> std::io::Result<()> {
        let mut file = File::create(&path)?;
        let chunk = vec![1_u8; 1 << 20];
        for _ in 0..WARM_BYTES / chunk.len() {
            file.write_all(&chunk)?;
        }
        std::fs::remove_file(&path)
    };
    write().map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_word_and_exactly_as_many_numbers() {
        let lines = ["A 1", "B 1 x", "B 1 2.5", "BC 3"].map(str::to_owned);
        assert_eq!(figures(&lines, "A"), Ok([1.0]));
        assert_eq!(figures(&lines, "B"), Ok([1.0, 2.5]));
        assert!(figures::<1>(&lines, "B").is_err());
        assert!(figures::<1>(&lines, "C").is_err());
    }
}
