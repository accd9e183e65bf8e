//! The host's clock, waiting by it, and the clocks of devices: each with a beginning, a rate and steps of its own.

use std::hint;
use std::time::Duration;

const NS_PER_S: u64 = 1_000_000_000;

/// CLOCK_MONOTONIC in ns.
pub(crate) fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME in ns.
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

/// Time that a thread spins before it sleeps, and before a sleep ends.
pub(crate) const SPIN_NS: u64 = 30_000;

/// Returns at `end_ns`: sleeps while it is far, and spins for the last `SPIN_NS`. Returns the time it is then.
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

/// Lets this thread's sleeps end when they should: the kernel otherwise adds up to 50 µs.
pub(crate) fn sleep_exactly() {
    // SAFETY: changes a property of the calling thread alone.
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
    /// Of `after_s=5,by_us=1000`.
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

/// The system counter of one device, as a function of the host's clock: processes that share a device share its clock.
#[derive(Debug)]
pub(crate) struct DeviceClock {
    offset_ns: i64,
    drift_ppb: i64,
    /// From when on, and by how much.
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

    /// Ticks since the device was started, at a time of the host.
    pub(crate) fn ticks(&self, host_ns: u64) -> u64 {
        let host = i128::from(host_ns);
        let drifted = host + host * i128::from(self.drift_ppb) / i128::from(NS_PER_S);
        let stepped = match self.step {
            Some((at_ns, by_ns)) if host_ns >= at_ns => i128::from(by_ns),
            _ => 0,
        };
        let device_ns = drifted + i128::from(self.offset_ns) + stepped;
        let ticks = device_ns * i128::from(self.tick_mhz) / 1000;
        u64::try_from(ticks).unwrap_or(0) // before it was started
    }

    /// Whole microseconds, truncated as the vendor does.
    pub(crate) fn us(&self, ticks: u64) -> u64 {
        ticks / self.tick_mhz
    }

    /// Nanoseconds.
    pub(crate) fn ns(&self, ticks: u64) -> u64 {
        ticks * (1000 / self.tick_mhz)
    }

    pub(crate) fn khz(&self) -> u64 {
        self.tick_mhz * 1000
    }

    /// The time between two ticks in ms. With ticks of 1 ns a reversed pair wraps, as the vendor's does.
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
