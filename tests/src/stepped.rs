//! A victim under ptrace: one thread is stepped instruction by instruction while all others are frozen.
//!
//! At each stop the files contain exactly what SIGKILL would leave. The visible stores of the stepped region are found by comparing
//! the files before and after each instruction.

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

use crate::host_support::segments;
use crate::order::{Ending, Order, Pattern};
use crate::progress::Control;
use crate::victim::Victim;

/// Time after which a stepped thread that makes no progress must be waiting for a frozen one.
const STUCK: Duration = Duration::from_secs(2);

/// A victim with one stepped thread.
pub struct Stepped {
    /// The victim.
    pub victim: Victim,
    /// Number of visible stores so far: instructions (or system calls) that changed the fragment or the ring.
    pub stores: usize,
    thread: Pid,
    others: Vec<Pid>,
    fragment: File,
    ring: File,
    /// Contents of the ring and length of the fragment, after the last instruction and after the previous one.
    states: [(Vec<u8>, u64); 2],
}

/// Result of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The step changed nothing in the files.
    Quiet,
    /// The step changed the files.
    Stored,
    /// The thread has left the stepped region, or has ended.
    Left,
}

impl Stepped {
    /// Starts a victim, lets it run to the start of its region, and freezes all threads.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error if it does not permit tracing.
    pub fn start(program: &str, pattern: Pattern) -> Result<Self, Errno> {
        let victim = Victim::start(program, Order::new(1, pattern, Ending::Never), &[]);
        victim.wait_ready();
        let tid = victim.progress.tid(0);
        while tid.load(Acquire) == 0 {
            std::thread::yield_now();
        }
        let thread = pid(tid.load(Acquire));
        let mut others = Vec::new();
        // More threads may start during the loop. It ends when all existing threads are frozen.
        let is_new = |others: &[Pid], tid: &Pid| !others.contains(tid);
        while let Some(new) = threads_of(victim.pid()).find(|tid| is_new(&others, tid)) {
            freeze(new)?;
            others.push(new);
        }
        others.retain(|tid| *tid != thread);
        let fragment = segments(&victim.directory()).swap_remove(0);
        let open = |path: &Path| File::open(path).expect("a file of the victim");
        let (fragment, ring) = (open(&fragment), open(&fragment.with_extension("ring")));
        victim.go();
        let mut stepped = Stepped {
            victim,
            stores: 0,
            thread,
            others,
            fragment,
            ring,
            states: Default::default(),
        };
        stepped.has_changed();
        Ok(stepped)
    }

    /// Executes one instruction of the stepped thread.
    pub fn step(&mut self) -> Step {
        if ptrace::step(self.thread, None).is_err() {
            return Step::Left;
        }
        match next_stop(self.thread) {
            WaitStatus::Stopped(..) | WaitStatus::PtraceEvent(..) if self.has_changed() => {
                self.stores += 1;
                Step::Stored
            }
            WaitStatus::Stopped(..) | WaitStatus::PtraceEvent(..) if !self.has_left() => {
                Step::Quiet
            }
            _ => Step::Left,
        }
    }

    fn has_left(&self) -> bool {
        self.victim.progress.control(Control::Done).load(Acquire) != 0
    }

    /// Returns true if the files have changed since the last call.
    fn has_changed(&mut self) -> bool {
        let length = |file: &File| file.metadata().expect("it is open").len();
        self.states.swap(0, 1);
        let (bytes, fragment_bytes) = &mut self.states[0];
        let ring_bytes = length(&self.ring).try_into().expect("few bytes");
        bytes.resize(ring_bytes, 0);
        let read = self.ring.read_exact_at(bytes, 0);
        read.expect("the ring can be read");
        *fragment_bytes = length(&self.fragment);
        self.states[0] != self.states[1]
    }

    /// Kills the process with SIGKILL at the current instruction.
    pub fn kill(&mut self) {
        let leader = pid(self.victim.pid().into());
        kill(leader, Signal::SIGKILL).expect("the victim is ours to kill");
        let threads = self.others.iter().chain([&self.thread]);
        for tid in threads.filter(|tid| **tid != leader) {
            // The process only ends after the end of each thread has been waited for.
            while waitpid(*tid, Some(WaitPidFlag::__WALL)).is_ok_and(|status| {
                !matches!(status, WaitStatus::Signaled(..) | WaitStatus::Exited(..))
            }) {}
        }
        self.victim.kill();
    }
}

fn pid(number: u64) -> Pid {
    Pid::from_raw(number.try_into().expect("a pid"))
}

fn threads_of(process: u32) -> impl Iterator<Item = Pid> {
    let entries = std::fs::read_dir(format!("/proc/{process}/task")).expect("the victim lives");
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| Some(Pid::from_raw(name.parse().ok()?)))
}

fn freeze(tid: Pid) -> Result<(), Errno> {
    match ptrace::seize(tid, ptrace::Options::PTRACE_O_EXITKILL) {
        Err(Errno::ESRCH) => return Ok(()), // it has ended meanwhile
        seized => seized?,
    }
    ptrace::interrupt(tid).expect("a traced thread can be stopped");
    waitpid(tid, Some(WaitPidFlag::__WALL)).expect("a traced thread stops");
    Ok(())
}

/// Waits until the thread stops or ends.
fn next_stop(tid: Pid) -> WaitStatus {
    let begun = Instant::now();
    loop {
        match waitpid(tid, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => {
                assert!(begun.elapsed() < STUCK, "the thread waits for a frozen one");
                std::thread::yield_now();
            }
            Ok(status) => return status,
            Err(_) => return WaitStatus::Exited(tid, 0),
        }
    }
}
