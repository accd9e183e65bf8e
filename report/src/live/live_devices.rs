//! How long devices were busy, on whichever stream.

use super::last_seconds::LastSeconds;
use crate::gather::device_slice::DeviceSlice;
use std::collections::BTreeMap;
use trace_merge::blocks::Positions;

/// Times apart that are kept of a device. What comes later than so many gaps counts as known: streams are written one after the other.
const STRETCHES: usize = 4_096;

/// What is known of a device.
#[derive(Debug, Default)]
pub(super) struct BusyTime {
    known: Positions,
    pub(super) slices: u64,
    pub(super) busy_ns: i64,
    pub(super) first_ns: Option<i64>,
    pub(super) last_ns: i64,
}

/// All devices, by the numbers of their processes.
#[derive(Debug, Default)]
pub(super) struct LiveDevices {
    pub(super) of: BTreeMap<u32, BusyTime>,
}

impl LiveDevices {
    /// Takes some slices.
    pub(super) fn take(&mut self, slices: &[DeviceSlice], seconds: &mut LastSeconds) {
        for slice in slices {
            let device = self.of.entry(slice.device).or_default();
            let (start_ns, end_ns) = (slice.start_ns.max(0), slice.end_ns.0.max(0));
            device.slices += 1;
            device.first_ns = Some(
                device
                    .first_ns
                    .map_or(start_ns, |first| first.min(start_ns)),
            );
            device.last_ns = device.last_ns.max(end_ns);
            let fresh = device
                .known
                .add(start_ns.unsigned_abs()..end_ns.unsigned_abs());
            for part in fresh {
                let (from_ns, to_ns) = (part.start.cast_signed(), part.end.cast_signed());
                device.busy_ns += to_ns - from_ns;
                seconds.add_busy(slice.device, from_ns, to_ns);
            }
        }
        for device in self.of.values_mut() {
            device.known.forget_oldest(STRETCHES);
        }
    }
}
