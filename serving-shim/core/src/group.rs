//! A device in the trace: a process, of which each stream is a row.

use sa_recorder::{Recorder, Track, TrackProcess};

/// A device's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceGroup {
    name: String,
    label: String,
    sort_index: u32,
}

impl DeviceGroup {
    pub(crate) fn new(physical: i32, simulated: bool) -> DeviceGroup {
        let label = if simulated {
            format!("SIMULATED NPU {physical}")
        } else {
            format!("NPU {physical}")
        };
        DeviceGroup {
            name: if simulated {
                label.clone()
            } else {
                format!("Ascend Hardware {label}")
            },
            label,
            sort_index: u32::try_from(physical).unwrap_or(u32::MAX),
        }
    }

    /// A row; `None` while nothing is recorded.
    pub(crate) fn track(&self, thread: &str) -> Option<Track> {
        let group = TrackProcess {
            name: &self.name,
            label: &self.label,
            sort_index: self.sort_index,
        };
        Recorder::get().track(&group, thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulated_device_says_so_and_nothing_else() {
        let (real, simulated) = (DeviceGroup::new(3, false), DeviceGroup::new(3, true));
        assert_eq!(
            (real.name.as_str(), real.label.as_str()),
            ("Ascend Hardware NPU 3", "NPU 3")
        );
        assert_eq!(simulated.name, "SIMULATED NPU 3");
    }
}
