//! Finds the run that a command uses: the one that its argument or the environment names, or the newest.

use crate::error::Error;
use crate::words::say;
use sa_format::DEFAULT_DIRECTORY;
use sa_recorder::RunPaths;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use trace_merge::Runs;
use trace_merge::survey::{FoundRuns, find_live_run, find_runs};

/// The run directory of a command.
#[derive(clap::Args)]
pub(crate) struct RunDirectory {
    /// Run directory [default: the newest run in SA_PROFILE_DIR, else ./profile_out]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl RunDirectory {
    /// Returns the directory of the newest run.
    pub(crate) fn newest(&self) -> Result<PathBuf, Error> {
        newest(self.directory.as_deref())
    }

    /// Returns the directory of the newest run with a process that is recording.
    pub(crate) fn live(&self) -> Result<PathBuf, Error> {
        live(self.directory.as_deref())
    }
}

/// Returns the directory of the newest run, in `argument` if there is one.
pub(crate) fn newest(argument: Option<&Path>) -> Result<PathBuf, Error> {
    let (directory, is_named) = existing(argument)?;
    let found = find_runs(std::slice::from_ref(&directory), is_named, &Runs::Newest)?;
    Ok(announce(found).paths.pop().unwrap_or(directory))
}

/// Returns the directory of the newest run with a process that is recording, in `argument` if there is one.
pub(crate) fn live(argument: Option<&Path>) -> Result<PathBuf, Error> {
    let (directory, is_named) = existing(argument)?;
    let found = find_live_run(&directory, is_named)?;
    Ok(announce(found).paths.pop().unwrap_or(directory))
}

/// Returns the directory of the newest run in a directory, if it contains any.
pub(crate) fn newest_in(directory: &Path, is_named: bool) -> Option<PathBuf> {
    let found = find_runs(&[directory.to_owned()], is_named, &Runs::Newest).ok()?;
    announce(found).paths.pop()
}

/// Returns the paths to read and the runs to select for the paths of a command. A directory is replaced by its run; fragments, traces and patterns
/// stay as they are.
pub(crate) fn inputs(paths: Vec<PathBuf>, runs: &Runs) -> Result<(Vec<PathBuf>, Runs), Error> {
    let are_named = !paths.is_empty();
    let paths = match are_named {
        true => paths,
        false => vec![existing(None)?.0],
    };
    let found = announce(find_runs(&paths, are_named, runs)?);
    Ok((found.paths, found.runs))
}

/// Prints which runs were chosen.
fn announce(found: FoundRuns) -> FoundRuns {
    found.notices.iter().for_each(|notice| say(notice));
    found
}

/// Returns the directory of a command if it exists, and true if the user named it.
fn existing(argument: Option<&Path>) -> Result<(PathBuf, bool), Error> {
    let path = requested_path(argument, |name| std::env::var_os(name));
    if path.is_dir() {
        return Ok((path, argument.is_some()));
    }
    let found = if path.exists() { "a file" } else { "nothing" };
    Err(Error::Unusable(format!(
        "{}: expected a run directory, found {found}",
        path.display()
    )))
}

/// Returns the directory in the argument, or in the environment. A path that ends in `.json` names a trace, as in `SA_PROFILE_OUTPUT`.
fn requested_path(argument: Option<&Path>, variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    let output_directory = |path: PathBuf| RunPaths::from_output(path).directory;
    match argument {
        Some(path) if path.is_dir() => path.to_owned(),
        Some(path) => output_directory(path.to_owned()),
        None => match (set("SA_PROFILE_DIR"), set("SA_PROFILE_OUTPUT")) {
            (Some(directory), _) => directory.into(),
            (None, Some(output)) => output_directory(output.into()),
            (None, None) => DEFAULT_DIRECTORY.into(),
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
            let path = requested_path(argument.map(Path::new), lookup);
            assert_eq!(path, Path::new(expected), "{argument:?} {set:?}");
        }
    }
}
