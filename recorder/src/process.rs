//! The recorder of this process: started by the first event, started again in the child of a fork, finished at exit.
//!
//! One [`Process`] lives behind a static pointer and is never freed. A page that the kernel wipes in the child of a fork tells whether it is
//! this process's own; what the parent's threads held at the fork (locks, half-written rings) is never looked at again in the child.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::config::{Config, Level, Levels};
use crate::format::{FragmentHeader, RingKind, VERSION};
use crate::fragment::{self, Fragment};
use crate::identity::{Identity, is_single_threaded};
use crate::lanes::{Lanes, Named};
use crate::loss::Counters;
use crate::ring::Ring;
use crate::run::{self, Run};
use crate::switch::{InForce, Schedule};
use crate::sys::{self, map::Map};
use crate::track::Tracks;
use crate::wait::{self, PATIENCE_NS};
use crate::{async_span, clock, held, helper};

/// Levels that are on; [`UNKNOWN`] until the environment was read.
static MASK: AtomicU32 = AtomicU32::new(UNKNOWN);
/// Every level on, and a mark that nobody has looked yet: the first event looks.
const UNKNOWN: u32 = 0xff;
/// When recording was last switched off, in ns; 0 for never.
static STOPPED_NS: AtomicU64 = AtomicU64::new(0);
/// When each level was last switched off.
static LEVELS_STOPPED_NS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
/// Set when recording has ended: what a thread was about to write is dropped.
static CLOSED: AtomicBool = AtomicBool::new(false);
static CURRENT: AtomicPtr<Process> = AtomicPtr::new(std::ptr::null_mut());
/// Who is starting the recorder: `pid << 32 | tid`, 0 for nobody. A pid of another process is the parent's, copied by a fork.
static STARTING: AtomicU64 = AtomicU64::new(0);
static EPOCHS: AtomicU32 = AtomicU32::new(0);
static HOOKED: AtomicBool = AtomicBool::new(false);

/// The recorder of one process.
#[derive(Debug)]
pub(crate) struct Process {
    /// Not 0 in the process that started it, 0 in a forked child.
    pub(crate) alive: &'static AtomicU32,
    pub(crate) config: Config,
    pub(crate) in_force: InForce,
    pub(crate) run: Run,
    pub(crate) pid: u32,
    pub(crate) ring: Ring,
    pub(crate) fragment: Fragment,
    pub(crate) lost: Counters,
    pub(crate) lanes: Mutex<Lanes>,
    pub(crate) named_lanes: Named,
    pub(crate) tracks: Tracks,
    /// Async spans begun by id.
    pub(crate) held_async: async_span::Held,
    pub(crate) helper: OnceLock<std::thread::Thread>,
    /// The helper is in a long sleep: a thread that fills its ring wakes it.
    pub(crate) helper_sleeps: AtomicBool,
    /// Several threads record at full speed: each flushes for itself.
    pub(crate) crowded: AtomicBool,
    /// Held by whoever writes to slot 0.
    pub(crate) own: Mutex<()>,
    pub(crate) name: Mutex<String>,
    pub(crate) finished: AtomicBool,
}

/// Whether events of this level are recorded; true before anybody has looked.
#[inline(always)]
pub(crate) fn wants(level: Level) -> bool {
    MASK.load(Ordering::Relaxed) & level.bit() != 0
}

/// Whether recording has ended.
#[inline(always)]
pub(crate) fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Whether recording was switched off since `start_ns`.
#[inline(always)]
pub(crate) fn stopped_since(start_ns: u64) -> bool {
    STOPPED_NS.load(Ordering::Relaxed) > start_ns
}

/// Whether events of this level are recorded, or were when something began at `start_ns`.
pub(crate) fn wants_since(level: Level, start_ns: u64) -> bool {
    let at = level.bit().trailing_zeros() as usize;
    let stopped = LEVELS_STOPPED_NS.get(at);
    wants(level) || stopped.is_some_and(|stopped| stopped.load(Ordering::Relaxed) > start_ns)
}

