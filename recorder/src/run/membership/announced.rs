//! A run that a process has announced to its children in their environment, before it has recorded
//! anything itself. The children may record and end before it does.

use std::ffi::OsString;
use std::io;

use super::{Entrance, Run, live_run, new_run_id};
use crate::run::config::{Config, exported_variables};
use crate::run::folder::load;
use crate::run::identity;
use crate::sys::dir::Dir;
use crate::sys::variable;
use sa_format::{RUN_FILE, RunFile};

/// Returns the environment variables that announce to child processes the run that this process
/// will begin with its first event. Returns none if the process already belongs to a run or will
/// join one that is live here. Writes no files.
pub(crate) fn announce(config: &Config) -> Vec<(&'static str, OsString)> {
    let is_given = config.run.is_some();
    let directory = Dir::open_path(&config.paths.directory);
    let is_live = |directory: Dir| live_run(&directory, &identity::read()).is_some();
    if is_given || directory.is_ok_and(is_live) {
        return Vec::new();
    }
    exported_variables(variable, &config.paths, &new_run_id(), std::process::id())
}

/// Begins the run that this process announced to its children. If another main process has begun a
/// run here meanwhile, joins that one instead. Returns `None` if the process has announced no run,
/// or began it before it executed another program.
pub(super) fn begin(entrance: &mut Entrance<'_>) -> io::Result<Option<Run>> {
    let (config, identity) = (entrance.config, entrance.identity);
    let Some(id) = &config.run else {
        return Ok(None);
    };
    if config.main_pid != Some(identity.pid) || has_begun(&entrance.directory, id) {
        return Ok(None);
    }
    entrance.wait_for_turn();
    let run = match live_run(&entrance.directory, identity) {
        // Another process was faster. Children that have already begun decide which run it is.
        Some(_) if entrance.has_live_member(id) => Run::joined(id.clone(), identity.pid),
        Some(live) => Run::joined(live.run, live.main_pid),
        None => entrance.begin(id.clone())?,
    };
    Ok(Some(run))
}

fn has_begun(directory: &Dir, id: &str) -> bool {
    load::<RunFile>(directory, RUN_FILE).is_some_and(|run| run.run == id)
}
