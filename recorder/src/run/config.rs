//! Builds the [`Config`] from the environment. This is the only place that names the variables.

use std::ffi::OsString;
use std::path::PathBuf;

use sa_format::{DEFAULT_DIRECTORY, Level};

/// Run directory. Setting it turns recording on.
pub(crate) const DIR: &str = "SA_PROFILE_DIR";
/// The older name of the run directory, or a path ending in `.json`.
pub(crate) const OUTPUT: &str = "SA_PROFILE_OUTPUT";
/// Comma-separated list of levels.
pub(crate) const LEVEL: &str = "SA_PROFILE_LEVEL";
/// Pid of the run's main process.
pub(crate) const MAIN_PID: &str = "SA_PROFILE_MAIN_PID";
/// Run id.
pub(crate) const RUN: &str = "SA_PROFILE_RUN";
/// Number of previous runs that the cleaning keeps.
pub(crate) const OLD_RUNS: &str = "SA_PROFILE_OLD_RUNS";
/// Limit on the disk space of a process in MiB.
pub(crate) const MAX_MB: &str = "SA_PROFILE_MAX_MB";
/// Events to keep at that limit.
pub(crate) const KEEP: &str = "SA_PROFILE_KEEP";
/// Mode of files, octal.
pub(crate) const MODE: &str = "SA_PROFILE_MODE";
/// `1` adds thread CPU time to spans.
pub(crate) const CPU: &str = "SA_PROFILE_CPU";
/// `paused` starts with recording switched off.
pub(crate) const START: &str = "SA_PROFILE_START";
/// `0` forbids the recorder a thread of its own; `1` requests it with the first event.
pub(crate) const THREADS: &str = "SA_PROFILE_THREADS";

const LEVEL_NAMES: &str = "e2e, kernel, verbose";
const KEEP_NAMES: [(&str, Keep); 2] = [("last", Keep::Last), ("first", Keep::First)];
const DEFAULT_MAX_MB: u32 = 4096;
/// Minimum limit. With fewer than four segments, removing one would discard most of the allowed
/// space.
const MIN_MAX_MB: u32 = 4;

/// A set of levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels(pub u32);

impl Levels {
    /// No level: recording is off.
    pub const NONE: Levels = Levels(0);
    /// Every level.
    pub const ALL: Levels = Levels(7);
    /// The levels recorded by default: `e2e,kernel`.
    pub const DEFAULT: Levels = Levels(3);

    /// Returns the set of the levels of detail in a list. `verbose` includes all levels.
    pub fn from_list(list: &[Level]) -> Levels {
        let bits = list.iter().map(|level| match level {
            Level::Verbose => Levels::ALL.0,
            level => level.bit(),
        });
        Levels(bits.fold(0, |all, bits| all | bits))
    }

    /// Returns the levels of detail in this set as a list.
    pub fn list(self) -> Vec<Level> {
        let all = [Level::E2e, Level::Kernel, Level::Verbose].into_iter();
        all.filter(|level| self.0 & level.bit() != 0).collect()
    }
}

/// The events that a process keeps when it has used up its disk space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// The most recent events: the oldest segments are removed.
    #[default]
    Last,
    /// The first events: later ones are only counted.
    First,
}

/// The time at which the recorder gets a thread of its own in a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// When the process has several threads anyway, has recorded for a while, or is switched by a
    /// control file.
    #[default]
    Auto,
    /// Never.
    Never,
    /// With the process's first event.
    AtOnce,
}

/// The configuration that the environment requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Locations of the run's files.
    pub paths: RunPaths,
    /// Levels to record.
    pub levels: Levels,
    /// True if recording starts switched off.
    pub paused: bool,
    /// Run id from the environment.
    pub run: Option<String>,
    /// Pid of the main process from the environment.
    pub main_pid: Option<u32>,
    /// Number of previous runs to keep; `None` for the runs of the last day, up to 20 runs or 1
    /// GiB.
    pub old_runs: Option<usize>,
    /// Maximum number of bytes that all segments of a process may have together.
    pub max_bytes: u64,
    /// Events to keep at that limit.
    pub keep: Keep,
    /// Mode of files. Directories also get the search bits.
    pub mode: u32,
    /// True if spans carry thread CPU time.
    pub cpu: bool,
    /// Time at which the recorder gets a thread of its own.
    pub threads: Threads,
    /// Problems with the variables, for one line on stderr.
    pub warnings: Vec<String>,
}

/// Locations of a run's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPaths {
    /// Folder with `run`, `previous/` and the fragments folder.
    pub directory: PathBuf,
    /// Folder of the fragments.
    pub fragments: PathBuf,
    /// Path of the merged trace.
    pub trace: PathBuf,
}

