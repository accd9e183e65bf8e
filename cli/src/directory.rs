//! Which run directory a command is about.

use crate::error::Error;
use sa_recorder::RunPaths;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where a run lies if nobody says so.
const DEFAULT: &str = "profile_out";

/// The run directory of a command.
#[derive(clap::Args)]
pub(crate) struct RunDirectory {
    /// Run directory [default: SA_PROFILE_DIR, else SA_PROFILE_OUTPUT, else ./profile_out]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl RunDirectory {
    /// The directory, which exists.
    pub(crate) fn resolve(&self) -> Result<PathBuf, Error> {
        existing(named(self.directory.as_deref(), |name| {
            std::env::var_os(name)
        }))
    }
}

/// The directory that is meant where none is named.
pub(crate) fn default() -> Result<PathBuf, Error> {
    existing(named(None, |name| std::env::var_os(name)))
}

fn existing(path: PathBuf) -> Result<PathBuf, Error> {
    if path.is_dir() {
        return Ok(path);
    }
    let found = if path.exists() { "a file" } else { "nothing" };
    Err(Error::Unusable(format!(
        "{}: expected a run directory, found {found}",
        path.display()
    )))
}

/// What the argument names, else the environment. A path ending in `.json` is that of a trace, as in `SA_PROFILE_OUTPUT`.
fn named(argument: Option<&Path>, variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    let of_output = |path: PathBuf| RunPaths::from_output(path).directory;
    match argument {
        Some(path) if path.is_dir() => path.to_owned(),
        Some(path) => of_output(path.to_owned()),
        None => match (set("SA_PROFILE_DIR"), set("SA_PROFILE_OUTPUT")) {
            (Some(directory), _) => directory.into(),
            (None, Some(output)) => of_output(output.into()),
            (None, None) => DEFAULT.into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_argument_wins_then_the_directory_then_the_older_variable() {
        let both = [("SA_PROFILE_DIR", "d"), ("SA_PROFILE_OUTPUT", "o.json")];
        for (argument, set, expected) in [
            (Some("a"), &both[..], "a"),
            (Some("a.json"), &[], "a.json.fragments"),
            (None, &both, "d"),
            (None, &both[1..], "o.json.fragments"),
            (None, &[("SA_PROFILE_DIR", "")], "profile_out"),
            (None, &[], "profile_out"),
        ] {
            let lookup = |name: &str| {
                let found = set.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| OsString::from(value))
            };
            let path = named(argument.map(Path::new), lookup);
            assert_eq!(path, Path::new(expected), "{argument:?} {set:?}");
        }
    }
}
