//! How the trace shows a device: a process of rows, a slice for each launch, a flow from the host's span to it.

use crate::launch::Pending;
use crate::place::Placed;
use crate::row::Row;
use crate::shim::Shim;
use sa_recorder::{Args, FlowId, FlowPhase, Level, Recorder, Track, TrackProcess};

/// Category and name of the flows from launches to slices, as the vendor's tools have them.
const FLOW: (&str, &str) = ("HostToDevice", "HostToDevice");

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

/// Writes the slice of a launch and its flow.
pub(crate) fn write_slice(
    shim: &'static Shim,
    group: &DeviceGroup,
    row: &mut Row,
    pending: &Pending,
    placed: &Placed,
) {
    let Some(track) = row.track(group, placed) else {
        return;
    };
    // A level that was switched off since then leaves out no part of it.
    let track = track.since(pending.asked_ns);
    let (kind, name) = (pending.description.kind, &pending.description.name.shown);
    let args = slice_args(pending, placed);
    let (start_ns, dur_ns) = (placed.start_ns, placed.dur_ns);
    track.duration(
        Level::Kernel,
        kind.category(),
        name,
        start_ns,
        dur_ns,
        &args,
    );
    if let Some(thread) = Recorder::get().thread_track(pending.tid) {
        let thread = thread.since(pending.asked_ns);
        // From within the host's span, and from before all that the slice may begin at.
        write_flow(
            shim,
            pending.id,
            (thread, pending.asked_ns),
            (track, start_ns),
        );
    }
}

/// Writes the arrow from a launch to its slice.
pub(crate) fn write_flow(shim: &Shim, launch: u64, from: (Track, u64), to: (Track, u64)) {
    let id = FlowId::Process(shim.flow_id(launch));
    let (category, name) = FLOW;
    for (phase, (track, at_ns)) in [(FlowPhase::Start, from), (FlowPhase::End, to)] {
        track.flow(Level::Kernel, phase, category, name, id, at_ns);
    }
}

fn slice_args(pending: &Pending, placed: &Placed) -> Args {
    let description = &pending.description;
    let mut args = pending.args.clone();
    args.push("launch", &pending.id);
    if let Some(raw) = &description.name.raw {
        args.push("kernel", raw);
    }
    if description.grid > 0 {
        args.push("grid", &description.grid);
    }
    if description.bytes > 0 {
        args.push("bytes", &description.bytes);
    }
    let host_wall_ns = pending.returned_ns - pending.began_ns;
    args.push("host_wall_us", &micros(host_wall_ns));
    args.push("device_wall_us", &micros(placed.dur_ns));
    args.push(
        "queue_us",
        &micros(placed.start_ns.saturating_sub(pending.began_ns)),
    );
    args.push("device_method", &"event_pair");
    args.push("host_limited", &pending.host_limited);
    args.push("uncertainty_us", &micros(placed.uncertainty_ns));
    if pending.stands_for > 1 {
        args.push("stands_for", &pending.stands_for);
    }
    if let Some(kernels) = &pending.kernels {
        args.push("kernel_count", &kernels.count());
        args.push("kernels", &kernels.texts());
    }
    args
}

pub(crate) fn micros(ns: u64) -> f64 {
    ns as f64 / 1e3
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
