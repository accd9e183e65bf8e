//! Launches for which the runtime reports both wall times after they have ended. Each becomes a span on the host and a slice on the device within it.

use crate::description::Kind;
use crate::place::Placed;
use crate::process;
use crate::track::{self, DeviceGroup, micros, write_flow};
use sa_recorder::host::tid;
use sa_recorder::{Args, Level, Recorder, duration, now_ns};

/// The wall times of a finished run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walls<'a> {
    /// Name of the run.
    pub name: &'a str,
    /// Start of the host's call on the clock of [`sa_recorder::now_ns`], or `None` if the call has just returned.
    pub host_start_ns: Option<u64>,
    /// Duration of the host's call.
    pub host_wall_ns: u64,
    /// Duration of the device's work.
    pub device_wall_ns: u64,
    /// Number of the device on its host, or `None` for no slice on a device.
    pub device: Option<u32>,
}

/// Records a finished run for which the runtime has measured the durations on the host and on the device.
///
/// It is not known when the device worked during the call, so its slice is in the middle, and `uncertainty_us` bounds the error. If the device's time is
/// longer than the host's, there is no slice, and the host's span has `rejected`.
pub fn launch_walls(walls: &Walls<'_>, args: &Args) {
    if !Recorder::get().includes(Level::Kernel) {
        return;
    }
    let (host, device) = (walls.host_wall_ns, walls.device_wall_ns);
    let start_ns = walls
        .host_start_ns
        .unwrap_or_else(|| now_ns().saturating_sub(host));
    let shim = process::shim();
    let (id, flow) = shim.next_ids();
    let args = args
        .clone()
        .with("launch", id)
        .with("host_wall_us", micros(host))
        .with("device_wall_us", micros(device))
        .with("device_method", "reported");
    let slack = host.checked_sub(device);
    let span_args = match slack {
        Some(_) => args.clone(),
        None => args
            .clone()
            .with("rejected", "device_wall_us is over host_wall_us"),
    };
    let (level, wall_ns) = (Level::Kernel, i64::try_from(host).unwrap_or(i64::MAX));
    duration(
        level,
        "kernel",
        walls.name,
        wall_ns,
        Some(start_ns),
        &span_args,
    );
    let physical = walls.device.and_then(|device| i32::try_from(device).ok());
    let simulated = shim.timing.runtime.is_simulated();
    let group = physical.map(|physical| DeviceGroup::new(physical, simulated));
    // Without a slice, no track must be created.
    let track = slack.and(group).and_then(|group| group.track("reported"));
    let thread = Recorder::get().thread_track(tid());
    let (Some(slack), Some(track), Some(thread)) = (slack, track, thread) else {
        return;
    };
    let device_ns = start_ns.saturating_add(slack / 2);
    let placed = Placed {
        start_ns: device_ns,
        dur_ns: device,
        uncertainty_ns: slack.div_ceil(2),
    };
    let args = args.with("uncertainty_us", micros(placed.uncertainty_ns));
    track::write(track, Kind::Kernel, walls.name, &placed, &args);
    write_flow(flow, (thread, start_ns), (track, device_ns));
}
