//! The device's clock on the host's axis, with bounds that hold: interval arithmetic over readings, no averages.
//!
//! At the device time of a reading the host's clock was between two values. Two readings bound the drift. All of them together bound the host time of
//! any other device time. Contradictory readings mean that a clock was set. Then all earlier readings are forgotten.

use crate::runtime::{Bounds, whole_ns};
use std::collections::VecDeque;

pub(crate) mod reader;

/// Maximum drift of a clock that is not set: 500 ns in each ms.
const MAX_DRIFT: f64 = 500e-6;
/// Usual drift of a quartz clock: if the readings allow several drifts, these are the likely ones.
const USUAL_DRIFT: f64 = 100e-6;
/// Maximum change of the drift while a reading is kept, because of temperature or the service that disciplines the host's clock.
const WANDER: f64 = 10e-6;
/// Number of readings that are kept.
const KEPT: usize = 24;
/// Minimum age of the last kept reading for another one to be kept ...
const SPACING_NS: f64 = 500e6;
/// ... the same while fewer than `FEW` are kept.
const FEW: usize = 8;
const FIRST_SPACING_NS: f64 = 10e6;

/// A reading: at `device_ns` the host's clock was between `low_ns` and `high_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) device_ns: i64,
    pub(crate) low_ns: i64,
    pub(crate) high_ns: i64,
}

/// A reading relative to the first one.
#[derive(Clone, Copy, Debug)]
struct Kept {
    device: f64,
    low: f64,
    high: f64,
}

/// Knowledge of a device's clock.
#[derive(Debug, Default)]
pub(crate) struct DeviceClock {
    /// Device and host times to which all others are relative.
    origin: Option<(i64, i64)>,
    kept: VecDeque<Kept>,
    /// The last reading, kept or not, because no other one gives better bounds for the present.
    latest: Option<Kept>,
    /// Bounds of the drift. It is positive if the device's clock is slow.
    pub(crate) drift: (f64, f64),
}

/// The error that a clock was set, so that times placed with earlier readings may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockWasSet;

impl DeviceClock {
    /// Returns true if the device's clock has been read at least once.
    pub(crate) fn is_known(&self) -> bool {
        self.origin.is_some()
    }

    /// Adds a reading of the device's clock, which narrows the bounds. Fails if it contradicts the earlier readings, because a clock was set, and forgets
    /// those.
    pub(crate) fn add(&mut self, reading: Reading) -> Result<(), ClockWasSet> {
        let Some((device, host)) = self.origin else {
            self.begin(reading);
            return Ok(());
        };
        let passed = reading.device_ns - device;
        let kept = Kept {
            device: passed as f64,
            low: (reading.low_ns - host - passed) as f64,
            high: (reading.high_ns - host - passed) as f64,
        };
        let (low, high) = self.offset(kept.device);
        if kept.low > high || kept.high < low {
            self.begin(reading);
            return Err(ClockWasSet);
        }
        self.latest = Some(kept);
        if !self.is_due(&kept) {
            return Ok(());
        }
        self.kept.push_back(kept);
        if self.kept.len() > KEPT {
            self.kept.pop_front();
        }
        self.drift = self.drift_bounds();
        if self.drift.0 > self.drift.1 {
            self.begin(reading);
            return Err(ClockWasSet);
        }
        Ok(())
    }

    fn begin(&mut self, reading: Reading) {
        let half = (reading.high_ns - reading.low_ns) / 2;
        self.origin = Some((reading.device_ns, reading.low_ns + half));
        self.drift = (-MAX_DRIFT, MAX_DRIFT);
        let half = half as f64 + 1.0;
        self.latest = None;
        self.kept.clear();
        self.kept.push_back(Kept {
            device: 0.0,
            low: -half,
            high: half,
        });
    }

    /// Returns true if this reading should be kept, because the last kept one is old or much less precise.
    fn is_due(&mut self, reading: &Kept) -> bool {
        let is_new = self.kept.len() < FEW;
        let spacing = if is_new { FIRST_SPACING_NS } else { SPACING_NS };
        let width = |kept: &Kept| kept.high - kept.low;
        match self.kept.back() {
            Some(last) if reading.device - last.device >= spacing => true,
            Some(last) if width(reading) * 2.0 < width(last) && self.kept.len() > 1 => {
                self.kept.pop_back();
                true
            }
            _ => self.kept.is_empty(),
        }
    }

    /// Returns the bounds of the drift between the device's clock and the host's, from all pairs of kept readings.
    fn drift_bounds(&self) -> (f64, f64) {
        let (mut low, mut high) = (-MAX_DRIFT, MAX_DRIFT);
        for (at, later) in self.kept.iter().enumerate() {
            for earlier in self.kept.iter().take(at) {
                let passed = later.device - earlier.device;
                if passed < FIRST_SPACING_NS {
                    continue;
                }
                low = low.max((later.low - earlier.high) / passed - WANDER);
                high = high.min((later.high - earlier.low) / passed + WANDER);
            }
        }
        (low, high)
    }

    /// Returns the bounds, in ns, of the offset between both clocks at the time `device`. Both are relative to the first reading.
    fn offset(&self, device: f64) -> (f64, f64) {
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        for kept in self.kept.iter().chain(&self.latest) {
            let passed = device - kept.device;
            let (one, other) = (self.drift.0 * passed, self.drift.1 * passed);
            let wander = WANDER * passed.abs();
            low = low.max(kept.low + one.min(other) - wander);
            high = high.min(kept.high + one.max(other) + wander);
        }
        (low, high)
    }

