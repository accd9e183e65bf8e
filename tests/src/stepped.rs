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

use crate::host_support::segments;
use crate::order::{Ending, Order, Pattern};
use crate::progress::Control;
use crate::victim::Victim;

/// A stepped thread that makes no step for so long waits for a frozen one.
const STUCK: Duration = Duration::from_secs(2);

/// A victim of which one thread is stepped.
pub struct Stepped {
    /// The victim.
    pub victim: Victim,
    /// Visible stores so far: instructions (or system calls) after which the fragment or the ring was another.
    pub stores: usize,
    thread: Pid,
    others: Vec<Pid>,
    fragment: File,
    ring: File,
    /// The ring and the length of the fragment, after the last instruction and after the one before.
    seen: [(Vec<u8>, u64); 2],
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
}

impl Stepped {
    /// Starts a victim and brings it to the edge of its region, everything frozen.
    ///
    /// # Errors
    ///
    /// Returns the error of the kernel if it does not permit tracing.
    pub fn start(program: &str, pattern: Pattern) -> Result<Self, Errno> {
        let victim = Victim::start(program, Order::new(1, pattern, Ending::Never), &[]);
        victim.wait_ready();
        let tid = victim.progress.tid(0);
        while tid.load(Acquire) == 0 {
            std::thread::yield_now();
        }
        let thread = pid(tid.load(Acquire));
        let mut others = Vec::new();
        // A thread may start while we look; the last look finds none that is new.
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
            seen: Default::default(),
        };
        stepped.has_changed();
        Ok(stepped)
    }

    /// Steps over one instruction.
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

    /// Returns true if the files are others than at the last call.
    fn has_changed(&mut self) -> bool {
        let length = |file: &File| file.metadata().expect("it is open").len();
        self.seen.swap(0, 1);
        let (bytes, fragment_bytes) = &mut self.seen[0];
        let ring_bytes = length(&self.ring).try_into().expect("few bytes");
        bytes.resize(ring_bytes, 0);
        let read = self.ring.read_exact_at(bytes, 0);
        read.expect("the ring can be read");
        *fragment_bytes = length(&self.fragment);
        self.seen[0] != self.seen[1]
    }

    /// Kills the process with SIGKILL where it stands.
    pub fn kill(&mut self) {
        let leader = pid(self.victim.pid().into());
        kill(leader, Signal::SIGKILL).expect("the victim is ours to kill");
        let threads = self.others.iter().chain([&self.thread]);
        for tid in threads.filter(|tid| **tid != leader) {
            // Its process ends only when the kernel has handed out the end of each thread.
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

/// Waits for a stop or the end.
fn next_stop(tid: Pid) -> WaitStatus {
    let begun = Instant::now();
    loop {
        match waitpid(tid, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => {
                assert!(begun.elapsed() < STUCK, "it waits for a frozen thread");
                std::thread::yield_now();
            }
            Ok(status) => return status,
            Err(_) => return WaitStatus::Exited(tid, 0),
        }
    }
}
