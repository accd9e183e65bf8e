//! `<dir>/run.next`: the run that a main process is about to begin, named by a process that began anew before it.
//!
//! All of them were told to begin anew, each by its own message. The first one must not find itself in the run that is about to end.

use std::ffi::OsStr;
use std::io;

use super::{Run, new_run_id, parse, write_run};
use crate::run::config::Config;
use crate::run::identity::{self, Identity};
use crate::sys::dir::Dir;
use sa_format::{NEXT_RUN_FILE, RunFile};

/// What the file says.
pub(super) fn read(directory: &Dir) -> Option<RunFile> {
    let opened = directory.open_file(OsStr::new(NEXT_RUN_FILE), libc::O_RDONLY);
    parse(&opened.ok()?.0)
}

/// Whether the same main process is to begin `next` that has `run`.
pub(super) fn is_after(next: &RunFile, run: &RunFile) -> bool {
    next.main_pid == run.main_pid
        && next.start_time == run.start_time
        && next.pid_ns == run.pid_ns
        && next.boot_id == run.boot_id
        && next.host == run.host
}

/// Joins the run that `main` is about to begin, naming it if nobody has.
pub(super) fn join(
    config: &Config,
    directory: &Dir,
    main: &RunFile,
    ahead_of: Option<String>,
) -> io::Result<Run> {
    let id = match read(directory).filter(|next| is_after(next, main)) {
        Some(next) => next.run,
        None => name(config, directory, main)?,
    };
    Ok(Run {
        ahead_of,
        ..Run::joined(id, main.main_pid)
    })
}

fn name(config: &Config, directory: &Dir, main: &RunFile) -> io::Result<String> {
    let next = RunFile {
        run: new_run_id(),
        ..main.clone()
    };
    let name = format!("{NEXT_RUN_FILE}.{:016x}.tmp", crate::sys::random());
    let file = directory.create_file(&name, config.mode, libc::O_RDWR)?;
    let written = write_run(&file, &next).and_then(|()| directory.replace(&name, NEXT_RUN_FILE));
    if let Err(error) = written {
        let _ = directory.remove(OsStr::new(&name)); // only tidying
        return Err(error);
    }
    Ok(next.run)
}

/// Removes the file: the run has begun, or will not.
pub(super) fn forget(directory: &Dir) {
    let _ = directory.remove(OsStr::new(NEXT_RUN_FILE)); // mostly there is none
}

/// How a live process of this machine would sign a run file.
pub(super) fn main_of(identity: &Identity, pid: u32) -> RunFile {
    run_file(identity, "", pid)
}

/// A run file of a process that is seen from here.
pub(super) fn run_file(identity: &Identity, run: &str, pid: u32) -> RunFile {
    let start_time = if pid == identity.pid {
        identity.start_time
    } else {
        identity::start_time(pid).unwrap_or(0)
    };
    RunFile {
        run: run.to_owned(),
        main_pid: pid,
        start_time,
        host: identity.host.clone(),
        boot_id: identity.boot_id.clone(),
        pid_ns: identity.pid_ns,
    }
}
