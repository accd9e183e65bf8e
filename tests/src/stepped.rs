//! A victim under the tracer: one thread goes on instruction by instruction, all others stand still.
//!
//! What the files hold at a stop is what SIGKILL would leave there. The visible stores of the stepped region are found by comparing the files
//! after each instruction with what they were before.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use xxhash_rust::xxh3::xxh3_64;

use crate::host_support::segments;
use crate::order::{Ending, Order, Pattern};
use crate::progress::Control;
use crate::victim::Victim;

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
    /// Visible stores so far: instructions (or system calls) after which the fragment or the ring was another.
    pub stores: usize,
    thread: Pid,
    others: Vec<Pid>,
    files: Files,
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
        let mut victim = Victim::start(program, order, &[]).expect("the victim starts");
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
        victim.go();
        Stepped {
            victim,
            stores: 0,
            thread,
            others,
            files,
        }
    }

    /// Steps over one instruction.
    pub fn step(&mut self) -> Step {
        if ptrace::step(self.thread, None).is_err() {
            return Step::Left;
        }
        match wait_briefly(self.thread) {
            None => Step::Stuck,
            Some(WaitStatus::Stopped(..) | WaitStatus::PtraceEvent(..)) if self.files.changed() => {
                self.stores += 1;
                Step::Stored
            }
            Some(WaitStatus::Stopped(..) | WaitStatus::PtraceEvent(..)) if !self.has_left() => {
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
    }
}

/// The fragment and the ring of a stepped victim, and what they last held.
#[derive(Debug)]
struct Files {
    fragment: File,
    ring: File,
    buffer: Vec<u8>,
    state: (u64, u64),
}

impl Files {
    fn open(run: &Path) -> Files {
        let fragment = &segments(run)[0];
        let open = |path: &Path| File::open(path).expect("a file of the victim");
        let mut files = Files {
            fragment: open(fragment),
            ring: open(&fragment.with_extension("ring")),
            buffer: Vec::new(),
            state: (0, 0),
        };
        files.changed();
        files
    }

    /// Whether the files are others than at the last call.
    fn changed(&mut self) -> bool {
        self.buffer.resize(RING_START, 0);
        let got = self
            .ring
            .read_at(&mut self.buffer, 0)
            .expect("the ring can be read");
        self.buffer.truncate(got);
        for slot in later_slots(&self.buffer) {
            let mut bytes = [0; SLOT_START];
            let got = self
                .ring
                .read_at(&mut bytes, slot)
                .expect("the ring can be read");
            self.buffer.extend_from_slice(&bytes[..got]);
        }
        let length = self
            .fragment
            .metadata()
            .expect("the fragment is there")
            .len();
        let before = std::mem::replace(&mut self.state, (xxh3_64(&self.buffer), length));
        before != self.state
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

/// Waits for a stop; `None` if there is none for a long time.
fn wait_briefly(tid: Pid) -> Option<WaitStatus> {
    let begun = Instant::now();
    loop {
        match waitpid(tid, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) if begun.elapsed() > STUCK => return None,
            Ok(WaitStatus::StillAlive) if begun.elapsed() > Duration::from_millis(1) => {
                std::thread::sleep(Duration::from_micros(50));
            }
            Ok(WaitStatus::StillAlive) => std::thread::yield_now(),
            Ok(status) => return Some(status),
            Err(_) => return Some(WaitStatus::Exited(tid, 0)),
        }
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
