//! Starts a new recording in a process that may already have one: ends the old one, begins the new
//! one, and frees the old one's resources.

use std::ffi::OsString;
use std::sync::atomic::Ordering;

use crate::process::start::Origin;
use crate::process::start_lock::{PendingConfig, StartLock};
use crate::process::state::Process;
use crate::process::{mask, reclaim};
use crate::run::config::{Config, DIR, LEVEL, OUTPUT};
use crate::run::membership::PreviousRecording;
use crate::sys::clock;
use crate::sys::fd::Numbered;
use crate::sys::wait::{self, PATIENCE_NS};
use crate::text::name::cut_name;
use crate::thread::thread_state;

/// Reason why no new recording began.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// None of the variables that turn recording on is set. The previous recording continues.
    #[error("nothing requests recording: expected {DIR}, {OUTPUT} or {LEVEL} to be set")]
    NotAsked,
    /// Another thread is starting the recorder, or this call came from within the recorder. The
    /// previous recording continues.
    #[error("another thread is starting the recorder")]
    Busy,
    /// The files cannot be created. The previous recording has ended.
    #[error("{0}")]
    Files(String),
}

/// Ends the recording of this process, if it has one, and begins the recording that the environment
/// variables from `lookup` request. `name` is the process's new name, if given.
pub(crate) fn start_with(
    name: Option<&str>,
    lookup: impl Fn(&str) -> Option<OsString>,
) -> Result<(), StartError> {
    let config = Config::from_lookup(lookup).ok_or(StartError::NotAsked)?;
    let _alone = StartLock::acquire(PATIENCE_NS).ok_or(StartError::Busy)?;
    reclaim::reap(thread_state::no_thread_inside);
    let old = reclaim::existing();
    let pending = PendingConfig::set(Config {
        warnings: Vec::new(), // printed here, and not again in a child
        ..config.clone()
    });
    let mut before = old.as_deref().map(end_recording);
    if let (Some(before), Some(name)) = (&mut before, name) {
        cut_name(name).clone_into(&mut before.name.own);
    }
    let started = Process::start(config, &Origin::Anew(before.as_ref()));
    drop(pending);
    // This process is no longer the main process of the earlier run.
    let lock = before.as_ref().and_then(|before| before.run.lock);
    lock.into_iter().for_each(Numbered::close);
    drop(old);
    reclaim::reap(thread_state::no_thread_inside);
    if started.is_err() && before.is_none() {
        mask::turn_off(); // otherwise the next event would start the recording that the environment requests
    }
    if let (None, Some(name), Some(process)) = (&before, name, reclaim::existing()) {
        process.set_name(name);
    }
    started.map_err(StartError::Files)
}

/// Ends a recording so that another can begin in this process. Returns its run, directory and
/// process name, which the next recording takes into account.
fn end_recording(old: &Process) -> PreviousRecording {
    old.finish();
    let is_over = || old.is_over.load(Ordering::Acquire);
    wait::until_true(clock::now_ns() + PATIENCE_NS, is_over);
    let before = old.as_previous(old.name());
    old.release_files();
    before
}
