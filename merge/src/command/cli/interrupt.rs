//! SIGINT, SIGTERM and SIGHUP: they end the merge as they would anyway, after what it has under a temporary name is gone.
//!
//! The signals are blocked and a thread waits for them, so that no handler runs in the middle of anything.
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
/// How long the last words may take, for nobody may be reading them.
const PATIENCE: Duration = Duration::from_millis(150);

/// The signals that end the merge.
pub(crate) struct Interrupts(SigSet);

impl Interrupts {
    /// Holds them back; call it before there are threads, which would get them too. Those that this process was started to ignore, as jobs
    /// in the background and those under `nohup` are, or to hold back, stay as they are.
    pub(crate) fn block() -> Interrupts {
        let held_back = SigSet::thread_get_mask().unwrap_or_else(|_| SigSet::empty());
        let ending = ENDING
            .into_iter()
            .filter(|signal| !is_ignored(*signal) && !held_back.contains(*signal));
        let signals = SigSet::from_iter(ending);
        let _ = signals.thread_block(); // fails for no set of signals
        // A file that is too long for its limit (`ulimit -f`) is an error then, which says so, and no end in the middle of it.
        let _ = SigSet::from(Signal::SIGXFSZ).thread_block();
        Interrupts(signals)
    }

    /// Waits for the first one in a thread, which calls `before_message` and ends the process.
    pub(crate) fn watch(self, before_message: impl FnOnce() + Send + 'static) {
        let signals = self.0;
        let unfinished = Unfinished::track();
        let wait = move || {
            let Ok(signal) = signals.wait() else { return };
            // The next one ends it at once, whatever this thread is waiting for.
            let _ = signals.thread_unblock();
            unfinished.abandon(|| end(signal, before_message));
        };
        if Builder::new().spawn(wait).is_err() {
            // Without a thread they end the process themselves.
            let _ = signals.thread_unblock();
        }
    }
}

/// Says why, if that can be said in time, and ends the process.
fn end(signal: Signal, before_message: impl FnOnce() + Send + 'static) {
    let (said, is_said) = mpsc::channel::<()>();
    let words = move || {
        before_message();
        super::say(&format!("stopped by {signal} before the end"));
        drop(said);
    };
    if Builder::new().spawn(words).is_ok() {
        let _ = is_said.recv_timeout(PATIENCE); // either way it is over
    }
    let _ = raise(signal);
    exit(128 + signal as i32);
}

fn is_ignored(signal: Signal) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: with no new action it only writes the one in force to `action`, which has room for it.
    let asked = unsafe { libc::sigaction(signal as i32, null(), action.as_mut_ptr()) };
    // SAFETY: zeros are an action, the default one; the call has written another over it or nothing.
    let action = unsafe { action.assume_init() };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}
