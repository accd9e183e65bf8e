//! Determines the run of this process: its own (then it is the main process and cleans the
//! directory), or a live one that it joins.

pub(crate) mod announced;
mod next;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::path::PathBuf;

use crate::run::config::Config;
use crate::run::folder::{folder_mode, parse, store};
use crate::run::owner::{is_owned, may_live, read_header, run_file};
use crate::run::{cleaning, control, identity};
use crate::sys::clock;
use crate::sys::dir::Dir;
use crate::sys::fd::{self, Numbered};
use sa_format::{FragmentHeader, RUN_FILE, RunFile, is_fragment_name};

/// Time in ns to wait for another process that is setting up the directory.
const PATIENCE_NS: u64 = 500_000_000;

/// The run of this process.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) main: bool,
    pub(crate) main_pid: u32,
    /// The locked run file, if this is the main process.
    pub(crate) lock: Option<Numbered>,
    /// Current run of the main process, if that process has not begun this one yet.
    pub(crate) ahead_of: Option<String>,
}

/// The previous recording of this process, which it ended to begin a new one.
#[derive(Debug)]
pub(crate) struct PreviousRecording {
    pub(crate) run: Run,
    pub(crate) directory: PathBuf,
    pub(crate) name: ProcessName,
}

/// The names of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessName {
    /// Name that the program gave it; empty if none.
    pub(crate) own: String,
    /// Name of the process that forked it, as in the header of its fragment.
    pub(crate) forked_from: Option<String>,
}

impl Run {
    /// Returns the run `id` as this process sees it after joining: the main process is another one.
    fn joined(id: String, main_pid: u32) -> Run {
        Run {
            id,
            main: false,
            main_pid,
            lock: None,
            ahead_of: None,
        }
    }

    /// Returns the run as a forked child of this process sees it. The child is not the main process
    /// and does not hold the run file's lock.
    pub(crate) fn for_child(&self) -> Run {
        Run {
            main: false,
            lock: None,
            ..self.clone()
        }
    }

    /// Returns the ids of the runs whose control files this process follows. A process that is
    /// ahead of its main process is in the same trace, so it also follows the main process's run.
    pub(crate) fn ids(&self) -> Vec<String> {
        let ids = [Some(&self.id), self.ahead_of.as_ref()];
        ids.into_iter().flatten().cloned().collect()
    }
}

/// Joins a live run or begins a new one when the first recording of this process starts, and
/// creates the directories. `identity` is the header of this process. Returns the run and the
/// folder of its fragments.
///
/// # Errors
///
/// Returns an error if the directory cannot be created, or if it contains something that must not
/// be touched.
pub(crate) fn enter(
    config: &Config,
    identity: &FragmentHeader,
    warnings: &mut Vec<String>,
) -> io::Result<(Run, Dir)> {
    enter_as(config, identity, warnings, |entrance| {
        if let Some(run) = announced::begin(entrance)? {
            return Ok(run);
        }
        match entrance.run_from_environment() {
            Some(run) => Ok(run),
            None => entrance.join_or_start(),
        }
    })
}

/// Joins or begins a run for a new recording in the same process, after the recording `before`, and
/// creates the directories. The main process begins a new run. Any other process joins the run that
/// the main process has begun since, or is about to begin. The environment is ignored for this
/// because it is older.
///
/// # Errors
///
/// Same as [`enter`].
pub(crate) fn enter_anew(
    config: &Config,
    identity: &FragmentHeader,
    before: Option<&PreviousRecording>,
    warnings: &mut Vec<String>,
) -> io::Result<(Run, Dir)> {
    enter_as(config, identity, warnings, |entrance| {
        entrance.wait_for_turn();
        entrance.begin_anew(before)
    })
}

/// Creates the run directory and the folder of the fragments, then calls `find_run` to join or
/// begin a run. Returns the run and the folder.
fn enter_as(
    config: &Config,
    identity: &FragmentHeader,
    warnings: &mut Vec<String>,
    find_run: impl FnOnce(&mut Entrance<'_>) -> io::Result<Run>,
) -> io::Result<(Run, Dir)> {
    let directory = Dir::create_path(&config.paths.directory, folder_mode(config.mode))?;
    let fragments = config.paths.create_fragments(config.mode)?; // a process that cannot record must not begin a run that others would join
    let run = find_run(&mut Entrance {
        config,
        identity,
        warnings,
        directory,
        fragments: &fragments,
        is_alone: None,
    })?;
    Ok((run, fragments))
}

/// A process that is about to record and looks for its run in a directory.
struct Entrance<'a> {
    config: &'a Config,
    identity: &'a FragmentHeader,
    warnings: &'a mut Vec<String>,
    directory: Dir,
    fragments: &'a Dir,
    /// True if no other process can set up the directory at the same time; `None` before the
    /// process has waited for its turn.
    is_alone: Option<bool>,
}

