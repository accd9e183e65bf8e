//! Places a launch on the host's axis. In: two timestamps of the device. Out: a slice with a guaranteed uncertainty, or the reason for rejecting it.

use crate::clock::DeviceClock;
use crate::runtime::Bounds;
use crate::tally::Fate;

/// The times of a launch that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Host time before the start event went into the stream: the device cannot have reached it earlier.
    pub(crate) asked_ns: u64,
    /// Host time after the end event was found complete: the device cannot have reached it later.
    pub(crate) seen_ns: u64,
    /// Times at which the device reached the events, on its own clock.
    pub(crate) start: Bounds,
    pub(crate) end: Bounds,
    /// Time from start to end, which is more precise than their difference.
    pub(crate) elapsed_ns: i64,
}

/// Limit by which a pair can be longer than its launch. No error of the clocks is as large.
const SURELY_LONGER_NS: i64 = 1_000_000;

/// A slice on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) start_ns: u64,
    pub(crate) dur_ns: u64,
    /// Bound of the error of the start.
    pub(crate) uncertainty_ns: u64,
}

/// Returns the possible error, in ns, of the time that the runtime reports between two events: one tick, and the rounding of ms in single precision.
fn elapsed_slack_ns(elapsed_ns: i64) -> i64 {
    20 + elapsed_ns / (1 << 23)
}

/// Computes the slice of a launch on the host's clock, or returns the reason why that is impossible. `track_end_ns` is the end of the previous slice on its
/// track.
pub(crate) fn place(clock: &DeviceClock, times: &Times, track_end_ns: u64) -> Result<Placed, Fate> {
    let elapsed = times.elapsed_ns;
    // A device that counts without a sign makes a reversed pair a very long one.
    let longest = signed(times.seen_ns) - signed(times.asked_ns);
    if elapsed < 0 || elapsed > longest.saturating_mul(2).saturating_add(SURELY_LONGER_NS) {
        return Err(Fate::RejectedReversed);
    }
    let start = start_on_device(times).ok_or(Fate::RejectedImpossible)?;
    let bounds = clock.host(start.low_ns, start.high_ns - start.low_ns);
    let bounds = bounds.ok_or(Fate::RejectedNoClock)?;
    let latest = signed(times.seen_ns) - clock.shortest_length(elapsed);
    let called = Bounds::new(signed(times.asked_ns), latest + elapsed_slack_ns(elapsed));
    let bounds = bounds.and(called).possible();
    let bounds = bounds.ok_or(Fate::RejectedImpossible)?;
    let middle = bounds.middle_ns();
    // If the slice may begin where the previous one ends, it does.
    let start = match signed(track_end_ns) {
        end if (middle..=bounds.high_ns).contains(&end) => end,
        _ => middle,
    };
    Ok(Placed {
        start_ns: start.unsigned_abs(),
        dur_ns: clock.length(elapsed).unsigned_abs(),
        uncertainty_ns: bounds.uncertainty_ns(start),
    })
}

/// Returns the bounds of a launch's start on the device's clock. They follow from the timestamp of its start, and from that of its end minus the time between
/// them. Returns `None` if they contradict each other.
fn start_on_device(times: &Times) -> Option<Bounds> {
    let elapsed = times.elapsed_ns;
    let Bounds { low_ns, high_ns } = times.end.wider(elapsed_slack_ns(elapsed));
    let by_end = Bounds::new(low_ns - elapsed, high_ns - elapsed);
    times.start.and(by_end).possible()
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(ns: u64) -> Bounds {
        let start_ns = signed(ns / 1000 * 1000);
        Bounds::new(start_ns, start_ns + 1000)
    }

    /// Returns the times of a launch of `dur` ns that really began at `start`.
    fn times(start: u64, dur: u64) -> Times {
        Times {
            asked_ns: start - 50_000,
            seen_ns: start + dur + 70_000,
            start: micros(start - 1_000_000),
            end: micros(start + dur - 1_000_000),
            elapsed_ns: i64::try_from(dur).unwrap(),
        }
    }

    #[test]
    fn what_cannot_be_is_rejected_and_not_moved() {
        type Change = fn(&mut Times);
        let fine = times(2_000_000_123, 45_678);
        let (impossible, reversed) = (Fate::RejectedImpossible, Fate::RejectedReversed);
        let cases: [(Change, Fate); 6] = [
            (|times| times.asked_ns += 100_000, impossible),
            (|times| times.seen_ns -= 100_000, impossible),
            // The start event still has the time of an earlier launch.
            (|times| times.start = micros(900_000_000), impossible),
            (|times| times.elapsed_ns = -20, reversed),
            // A pair that wrapped.
            (|times| times.elapsed_ns = i64::MAX, reversed),
            (|times| times.elapsed_ns = 1 << 62, reversed),
        ];
        for (change, why) in cases {
            let mut times = times(2_000_000_123, 45_678);
            change(&mut times);
            let placed = place(&DeviceClock::steady(), &times, 0);
            assert_eq!(placed, Err(why), "{times:?}");
        }
        assert_eq!(
            place(&DeviceClock::default(), &fine, 0),
            Err(Fate::RejectedNoClock)
        );
    }

    #[test]
    fn a_slice_that_may_begin_at_the_end_of_the_last_one_does() {
        let times = times(2_000_000_123, 45_678);
        let free = place(&DeviceClock::steady(), &times, 0).unwrap();
        let after = free.start_ns + free.uncertainty_ns / 2;
        let placed = place(&DeviceClock::steady(), &times, after).unwrap();
        assert_eq!(placed.start_ns, after);
        assert!(placed.start_ns.abs_diff(2_000_000_123) <= placed.uncertainty_ns);
        let beyond = free.start_ns + free.uncertainty_ns + 2;
        assert_eq!(
            place(&DeviceClock::steady(), &times, beyond),
            Ok(free),
            "it is not moved out of its bounds"
        );
    }
}
