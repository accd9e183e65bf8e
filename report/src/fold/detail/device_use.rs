//! Activity of the devices in a time range, from their idle intervals.

use crate::gather::detail_events::TimeRange;
use crate::rows::IdleInterval;
use crate::table::{DeviceIdle, DevicesIn, IdleCause, IdleTime, RunReport};
use std::cmp::Reverse;

/// Activity of a device in a time range.
pub(super) struct DeviceUse {
    pub(super) process: usize,
    /// Time between the device's first and last slice, within the range.
    pub(super) open_ns: i64,
    causes_ns: [i64; IdleCause::ALL.len()],
}

impl DeviceUse {
    pub(super) fn idle_ns(&self) -> i64 {
        self.causes_ns.iter().sum()
    }

    /// Returns the causes of the idle time, longest first.
    pub(super) fn causes(&self) -> Vec<IdleTime> {
        let all = IdleCause::ALL.into_iter().zip(self.causes_ns);
        let mut causes: Vec<IdleTime> = all
            .filter(|(_, ns)| *ns > 0)
            .map(|(cause, ns)| IdleTime { cause, ns })
            .collect();
        causes.sort_by_key(|time| Reverse(time.ns));
        causes
    }
}

/// Returns the idle interval of a device that contains a time.
pub(super) fn idle_at(
    intervals: &[IdleInterval],
    device: usize,
    at_ns: i64,
) -> Option<&IdleInterval> {
    let next = intervals
        .partition_point(|interval| (interval.process, interval.start_ns) <= (device, at_ns));
    let last = intervals[..next].last()?;
    (last.process == device && at_ns < last.start_ns + last.dur_ns).then_some(last)
}

/// Returns the activity of each device in a time range. A device is left out if the range is entirely before its first
/// or after its last slice.
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
    let used = devices
        .filter(|(_, idle)| is_wanted(idle))
        .map(|(device, _)| {
            let mut found = DeviceUse {
                process: device.process,
                open_ns: common_ns(device.from_ns, device.from_ns + device.wall_ns),
                causes_ns: [0; IdleCause::ALL.len()],
            };
            // The intervals of one device are adjacent and in time order.
            let first = intervals.partition_point(|one| {
                (one.process, one.start_ns + one.dur_ns) < (device.process, time.from_ns)
            });
            let later = intervals[first..].iter();
            let overlapping =
                later.take_while(|one| one.process == device.process && one.start_ns < time.to_ns);
            for one in overlapping {
                let ns = common_ns(one.start_ns, one.start_ns + one.dur_ns);
                found.causes_ns[one.cause as usize] += ns;
            }
            found
        });
    used.filter(|device| device.open_ns > 0).collect()
}

/// Returns the mean activity of some devices.
pub(super) fn mean_use(devices: &[DeviceUse]) -> Option<DevicesIn> {
    let sum = |ns: &dyn Fn(&DeviceUse) -> i64| {
        let each = devices.iter().map(ns);
        each.fold(0, i64::saturating_add)
    };
    let (open_ns, idle_ns) = (sum(&|device| device.open_ns), sum(&DeviceUse::idle_ns));
    let share = |ns: i64| ns as f64 / open_ns as f64;
    let with_sum = |cause: IdleCause| (cause, sum(&|device| device.causes_ns[cause as usize]));
    let causes = IdleCause::ALL.into_iter().map(with_sum);
    let most = causes.max_by_key(|(_, ns)| *ns).filter(|(_, ns)| *ns > 0);
    (open_ns > 0).then(|| DevicesIn {
        busy: share(open_ns - idle_ns),
        cause: most.map(|(cause, ns)| (cause, share(ns))),
    })
}