    /// Converts a time of the device's clock to bounds of the host's time. The time is between `device_ns` and `grain_ns` later. Returns `None` before the
    /// first reading.
    pub(crate) fn host(&self, device_ns: i64, grain_ns: i64) -> Option<Bounds> {
        let (device, host) = self.origin?;
        let relative = device_ns - device;
        let (low, high) = self.offset(relative as f64);
        let (first, last) = (host + relative, host + relative + grain_ns + 1);
        Some(Bounds::new(first + whole_ns(low), last + whole_ns(high)))
    }

    /// Converts a duration on the device's clock, in ns, to its minimum on the host's clock.
    pub(crate) fn shortest_length(&self, device_ns: i64) -> i64 {
        device_ns + whole_ns(device_ns as f64 * self.drift.0)
    }

    /// Converts a duration on the device's clock, in ns, to the most likely one on the host's clock.
    pub(crate) fn length(&self, device_ns: i64) -> i64 {
        let (low, high) = self.drift;
        let usual = |drift: f64| drift.clamp(-USUAL_DRIFT, USUAL_DRIFT).max(low).min(high);
        let drift = usual(low).midpoint(usual(high));
        device_ns + whole_ns((device_ns as f64 * drift).round())
    }

    /// Returns the bounds of the host's time for what the device's clock shows at about `host_ns`. Their width is the uncertainty of the clock. Returns `None`
    /// before the first reading.
    pub(crate) fn now(&self, host_ns: i64) -> Option<Bounds> {
        let (device, host) = self.origin?;
        self.host(device + (host_ns - host), 0)
    }
}

#[cfg(test)]
impl DeviceClock {
    /// Returns the clock of a device that began 1 ms after the host, read within 1 µs.
    pub(crate) fn steady() -> DeviceClock {
        let mut clock = DeviceClock::default();
        for step in 1..20 {
            let host = step * 100_000_000;
            let reading = Reading {
                device_ns: host - 1_000_000,
                low_ns: host - 500,
                high_ns: host + 500,
            };
            clock.add(reading).expect("no contradiction");
        }
        clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that began `offset` ns after the host's and is fast by `ppm`. Each read takes up to `slack` ns.
    struct True {
        offset: i64,
        ppm: f64,
        slack: i64,
    }

    impl True {
        fn device(&self, host: i64) -> i64 {
            (host - self.offset) + whole_ns((host - self.offset) as f64 * self.ppm * 1e-6)
        }

        fn reading(&self, host: i64) -> Reading {
            // The device is read anywhere between the two reads of the host's clock.
            let before = host.rem_euclid(7) * self.slack / 7;
            Reading {
                device_ns: self.device(host),
                low_ns: host - before,
                high_ns: host - before + self.slack,
            }
        }
    }

    #[test]
    fn every_time_is_within_its_bounds_and_they_narrow() {
        let offsets = [0, -7_200_000_000_000, 12 * 3_600_000_000_000];
        let truths = offsets.iter().flat_map(|offset| {
            let ppm = [-100.0, 0.0, 100.0].into_iter();
            ppm.map(|ppm| True {
                offset: *offset,
                ppm,
                slack: 4_000,
            })
        });
        for truth in truths {
            let mut clock = DeviceClock::default();
            let begin = 20 * 3_600_000_000_000;
            let mut widest_late = 0;
            for step in 0..6000 {
                let now = begin + step * 100_000_000; // ten minutes
                clock.add(truth.reading(now)).expect("no contradiction");
                for ago in [0, 5_000_000, 90_000_000] {
                    let bounds = clock.host(truth.device(now - ago), 1).unwrap();
                    assert!(bounds.low_ns <= now - ago && now - ago <= bounds.high_ns);
                    if step > 100 {
                        widest_late = widest_late.max(bounds.high_ns - bounds.low_ns);
                    }
                }
            }
            assert!(widest_late < 10_000, "{widest_late} ns");
        }
    }

    #[test]
    fn a_length_is_as_precise_as_the_clock_even_with_few_readings() {
        for ppm in [-100.0, -60.0, 0.0, 60.0, 100.0] {
            for (late, order) in [(0, 1), (0, -1), (4_000, 1), (4_000, -1), (40_000, 1)] {
                let truth = True {
                    offset: 0,
                    ppm,
                    slack: 2_000,
                };
                let mut clock = DeviceClock::default();
                for step in 0..4 {
                    let now = 1_000_000_000 + step * 10_000_000;
                    // The machine delayed a read of the host's clock: the one before the device's, or the one after.
                    let mut reading = truth.reading(now);
                    match (step, order) {
                        (1, 1) => reading.high_ns += late,
                        (1, _) => reading.low_ns -= late,
                        _ => {}
                    }
                    clock.add(reading).expect("no contradiction");
                    let elapsed = truth.device(now + 2_600_000) - truth.device(now);
                    let off = clock.length(elapsed).abs_diff(2_600_000);
                    assert!(
                        off <= 262,
                        "{off} ns off: {ppm} ppm, {late} ns late, step {step}"
                    );
                }
            }
        }
    }
}