impl Entrance<'_> {
    /// Locks the run directory, so that no other process sets it up at the same time. Continues
    /// without the lock after half a second.
    fn wait_for_turn(&mut self) {
        if self.is_alone.is_none() {
            self.is_alone = Some(self.directory.lock(PATIENCE_NS));
        }
    }

    /// Returns the run that the environment names, or `None` if it names none. Also returns `None`,
    /// after adding a warning, if that run is stale.
    fn run_from_environment(&mut self) -> Option<Run> {
        let id = self.config.run.clone()?;
        let Some(main_pid) = self.config.main_pid else {
            return Some(Run::joined(id, 0)); // a launcher groups its processes
        };
        let live = live_run(&self.directory, self.identity);
        // The main process may have begun another run since it created this environment.
        if let Some(live) = live.as_ref().filter(|run| run.main_pid == main_pid) {
            return Some(Run::joined(live.run.clone(), main_pid));
        }
        let is_ancestor = identity::is_ancestor(main_pid, self.identity.pid);
        // A live run takes precedence over one that was announced but never begun.
        if let Some(live) = live.as_ref().filter(|run| run.run != id)
            && is_ancestor
            && !self.has_member(&id, |_, _| true)
        {
            return Some(Run::joined(live.run.clone(), live.main_pid));
        }
        let live_here = || live.as_ref().is_some_and(|run| run.run == id);
        if is_ancestor || live_here() || self.has_live_member(&id) {
            return Some(Run::joined(id, main_pid));
        }
        self.warnings.push(format!(
            "{}={id} of process {main_pid} is ignored: that process is not an ancestor, and no process of that run records here",
            crate::run::config::RUN
        ));
        None
    }

    /// Returns true if a process of the run is still recording in this directory. The main process
    /// may have ended.
    fn has_live_member(&self, run: &str) -> bool {
        self.has_member(run, |file, header| is_owned(file, header, self.identity))
    }

    /// Returns true if the directory has a fragment of the run `run` for which `is_such` returns
    /// true. `is_such` gets the open fragment and its header.
    fn has_member(&self, run: &str, is_such: impl Fn(&OwnedFd, &FragmentHeader) -> bool) -> bool {
        let is_member = |name: &OsString| {
            let (file, _) = self.fragments.open_file(name).ok()?;
            let header = read_header(&file)?;
            Some(header.run == run && is_such(&file, &header))
        };
        // A fragment may continue in a segment that was created after the names were read, so they
        // are read twice.
        (0..2).any(|_| {
            let mut names = self.fragments.names().unwrap_or_default();
            names.retain(|name| is_fragment_name(&name.to_string_lossy()));
            names.iter().any(|name| is_member(name) == Some(true))
        })
    }

    fn join_or_start(&mut self) -> io::Result<Run> {
        self.wait_for_turn();
        match self.directory.open_file(RUN_FILE) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io::Error::new(error.kind(), format!("{RUN_FILE}: {error}"))),
            Ok((file, _)) => {
                if let Some(run) = held_run(&file, self.identity) {
                    return Ok(Run::joined(run.run, run.main_pid));
                }
            }
        }
        self.begin(new_run_id())
    }

    /// Makes this process the main process of a new run with this id, and moves the fragments of
    /// earlier runs aside. A new, locked run file atomically replaces the old one.
    fn begin(&mut self, id: String) -> io::Result<Run> {
        let (config, identity, directory) = (self.config, self.identity, &self.directory);
        let header = FragmentHeader {
            run: id.clone(),
            ..identity.clone()
        };
        let file = store(directory, RUN_FILE, config.mode, &run_file(&header))?;
        let id_of_file = fd::status(file.as_raw_fd())?.id;
        next::forget(directory);
        if self.is_alone == Some(true) {
            let removed = cleaning::clean(config, &header, directory);
            control::forget_others(&id, directory);
            self.warnings.extend(removed);
        }
        Ok(Run {
            main: true,
            lock: Some(Numbered {
                number: file.into_raw_fd(),
                id: id_of_file,
            }),
            ..Run::joined(id, identity.pid)
        })
    }

    fn begin_anew(&mut self, before: Option<&PreviousRecording>) -> io::Result<Run> {
        let (config, identity) = (self.config, self.identity);
        if let (Some(id), None) = (&config.run, config.main_pid) {
            return Ok(Run::joined(id.clone(), 0)); // a launcher groups its processes
        }
        if before.is_none()
            && let Some(run) = announced::begin(self)?
        {
            return Ok(run);
        }
        if let (None, Some(id), Some(pid)) = (before, &config.run, config.main_pid)
            && pid == identity.pid
        {
            return Ok(Run::joined(id.clone(), pid)); // this process began the run before it executed another program
        }
        let own = before.filter(|before| before.directory == config.paths.directory);
        let live = live_run(&self.directory, identity);
        let is_me =
            |run: &RunFile| run.main_pid == identity.pid && run.start_time == identity.start_time;
        if let Some(live) = live.as_ref().filter(|run| !is_me(run)) {
            let was_in = |run: &str| own.is_some_and(|before| before.run.id == run);
            let next = next::read(&self.directory).filter(|next| next::is_after(next, live));
            if !was_in(&live.run) && !next.as_ref().is_some_and(|next| was_in(&next.run)) {
                return Ok(Run::joined(live.run.clone(), live.main_pid));
            }
            return next::join(config, &self.directory, live, Some(live.run.clone()));
        }
        let is_main = |pid: &u32| *pid != identity.pid && identity::is_ancestor(*pid, identity.pid);
        if live.is_none()
            && let Some(pid) = config.main_pid.filter(is_main)
        {
            // The main process is alive and has not begun a run in this directory.
            let main = RunFile {
                main_pid: pid,
                start_time: identity::start_time(pid).unwrap_or(0),
                ..run_file(identity)
            };
            return next::join(config, &self.directory, &main, None);
        }
        let ahead = next::read(&self.directory)
            .filter(is_me)
            .map(|next| next.run)
            .filter(|run| before.is_none_or(|before| before.run.id != *run));
        self.begin(ahead.unwrap_or_else(new_run_id))
    }
}

