//! A victim under the tracer: one thread goes on instruction by instruction, all others stand still.
//!
//! What the files hold at a stop is what SIGKILL would leave there. The visible stores of the stepped region are found by comparing the files
//! after each instruction with what they were before.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::order::{Ending, Order, Pattern};
use crate::progress::Control;
use crate::victim::Victim;

/// The calling thread.
const OWN: Pid = Pid::from_raw(0);
/// A stepped thread that makes no step for so long waits for a frozen one.
const STUCK: Duration = Duration::from_secs(2);
/// Bytes from the ring's start that are compared: tables, and the first slot with more of its ring than a short recording uses.
const RING_START: usize = 128 << 10;
/// Bytes of a further slot that are compared: its control page, and the same.
const SLOT_START: usize = 16 << 10;

/// A victim of which one thread is stepped.
#[derive(Debug)]
pub struct Stepped {
    /// The victim.
    pub victim: Victim,
    /// Instructions stepped over so far.
    pub instructions: u64,
    /// Visible stores so far: instructions (or system calls) after which the fragment or the ring was another.
    pub stores: usize,
    thread: Pid,
    others: Vec<Pid>,
    files: Files,
    watchdog: Watchdog,
    /// Where the tracer ran before.
    cores: CpuSet,
}

/// Where a stepped thread got to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// One instruction further; nothing to see.
    Quiet,
    /// One instruction further, and the files have changed.
    Stored,
    /// The region is behind it: it said so, or the thread has ended.
    Left,
    /// It waits for something that a frozen thread holds.
    Stuck,
}

impl Stepped {
    /// Starts a victim and brings it to the edge of its region, everything frozen.
    ///
    /// # Panics
    ///
    /// If it does not get there.
    pub fn start(program: &str, pattern: Pattern) -> Self {
        let order = Order {
            threads: 1,
            pattern,
            ending: Ending::Never,
        };
        let mut victim = Victim::start(program, order).expect("the victim starts");
        victim.wait_ready().expect("the victim gets ready");
        let thread = wait_for_tid(&victim);
        let mut others = Vec::new();
        // A thread may start while we look; the last look finds none that is new.
        while let Some(new) = threads_of(victim.pid())
            .into_iter()
            .find(|tid| !others.contains(tid))
        {
            freeze(new);
            others.push(new);
        }
        others.retain(|tid| *tid != thread);
        let files = Files::open(&victim.directory());
        let watchdog = Watchdog::start(pid(victim.pid()));
        let cores = share_a_core_with(thread);
        victim.go();
        Stepped {
            victim,
            instructions: 0,
            stores: 0,
            thread,
            others,
            files,
            watchdog,
            cores,
        }
    }

    /// Steps over one instruction.
    pub fn step(&mut self) -> Step {
        if ptrace::step(self.thread, None).is_err() {
            return Step::Left;
        }
        self.instructions += 1;
        let stopped = self
            .watchdog
            .during(|| waitpid(self.thread, Some(WaitPidFlag::__WALL)));
        match stopped {
            None => Step::Stuck,
            Some(Ok(WaitStatus::Stopped(..) | WaitStatus::PtraceEvent(..)))
                if self.files.changed() =>
            {
                self.stores += 1;
                Step::Stored
            }
            Some(Ok(WaitStatus::Stopped(..) | WaitStatus::PtraceEvent(..))) if !self.has_left() => {
                Step::Quiet
            }
            Some(_) => Step::Left,
        }
    }

    fn has_left(&self) -> bool {
        self.victim.progress.control(Control::Done).load(Acquire) != 0
    }

    /// Kills the process with SIGKILL where it stands.
    ///
    /// # Panics
    ///
    /// If it cannot be killed.
    pub fn kill(&mut self) {
        let leader = pid(self.victim.pid());
        kill(leader, Signal::SIGKILL).expect("the victim is ours to kill");
        for tid in self
            .others
            .iter()
            .chain([&self.thread])
            .filter(|tid| **tid != leader)
        {
            reap(*tid);
        }
        self.victim.kill().expect("the victim ends");
        stay_on(OWN, &self.cores);
    }
}

/// The fragment and the ring of a stepped victim, and what they last held.
#[derive(Debug)]
struct Files {
    fragment: File,
    ring: File,
    held: Held,
    /// Room for the next look.
    next: Vec<u8>,
}

/// What is compared: what the ring holds, and the fragment's length.
#[derive(Debug, Default)]
struct Held {
    ring: Vec<u8>,
    fragment: u64,
}

impl Files {
    fn open(run: &Path) -> Files {
        let entries = std::fs::read_dir(run.join("fragments")).expect("a fragments directory");
        let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let fragment = paths
            .find(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "jsonl")
            })
            .expect("a fragment");
        let open = |path: &Path| File::open(path).expect("a file of the victim");
        let mut files = Files {
            fragment: open(&fragment),
            ring: open(&fragment.with_extension("ring")),
            held: Held::default(),
            next: Vec::new(),
        };
        files.changed();
        files
    }

    /// Whether the files are others than at the last call.
    fn changed(&mut self) -> bool {
        self.next.resize(RING_START, 0);
        let got = self
            .ring
            .read_at(&mut self.next, 0)
            .expect("the ring can be read");
        self.next.truncate(got);
        for slot in later_slots(&self.next) {
            let mut bytes = [0; SLOT_START];
            let got = self
                .ring
                .read_at(&mut bytes, slot)
                .expect("the ring can be read");
            self.next.extend_from_slice(&bytes[..got]);
        }
        let length = self
            .fragment
            .metadata()
            .expect("the fragment is there")
            .len();
        let is_same = length == self.held.fragment && self.next == self.held.ring;
        self.held.fragment = length;
        std::mem::swap(&mut self.held.ring, &mut self.next);
        !is_same
    }
}

