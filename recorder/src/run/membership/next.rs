//! `<dir>/run.next`: the run that a main process is about to begin, named by a process that began
//! anew before it.
//!
//! Each process receives its own request to begin anew. The first one that does so must not join
//! the run that is about to end.

use std::io;

use super::{Run, new_run_id};
use crate::run::config::Config;
use crate::run::folder::{load, store};
use crate::sys::dir::Dir;
use sa_format::{NEXT_RUN_FILE, RunFile};

/// Returns the contents of `run.next`, which names the run that a main process is about to begin.
/// Returns `None` if there is no such file.
pub(super) fn read(directory: &Dir) -> Option<RunFile> {
    load(directory, NEXT_RUN_FILE)
}

/// Returns true if `next` names the next run of the main process of `run`: the two differ only in
/// the run id.
pub(super) fn is_after(next: &RunFile, run: &RunFile) -> bool {
    let next_of_main = RunFile {
        run: next.run.clone(),
        ..run.clone()
    };
    *next == next_of_main
}

/// Joins the run that the main process `main` is about to begin. If no process has chosen the id of
/// that run yet, chooses one and stores it in `run.next`. `ahead_of` is the id of the run that the
/// main process is still in.
pub(super) fn join(
    config: &Config,
    directory: &Dir,
    main: &RunFile,
    ahead_of: Option<String>,
) -> io::Result<Run> {
    let id = match read(directory).filter(|next| is_after(next, main)) {
        Some(next) => next.run,
        None => {
            let run = new_run_id();
            let next = RunFile {
                run: run.clone(),
                ..main.clone()
            };
            store(directory, NEXT_RUN_FILE, config.mode, &next)?;
            run
        }
    };
    Ok(Run {
        ahead_of,
        ..Run::joined(id, main.main_pid)
    })
}

/// Removes `run.next`, because the run that it names has begun or never will.
pub(super) fn forget(directory: &Dir) {
    let _ = directory.remove(NEXT_RUN_FILE); // usually there is no such file
}
