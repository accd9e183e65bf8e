//! Runs work that may block in the file system without limit. A short-lived thread of ours does the
//! work, while the host's thread waits for a limited time.
//!
//! The host's thread continues once the other one has left the process's list of threads, so a host
//! with one thread has one again. The other thread stays only if the file system hangs, until that
//! responds.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::process::reclaim;
use crate::process::state::Process;
use crate::run::config::Threads;
use crate::sys::shared::Shared;
use crate::sys::sleep::Bell;
use crate::sys::{clock, module, wait};
use crate::sys::{thread, threads};

/// Maximum time in ns for the kernel to end a thread that is done.
const ENDING_NS: u64 = 50_000_000;

/// Maximum wait in ns for the dynamic linker, whose lock the waiting thread itself may hold.
const LOADING_NS: u64 = 30_000_000;

/// True once this library can no longer be unloaded.
static IS_KEPT_LOADED: AtomicBool = AtomicBool::new(false);
/// Tid of the thread that requested that; 0 as long as none has.
static KEEPER: AtomicU32 = AtomicU32::new(0);
/// True if the first thread has ended through `pthread_exit`. The C library counts the threads that
/// end, and runs the exit handlers on the last one. It does not count the thread that runs them, so
/// a thread of ours would be the last one again.
static FIRST_HAS_ENDED: AtomicBool = AtomicBool::new(false);
/// Number of threads that no thread waits for any more.
static ABANDONED_JOBS: AtomicU32 = AtomicU32::new(0);

const AWAITED: u32 = 0;
const ABANDONED: u32 = 1;
const DONE: u32 = 2;

/// State that both threads share.
struct Job<R> {
    tid: AtomicU32,
    /// [`AWAITED`], [`ABANDONED`] or [`DONE`].
    state: AtomicU32,
    result: Mutex<Option<R>>,
    bell: Bell,
}

impl Process {
    /// Runs `work` on a short-lived thread of the recorder, because it may hang in the file system.
    /// Waits for its result until `end_ns`, and returns `None` if it takes longer.
    ///
    /// # Errors
    ///
    /// Returns an error if there may be no such thread, or if none is needed because the calling
    /// thread is one of ours. Then the caller does the work itself.
    pub(crate) fn offload<R: Send + 'static>(
        &self,
        end_ns: u64,
        work: impl FnOnce(&Process) -> R + Send + 'static,
    ) -> io::Result<Option<R>> {
        let is_forbidden = self.config.threads == Threads::Never || thread::is_ours();
        if is_forbidden || FIRST_HAS_ENDED.load(Ordering::Relaxed) {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        let own = reclaim::existing().filter(|process| process.epoch() == self.epoch());
        let process = own.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
        run(end_ns, move || work(&process))
    }

    /// Runs `work` on a short-lived thread of the recorder like [`Process::offload`], or on the
    /// calling thread if no other is allowed. Returns `None` if it is not done by `end_ns`.
    pub(crate) fn offload_or_run<R: Send + 'static>(
        &self,
        end_ns: u64,
        work: impl Fn(&Process) -> R + Copy + Send + 'static,
    ) -> Option<R> {
        let done = self.offload(end_ns, work);
        done.unwrap_or_else(|_| Some(work(self)))
    }
}

/// Records that the process's first thread has ended, if that is the calling thread. Called when a
/// thread ends through `pthread_exit` or an equivalent.
pub(crate) fn record_first_thread_end() {
    if thread::tid() == std::process::id() {
        FIRST_HAS_ENDED.store(true, Ordering::Relaxed);
    }
}

/// Ends the calling thread, which the recorder started, as the last thread of the process with exit
/// code `code`. The C library may run the exit handlers on it, and must not run them again on
/// another thread.
pub(crate) fn exit_as_last_thread(code: i32) {
    FIRST_HAS_ENDED.store(true, Ordering::Relaxed);
    thread::exit_as_last_thread(code);
}

/// Returns true if a thread of the recorder still hangs in the file system after the host's thread
/// stopped waiting for it.
pub(crate) fn is_hanging() -> bool {
    ABANDONED_JOBS.load(Ordering::Relaxed) > 0
}

/// Returns true if the process has only one thread, not counting threads of the recorder that hang.
pub(crate) fn has_one_thread() -> bool {
    threads::is_alone_except(ABANDONED_JOBS.load(Ordering::Relaxed))
}

/// Resets this module's state in the child of a fork, which has only one thread.
pub(crate) extern "C" fn reset_in_child() {
    ABANDONED_JOBS.store(0, Ordering::Relaxed);
    FIRST_HAS_ENDED.store(false, Ordering::Relaxed);
}