/// Switches levels on or off; returns an instant before which none of them was on, and after which no other begins to be recorded.
pub(crate) fn set_levels(levels: Levels) -> u64 {
    let before_ns = clock::now_ns();
    let old = MASK.swap(levels.0, Ordering::SeqCst);
    // The end of recording, from another thread, is final.
    if is_closed() {
        MASK.store(0, Ordering::SeqCst);
    }
    let removed = old != UNKNOWN && old & !levels.0 != 0;
    let at_ns = if removed { clock::now_ns() } else { before_ns };
    for (level, stopped) in (0..).zip(&LEVELS_STOPPED_NS) {
        if removed && old & !levels.0 & (1 << level) != 0 {
            stopped.store(at_ns, Ordering::Relaxed);
        }
    }
    if removed && levels == Levels::NONE {
        STOPPED_NS.store(at_ns, Ordering::Relaxed);
    }
    at_ns
}

/// Ends recording for good.
pub(crate) fn close() {
    // Off before it is closed: whoever still finds it on has its events recorded.
    MASK.store(0, Ordering::SeqCst);
    CLOSED.store(true, Ordering::SeqCst);
    MASK.store(0, Ordering::SeqCst); // a switch may have come between
}

/// Makes the child of a fork look anew: with its parent's recording switched off, nothing else would start the child's own recorder, which may be
/// switched on later. Async-signal-safe.
unsafe extern "C" fn look_again_in_child() {
    if !is_closed() {
        MASK.store(UNKNOWN, Ordering::Relaxed);
    }
}

/// The levels that are on, or that the environment asks for where nothing was recorded yet. Starts nothing.
pub(crate) fn asked_levels() -> Levels {
    match MASK.load(Ordering::Relaxed) {
        UNKNOWN => match Config::from_lookup(|name| std::env::var_os(name)) {
            Some(config) if !config.paused => config.levels,
            _ => Levels::NONE,
        },
        levels => Levels(levels),
    }
}

/// The levels that are on, after looking at the environment.
pub(crate) fn levels() -> u32 {
    if MASK.load(Ordering::Relaxed) == UNKNOWN {
        current();
    }
    MASK.load(Ordering::Relaxed)
}

/// The recorder of this process, started if the environment asks for it.
pub(crate) fn current() -> Option<&'static Process> {
    match existing() {
        Some(process) => Some(process),
        None if MASK.load(Ordering::Relaxed) == 0 || is_closed() => None,
        None => start(),
    }
}

/// The recorder of this process if it runs.
pub(crate) fn existing() -> Option<&'static Process> {
    // SAFETY: a non-null pointer came from `Box::leak`.
    let process = unsafe { CURRENT.load(Ordering::Acquire).as_ref() }?;
    (process.alive.load(Ordering::Relaxed) != 0).then_some(process)
}

/// Starts the recorder, one thread at a time; a start that a fork cut in two is taken over, and one that takes long is not waited for.
#[cold]
fn start() -> Option<&'static Process> {
    let me = u64::from(std::process::id()) << 32 | u64::from(sys::thread::tid());
    let start_ns = clock::now_ns();
    loop {
        let other = STARTING.load(Ordering::Acquire);
        if other == me {
            return None; // an event recorded while starting, say by an allocator hook
        }
        let stale = other >> 32 != me >> 32;
        if (other == 0 || stale)
            && STARTING
                .compare_exchange(other, me, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        {
            break;
        }
        if clock::now_ns() > start_ns + PATIENCE_NS {
            return None; // the other thread may hang in a file system
        }
        wait::pause(start_ns);
    }
    let process = existing().or_else(start_alone);
    STARTING.store(0, Ordering::Release);
    process
}

fn start_alone() -> Option<&'static Process> {
    if MASK.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let mut warnings = Vec::new();
    // SAFETY: a non-null pointer came from `Box::leak`; in a child it is the parent's, read only.
    let parent = unsafe { CURRENT.load(Ordering::Acquire).as_ref() };
    let config = match parent {
        Some(parent) => Some(Config {
            warnings: Vec::new(),
            ..parent.config.clone()
        }),
        None => Config::from_lookup(|name| std::env::var_os(name)),
    };
    let Some(mut config) = config else {
        MASK.store(0, Ordering::Relaxed);
        return None;
    };
    warnings.append(&mut config.warnings);
    match Process::start(config, parent, &mut warnings) {
        Ok(process) => Some(process),
        Err(error) => {
            MASK.store(0, Ordering::Relaxed);
            sys::warn_once(&error);
            None
        }
    }
}

