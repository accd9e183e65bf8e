//! The host's clock with functions that wait until a time, and the clocks of devices. Each device's clock has its own start, rate and steps.

use std::hint;
use std::time::Duration;

const NS_PER_S: u64 = 1_000_000_000;

/// Returns the time of `CLOCK_MONOTONIC` in ns.
pub(crate) fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Returns the time of `CLOCK_REALTIME` in ns.
pub(crate) fn realtime_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is writable for the call.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.cast_unsigned() * NS_PER_S + time.tv_nsec.cast_unsigned()
}

/// Time for which a thread spins before it sleeps, and at the end of a timed wait.
pub(crate) const SPIN_NS: u64 = 30_000;

/// Waits until `end_ns` and returns the time. Sleeps first and spins for the last `SPIN_NS`.
pub(crate) fn wait_until(end_ns: u64) -> u64 {
    loop {
        let now = now_ns();
        if now >= end_ns {
            return now;
        }
        let left = end_ns - now;
        if left > SPIN_NS {
            std::thread::sleep(Duration::from_nanos(left - SPIN_NS));
        } else {
            hint::spin_loop();
        }
    }
}

/// Makes this thread's sleeps end on time. By default the kernel adds up to 50 µs.
pub(crate) fn sleep_exactly() {
    // SAFETY: only changes a property of the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
}

/// A jump of the device clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Time after the runtime's first call.
    after_ns: u64,
    by_ns: i64,
}

impl Step {
    /// Parses a text such as `after_s=5,by_us=1000`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (after, by) = text.split_once(',')?;
        let seconds = after.strip_prefix("after_s=")?.parse().ok()?;
        let after = Duration::try_from_secs_f64(seconds).ok()?;
        let by_us: i64 = by.trim().strip_prefix("by_us=")?.parse().ok()?;
        Some(Self {
            after_ns: u64::try_from(after.as_nanos()).ok()?,
            by_ns: by_us.checked_mul(1000)?,
        })
    }
}

/// The system counter of one device, as a function of the host's clock, so that processes that share a device share its clock.
#[derive(Debug)]
pub(crate) struct DeviceClock {
    offset_ns: i64,
    drift_ppb: i64,
    /// Time and size of the step, in ns.
    step: Option<(u64, i64)>,
    tick_mhz: u64,
}

impl DeviceClock {
    pub(crate) fn new(
        offset_ns: i64,
        drift_ppb: i64,
        step: Option<Step>,
        first_ns: u64,
        tick_mhz: u64,
    ) -> Self {
        Self {
            offset_ns,
            drift_ppb,
            step: step.map(|step| (first_ns + step.after_ns, step.by_ns)),
            tick_mhz,
        }
    }

    /// Returns the ticks since the device was started, at a time of the host's clock.
    pub(crate) fn ticks(&self, host_ns: u64) -> u64 {
        let host = i128::from(host_ns);
        let drifted = host + host * i128::from(self.drift_ppb) / i128::from(NS_PER_S);
        let stepped = match self.step {
            Some((at_ns, by_ns)) if host_ns >= at_ns => i128::from(by_ns),
            _ => 0,
        };
        let device_ns = drifted + i128::from(self.offset_ns) + stepped;
        let ticks = device_ns * i128::from(self.tick_mhz) / 1000;
        u64::try_from(ticks).unwrap_or(0) // before the device was started
    }

    /// Converts ticks to microseconds, truncated like the vendor's.
    pub(crate) fn us(&self, ticks: u64) -> u64 {
        ticks / self.tick_mhz
    }

    /// Converts ticks to nanoseconds.
    pub(crate) fn ns(&self, ticks: u64) -> u64 {
        ticks * (1000 / self.tick_mhz)
    }

    pub(crate) fn khz(&self) -> u64 {
        self.tick_mhz * 1000
    }

    /// Returns the time between two tick counts in ms. With ticks of 1 ns a reversed pair wraps around, like the vendor's.
    pub(crate) fn elapsed_ms(&self, start: u64, end: u64) -> f32 {
        let ticks = if self.tick_mhz == 1000 {
            end.wrapping_sub(start) as f64
        } else {
            end.wrapping_sub(start).cast_signed() as f64
        };
        #[expect(clippy::cast_possible_truncation, reason = "the vendor gives a float")]
        let ms = (ticks / (self.tick_mhz as f64 * 1000.0)) as f32;
        ms
    }
}
