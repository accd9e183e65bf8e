//! Which run this process belongs to: its own (then it is the main process and cleans), or a live one it joins.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::cleaning;
use crate::config::Config;
use crate::control;
use crate::format::{RUN_FILE, RunFile, is_fragment_name};
use crate::identity::{self, Identity};
use crate::owner::{Owner, is_owned, read_header};
use crate::sys::dir::Dir;
use crate::sys::fd::{self, FileId};

/// How long the other process may take that is setting the directory up.
const PATIENCE: Duration = Duration::from_millis(500);

/// The run of this process.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) main: bool,
    pub(crate) main_pid: u32,
    /// The locked run file, if this is the main process.
    pub(crate) lock: Option<(RawFd, FileId)>,
}

/// The mode of folders: what files have, and search where there is read.
pub(crate) fn folder_mode(mode: u32) -> u32 {
    mode | (mode & 0o444) >> 2
}

/// Finds or starts the run of this process; makes the directories.
///
/// # Errors
/// When the directory cannot be made, or something in it is not ours to touch.
pub(crate) fn enter(
    config: &Config,
    identity: &Identity,
    warnings: &mut Vec<String>,
) -> io::Result<(Run, Dir)> {
    let directory = Dir::create_path(&config.paths.directory, folder_mode(config.mode))?;
    let run = match given(config, identity, &directory, warnings) {
        Some(run) => run,
        None => join_or_start(config, identity, &directory)?,
    };
    Ok((run, fragments_folder(config, &directory)?))
}

/// Opens the fragments folder, making it if needed.
pub(crate) fn fragments_folder(config: &Config, directory: &Dir) -> io::Result<Dir> {
    if config.paths.fragments == config.paths.directory {
        return Dir::open_path(&config.paths.directory);
    }
    directory.create_folder(crate::format::FRAGMENTS_DIR, folder_mode(config.mode))
}

/// The run that the environment names, if it can be believed.
fn given(
    config: &Config,
    identity: &Identity,
    directory: &Dir,
    warnings: &mut Vec<String>,
) -> Option<Run> {
    let id = config.run.clone()?;
    let Some(main_pid) = config.main_pid else {
        return Some(Run {
            id,
            main: false,
            main_pid: 0,
            lock: None,
        }); // a launcher groups its processes
    };
    let live_here = || {
        read_run_file(directory)
            .is_some_and(|(file, run)| run.run == id && !fd::try_lock(file.as_raw_fd()))
    };
    if identity::is_ancestor(main_pid, identity.pid)
        || live_here()
        || has_live_member(config, identity, directory, &id)
    {
        return Some(Run {
            id,
            main: false,
            main_pid,
            lock: None,
        });
    }
    warnings.push(format!(
        "{}={id} of process {main_pid} is ignored: it is no ancestor and nothing of that run is live here",
        crate::config::RUN
    ));
    None
}

/// Whether a process of the run still records here, though its main process may be gone.
fn has_live_member(config: &Config, identity: &Identity, directory: &Dir, run: &str) -> bool {
    let is_live_member = |fragments: &Dir, name: &OsStr| {
        let (file, _) = fragments.open_file(name, libc::O_RDONLY).ok()?;
        let header = read_header(&file)?;
        Some(header.run == run && is_owned(&file, &header, identity))
    };
    let Ok(fragments) = fragments_folder(config, directory) else {
        return false;
    };
    // A fragment may go on in a segment that was not there yet when the first names were read: then the second ones have it.
    (0..2).any(|_| {
        let names = fragments.names().unwrap_or_default();
        names.iter().any(|name| {
            is_fragment_name(&name.to_string_lossy())
                && is_live_member(&fragments, name) == Some(true)
        })
    })
}

fn read_run_file(directory: &Dir) -> Option<(OwnedFd, RunFile)> {
    let (file, _) = directory
        .open_file(OsStr::new(RUN_FILE), libc::O_RDONLY)
        .ok()?;
    let run = parse(&file)?;
    Some((file, run))
}

fn parse(file: &OwnedFd) -> Option<RunFile> {
    let mut text = Vec::new();
    std::fs::File::from(file.try_clone().ok()?)
        .take(64 << 10)
        .read_to_end(&mut text)
        .ok()?;
    serde_json::from_slice(&text).ok()
}

fn join_or_start(config: &Config, identity: &Identity, directory: &Dir) -> io::Result<Run> {
    let gate = Dir::open_path(&config.paths.directory)?;
    let alone = gate.lock(PATIENCE);
    match directory.open_file(OsStr::new(RUN_FILE), libc::O_RDONLY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(io::Error::new(error.kind(), format!("{RUN_FILE}: {error}"))),
        Ok((file, _)) => {
            if !fd::try_lock(file.as_raw_fd())
                && let Some(run) = parse(&file).filter(|run| Owner::from(run).may_live(identity))
            {
                return Ok(Run {
                    id: run.run,
                    main: false,
                    main_pid: run.main_pid,
                    lock: None,
                });
            }
        }
    }
    let run = start(config, identity, directory)?;
    if alone {
        cleaning::clean(config, identity, directory, &run.id);
        control::forget_others(&config.paths.directory, &run.id, directory);
    }
    Ok(run)
}

/// Makes this process the main process of a new run: a new, locked run file takes the place of the old one at once.
fn start(config: &Config, identity: &Identity, directory: &Dir) -> io::Result<Run> {
    let id = new_run_id();
    let name = format!("{RUN_FILE}.{:016x}.tmp", crate::sys::random());
    let file = directory.create_file(&name, config.mode, libc::O_RDWR)?;
    let written =
        write_run_file(&file, &id, identity).and_then(|()| directory.replace(&name, RUN_FILE));
    if let Err(error) = written {
        let _ = directory.remove(OsStr::new(&name)); // only tidying
        return Err(error);
    }
    let lock = fd::status(file.as_raw_fd())?.id;
    Ok(Run {
        id,
        main: true,
        main_pid: identity.pid,
        lock: Some((fd::into_number(file), lock)),
    })
}

fn write_run_file(file: &OwnedFd, id: &str, identity: &Identity) -> io::Result<()> {
    fd::try_lock(file.as_raw_fd());
    let run = RunFile {
        run: id.to_owned(),
        main_pid: identity.pid,
        start_time: identity.start_time,
        host: identity.host.clone(),
        boot_id: identity.boot_id.clone(),
        pid_ns: identity.pid_ns,
    };
    let mut text = serde_json::to_vec(&run).map_err(io::Error::other)?;
    text.push(b'\n');
    if text.len() as u64 > fd::file_size_limit() {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    match fd::write_vectored(file.as_raw_fd(), &[&text])? {
        written if written == text.len() => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
    }
}

/// Makes up a run id: the time in UTC as `YYYYMMDD-HHMMSS`, a dash, and 8 random hex digits. For launchers that set `SA_PROFILE_RUN`.
pub fn new_run_id() -> String {
    format!("{}-{:08x}", timestamp(), crate::sys::random() & 0xffff_ffff)
}

/// `YYYYMMDD-HHMMSS` in UTC.
fn timestamp() -> String {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let (year, month, day) = civil_date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

/// The proleptic Gregorian date of a day since 1970-01-01; years run from March so that the leap day comes last.
fn civil_date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn folders_can_be_searched_where_files_can_be_read() {
        assert_eq!(
            (folder_mode(0o600), folder_mode(0o640), folder_mode(0o666)),
            (0o700, 0o750, 0o777)
        );
    }
}