impl Drop for Entrance<'_> {
    fn drop(&mut self) {
        if self.is_alone == Some(true) {
            self.directory.unlock(); // a child that was forked meanwhile would keep the lock
        }
    }
}

/// Returns the run file of this directory if the main process that it names is alive. `identity` is
/// the header of the calling process. Takes the file's lock for a moment if it is free.
fn live_run(directory: &Dir, identity: &FragmentHeader) -> Option<RunFile> {
    held_run(&directory.open_file(RUN_FILE).ok()?.0, identity)
}

/// Returns the contents of an open run file. Returns `None` unless the file is locked and the
/// process that it names may be alive.
fn held_run(file: &OwnedFd, identity: &FragmentHeader) -> Option<RunFile> {
    let is_held = !fd::try_lock(file.as_raw_fd());
    parse(file).filter(|run| is_held && may_live(run, identity))
}

/// Creates a run id: the time in UTC as `YYYYMMDD-HHMMSS`, a dash, and 8 random hex digits. For
/// launchers that set `SA_PROFILE_RUN`.
pub fn new_run_id() -> String {
    let seconds = clock::realtime_ns() / 1_000_000_000;
    let (year, month, day) = civil_date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let random = crate::sys::random() & 0xffff_ffff;
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}-{random:08x}")
}

/// Converts a number of days since 1970-01-01 to the year, month and day of the Gregorian calendar.
/// Internally, years begin in March so that the leap day comes last.
fn civil_date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12 + 1;
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::config;

    #[test]
    fn a_process_that_cannot_record_begins_no_run() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("fragments"), "in the way").unwrap();
        let lookup = |name: &str| (name == config::DIR).then(|| directory.path().into());
        let (config, identity) = (Config::from_lookup(lookup).unwrap(), identity::read());
        enter(&config, &identity, &mut Vec::new()).unwrap_err();
        enter_anew(&config, &identity, None, &mut Vec::new()).unwrap_err();
        assert!(!directory.path().join(RUN_FILE).exists());
    }

    #[test]
    fn dates() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (11_016, (2000, 2, 29)),
            (20_778, (2026, 11, 21)),
            (19_782, (2024, 2, 29)),
        ] {
            assert_eq!(civil_date(days), date);
        }
    }
}
