//! Launches whose runtime reports both wall times itself, after they have ended. Each becomes a span on the host, and a slice on the device somewhere
//! in it.

use crate::group::DeviceGroup;
use crate::shim::Shim;
use crate::track::{micros, write_flow};
use sa_recorder::host::tid;
use sa_recorder::{Args, Level, Recorder, duration, now_ns};

/// The wall times of a run that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walls<'a> {
    /// Name of what ran.
    pub name: &'a str,
    /// When the host called, as [`sa_recorder::now_ns`] counts; `None`: so that it returned now.
    pub host_start_ns: Option<u64>,
    /// How long the host waited.
    pub host_wall_ns: u64,
    /// How long the device worked.
    pub device_wall_ns: u64,
    /// Number of the device on its host; `None`: there is no slice on a device.
    pub device: Option<u32>,
}

/// Records a run whose runtime measured it on the host and on the device.
///
/// When within the call the device worked is not known: its slice stands in the middle, `uncertainty_us` says how far off that can be. Where the device
/// worked longer than the host waited there is no slice, and the host's span has `rejected`.
pub fn launch_walls(walls: &Walls<'_>, args: &Args) {
    if !Recorder::get().includes(Level::Kernel) {
        return;
    }
    let (host, device) = (walls.host_wall_ns, walls.device_wall_ns);
    let start_ns = walls
        .host_start_ns
        .unwrap_or_else(|| now_ns().saturating_sub(host));
    let shim = Shim::get();
    let id = shim.next_id();
    let args = args
        .clone()
        .with("launch", id)
        .with("host_wall_us", micros(host))
        .with("device_wall_us", micros(device))
        .with("device_method", "reported");
    let Some(slack) = host.checked_sub(device) else {
        let args = args.with("rejected", "device_wall_us is over host_wall_us");
        return host_span(walls, start_ns, &args);
    };
    host_span(walls, start_ns, &args);
    let physical = walls.device.and_then(|device| i32::try_from(device).ok());
    let simulated = shim.runtime().is_simulated();
    let track =
        physical.and_then(|physical| DeviceGroup::new(physical, simulated).track("reported"));
    let (Some(track), Some(thread)) = (track, Recorder::get().thread_track(tid())) else {
        return;
    };
    let device_ns = start_ns.saturating_add(slack / 2);
    let args = args.with("uncertainty_us", micros(slack.div_ceil(2)));
    track.duration(
        Level::Kernel,
        "kernel",
        walls.name,
        device_ns,
        device,
        &args,
    );
    write_flow(shim.flow_id(id), (thread, start_ns), (track, device_ns));
}

fn host_span(walls: &Walls<'_>, start_ns: u64, args: &Args) {
    let wall_ns = i64::try_from(walls.host_wall_ns).unwrap_or(i64::MAX);
    duration(
        Level::Kernel,
        "kernel",
        walls.name,
        wall_ns,
        Some(start_ns),
        args,
    );
}
