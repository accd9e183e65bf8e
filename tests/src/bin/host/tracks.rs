//! Spans on the streams of two devices, like a worker records them.

use sa_recorder::{Args, FlowId, FlowPhase, Level, Recorder, TrackProcess, flow_at, now_ns, span};

const FLOW: (&str, &str) = ("HostToDevice", "HostToDevice");

/// Records `count` launches, alternating between two devices with two streams each.
pub(crate) fn launches(name: &str, count: u64) {
    Recorder::get().set_process_name(name);
    (0..count).for_each(launch);
    println!("launches {count}");
}

fn launch(index: u64) {
    let (device, stream) = (index % 2, index / 2 % 2);
    let group = TrackProcess {
        name: &format!("Ascend Hardware NPU {device}"),
        label: &format!("NPU {device}"),
        sort_index: u32::try_from(device).unwrap_or(0),
    };
    let thread = format!("Stream {stream}");
    let Some(track) = Recorder::get().track(&group, &thread) else {
        return;
    };
    let (category, name) = FLOW;
    let start = now_ns();
    {
        let _launch = span!(kernel, "kernel", "launch", index = index);
        let id = FlowId::Process(index);
        flow_at(
            Level::Kernel,
            FlowPhase::Start,
            category,
            name,
            id,
            now_ns(),
        );
        track.flow(Level::Kernel, FlowPhase::End, category, name, id, start);
    }
    let (host_pid, args) = (std::process::id(), Args::new());
    let args = args.with("label", "device").with("index", index);
    let args = args.with("host_pid", host_pid);
    track.duration(Level::Kernel, "kernel", "matmul", start, 1, &args);
}
