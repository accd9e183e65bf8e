//! The launches of a device in the trace: a slice on a track, and a flow from the host's span to it. A device is a process, and each of its streams is a track.

use crate::description::{Description, Kind};
use crate::pending::Launched;
use crate::place::Placed;
use sa_recorder::{Args, FlowId, FlowPhase, Level, Recorder, Track, TrackProcess};

/// Category and name of the flows from launches to slices, the same as in the vendor's tools.
const FLOW: (&str, &str) = ("HostToDevice", "HostToDevice");

/// A device in the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceGroup {
    name: String,
    label: String,
    sort_index: u32,
}

impl DeviceGroup {
    /// Creates the description of a device in the trace. `physical` is its number on its host.
    pub(crate) fn new(physical: i32, simulated: bool) -> DeviceGroup {
        let (label, name) = match simulated {
            true => (format!("SIMULATED NPU {physical}"), ""),
            false => (format!("NPU {physical}"), "Ascend Hardware "),
        };
        DeviceGroup {
            name: format!("{name}{label}"),
            label,
            sort_index: u32::try_from(physical).unwrap_or(u32::MAX),
        }
    }

    /// Returns the device's track with the name `thread`, or `None` while nothing is recorded.
    pub(crate) fn track(&self, thread: &str) -> Option<Track> {
        let group = TrackProcess {
            name: &self.name,
            label: &self.label,
            sort_index: self.sort_index,
        };
        Recorder::get().track(&group, thread)
    }

    /// Returns the track that is stored in `slot`. If it belongs to an old recording or there is none, stores a new track with this name.
    pub(crate) fn live_track(
        &self,
        slot: &mut Option<Track>,
        name: impl FnOnce() -> String,
    ) -> Option<Track> {
        if !slot.is_some_and(Track::is_live) {
            *slot = self.track(&name());
        }
        *slot
    }
}

/// Writes the slice (the span on the device's track) of a launch that an event pair has timed, and the flow arrow from the host's span to it.
pub(crate) fn write_slice(track: Track, launched: &Launched, placed: &Placed) {
    // The slice and the flow are recorded completely, even if the level was switched off in the meantime.
    let track = track.since(launched.asked_ns);
    let args = slice_args(launched, placed);
    let Description { kind, name, .. } = &launched.description;
    write(track, *kind, &name.shown, placed, &args);
    if let Some(thread) = Recorder::get().thread_track(launched.tid) {
        let thread = thread.since(launched.asked_ns);
        // The flow starts within the host's span and before the earliest start of the slice.
        let from = (thread, launched.asked_ns);
        write_flow(launched.flow, from, (track, placed.start_ns));
    }
}

/// Writes a slice (a span on a device) with this name, time and args on a track.
pub(crate) fn write(track: Track, kind: Kind, name: &str, placed: &Placed, args: &Args) {
    let (start_ns, dur_ns) = (placed.start_ns, placed.dur_ns);
    let category = kind.category();
    track.duration(Level::Kernel, category, name, start_ns, dur_ns, args);
}

/// Writes the flow arrow from a launch on the host to its slice on the device. Each end is a track and a time.
pub(crate) fn write_flow(flow: u64, from: (Track, u64), to: (Track, u64)) {
    let id = FlowId::Process(flow);
    let (category, name) = FLOW;
    for (phase, (track, at_ns)) in [(FlowPhase::Start, from), (FlowPhase::End, to)] {
        track.flow(Level::Kernel, phase, category, name, id, at_ns);
    }
}

fn slice_args(launched: &Launched, placed: &Placed) -> Args {
    let mut args = launched.args.clone().with("launch", launched.id);
    let description = &launched.description;
    description.args(|key, value| args.push(key, value));
    let queue_ns = placed.start_ns.saturating_sub(launched.began_ns);
    let host_wall_ns = launched.returned_ns - launched.began_ns;
    args = args
        .with("host_wall_us", micros(host_wall_ns))
        .with("device_wall_us", micros(placed.dur_ns))
        .with("queue_us", micros(queue_ns))
        .with("device_method", "event_pair")
        .with("host_limited", placed.start_ns < launched.returned_ns)
        .with("uncertainty_us", micros(placed.uncertainty_ns));
    if launched.stands_for > 1 {
        args.push("stands_for", &launched.stands_for);
    }
    if let Some(kernels) = &launched.kernels {
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
