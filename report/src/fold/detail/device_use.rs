//! Idle intervals → the activity of devices in some time.

use crate::gather::detail_events::TimeRange;
use crate::rows::IdleInterval;
use crate::table::{DeviceIdle, DevicesIn, IdleCause, IdleTime, RunReport};
use std::cmp::Reverse;

/// The activity of a device in some time.
pub(super) struct DeviceUse {
    pub(super) process: usize,
    /// Time between its first and its last slice.
    pub(super) open_ns: i64,
    causes_ns: [i64; IdleCause::ALL.len()],
}

impl DeviceUse {
    pub(super) fn idle_ns(&self) -> i64 {
        self.causes_ns.iter().sum()
    }

    /// Returns the causes of its idle time, the longest first.
    pub(super) fn causes(&self) -> Vec<IdleTime> {
        let all = IdleCause::ALL.into_iter().zip(self.causes_ns);
        let mut causes: Vec<IdleTime> = all
            .filter(|(_, ns)| *ns > 0)
            .map(|(cause, ns)| IdleTime { cause, ns })
            .collect();
        causes.sort_by_key(|of| Reverse(of.ns));
        causes
    }
}

/// Returns the idle interval of a device that contains a time.
pub(super) fn idle_at(
    intervals: &[IdleInterval],
    device: usize,
    at_ns: i64,
) -> Option<&IdleInterval> {
    let next = intervals.partition_point(|of| (of.process, of.start_ns) <= (device, at_ns));
    let last = intervals[..next].last()?;
    (last.process == device && at_ns < last.start_ns + last.dur_ns).then_some(last)
}

/// Returns the activity of each device in some time. Devices without a slice before and after it are left out.
pub(super) fn device_use(
    report: &RunReport,
    intervals: &[IdleInterval],
    time: TimeRange,
    is_wanted: impl Fn(&DeviceIdle) -> bool,
) -> Vec<DeviceUse> {
    let common_ns = |from_ns: i64, to_ns: i64| {
        let ns = to_ns.min(time.to_ns) - from_ns.max(time.from_ns);
        ns.max(0)
    };
    let devices = report.timed().zip(&report.idle);
    let used = devices.filter(|(_, idle)| is_wanted(idle)).map(|(of, _)| {
        let mut found = DeviceUse {
            process: of.process,
            open_ns: common_ns(of.from_ns, of.from_ns + of.wall_ns),
            causes_ns: [0; IdleCause::ALL.len()],
        };
        // The intervals of a device follow each other.
        let first = intervals.partition_point(|one| {
            (one.process, one.start_ns + one.dur_ns) < (of.process, time.from_ns)
        });
        let of_device = intervals[first..].iter();
        let of_device =
            of_device.take_while(|one| one.process == of.process && one.start_ns < time.to_ns);
        for one in of_device {
            let ns = common_ns(one.start_ns, one.start_ns + one.dur_ns);
            found.causes_ns[one.cause as usize] += ns;
        }
        found
    });
    used.filter(|of| of.open_ns > 0).collect()
}

/// Returns the mean activity of some devices.
pub(super) fn mean_use(devices: &[DeviceUse]) -> Option<DevicesIn> {
    let sum = |ns: &dyn Fn(&DeviceUse) -> i64| {
        let each = devices.iter().map(ns);
        each.fold(0, i64::saturating_add)
    };
    let (open_ns, idle_ns) = (sum(&|of| of.open_ns), sum(&DeviceUse::idle_ns));
    let share = |ns: i64| ns as f64 / open_ns as f64;
    let of_cause = |cause: IdleCause| (cause, sum(&|of| of.causes_ns[cause as usize]));
    let causes = IdleCause::ALL.into_iter().map(of_cause);
    let most = causes.max_by_key(|(_, ns)| *ns).filter(|(_, ns)| *ns > 0);
    (open_ns > 0).then(|| DevicesIn {
        busy: share(open_ns - idle_ns),
        cause: most.map(|(cause, ns)| (cause, share(ns))),
    })
}
