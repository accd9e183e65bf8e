//! Determines how long a command that follows a run waits between two polls, so that the run keeps the machine.

use std::fs;
use std::time::{Duration, Instant};
use trace_merge::follow::Poll;
use trace_report::live::LiveReader;

/// Interval of the polls while everything was read.
pub(crate) const EVERY: Duration = Duration::from_secs(1);
/// Minimum pause as a multiple of the poll's CPU time. It limits the command to a quarter of one core.
const PAUSE_FACTOR: u32 = 3;

/// One poll of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PollTimer {
    start: Instant,
    cpu: Option<Duration>,
}

/// Data that is left after a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing: everything was read.
    Nothing,
    /// More data, in a run that is still recording.
    Behind,
    /// More data, in a run that has ended.
    Remainder,
}

/// Returns what is left of a run after a poll.
pub(crate) fn left(reader: &LiveReader, found: &Poll) -> Left {
    match (found.unread > 0 && found.bytes > 0, reader.has_ended()) {
        (false, _) => Left::Nothing,
        (true, false) => Left::Behind,
        (true, true) => Left::Remainder,
    }
}

impl PollTimer {
    /// Starts to measure a poll (one look for new data) on this thread.
    pub(crate) fn start() -> PollTimer {
        PollTimer {
            start: Instant::now(),
            cpu: cpu_time(),
        }
    }

    /// Returns how long to wait before the next poll, so that polls use at most a quarter of a CPU.
    /// It is zero if the run has ended and data is left. Time in which other threads used the CPU does not count.
    pub(crate) fn pause(self, left: Left) -> Duration {
        let (took, cpu) = (self.start.elapsed(), cpu_time());
        let cpu = cpu
            .zip(self.cpu)
            .map(|(now, then)| now.saturating_sub(then));
        pause(took, cpu.unwrap_or(took), left)
    }
}

fn pause(took: Duration, cpu: Duration, left: Left) -> Duration {
    match left {
        Left::Nothing => EVERY.saturating_sub(took).max(PAUSE_FACTOR * cpu),
        Left::Behind => PAUSE_FACTOR * cpu,
        Left::Remainder => Duration::ZERO,
    }
}

/// Returns the CPU time of this thread, if the kernel provides it.
fn cpu_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let ns = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_takes_at_most_a_quarter_of_the_time() {
        let ms = Duration::from_millis;
        for (took, cpu, left, expected) in [
            (2, 2, Left::Nothing, 998),
            (900, 400, Left::Nothing, 1_200),
            (900, 40, Left::Behind, 120),
            (900, 400, Left::Remainder, 0),
        ] {
            assert_eq!(pause(ms(took), ms(cpu), left), ms(expected));
        }
    }

    #[test]
    fn only_the_own_time_counts() {
        let timer = PollTimer::start();
        std::thread::sleep(Duration::from_millis(300));
        let pause = timer.pause(Left::Behind);
        assert!(pause < Duration::from_millis(300), "{pause:?}");
    }
}