impl RunPaths {
    /// Returns the paths of a run whose run directory is `directory`.
    pub fn in_directory(directory: PathBuf) -> RunPaths {
        RunPaths {
            fragments: directory.join(sa_format::FRAGMENTS_DIR),
            trace: directory.join(sa_format::TRACE_FILE),
            directory,
        }
    }

    /// Returns the paths of a run for the value of the older variable `SA_PROFILE_OUTPUT`. It is a
    /// directory, or a `.json` path with the fragments in a folder next to it.
    pub fn from_output(output: PathBuf) -> RunPaths {
        let extension = output.extension();
        if extension.is_none_or(|extension| extension != "json") {
            return RunPaths::in_directory(output);
        }
        let mut folder_name = output.clone().into_os_string();
        folder_name.push(".fragments");
        let folder = PathBuf::from(folder_name);
        RunPaths {
            fragments: folder.clone(),
            trace: output,
            directory: folder,
        }
    }
}

impl Config {
    /// Builds the configuration from the variables that `lookup` returns. Returns `None` if no
    /// variable turns recording on.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Option<Config> {
        let mut variables = Variables {
            lookup: &lookup,
            warnings: Vec::new(),
        };
        let (directory, output) = (variables.set(DIR), variables.set(OUTPUT));
        if directory.is_none() && output.is_none() && variables.set(LEVEL).is_none() {
            return None;
        }
        let paths = variables.paths(directory, output);
        let paused = variables
            .choice(START, "\"paused\"", &[("paused", ())])
            .is_some();
        let choices = [("0", Threads::Never), ("1", Threads::AtOnce)];
        let threads = variables
            .choice(THREADS, "0 or 1", &choices)
            .unwrap_or_default();
        if paused && threads == Threads::Never {
            variables.warnings.push(format!(
                "{START}=paused with {THREADS}=0: no thread checks the control file, so recording cannot be switched on"
            ));
        }
        Some(Config {
            paths,
            levels: variables.levels(),
            paused,
            run: variables.run_id(),
            main_pid: variables.number(MAIN_PID),
            old_runs: variables.number(OLD_RUNS).map(|runs| runs as usize),
            max_bytes: variables.max_bytes(),
            keep: (variables.choice(KEEP, "last or first", &KEEP_NAMES)).unwrap_or_default(),
            mode: variables.mode().unwrap_or(0o600),
            cpu: variables.choice(CPU, "0 or 1", &[("0", false), ("1", true)]) == Some(true),
            threads,
            warnings: variables.warnings,
        })
    }
}

/// Access to the variables of the environment, and the warnings about them.
struct Variables<'a> {
    lookup: &'a dyn Fn(&str) -> Option<OsString>,
    warnings: Vec<String>,
}

