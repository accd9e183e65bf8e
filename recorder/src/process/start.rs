//! Starts the recorder of this process. The first event does that, and the child of a fork does it
//! again. The recorder is finished at exit, or when another one begins.
//!
//! A page that the kernel clears in the child of a fork shows if a [`Process`] belongs to this
//! process. State that the parent's threads held at the fork (locks, half-written rings) is never
//! used in the child.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::process::async_ids::AsyncIds;
use crate::process::periodic::Upkeep;
use crate::process::reclaim::{self, ProcessRef};
use crate::process::start_lock::{self, PendingConfig, StartLock};
use crate::process::state::Process;
use crate::process::switch::{InForce, Switches};
use crate::process::{mask, offload};
use crate::ring::file::Ring;
use crate::ring::open_horizon::OpenHorizon;
use crate::run::config::{Config, Levels};
use crate::run::identity;
use crate::run::membership::{self as run, PreviousRecording, ProcessName, Run};
use crate::segment::fragment;
use crate::segment::names::Names;
use crate::sys::epoch::EpochWords;
use crate::sys::fd::Numbered;
use crate::sys::memory::{self, check_room};
use crate::sys::spin_lock::SpinLock;
use crate::sys::wait::PATIENCE_NS;
use crate::sys::{self, fork_fds, variable};
use crate::text::record::process_name_line;
use sa_format::loss::Cause;
use sa_format::{FragmentHeader, VERSION};

/// Room in bytes that starting the recorder needs. The C library keeps that much for the thread
/// that has checked for it.
const START_BYTES: usize = 96 << 10;

static EPOCHS: AtomicU32 = AtomicU32::new(0);
static HOOKED: AtomicBool = AtomicBool::new(false);

/// The reason why a recorder starts.
pub(crate) enum Origin<'a> {
    /// The environment requests recording, and nothing was recorded before.
    First,
    /// The parent's recorder, in the child of a fork.
    Fork(&'a Process),
    /// The program requests a new recording, after the previous one, if there was one.
    Anew(Option<&'a PreviousRecording>),
}

impl Origin<'_> {
    /// Returns the names that the process has when the recorder starts. A forked child whose first
    /// call begins a new recording is still named after its parent.
    fn process_name(&self) -> ProcessName {
        match self {
            Origin::Fork(parent) => parent.name_of_fork(),
            Origin::Anew(Some(before)) => before.name.clone(),
            Origin::Anew(None) | Origin::First => {
                reclaim::last().map_or_else(ProcessName::default, |parent| parent.name_of_fork())
            }
        }
    }
}

/// Returns the recorder of this process. Starts it first if the environment requests recording and
/// no recorder exists. Returns `None` if recording is off.
pub(crate) fn current() -> Option<ProcessRef> {
    match reclaim::existing() {
        Some(process) => Some(process),
        None if mask::is_off() => None,
        None => start(),
    }
}

/// Counts one loss with this cause in the ring's counters. Returns false if there is no recorder.
fn count_in_ring(cause: Cause) -> bool {
    let counted = reclaim::existing().map(|process| process.lost.count(cause));
    counted.is_some()
}

/// Starts the recorder of this process, or returns `None` if that is impossible. Only one thread at
/// a time does this: others wait at most a second. If a fork interrupted the start, the child takes
/// it over.
#[cold]
fn start() -> Option<ProcessRef> {
    let _alone = StartLock::acquire(PATIENCE_NS)?;
    reclaim::existing().or_else(start_alone)
}

fn start_alone() -> Option<ProcessRef> {
    if mask::is_off() {
        return None;
    }
    let parent = reclaim::last();
    let pending = start_lock::pending_config();
    // If the parent was beginning a new recording when it forked, the child does the same.
    let parent_before = pending.as_ref().and(parent.as_deref());
    let before = parent_before.map(|parent| parent.as_previous(parent.name_of_fork()));
    let config = pending
        .or_else(|| Some(parent.as_ref()?.config.clone()))
        .or_else(|| Config::from_lookup(variable));
    let Some(config) = config else {
        mask::turn_off();
        return None;
    };
    let origin = match (&before, &parent) {
        (Some(before), _) => Origin::Anew(Some(before)),
        (None, Some(parent)) => Origin::Fork(parent),
        (None, None) => Origin::First,
    };
    if let Err(error) = Process::start(config, &origin) {
        mask::turn_off();
        sys::warn_once(&error);
    }
    drop(PendingConfig); // until here, a child's own children need the recording that is about to begin
    reclaim::existing()
}

impl Process {
    /// Starts a recorder and makes it the current one.
    ///
    /// # Errors
    ///
    /// Returns a message if its files cannot be created.
    pub(crate) fn start(config: Config, origin: &Origin<'_>) -> Result<(), String> {
        check_room(START_BYTES)
            .map_err(|_| "recording is off: there is too little memory".to_owned())?;
        offload::keep_library_loaded(config.threads);
        memory::set_counter(count_in_ring);
        let mut config = absolute(config);
        let mut warnings = std::mem::take(&mut config.warnings);
        let in_force = match origin {
            Origin::Fork(parent) => parent.in_force.copy(),
            _ if config.paused => InForce::new(Levels::NONE),
            _ => InForce::new(config.levels),
        };
        let identity = identity::read();
        let directory = config.paths.directory.clone();
        let at = |error: io::Error| {
            if let Origin::Fork(parent) = origin {
                // Only the parent can report that this process is missing.
                let error = error.raw_os_error().unwrap_or(libc::EACCES);
                parent.lost.count_refused_child(error.unsigned_abs());
            }
            failure_message(&directory, &error)
        };
        let (run, folder) = match origin {
            Origin::Fork(parent) => {
                let folder = config.paths.create_fragments(config.mode);
                (parent.run.for_child(), folder.map_err(at)?)
            }
            Origin::First => run::enter(&config, &identity, &mut warnings).map_err(at)?,
            Origin::Anew(before) => {
                run::enter_anew(&config, &identity, *before, &mut warnings).map_err(at)?
            }
        };
        let lock = run.lock;
        let name = origin.process_name();
        let created = Process::create(config, identity, run, &folder, (in_force, name))
            .inspect_err(|_| lock.into_iter().for_each(Numbered::close));
        let process = created.map_err(at)?;
        activate(process, &warnings);
        Ok(())
    }

