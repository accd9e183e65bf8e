//! Which processes of a trace are devices, and which process fed each.

use std::collections::{BTreeMap, HashSet};
use trace_merge::events::{TraceEvents, TraceProcess};

/// What labels and names of devices begin with, and their number follows.
const KINDS: [&str; 2] = ["NPU", "GPU"];

/// The devices, by the numbers of their processes: groups of tracks, and processes of other traces that are labelled or called as one.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    recorder_of: BTreeMap<usize, usize>,
    recorders: HashSet<usize>,
}

impl Devices {
    pub(crate) fn of(events: &TraceEvents<'_>) -> Devices {
        let processes = events.processes();
        let is_device = |process: &TraceProcess<'_>| {
            let name = process.report.name.as_deref();
            let mut words = [process.labels, name].into_iter().flatten();
            process.report.tracks || words.any(is_of_device)
        };
        let recorder = |number: usize| {
            let process = &processes[number];
            let of_label = process.labels.and_then(pid_label).and_then(|pid| {
                let has_it = |other: &TraceProcess<'_>| {
                    !is_device(other)
                        && other.profiler == process.profiler
                        && other.labels.and_then(pid_label) == Some(pid)
                };
                processes.iter().position(has_it)
            });
            of_label.unwrap_or(process.recorder)
        };
        let devices = (0..processes.len()).filter(|number| is_device(&processes[*number]));
        Devices::new(devices.map(|number| (number, recorder(number))))
    }

    /// Those with these numbers, and who recorded each.
    pub(crate) fn new(devices: impl IntoIterator<Item = (usize, usize)>) -> Devices {
        let recorder_of: BTreeMap<usize, usize> = devices.into_iter().collect();
        Devices {
            recorders: recorder_of.values().copied().collect(),
            recorder_of,
        }
    }

    /// Whether a process is a device.
    pub(crate) fn is_one(&self, process: usize) -> bool {
        self.recorder_of.contains_key(&process)
    }

    /// Whether what a process's device did is in the trace.
    pub(crate) fn has_one(&self, process: usize) -> bool {
        self.recorders.contains(&process)
    }

    /// The process that fed a device; of any other process itself.
    pub(crate) fn recorder(&self, device: usize) -> usize {
        self.recorder_of.get(&device).copied().unwrap_or(device)
    }
}

fn parts(labels: &str) -> impl Iterator<Item = &str> {
    labels.split(',').map(str::trim)
}

/// Whether labels or a name say that a process is a device: `NPU 3`, `SIMULATED NPU 0, pid 4711`, `GPU 0`.
fn is_of_device(labels: &str) -> bool {
    parts(labels).any(|label| {
        let mut words = label.rsplit(' ');
        let is_number = words.next().is_some_and(|word| word.parse::<u32>().is_ok());
        is_number && words.next().is_some_and(|word| KINDS.contains(&word))
    })
}

fn pid_label(labels: &str) -> Option<&str> {
    parts(labels).find(|label| label.starts_with("pid "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_tell_devices() {
        assert!(
            ["NPU 3", "SIMULATED NPU 0, pid 4711", "GPU 0"]
                .into_iter()
                .all(is_of_device)
        );
        assert!(
            !["CPU", "pid 4711", "NPU", "GPU x"]
                .into_iter()
                .any(is_of_device)
        );
        assert_eq!(pid_label("NPU 0, pid 7"), Some("pid 7"));
    }
}
