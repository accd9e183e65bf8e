//! The environment variables that make all processes of the command record into one run. The functions get variables by a lookup function.

use sa_recorder::Config;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Settings of a run that the command gets as variables.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Run directory, as an absolute path.
    pub(crate) directory: PathBuf,
    /// Run id.
    pub(crate) run: String,
    /// Levels, if the user chose any.
    pub(crate) levels: Option<String>,
    /// Disk space of each process in MiB, if the user set it.
    pub(crate) max_mb: Option<u32>,
    /// Library to load before the user's own preloaded libraries.
    pub(crate) preload: Option<PathBuf>,
    /// Folder from which Python imports a module at its start.
    pub(crate) python: Option<PathBuf>,
    /// True if the stacks of Python processes are sampled.
    pub(crate) samples: bool,
    /// File that names Python functions to record, as an absolute path.
    pub(crate) hooks: Option<PathBuf>,
    /// Python functions to record as spans, if the user named any.
    pub(crate) track: Vec<String>,
    /// True if asyncio tasks are recorded.
    pub(crate) tasks: bool,
}

impl Settings {
    /// Returns the variables to set, and those to remove (`None`).
    pub(crate) fn variables(
        &self,
        lookup: impl Fn(&str) -> Option<OsString>,
    ) -> Vec<(&'static str, Option<OsString>)> {
        let mut variables = vec![
            (
                "SA_PROFILE_DIR",
                Some(self.directory.clone().into_os_string()),
            ),
            ("SA_PROFILE_OUTPUT", None), // the older variable for the directory
            ("SA_PROFILE_RUN", Some(self.run.clone().into())),
            // The run has no main process. With this variable, a process would treat the run as over when the main process and all others have ended.
            ("SA_PROFILE_MAIN_PID", None),
        ];
        if let Some(levels) = &self.levels {
            variables.push(("SA_PROFILE_LEVEL", Some(levels.into())));
        }
        if let Some(bound) = self.max_mb {
            variables.push(("SA_PROFILE_MAX_MB", Some(bound.to_string().into())));
        }
        if let Some(library) = &self.preload {
            let all = prepended(library.as_os_str(), lookup("LD_PRELOAD"));
            variables.push(("LD_PRELOAD", Some(all)));
        }
        if let Some(folder) = &self.python {
            let all = prepended(folder.as_os_str(), lookup("PYTHONPATH"));
            variables.push(("PYTHONPATH", Some(all)));
        }
        if let Some(file) = &self.hooks {
            let path = || Some(file.clone().into_os_string());
            variables.push(("SA_PROFILE_HOOKS", path()));
            // This command has already checked the file.
            variables.push(("SA_PROFILE_HOOKS_REPORTED", path()));
            if !self.samples && lookup("SA_PROFILE_SAMPLE_MS").is_none() {
                variables.push(("SA_PROFILE_SAMPLE_MS", Some("0".into())));
            }
        }
        if !self.track.is_empty() {
            variables.push(("SA_PROFILE_TRACK", Some(self.track.join(",").into())));
        }
        if self.tasks {
            variables.push(("SA_PROFILE_TASKS", Some("1".into())));
        }
        variables
    }
}

/// Returns a list of paths with ours before the user's. An empty list is left out: an empty path in `PYTHONPATH` would mean the working directory.
fn prepended(ours: &OsStr, others: Option<OsString>) -> OsString {
    let mut all = ours.to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}

/// Returns the recorder's configuration for one variable, together with some directory.
fn config_with(name: &str, value: &OsStr) -> Option<Config> {
    Config::from_lookup(|wanted| match wanted {
        "SA_PROFILE_DIR" => Some("x".into()),
        _ => (wanted == name).then(|| value.to_owned()),
    })
}

/// Returns the run id: the one that the user set, so that several hosts can record one run, or a new one. An id that a recording process has set for
/// its children is ignored.
pub(crate) fn run_id(variable: impl Fn(&str) -> Option<OsString>) -> Result<String, String> {
    let given = variable("SA_PROFILE_RUN").filter(|_| variable("SA_PROFILE_MAIN_PID").is_none());
    let config = given.and_then(|given| config_with("SA_PROFILE_RUN", &given));
    match config.map(|config| (config.run, config.warnings)) {
        Some((Some(run), _)) => Ok(run),
        Some((None, warnings)) => Err(warnings.join("; ")),
        None => Ok(sa_recorder::new_run_id()),
    }
}

/// Returns the mode for directories: the file mode from `SA_PROFILE_MODE`, plus search permission for everyone who may read.
pub(crate) fn folder_mode(variable: impl Fn(&str) -> Option<OsString>) -> u32 {
    let config = variable("SA_PROFILE_MODE").and_then(|mode| config_with("SA_PROFILE_MODE", &mode));
    let files = config.map_or(0o600, |config| config.mode);
    files | (files & 0o444) >> 2
}

/// Checks a list of levels. The recorder would only warn about an unknown level, in every process; here it is an error.
pub(crate) fn levels(text: &str) -> Result<String, String> {
    checked_config("SA_PROFILE_LEVEL", text).map(|_| text.to_owned())
}

/// Parses a disk limit in the same way as the recorder.
pub(crate) fn disk_bound(text: &str) -> Result<u32, String> {
    let config = checked_config("SA_PROFILE_MAX_MB", text)?;
    u32::try_from(config.max_bytes >> 20).map_err(|error| error.to_string())
}

/// Checks the name of a Python function for `--track`.
pub(crate) fn track(text: &str) -> Result<String, String> {
    match text.split_once(':') {
        Some((module, function))
            if !module.is_empty() && !function.is_empty() && !text.contains(',') =>
        {
            Ok(text.to_owned())
        }
        _ => Err("expected MODULE:FUNCTION, such as package.module:Class.method".to_owned()),
    }
}

/// Returns the recorder's configuration for a value. If the recorder would warn about it, returns the warning as an error.
fn checked_config(name: &str, text: &str) -> Result<Config, String> {
    let config = config_with(name, text.as_ref())
        .filter(|_| !text.trim().is_empty())
        .ok_or("expected a value, found none")?;
    match config.warnings.first() {
        Some(warning) => Err(warning.trim_start_matches(&format!("{name}: ")).to_owned()),
        None => Ok(config),
    }
}

/// Parses the path of the trace. Standard output is not allowed, because the command uses it.
pub(crate) fn trace_file(text: &str) -> Result<PathBuf, String> {
    match text {
        "-" => Err("expected a file: the standard output is the command's".to_owned()),
        _ => Ok(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sa_format::run_folder_name;

    #[test]
    fn the_users_run_id_is_used_and_a_recorders_is_not() {
        let run = |run: &'static str, main: Option<&'static str>| {
            run_id(move |name| match name {
                "SA_PROFILE_RUN" => Some(run.into()),
                "SA_PROFILE_MAIN_PID" => main.map(OsString::from),
                _ => None,
            })
        };
        assert_eq!(run("job-7", None).unwrap(), "job-7");
        assert_ne!(run("job-7", Some("1")).unwrap(), "job-7");
        assert!(run("../x", None).unwrap_err().contains("SA_PROFILE_RUN"));
        let made_up = run_id(|_| None).unwrap();
        assert_eq!(run_folder_name(&made_up), &made_up[..15]);
    }

    #[test]
    fn folders_can_be_searched_where_files_can_be_read() {
        for (files, folders) in [("0640", 0o750), ("0600", 0o700), ("junk", 0o700)] {
            assert_eq!(folder_mode(|_| Some(files.into())), folders, "{files}");
        }
    }
}