    fn create(
        config: Config,
        identity: FragmentHeader,
        run: Run,
        folder: &sys::dir::Dir,
        (in_force, name): (InForce, ProcessName),
    ) -> io::Result<Box<Process>> {
        let nonce = sys::random();
        let pid = identity.pid;
        let header = FragmentHeader {
            version: VERSION,
            nonce: format!("{nonce:016x}"),
            run: run.id.clone(),
            main: run.main,
            forked_from: name.forked_from.clone(),
            page_bytes: u32::try_from(sys::page_bytes()).unwrap_or(0),
            levels: Some(in_force.levels().list()),
            ..identity
        };
        let epochs = EpochWords::get()?;
        let epoch = EPOCHS.fetch_add(1, Ordering::Relaxed) + 1;
        let lay_out = |file, kind| Ring::new(file, kind, epoch, nonce, pid);
        let (fragment, ring) = fragment::create_files(folder, &config, &header, lay_out)?;
        Ok(Box::new(Process {
            epochs,
            in_force,
            switches: Switches::new(&config.paths.directory, run.ids()),
            upkeep: Upkeep::default(),
            run,
            pid,
            lost: ring.counters(pid),
            ring,
            fragment,
            open_horizon: OpenHorizon::default(),
            lanes: SpinLock::default(),
            names: Names {
                process: Mutex::new(name.own),
                forked_from: name.forked_from,
                ..Names::default()
            },
            async_ids: AsyncIds::default(),
            helper: OnceLock::new(),
            helper_requested: AtomicBool::new(false),
            helper_sleeps: AtomicBool::new(false),
            crowded: AtomicBool::new(false),
            own: Mutex::default(),
            finished: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            config,
        }))
    }
}

/// Makes a new recorder the current one, so that events are recorded. Starts its helper if it
/// already needs one, and prints `warnings` to stderr.
fn activate(process: Box<Process>, warnings: &[String]) {
    process.fragment.lock().segment.register_for_fork();
    fork_fds::register(fork_fds::RING, process.ring.file);
    match process.run.lock {
        Some(file) => fork_fds::register(fork_fds::RUN, file),
        None => fork_fds::forget(fork_fds::RUN),
    }
    let (epochs, epoch) = (process.epochs, process.epoch());
    // Before any thread can find the recorder, so that a control file already applies to its first
    // event.
    process.switches.begin(&process);
    process.append_own(&process_name_line(process.pid, &process.name().own)); // records nothing if there is no name
    reclaim::install(process);
    epochs.recording.store(epoch, Ordering::Release);
    epochs.owner.store(epoch, Ordering::Release);
    if !HOOKED.swap(true, Ordering::Relaxed) {
        sys::run_at_exit(finish_at_exit);
        sys::run_after_fork(fork_fds::close_in_child);
        sys::run_after_fork(mask::reset_in_child);
        sys::run_after_fork(offload::reset_in_child);
    }
    if offload::has_one_thread() {
        sys::prepare_barrier(); // free with a single thread
    }
    if let Some(process) = reclaim::existing() {
        process.do_upkeep();
    }
    if !warnings.is_empty() {
        sys::warn_once(&warnings.join("; "));
    }
}

fn failure_message(directory: &Path, error: &io::Error) -> String {
    let remedy = match error.raw_os_error() {
        // Most often this is a child that dropped its privileges after its parent had created the
        // directory.
        Some(libc::EACCES | libc::EPERM) => format!(
            "; user {} may not write there: set SA_PROFILE_MODE=0660 and give the directory a group of that user (chgrp, chmod 2770) before it is used",
            sys::dir::effective_user()
        ),
        _ => String::new(),
    };
    format!("recording is off: {}: {error}{remedy}", directory.display())
}

extern "C" fn finish_at_exit() {
    if let Some(process) = reclaim::existing() {
        process.finish();
    }
}

pub(crate) fn absolute(mut config: Config) -> Config {
    let paths = &mut config.paths;
    for path in [&mut paths.directory, &mut paths.fragments, &mut paths.trace] {
        *path = std::path::absolute(&path).unwrap_or_else(|_| path.clone());
    }
    config
}

/// Returns the levels that are on, or the levels that the environment requests if nothing was
/// recorded yet. Does not start the recorder.
pub(crate) fn requested_levels() -> Levels {
    mask::levels_if_known().unwrap_or_else(|| match reclaim::last() {
        Some(parent) => parent.in_force.levels(), // the child of a fork continues with the parent's levels
        None => match Config::from_lookup(variable) {
            Some(config) if !config.paused => config.levels,
            _ => Levels::NONE,
        },
    })
}

/// Returns the bits of the levels that are on. Reads the environment and starts the recorder first,
/// if no event has done so yet.
pub(crate) fn levels() -> u32 {
    if mask::levels_if_known().is_none() {
        current();
    }
    mask::levels()
}
