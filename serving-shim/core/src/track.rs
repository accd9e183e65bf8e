//! How the trace shows a launch on its device: a slice in a row, a flow from the host's span to it.

use crate::description::Kind;
use crate::mspti::Kernel;
use crate::pending::Launched;
use crate::place::Placed;
use sa_recorder::{Args, FlowId, FlowPhase, Level, Recorder, Track};

/// Category and name of the flows from launches to slices, as the vendor's tools have them.
const FLOW: (&str, &str) = ("HostToDevice", "HostToDevice");

/// By what the times of a slice are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    EventPair,
    Mspti,
}

impl Method {
    fn word(self) -> &'static str {
        match self {
            Method::EventPair => "event_pair",
            Method::Mspti => "mspti",
        }
    }
}

/// Writes the slice of a launch, and its flow of this id.
pub(crate) fn write_slice(
    flow: u64,
    track: Track,
    launched: &Launched,
    placed: &Placed,
    method: Method,
) {
    // A level that was switched off since then leaves out no part of it.
    let track = track.since(launched.asked_ns);
    let (kind, name) = (launched.description.kind, &launched.description.name.shown);
    let args = slice_args(launched, placed, method);
    let (start_ns, dur_ns) = (placed.start_ns, placed.dur_ns);
    track.duration(
        Level::Kernel,
        kind.category(),
        name,
        start_ns,
        dur_ns,
        &args,
    );
    if let Some(thread) = Recorder::get().thread_track(launched.tid) {
        let thread = thread.since(launched.asked_ns);
        // From within the host's span, and from before all that the slice may begin at.
        write_flow(flow, (thread, launched.asked_ns), (track, start_ns));
    }
}

/// Writes the slice of a kernel or a collective that a launch ran, by MSPTI's record.
pub(crate) fn write_kernel(track: Track, launched: &Launched, kernel: &Kernel, placed: &Placed) {
    let args = Args::new().with("launch", launched.id);
    let (kind, args) = match &kernel.comm {
        None => (Kind::Kernel, args.with("correlation", kernel.correlation)),
        Some(comm) => (Kind::Collective, args.with("comm", &**comm)),
    };
    let args = args
        .with("device_wall_us", micros(placed.dur_ns))
        .with("device_method", Method::Mspti.word())
        .with("uncertainty_us", micros(placed.uncertainty_ns));
    let (start_ns, dur_ns) = (placed.start_ns, placed.dur_ns);
    let track = track.since(launched.asked_ns);
    track.duration(
        Level::Kernel,
        kind.category(),
        &kernel.name,
        start_ns,
        dur_ns,
        &args,
    );
}

/// Writes the arrow from a launch to its slice.
pub(crate) fn write_flow(flow: u64, from: (Track, u64), to: (Track, u64)) {
    let id = FlowId::Process(flow);
    let (category, name) = FLOW;
    for (phase, (track, at_ns)) in [(FlowPhase::Start, from), (FlowPhase::End, to)] {
        track.flow(Level::Kernel, phase, category, name, id, at_ns);
    }
}

fn slice_args(launched: &Launched, placed: &Placed, method: Method) -> Args {
    let description = &launched.description;
    let mut args = launched.args.clone();
    args.push("launch", &launched.id);
    if let Some(raw) = &description.name.raw {
        args.push("kernel", raw);
    }
    if description.grid > 0 {
        args.push("grid", &description.grid);
    }
    if description.bytes > 0 {
        args.push("bytes", &description.bytes);
    }
    let host_wall_ns = launched.returned_ns - launched.began_ns;
    args.push("host_wall_us", &micros(host_wall_ns));
    args.push("device_wall_us", &micros(placed.dur_ns));
    args.push(
        "queue_us",
        &micros(placed.start_ns.saturating_sub(launched.began_ns)),
    );
    args.push("device_method", &method.word());
    args.push("host_limited", &(placed.start_ns < launched.returned_ns));
    args.push("uncertainty_us", &micros(placed.uncertainty_ns));
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