/// Offsets of the slots after the first (FORMAT.md §3).
fn later_slots(start: &[u8]) -> Vec<u64> {
    let number = |at: usize| {
        start
            .get(at..at + 4)
            .and_then(|bytes| Some(u32::from_ne_bytes(bytes.try_into().ok()?)))
    };
    let (Some(directory), Some(count)) = (number(52), number(56)) else {
        return Vec::new();
    };
    let entries = (1..count).map_while(|slot| usize::try_from(directory + 16 * slot).ok());
    entries
        .map_while(|at| Some(u64::from_ne_bytes(start.get(at..at + 8)?.try_into().ok()?)))
        .take_while(|offset| *offset != 0)
        .collect()
}

fn pid(number: u32) -> Pid {
    Pid::from_raw(number.try_into().expect("a pid"))
}

fn wait_for_tid(victim: &Victim) -> Pid {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match victim.progress.tid(0).load(Acquire) {
            0 => assert!(Instant::now() < deadline, "the victim named no thread"),
            tid => return Pid::from_raw(tid.try_into().expect("a tid")),
        }
    }
}

fn threads_of(process: u32) -> Vec<Pid> {
    let entries = std::fs::read_dir(format!("/proc/{process}/task")).expect("the victim lives");
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names
        .filter_map(|name| Some(Pid::from_raw(name.parse().ok()?)))
        .collect()
}

fn freeze(tid: Pid) {
    match ptrace::seize(tid, ptrace::Options::PTRACE_O_EXITKILL) {
        Err(Errno::ESRCH) => return, // it has ended meanwhile
        result => result.expect("the victim may be traced"),
    }
    ptrace::interrupt(tid).expect("a traced thread can be stopped");
    waitpid(tid, Some(WaitPidFlag::__WALL)).expect("a traced thread stops");
}

/// Takes a killed thread's end from the kernel; its process ends only then.
fn reap(tid: Pid) {
    while let Ok(status) = waitpid(tid, Some(WaitPidFlag::__WALL)) {
        if matches!(status, WaitStatus::Signaled(..) | WaitStatus::Exited(..)) {
            return;
        }
    }
}

/// Has the stepped thread run where the tracer does: only one of the two runs at a time, and a wake-up of another core takes ten times as long as a step.
/// Returns where the tracer ran before.
fn share_a_core_with(thread: Pid) -> CpuSet {
    let before = sched_getaffinity(OWN).expect("the cores of this thread");
    let mut core = CpuSet::new();
    let ours = sched_getcpu().expect("a core");
    core.set(ours).expect("a core's number");
    stay_on(OWN, &core);
    stay_on(thread, &core);
    before
}

fn stay_on(thread: Pid, cores: &CpuSet) {
    let _ = sched_setaffinity(thread, cores); // where it is refused a step takes longer
}

/// Kills a victim whose stepped thread makes no step for long: it waits for one that stands still.
#[derive(Debug)]
struct Watchdog {
    /// Even while nobody waits for a step. Its last reference but one ends with the tracer.
    waits: Arc<AtomicU64>,
    has_killed: Arc<AtomicBool>,
}

impl Watchdog {
    fn start(victim: Pid) -> Watchdog {
        let waits = Arc::new(AtomicU64::new(0));
        let has_killed = Arc::new(AtomicBool::new(false));
        let (seen, killed) = (waits.clone(), has_killed.clone());
        std::thread::spawn(move || {
            while Arc::strong_count(&seen) > 1 {
                let before = seen.load(Relaxed);
                std::thread::sleep(STUCK);
                let is_waiting = before % 2 == 1;
                if is_waiting && seen.load(Relaxed) == before && Arc::strong_count(&seen) > 1 {
                    killed.store(true, Relaxed);
                    let _ = kill(victim, Signal::SIGKILL); // it may have ended
                    return;
                }
            }
        });
        Watchdog { waits, has_killed }
    }

    /// What `wait` waited for; `None` if that did not come.
    fn during<T>(&self, wait: impl FnOnce() -> T) -> Option<T> {
        self.waits.fetch_add(1, Relaxed);
        let found = wait();
        self.waits.fetch_add(1, Relaxed);
        (!self.has_killed.load(Relaxed)).then_some(found)
    }
}

/// Tells whether this machine lets us trace a child at all.
///
/// # Errors
///
/// What the kernel answers if it does not.
pub fn can_trace() -> Result<(), Errno> {
    let mut child = std::process::Command::new("sleep")
        .arg("20")
        .spawn()
        .map_err(|_| Errno::ENOENT)?;
    let seized = ptrace::seize(pid(child.id()), ptrace::Options::empty());
    // Both fail only if it has ended by itself.
    let _ = child.kill();
    let _ = child.wait();
    seized
}