impl Process {
    fn start(
        config: Config,
        parent: Option<&Process>,
        warnings: &mut Vec<String>,
    ) -> Result<&'static Process, String> {
        let in_force = match parent {
            Some(parent) => parent.in_force.copy(),
            None if config.paused => InForce::new(Levels::NONE),
            None => InForce::new(config.levels),
        };
        let config = absolute(config);
        let identity = Identity::read();
        let at = |error: io::Error| {
            format!(
                "recording is off: {}: {error}",
                config.paths.directory.display()
            )
        };
        let (run, folder) = match parent {
            Some(parent) => (child_run(&parent.run), open_fragments(&config).map_err(at)?),
            None => run::enter(&config, &identity, warnings).map_err(at)?,
        };
        let nonce = sys::random();
        let header = FragmentHeader {
            levels: Some(in_force.levels().list()),
            ..header(&identity, &run, nonce)
        };
        let epoch = EPOCHS.fetch_add(1, Ordering::Relaxed) + 1;
        let lay_out = |file, kind| Ring::new(file, kind, epoch, nonce, identity.pid);
        let (fragment, ring) =
            fragment::create_files(&folder, &config, &header, lay_out).map_err(at)?;
        let alive = Map::wiped_by_fork().map_err(at)?.half(0);
        alive.store(1, Ordering::Relaxed);
        let process = Box::leak(Box::new(Process {
            alive,
            in_force,
            run,
            pid: identity.pid,
            ring,
            fragment,
            lost: Counters::default(),
            lanes: Mutex::default(),
            named_lanes: Named::default(),
            tracks: Tracks::default(),
            held_async: async_span::Held::default(),
            helper: OnceLock::new(),
            helper_sleeps: AtomicBool::new(false),
            crowded: AtomicBool::new(false),
            own: Mutex::default(),
            name: Mutex::default(),
            finished: AtomicBool::new(false),
            config,
        }));
        process.announce(warnings);
        Ok(process)
    }

    fn announce(&'static self, warnings: &[String]) {
        self.fragment.lock().hold();
        let (file, id) = self.ring.descriptor();
        held::hold(held::RING, file, id);
        if let Some((file, id)) = self.run.lock {
            held::hold(held::RUN, file, id);
        }
        // Before any thread can find the recorder: its first event is already under what a control asks for.
        let schedule = Schedule::begin(self);
        CURRENT.store(std::ptr::from_ref(self).cast_mut(), Ordering::Release);
        if !HOOKED.swap(true, Ordering::Relaxed) {
            sys::run_at_exit(finish_at_exit);
            sys::run_after_fork(held::close_in_child);
            sys::run_after_fork(look_again_in_child);
        }
        if is_single_threaded() {
            sys::prepare_barrier(); // now it costs nothing
        }
        helper::start(self);
        schedule.start(self);
        if !warnings.is_empty() {
            sys::warn_once(&warnings.join("; "));
        }
    }

    /// Wakes the helper thread now.
    pub(crate) fn wake_helper(&self) {
        self.helper_sleeps.store(false, Ordering::Relaxed);
        if let Some(helper) = self.helper.get() {
            helper.unpark();
        }
    }

    /// The fragment's path.
    pub(crate) fn fragment_path(&self) -> PathBuf {
        self.fragment.path().to_owned()
    }
}

extern "C" fn finish_at_exit() {
    if let Some(process) = existing() {
        process.finish();
    }
}

fn absolute(mut config: Config) -> Config {
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let paths = &mut config.paths;
    (paths.directory, paths.fragments, paths.trace) = (
        absolute(&paths.directory),
        absolute(&paths.fragments),
        absolute(&paths.trace),
    );
    config
}

fn child_run(run: &Run) -> Run {
    Run {
        main: false,
        lock: None,
        ..run.clone()
    }
}

fn open_fragments(config: &Config) -> io::Result<crate::sys::dir::Dir> {
    let directory =
        crate::sys::dir::Dir::create_path(&config.paths.directory, run::folder_mode(config.mode))?;
    run::fragments_folder(config, &directory)
}

fn header(identity: &Identity, run: &Run, nonce: u64) -> FragmentHeader {
    let page_bytes = u32::try_from(sys::page_bytes()).unwrap_or(0);
    let Identity {
        host,
        boot_id,
        pid_ns,
        time_ns,
        monotonic_offset_ns,
        pid,
        start_time,
        exe,
        script,
    } = identity.clone();
    FragmentHeader {
        version: VERSION,
        nonce: format!("{nonce:016x}"),
        segment: 0,
        run: run.id.clone(),
        main: run.main,
        host,
        boot_id,
        pid_ns,
        time_ns,
        monotonic_offset_ns,
        pid,
        start_time,
        exe,
        script,
        ring: RingKind::File,
        page_bytes,
        levels: None,
    }
}
