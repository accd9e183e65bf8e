//! Where on the host's axis a launch ran on the device. In: two device timestamps. Out: a slice with an uncertainty that holds, or the reason why
//! not.

use crate::clock::DeviceClock;
use crate::runtime::DeviceTime;

/// What is known of a launch that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Host time before the start event went into the stream: the device cannot have reached it earlier.
    pub(crate) asked_ns: u64,
    /// Host time after the end event was seen: the device cannot have reached it later.
    pub(crate) seen_ns: u64,
    pub(crate) start: DeviceTime,
    pub(crate) end: DeviceTime,
    /// From start to end, finer than their difference.
    pub(crate) elapsed_ns: i64,
}

/// More than any pair is longer than its launch by an error of the clocks.
const SURELY_LONGER_NS: i64 = 1_000_000;

/// A slice on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) start_ns: u64,
    pub(crate) dur_ns: u64,
    /// How far off the start can be.
    pub(crate) uncertainty_ns: u64,
}

/// Why there is no slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// Not between launch and completion.
    Impossible,
    /// The end came before the start.
    Reversed,
    /// The clock was never read.
    NoClock,
}

/// What `elapsed_ns` may be off: one tick, and what single precision makes of ms.
fn elapsed_slack_ns(elapsed_ns: i64) -> i64 {
    20 + elapsed_ns / (1 << 23)
}

/// Places a launch. `row_end_ns` is where the slice before it in its row ends.
pub(crate) fn place(
    clock: &DeviceClock,
    times: &Times,
    row_end_ns: u64,
) -> Result<Placed, Rejection> {
    let elapsed = times.elapsed_ns;
    // On devices that count without a sign a reversed pair is a very long one.
    let longest = signed(times.seen_ns) - signed(times.asked_ns);
    if elapsed < 0 || elapsed > longest.saturating_mul(2).saturating_add(SURELY_LONGER_NS) {
        return Err(Rejection::Reversed);
    }
    let (start, grain) = start_on_device(times).ok_or(Rejection::Impossible)?;
    let bounds = clock.host(start, grain).ok_or(Rejection::NoClock)?;
    let slack = elapsed_slack_ns(elapsed);
    let low = bounds.low_ns.max(signed(times.asked_ns));
    let high = bounds
        .high_ns
        .min(signed(times.seen_ns) - clock.shortest_length(elapsed) + slack);
    if low > high {
        return Err(Rejection::Impossible);
    }
    let middle = low + (high - low) / 2;
    // One that may begin where the last one ends is taken to do so.
    let start = match signed(row_end_ns) {
        end if (middle..=high).contains(&end) => end,
        _ => middle,
    };
    Ok(Placed {
        start_ns: start.unsigned_abs(),
        dur_ns: clock.length(elapsed).unsigned_abs(),
        uncertainty_ns: (start - low).max(high - start).unsigned_abs(),
    })
}

/// The times of the device between which all that the pair holds has run.
pub(crate) fn held(times: &Times) -> Option<(i64, i64)> {
    let (start, grain) = start_on_device(times)?;
    let slack = elapsed_slack_ns(times.elapsed_ns);
    Some((start, start + grain + times.elapsed_ns + slack))
}

/// The device time of the start and what it may be later: by its own timestamp, and by the end's and the time between them.
fn start_on_device(times: &Times) -> Option<(i64, i64)> {
    let slack = elapsed_slack_ns(times.elapsed_ns);
    let range = |time: DeviceTime| {
        (
            signed(time.ns),
            signed(time.ns.saturating_add(time.grain_ns)),
        )
    };
    let (own_low, own_high) = range(times.start);
    let (end_low, end_high) = range(times.end);
    let low = own_low.max(end_low - times.elapsed_ns - slack);
    let high = own_high.min(end_high - times.elapsed_ns + slack);
    (low <= high).then_some((low, high - low))
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Reading;

    fn micros(ns: u64) -> DeviceTime {
        DeviceTime {
            ns: ns / 1000 * 1000,
            grain_ns: 1000,
        }
    }

    /// A launch of `dur` ns that really began at `start`.
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
    fn the_true_start_is_within_the_uncertainty() {
        for (start, dur) in [
            (2_000_000_123, 45_678),
            (2_000_999_999, 1),
            (2_000_500_000, 7_654_321),
        ] {
            let placed = place(&DeviceClock::steady(), &times(start, dur), 0).unwrap();
            assert!(
                placed.start_ns.abs_diff(start) <= placed.uncertainty_ns,
                "{placed:?}"
            );
            assert!(placed.uncertainty_ns < 6_000, "{placed:?}");
            assert!(placed.dur_ns.abs_diff(dur) <= 1 + dur / 10_000);
        }
    }

    #[test]
    fn what_cannot_be_is_rejected_and_not_moved() {
        let fine = times(2_000_000_123, 45_678);
        let cases = [
            (
                Times {
                    asked_ns: fine.asked_ns + 100_000,
                    ..fine
                },
                Rejection::Impossible,
            ),
            (
                Times {
                    seen_ns: fine.seen_ns - 100_000,
                    ..fine
                },
                Rejection::Impossible,
            ),
            (
                Times {
                    elapsed_ns: -20,
                    ..fine
                },
                Rejection::Reversed,
            ),
            // The start event still has the time of an earlier launch.
            (
                Times {
                    start: micros(900_000_000),
                    ..fine
                },
                Rejection::Impossible,
            ),
        ];
        for (times, why) in cases {
            assert_eq!(
                place(&DeviceClock::steady(), &times, 0),
                Err(why),
                "{times:?}"
            );
        }
        assert_eq!(
            place(&DeviceClock::new(), &fine, 0),
            Err(Rejection::NoClock)
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

    #[test]
    fn long_work_on_a_fast_device_is_placed_too() {
        // 100 ppm fast: a second on the host is 100 µs more on the device.
        let device = |host: i64| host + host / 10_000;
        let mut clock = DeviceClock::new();
        for step in 1..40 {
            let host = step * 100_000_000;
            let reading = Reading {
                device_ns: device(host),
                low_ns: host - 500,
                high_ns: host + 500,
            };
            clock.add(reading).expect("no contradiction");
        }
        for dur in [30_000_000, 100_000_000, 1_000_000_000i64] {
            let start = 2_900_000_000i64;
            let on_device = |host| micros(device(host).unsigned_abs());
            let times = Times {
                asked_ns: start.unsigned_abs() - 1000,
                seen_ns: (start + dur).unsigned_abs() + 500,
                start: on_device(start),
                end: on_device(start + dur),
                elapsed_ns: device(start + dur) - device(start),
            };
            let placed = place(&clock, &times, 0).unwrap();
            assert!(placed.start_ns.abs_diff(start.unsigned_abs()) <= placed.uncertainty_ns);
            let off = placed.dur_ns.abs_diff(dur.unsigned_abs());
            assert!(off < 20_000, "{off} ns of {dur}");
        }
    }

    #[test]
    fn a_pair_that_wrapped_is_reversed() {
        let fine = times(2_000_000_123, 45_678);
        for elapsed_ns in [-20, i64::MAX, 1 << 62] {
            let times = Times { elapsed_ns, ..fine };
            assert_eq!(
                place(&DeviceClock::steady(), &times, 0),
                Err(Rejection::Reversed)
            );
        }
    }
}
