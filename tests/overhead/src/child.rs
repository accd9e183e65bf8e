//! Children: this program again, with a task of its own.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// A child to start.
#[derive(Debug)]
pub(crate) struct Child(Command);

impl Child {
    /// This program with these words, and no variable that turns recording on.
    pub(crate) fn new<W: AsRef<OsStr>>(words: &[W]) -> Result<Child, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        Ok(Child::of(program.as_os_str()).words(words))
    }

    /// Another program.
    pub(crate) fn of(program: &OsStr) -> Child {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stderr(Stdio::inherit());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("SA_PROFILE_") {
                command.env_remove(name);
            }
        }
        Child(command)
    }

    pub(crate) fn words<W: AsRef<OsStr>>(mut self, words: &[W]) -> Child {
        self.0.args(words);
        self
    }

    /// Records into `directory`.
    pub(crate) fn recording_in(self, directory: &Path) -> Child {
        self.variable("SA_PROFILE_DIR", directory.as_os_str())
    }

    pub(crate) fn variable(mut self, name: &str, value: &OsStr) -> Child {
        self.0.env(name, value);
        self
    }

    pub(crate) fn into_command(self) -> Command {
        self.0
    }

    /// Runs it and returns the lines it printed.
    pub(crate) fn lines(mut self) -> Result<Vec<String>, String> {
        let output = self.0.output();
        let output = output.map_err(|error| format!("{:?}: {error}", self.0))?;
        if !output.status.success() {
            return Err(format!("{:?}: {}", self.0, output.status));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().map(str::to_owned).collect())
    }
}

/// Reads a line `word number number …` of exactly `N` numbers.
pub(crate) fn figures<const N: usize>(line: &str, word: &str) -> Option<[f64; N]> {
    let fields = line.strip_prefix(word)?.strip_prefix(' ')?.split(' ');
    let fields: Vec<f64> = fields
        .map(|field| field.parse().ok())
        .collect::<Option<_>>()?;
    fields.try_into().ok()
}

/// The one line of a child that has these figures.
pub(crate) fn only<const N: usize>(lines: &[String], word: &str) -> Result<[f64; N], String> {
    let found = lines.iter().find_map(|line| figures(line, word));
    found.ok_or_else(|| format!("expected a line {word} with {N} numbers, found {lines:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_word_and_exactly_as_many_numbers() {
        assert_eq!(figures("ROUND 1 2.5", "ROUND"), Some([1.0, 2.5]));
        assert_eq!(figures::<2>("ROUND 1", "ROUND"), None);
        assert_eq!(figures::<1>("ROUND 1 2", "ROUND"), None);
        assert_eq!(figures::<1>("ROUNDS 1", "ROUND"), None);
        assert_eq!(figures::<1>("ROUND x", "ROUND"), None);
        assert!(only::<1>(&["A 1".to_owned()], "B").is_err());
    }
}
