//! Rows of devices that the vendor's profiler has recorded whole: ours, of sampled launches, step aside for them.
//!
//! torch_npu packs the pid of the process, the kind of row and the device into one number; so it can be told whose kernels its rows hold.

use crate::identity::process::{DuplicateOf, Process, ProcessKey};
use std::collections::BTreeMap;

/// What the vendor calls the rows of kernels.
const HARDWARE: &str = "Ascend Hardware";
/// The kind of row in the packed pid, and where its parts stand.
const HARDWARE_KIND: i64 = 14;
const KIND_BITS: u32 = 5;
const PID_BITS: u32 = 10;

/// A device as the vendor's profiler shows it.
struct Device {
    pid: i64,
    label: String,
    time_ns: (i64, i64),
    aside: DuplicateOf,
}

/// Lets the groups of tracks of such devices step aside, if both have recorded at the same time.
pub(crate) fn step_aside(processes: &mut BTreeMap<ProcessKey, Process>) {
    let devices: Vec<Device> = processes.values().filter_map(device).collect();
    for process in processes.values_mut() {
        let Some(group) = &process.tracks else {
            continue;
        };
        let activity = process.activity;
        let is_same = |device: &&Device| {
            let overlaps =
                device.time_ns.0 <= activity.last_ns && activity.first_ns <= device.time_ns.1;
            overlaps && device.pid == process.pid && device.label == group.label
        };
        let found = devices.iter().find(is_same);
        process.aside = found.map(|device| device.aside.clone());
    }
}

fn device(process: &Process) -> Option<Device> {
    let origin = process.origin.as_ref()?;
    let label = origin.labels.clone()?;
    let number: i64 = label.strip_prefix("NPU ")?.parse().ok()?;
    let (pid, kind) = (process.pid >> PID_BITS, process.pid >> KIND_BITS & 31);
    let is_packed = pid > 0 && kind == HARDWARE_KIND && process.pid & 31 == number;
    let is_hardware = process.name.as_deref() == Some(HARDWARE);
    (is_packed && is_hardware).then(|| Device {
        pid,
        label,
        time_ns: (process.activity.first_ns, process.activity.last_ns),
        aside: DuplicateOf {
            trace: origin.name.clone(),
            place: origin.place,
        },
    })
}
