//! How the trace shows a launch on its device: a slice in a row, a flow from the host's span to it.

use crate::group::DeviceGroup;
use crate::pending::Pending;
use crate::place::Placed;
use crate::row::Row;
use sa_recorder::{Args, FlowId, FlowPhase, Level, Recorder, Track};

/// Category and name of the flows from launches to slices, as the vendor's tools have them.
const FLOW: (&str, &str) = ("HostToDevice", "HostToDevice");

/// Writes the slice of a launch, and its flow of this id.
pub(crate) fn write_slice(
    flow: u64,
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
        write_flow(flow, (thread, pending.asked_ns), (track, start_ns));
    }
}

/// Writes the arrow from a launch to its slice.
pub(crate) fn write_flow(flow: u64, from: (Track, u64), to: (Track, u64)) {
    let id = FlowId::Process(flow);
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
    args.push("host_limited", &(placed.start_ns < pending.returned_ns));
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
