//! Handles SIGINT, SIGTERM and SIGHUP: they end the merge as usual, but first its files with
//! temporary names are removed.
//!
//! The signals are blocked and a thread waits for them, so that no handler runs in the middle of
//! other code.
#![expect(
    unsafe_code,
    reason = "no safe call asks what becomes of a signal, and /proc is not everywhere"
)]

use nix::sys::signal::{SigSet, Signal, raise};
use std::mem::MaybeUninit;
use std::process::exit;
use std::ptr::null;
use std::sync::mpsc;
use std::thread::Builder;
use std::time::Duration;
use trace_merge::Unfinished;

const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
/// Maximum time for the last message, because its reader may be stuck.
const MAX_MESSAGE_TIME: Duration = Duration::from_millis(150);

/// Signals that end the merge.
pub(crate) struct Interrupts(SigSet);

impl Interrupts {
    /// Blocks the signals. Must be called before threads are created, because they would receive
    /// them too. Signals that this process ignores or blocks from the start are not changed, as in
    /// background jobs and under `nohup`.
    pub(crate) fn block() -> Interrupts {
        let blocked = SigSet::thread_get_mask().unwrap_or_else(|_| SigSet::empty());
        let ending = ENDING
            .into_iter()
            .filter(|signal| !is_ignored(*signal) && !blocked.contains(*signal));
        let signals = SigSet::from_iter(ending);
        let _ = signals.thread_block(); // cannot fail for a valid set
        // A file above the limit of `ulimit -f` is then an error with a message, instead of a
        // sudden end.
        let _ = SigSet::from(Signal::SIGXFSZ).thread_block();
        Interrupts(signals)
    }

    /// Waits for the first signal in a thread, which calls `before_message` and ends the process.
    pub(crate) fn watch(self, before_message: impl FnOnce() + Send + 'static) {
        let signals = self.0;
        let unfinished = Unfinished::track();
        let wait = move || {
            let Ok(signal) = signals.wait() else { return };
            // The next signal ends the process at once, whatever this thread is waiting for.
            let _ = signals.thread_unblock();
            unfinished.abandon(|| end(signal, before_message));
        };
        if Builder::new().spawn(wait).is_err() {
            // Without a thread, the signals end the process themselves.
            let _ = signals.thread_unblock();
        }
    }
}

/// Prints why the merge ends, if that does not take too long, and ends the process.
fn end(signal: Signal, before_message: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel::<()>();
    let print = move || {
        before_message();
        super::print_message(&format!("stopped by {signal} before the end"));
        drop(done);
    };
    if Builder::new().spawn(print).is_ok() {
        let _ = is_done.recv_timeout(MAX_MESSAGE_TIME); // the process ends in any case
    }
    let _ = raise(signal);
    exit(128 + signal as i32);
}

fn is_ignored(signal: Signal) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action, the call only writes the current one to `action`, which has
    // room for it.
    let result = unsafe { libc::sigaction(signal as i32, null(), action.as_mut_ptr()) };
    // SAFETY: all zeros are a valid action, the default one, and the call has overwritten it with
    // another or not at all.
    let action = unsafe { action.assume_init() };
    result == 0 && action.sa_sigaction == libc::SIG_IGN
}
