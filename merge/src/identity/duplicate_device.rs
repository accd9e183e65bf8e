//! Rows of devices that the vendor's profiler has recorded whole: ours, of sampled launches, step aside for them.
//!
//! torch_npu packs the pid of the process, the kind of row and the device into one number; so it can be told whose kernels its rows hold.

use crate::device::group::{VendorGroup, packed_pid, vendor_group};
use crate::device::label::DeviceLabel;
use crate::identity::process::{DuplicateOf, Process, ProcessKey};
use std::collections::BTreeMap;

/// A device as the vendor's profiler shows it.
struct Device {
    label: DeviceLabel,
    time_ns: (i64, i64),
    aside: DuplicateOf,
}

/// Lets the groups of tracks of such devices step aside, if both have recorded at the same time.
pub(crate) fn step_aside(processes: &mut BTreeMap<ProcessKey, Process>) {
    let mut devices: BTreeMap<i64, Vec<Device>> = BTreeMap::new();
    for (pid, device) in processes.values().filter_map(device) {
        devices.entry(pid).or_default().push(device);
    }
    for process in processes.values_mut() {
        let Some(group) = &process.tracks else {
            continue;
        };
        let Some(label) = DeviceLabel::in_labels(&group.label) else {
            continue;
        };
        let activity = process.activity;
        let is_same = |device: &&Device| {
            let overlaps =
                device.time_ns.0 <= activity.last_ns && activity.first_ns <= device.time_ns.1;
            overlaps && device.label.names(&label)
        };
        let mut of_pid = devices.get(&process.pid).into_iter().flatten();
        let found = of_pid.find(is_same);
        process.aside = found.map(|device| Box::new(device.aside.clone()));
    }
}

/// Returns the device that a process shows, and the pid of its host.
fn device(process: &Process) -> Option<(i64, Device)> {
    let origin = process.origin.as_ref()?;
    let label = DeviceLabel::in_labels(origin.labels.as_deref()?)?;
    let is_hardware = process.name.as_deref().and_then(vendor_group) == Some(VendorGroup::Hardware);
    let pid = packed_pid(process.pid, label.number).filter(|_| is_hardware)?;
    let device = Device {
        label,
        time_ns: (process.activity.first_ns, process.activity.last_ns),
        aside: DuplicateOf {
            trace: origin.name.clone(),
            hardware: process.key.clone(),
            place: origin.place,
        },
    };
    Some((pid, device))
}