impl Variables<'_> {
    /// Returns the value of a variable, or `None` if it is not set or empty.
    fn set(&self, name: &str) -> Option<OsString> {
        (self.lookup)(name).filter(|value| !value.is_empty())
    }

    fn text(&self, name: &str) -> Option<String> {
        let value = self.set(name)?;
        Some(value.to_string_lossy().trim().to_owned())
    }

    /// Parses the value of a variable if it is set. Adds a warning and returns `None` if `parse`
    /// rejects the value; `expected` describes the valid ones.
    fn parse<T>(
        &mut self,
        name: &str,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(name)?;
        parse(&text).or_else(|| self.warn(name, expected, &text))
    }

    /// Parses a variable that selects one of several words, ignoring case, and returns the value
    /// that belongs to the word. For another word, adds a warning and returns `None`. Also returns
    /// `None` if the variable is not set.
    fn choice<T: Copy>(&mut self, name: &str, expected: &str, words: &[(&str, T)]) -> Option<T> {
        self.parse(name, expected, |text| {
            let mut words = words.iter();
            let choice = words.find(|(word, _)| word.eq_ignore_ascii_case(text))?;
            Some(choice.1)
        })
    }

    fn warn<T>(&mut self, name: &str, expected: &str, found: &str) -> Option<T> {
        let warning = format!("{name}: expected {expected}, found {found:?}");
        self.warnings.push(warning);
        None
    }

    fn paths(&mut self, directory: Option<OsString>, output: Option<OsString>) -> RunPaths {
        let output = output.map(|output| RunPaths::from_output(PathBuf::from(output)));
        let Some(directory) = directory.map(PathBuf::from) else {
            return output.unwrap_or_else(|| RunPaths::in_directory(DEFAULT_DIRECTORY.into()));
        };
        if output.is_some_and(|output| output.directory != directory) {
            let warning = format!("{DIR} and {OUTPUT} differ: {OUTPUT} is ignored");
            self.warnings.push(warning);
        }
        RunPaths::in_directory(directory)
    }

    fn levels(&mut self) -> Levels {
        let text = self.text(LEVEL).unwrap_or_default();
        let words = text.split(',').map(str::trim);
        let mut levels = 0;
        for word in words.filter(|word| !word.is_empty()) {
            match word.to_ascii_lowercase().as_str() {
                "e2e" => levels |= Level::E2e.bit(),
                "kernel" => levels |= Level::Kernel.bit(),
                "verbose" => levels |= Levels::ALL.0,
                _ => self.warnings.push(format!(
                    "{LEVEL}: unknown level {word:?}, expected {LEVEL_NAMES}"
                )),
            }
        }
        match levels {
            0 => Levels::DEFAULT,
            levels => Levels(levels),
        }
    }

    fn run_id(&mut self) -> Option<String> {
        let id = |run: &str| (is_folder_name(run) && run.len() <= 128).then(|| run.to_owned());
        self.parse(RUN, "up to 128 letters, digits, '.', '_' or '-'", id)
    }

    fn number(&mut self, name: &str) -> Option<u32> {
        self.parse(name, "a number", |text| text.parse().ok())
    }

    fn max_bytes(&mut self) -> u64 {
        let mebibytes = self.number(MAX_MB).unwrap_or(DEFAULT_MAX_MB);
        if mebibytes < MIN_MAX_MB {
            self.warnings.push(format!(
                "{MAX_MB}: expected {MIN_MAX_MB} or more, found {mebibytes}, using {MIN_MAX_MB}"
            ));
        }
        u64::from(mebibytes.max(MIN_MAX_MB)) << 20
    }

    fn mode(&mut self) -> Option<u32> {
        const EXPECTED: &str = "read and write for the owner and no execute bits, such as 0640";
        let text = self.text(MODE)?;
        let digits = text.strip_prefix("0o").unwrap_or(&text);
        match u32::from_str_radix(digits, 8) {
            Ok(mode) if mode & 0o600 == 0o600 && mode & !0o666 == 0 => Some(mode),
            Ok(_) => self.warn(MODE, EXPECTED, &text),
            Err(_) => self.warn(MODE, "an octal number", digits),
        }
    }
}

/// Returns true if a run id can name a folder: it has only letters, digits, `.`, `_` and `-`, and
/// does not begin with a dot.
pub(crate) fn is_folder_name(run: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    run.bytes().all(is_plain) && !run.starts_with('.')
}

