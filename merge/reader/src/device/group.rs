//! The groups of tracks that torch_npu and msprof write, and the tracks that XLA writes for a device. Both Ascend profilers show an NPU as several
//! processes with the same label.

use super::label::without_pid;

/// A group of tracks, by the name of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VendorGroup {
    /// The tasks of an NPU's streams.
    Hardware,
    /// The collectives of an NPU, and their parts.
    Communication,
    /// Tracks computed from the tasks, and samples of the hardware.
    Derived,
    /// Calls of the runtime on the host.
    Host,
}

const DERIVED: [&str; 26] = [
    "Overlap Analysis",
    "Step Trace",
    "Training Trace",
    "Block Detail",
    "Biu Perf",
    "AI Core Freq",
    "AI Core Utilization",
    "Low Power",
    "NPU MEM",
    "DDR",
    "HBM",
    "LLC",
    "Acc PMU",
    "HCCS",
    "SIO",
    "NIC",
    "RoCE",
    "PCIe",
    "QoS",
    "Ub",
    "UB",
    "CCU",
    "Stars Soc Info",
    "Stars Chip Trans",
    "Subtask Time",
    "Thread Task Time",
];
const HOST: [&str; 7] = [
    "CANN",
    "PTA",
    "CPU Usage",
    "Memory Usage",
    "Network Usage",
    "Disk Usage",
    "OS Runtime API",
];

/// Returns the group of tracks that an Ascend profiler shows as a process with this name; `None` for the name of any other process.
pub fn vendor_group(name: &str) -> Option<VendorGroup> {
    // A merge of several traces appends the rank to a name and prepends the label of the device.
    without_pid(name).split(" · ").find_map(group)
}

/// Returns the group of tracks with exactly this process name. The name must not contain a pid or label that a merge added.
fn group(name: &str) -> Option<VendorGroup> {
    match name {
        "Ascend Hardware" => Some(VendorGroup::Hardware),
        "Communication" | "HCCL" | "Communication(HCCL)" => Some(VendorGroup::Communication),
        _ if HOST.contains(&name) => Some(VendorGroup::Host),
        _ if DERIVED.contains(&name) => Some(VendorGroup::Derived),
        _ => None,
    }
}

/// Number of bits for the device in the pid that msprof gives a group. The remaining bits contain the process's own pid.
const DEVICE_BITS: u32 = 5;
const PID_BITS: u32 = 10;
/// Device number in the pids of groups without a device.
const NO_DEVICE: u32 = 31;

/// Returns the real pid of the process that msprof packed into the pid of a `group`. Returns `None` if the group's pid is not packed, or if the
/// device number in it differs from `device`, the number in the group's label.
pub fn packed_pid(group: i64, device: Option<u32>) -> Option<i64> {
    let (pid, number) = (group >> PID_BITS, group & ((1 << DEVICE_BITS) - 1));
    let is_packed = pid > 0 && number == i64::from(device.unwrap_or(NO_DEVICE));
    is_packed.then_some(pid)
}

/// Returns true if a device's track with this name contains records of MSPTI (an Ascend profiling interface). They repeat the work that other
/// tracks show, with times of a clock whose error is unknown.
pub fn is_of_mspti(thread: &str) -> bool {
    thread.ends_with(" (MSPTI)") || thread.contains(" (MSPTI) (overlapping ")
}

/// Returns true if the track with this name, in [`VendorGroup::Hardware`], shows training iterations instead of tasks.
pub fn is_step_track(thread: &str) -> bool {
    thread.starts_with("Step Trace")
}

/// Returns true if the track with this name, in [`VendorGroup::Communication`], shows parts of collectives instead of whole ones.
pub fn is_plane(thread: &str) -> bool {
    thread.starts_with("Plane ")
}

/// Returns true for NPU task types that do no work: the stream only waits for an event, records or resets one, or marks a place.
pub fn is_idle_task(task_type: &str) -> bool {
    const IDLE: [&str; 5] = [
        "WAIT",
        "RECORD",
        "PROFILING_",
        "PLACE_HOLDER",
        "EVENT_RESET",
    ];
    let task_type = task_type.to_ascii_uppercase();
    IDLE.iter().any(|idle| task_type.contains(idle))
}

/// Returns true if a task without a task type does no work, according to its name. Only prefixes count, because kernels may have names like
/// `RecordScatter`.
pub fn is_idle_name(name: &str) -> bool {
    const IDLE: [&str; 5] = [
        "EVENT_",
        "NOTIFY_",
        "MEM_WAIT_",
        "PROFILING_",
        "PLACE_HOLDER",
    ];
    let name = name.to_ascii_uppercase();
    IDLE.iter().any(|idle| name.starts_with(idle))
}

/// Takes the names of the tracks that XLA writes for a device and returns a test of a track's name: true if the track shows work. These are the
/// streams if there are any, otherwise the operations. XLA computes the other tracks from them.
pub fn xla_work<'a>(threads: impl Iterator<Item = &'a str> + Clone) -> fn(&str) -> bool {
    const DERIVED: [&str; 9] = [
        "Steps",
        "XLA Modules",
        "XLA TraceMe",
        "Framework Name Scope",
        "Framework Ops",
        "TensorFlow Name Scope",
        "TensorFlow Ops",
        "Source code",
        "Launch Stats",
    ];
    let is_stream: fn(&str) -> bool = |thread| thread.starts_with("Stream #");
    let is_operation: fn(&str) -> bool = |thread| thread == "XLA Ops";
    if threads.clone().any(is_stream) {
        is_stream
    } else if threads.clone().any(is_operation) {
        is_operation
    } else {
        |thread| !DERIVED.contains(&thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_known_names() {
        for case in include_str!("../../tests/groups.txt").lines() {
            let (expected, name) = case.split_once(": ").unwrap();
            let found = vendor_group(name).map_or("none".to_owned(), |group| format!("{group:?}"));
            assert_eq!(found, expected, "{name}");
        }
    }
}
