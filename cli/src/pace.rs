//! How long one who follows a run rests between two looks, so that the run has the machine.

use std::fs;
use std::time::{Duration, Instant};
use trace_merge::follow::Poll;
use trace_report::live::LiveReader;

/// How often a run is looked at where all of it was read.
pub(crate) const EVERY: Duration = Duration::from_secs(1);
/// How long it rests at least, in times of the CPU time of the look: it takes a quarter of one core at most.
const REST: u32 = 3;

/// One look at a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    start: Instant,
    cpu: Option<Duration>,
}

/// What is left to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing: all that is there was read.
    Nothing,
    /// The run goes on, and more of it is there.
    Behind,
    /// More is there, and nobody records any more.
    Rest,
}

/// What is left of a run after a look.
pub(crate) fn left(reader: &LiveReader, found: &Poll) -> Left {
    match (found.unread > 0 && found.bytes > 0, reader.has_ended()) {
        (false, _) => Left::Nothing,
        (true, false) => Left::Behind,
        (true, true) => Left::Rest,
    }
}

impl Look {
    /// Begins one, on this thread.
    pub(crate) fn begin() -> Look {
        Look {
            start: Instant::now(),
            cpu: cpu_time(),
        }
    }

    /// How long to rest after it. What the machine gave to others while it lasted does not count.
    pub(crate) fn rest(self, left: Left) -> Duration {
        let (took, cpu) = (self.start.elapsed(), cpu_time());
        let cpu = cpu
            .zip(self.cpu)
            .map(|(now, then)| now.saturating_sub(then));
        rest(took, cpu.unwrap_or(took), left)
    }
}

fn rest(took: Duration, cpu: Duration, left: Left) -> Duration {
    match left {
        Left::Nothing => EVERY.saturating_sub(took).max(REST * cpu),
        Left::Behind => REST * cpu,
        Left::Rest => Duration::ZERO,
    }
}

/// What this thread has run so far, where the kernel says so.
fn cpu_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let ns = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_a_quarter_of_the_time_at_most() {
        let ms = Duration::from_millis;
        for (took, cpu, left, expected) in [
            (2, 2, Left::Nothing, 998),
            (900, 400, Left::Nothing, 1_200),
            (900, 40, Left::Behind, 120),
            (900, 400, Left::Rest, 0),
        ] {
            assert_eq!(rest(ms(took), ms(cpu), left), ms(expected));
        }
    }

    #[test]
    fn only_the_own_time_counts() {
        let look = Look::begin();
        std::thread::sleep(Duration::from_millis(300));
        let rest = look.rest(Left::Behind);
        assert!(rest < Duration::from_millis(300), "{rest:?}");
    }
}
