//! SIGINT, SIGTERM and SIGHUP: they end the merge as they would anyway, after what it has under a temporary name is gone.
//!
//! The signals are blocked and a thread waits for them, so that no handler runs in the middle of anything.

use nix::sys::signal::{SigSet, Signal, raise};
use std::process::exit;

const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// The signals that end the merge.
pub(crate) struct Interrupts(SigSet);

impl Interrupts {
    /// Holds them back; call it before there are threads, which would get them too.
    pub(crate) fn block() -> Interrupts {
        let ignored = std::fs::read_to_string("/proc/self/status")
            .ok()
            .and_then(|status| ignored(&status))
            .unwrap_or(0);
        let ending = ENDING
            .into_iter()
            .filter(|signal| ignored & bit(*signal) == 0);
        let signals = SigSet::from_iter(ending);
        let _ = signals.thread_block(); // fails for no set of signals
        Interrupts(signals)
    }

    /// Waits for the first one in a thread, which calls `before_message` and ends the process.
    pub(crate) fn watch(self, before_message: impl FnOnce() + Send + 'static) {
        std::thread::spawn(move || {
            let Ok(signal) = self.0.wait() else { return };
            // The next one ends it at once, whatever this thread is waiting for.
            let _ = self.0.thread_unblock();
            trace_merge::abandon(|| {
                before_message();
                super::say(&format!("stopped by {signal} before the end"));
                let _ = raise(signal);
                exit(128 + signal as i32);
            });
        });
    }
}

fn bit(signal: Signal) -> u64 {
    1 << (signal as u32 - 1)
}

/// The signals that this process was started to ignore, as jobs in the background and those under `nohup` are.
fn ignored(status: &str) -> Option<u64> {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_ignored_signals() {
        let mask = ignored("Name:\tx\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001003\n");
        let mask = mask.expect("a mask");
        let is_ignored = ENDING.map(|signal| mask & bit(signal) != 0);
        assert_eq!(is_ignored, [true, false, true]);
        assert_eq!(ignored("Name:\tx\n"), None);
    }
}