/// Returns the variables that let child processes in other working directories find and join a run
/// at `paths`, which must be absolute. The directory goes into the variable that the user chose,
/// according to `lookup`. If another variable would override that one, it is included as an empty
/// variable, which counts as not set.
pub(crate) fn exported_variables(
    lookup: impl Fn(&str) -> Option<OsString>,
    paths: &RunPaths,
    run: &str,
    main_pid: u32,
) -> Vec<(&'static str, OsString)> {
    let is_set = |name| lookup(name).is_some_and(|value| !value.is_empty());
    let is_file = paths.fragments == paths.directory;
    let path = if is_file {
        &paths.trace
    } else {
        &paths.directory
    };
    let by_output = is_file || is_set(OUTPUT) && !is_set(DIR);
    let name = if by_output { OUTPUT } else { DIR };
    let mut all = vec![(name, path.into())];
    if name == OUTPUT && is_set(DIR) {
        all.push((DIR, OsString::new()));
    }
    all.push((RUN, run.into()));
    if main_pid != 0 {
        all.push((MAIN_PID, main_pid.to_string().into()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn config(variables: &[(&str, &str)]) -> Option<Config> {
        Config::from_lookup(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn nothing_set_is_off() {
        assert_eq!(config(&[]), None);
        assert_eq!(config(&[(DIR, ""), (RUN, "x")]), None);
        assert_eq!(config(&[(DIR, ""), (OUTPUT, ""), (LEVEL, "")]), None);
        assert_eq!(config(&[(START, "paused")]), None);
    }

    #[test]
    fn directory_wins_with_one_warning() {
        let both = config(&[(DIR, "/a"), (OUTPUT, "/b")]).unwrap();
        assert_eq!(both.paths.fragments, Path::new("/a/fragments"));
        assert_eq!(both.warnings.len(), 1);
        let same = config(&[(DIR, "/a"), (OUTPUT, "/a")]).unwrap();
        assert!(same.warnings.is_empty());
        let paths = config(&[(OUTPUT, "/a/x.json")]).unwrap().paths;
        assert_eq!(paths.trace, Path::new("/a/x.json"));
        assert_eq!(paths.fragments, Path::new("/a/x.json.fragments"));
    }

    #[test]
    fn children_get_the_absolute_path_in_the_users_variable() {
        for (name, value, exported, path) in [
            (DIR, "x", DIR, "/cwd/x"),
            (OUTPUT, "x", OUTPUT, "/cwd/x"),
            (OUTPUT, "x.json", OUTPUT, "/cwd/x.json"),
            (LEVEL, "e2e", DIR, "/cwd/profile_out"),
        ] {
            let paths = config(&[(name, value)]).unwrap().paths;
            let paths = RunPaths {
                directory: Path::new("/cwd").join(paths.directory),
                fragments: Path::new("/cwd").join(paths.fragments),
                trace: Path::new("/cwd").join(paths.trace),
            };
            let lookup = |asked: &str| (asked == name).then(|| OsString::from(value));
            let variables = exported_variables(lookup, &paths, "r", 1);
            assert_eq!(variables[0], (exported, path.into()), "{name}={value}");
        }
    }

    #[test]
    fn levels_table() {
        for (text, bits, warned) in [
            (" ", 3, 0),
            ("e2e", 1, 0),
            (" Kernel ,E2E", 3, 0),
            ("verbose", 7, 0),
            ("kernel,bogus", 2, 1),
            ("bogus", 3, 1),
            (",,", 3, 0),
        ] {
            let config = config(&[(LEVEL, text)]).unwrap();
            let found = (config.levels.0, config.warnings.len());
            assert_eq!(found, (bits, warned), "{text:?}");
            assert_eq!(config.paths.directory, Path::new("profile_out"));
        }
    }

    #[test]
    fn verbose_in_a_list_means_all() {
        use Level::{E2e, Kernel, Verbose};
        for (list, levels) in [
            (vec![], Levels::NONE),
            (vec![Kernel], Levels(2)),
            (vec![E2e, Kernel], Levels::DEFAULT),
            (vec![Verbose], Levels::ALL),
        ] {
            assert_eq!(Levels::from_list(&list), levels);
            assert_eq!(Levels::from_list(&levels.list()), levels);
        }
    }

    #[test]
    fn a_value_applies_or_warns() {
        type Change = fn(&mut Config);
        let nothing: Change = |_| {};
        let cases: [(&str, &str, Change, usize); 24] = [
            (THREADS, "0", |config| config.threads = Threads::Never, 0),
            (THREADS, "1", |config| config.threads = Threads::AtOnce, 0),
            (THREADS, "2", nothing, 1),
            (START, " Paused ", |config| config.paused = true, 0),
            (START, "", nothing, 0),
            (START, "off", nothing, 1),
            (OLD_RUNS, "3", |config| config.old_runs = Some(3), 0),
            (OLD_RUNS, "many", nothing, 1),
            (MODE, "0640", |config| config.mode = 0o640, 0),
            (MODE, "0700", nothing, 1),
            (MODE, "9", nothing, 1),
            (CPU, "1", |config| config.cpu = true, 0),
            (CPU, "yes", nothing, 1),
            (MAIN_PID, "42", |config| config.main_pid = Some(42), 0),
            (MAIN_PID, "-1", nothing, 1),
            (RUN, "r-1", |config| config.run = Some("r-1".to_owned()), 0),
            (RUN, "../x", nothing, 1),
            (MAX_MB, "100", |config| config.max_bytes = 100 << 20, 0),
            (MAX_MB, "4", |config| config.max_bytes = 4 << 20, 0),
            (MAX_MB, "3", |config| config.max_bytes = 4 << 20, 1),
            (MAX_MB, "lots", nothing, 1),
            (MAX_MB, "-1", nothing, 1),
            (KEEP, "First", |config| config.keep = Keep::First, 0),
            (KEEP, "newest", nothing, 1),
        ];
        for (name, value, apply, warned) in cases {
            let mut expected = config(&[(DIR, "/a")]).unwrap();
            apply(&mut expected);
            let mut found = config(&[(DIR, "/a"), (name, value)]).unwrap();
            let warnings = std::mem::take(&mut found.warnings);
            assert_eq!(found, expected, "{name}={value}");
            assert_eq!(warnings.len(), warned, "{name}={value}");
            assert!(warnings.iter().all(|warning| warning.contains(name)));
        }
        let unseen = config(&[(DIR, "/a"), (THREADS, "0"), (START, "paused")]).unwrap();
        assert_eq!(unseen.warnings.len(), 1);
        let default = config(&[(DIR, "/a")]).unwrap();
        assert_eq!((default.mode, default.max_bytes), (0o600, 4096 << 20));
        assert_eq!((default.keep, default.threads), (Keep::Last, Threads::Auto));
    }
}