/// Keeps this library loaded after `dlclose`, because the C library is about to hold pointers to
/// its functions.
///
/// A thread of ours does it. The linker's lock may be held by a `dlopen` that waits for the calling
/// thread, and an error would replace the host's `dlerror` message.
///
/// The calling thread may hold that lock itself, in the constructor of a library, so it waits only
/// for a moment. Our thread continues once that library is loaded, and the next thread that records
/// waits for it. Only a host that loads and closes a library in one go, or that forbids a thread of
/// ours, may be faster.
pub(crate) fn keep_library_loaded(threads: Threads) {
    if IS_KEPT_LOADED.load(Ordering::Acquire) {
        return;
    }
    let is_forbidden = threads == Threads::Never || thread::is_ours();
    if !module::may_be_unloaded() {
        IS_KEPT_LOADED.store(true, Ordering::Release);
    } else if is_forbidden {
        keep_loaded();
    } else {
        KEEPER.store(thread::tid(), Ordering::Relaxed);
        if run(clock::now_ns() + LOADING_NS, keep_loaded).is_err() {
            keep_loaded();
        }
    }
}

/// Waits up to 30 ms until [`keep_library_loaded`] has taken effect, unless the calling thread is
/// the one that called it.
pub(crate) fn wait_until_kept_loaded() {
    let keeper = KEEPER.load(Ordering::Relaxed);
    if keeper == 0 || keeper == thread::tid() {
        return;
    }
    let end_ns = clock::now_ns() + LOADING_NS;
    if !wait::until_true(end_ns, || IS_KEPT_LOADED.load(Ordering::Acquire)) {
        KEEPER.store(0, Ordering::Relaxed); // no thread waits again
    }
}

fn keep_loaded() {
    module::keep_loaded();
    IS_KEPT_LOADED.store(true, Ordering::Release);
}

fn run<R: Send + 'static>(
    end_ns: u64,
    work: impl FnOnce() -> R + Send + 'static,
) -> io::Result<Option<R>> {
    let job = Shared::new(Job {
        tid: AtomicU32::new(0),
        state: AtomicU32::new(AWAITED),
        result: Mutex::new(None),
        bell: Bell::default(),
    })?;
    let other = job.clone();
    thread::spawn_quiet(thread::HELPER, move || {
        other.tid.store(thread::tid(), Ordering::Relaxed);
        let ending = JobEnd(other);
        let result = work();
        if let Some(mut place) = wait::try_lock(&ending.0.result) {
            *place = Some(result);
        }
    })?;
    if !job.wait(end_ns) {
        return Ok(None);
    }
    let tid = job.tid.load(Ordering::Relaxed);
    wait::until_true(clock::now_ns() + ENDING_NS, || !thread::exists(tid));
    Ok(wait::try_lock(&job.result).and_then(|mut result| result.take()))
}

/// Ends the work and its thread, even after a panic.
struct JobEnd<R>(Shared<Job<R>>);

impl<R> Drop for JobEnd<R> {
    fn drop(&mut self) {
        let is_abandoned = self.0.state.swap(DONE, Ordering::AcqRel) == ABANDONED;
        self.0.bell.ring();
        if is_abandoned {
            ABANDONED_JOBS.fetch_sub(1, Ordering::Relaxed);
            if let Some(code) = threads::only_helpers_are_left() {
                exit_as_last_thread(code);
            }
        }
    }
}

impl<R> Job<R> {
    /// Waits until the work on the other thread is done. Returns false if it is not done by
    /// `end_ns`.
    fn wait(&self, end_ns: u64) -> bool {
        while self.state.load(Ordering::Acquire) != DONE {
            let left_ns = end_ns.saturating_sub(clock::now_ns());
            if left_ns == 0 {
                return !self.abandon();
            }
            self.bell.wait(Duration::from_nanos(left_ns));
        }
        true
    }

    /// Stops waiting for the work on the other thread. Returns false if the work is already done.
    fn abandon(&self) -> bool {
        ABANDONED_JOBS.fetch_add(1, Ordering::Relaxed);
        let orders = (Ordering::AcqRel, Ordering::Acquire);
        let abandoned = (self.state).compare_exchange(AWAITED, ABANDONED, orders.0, orders.1);
        if abandoned.is_err() {
            ABANDONED_JOBS.fetch_sub(1, Ordering::Relaxed);
        }
        abandoned.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::emulator::lacks;

    const THREADS: &str = "threads without the C library";

    #[test]
    fn a_long_job_is_not_waited_for() {
        if lacks(THREADS, "a_long_job_is_not_waited_for") {
            return;
        }
        let start_ns = clock::now_ns();
        let long = || std::thread::sleep(Duration::from_secs(5));
        assert_eq!(run(start_ns + 2_000_000, long).unwrap(), None);
        assert!((2_000_000..4_000_000_000).contains(&(clock::now_ns() - start_ns)));
    }

    #[test]
    fn a_panic_ends_only_the_job() {
        if lacks(THREADS, "a_panic_ends_only_the_job") {
            return;
        }
        let end_ns = clock::now_ns() + 60_000_000_000;
        let outcome: Option<()> = run(end_ns, || panic!("a test's")).unwrap();
        assert_eq!(outcome, None);
        assert!(clock::now_ns() < end_ns);
    }
}
