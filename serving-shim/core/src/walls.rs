//! Launches whose runtime tells both wall times itself, after they have ended: a span on the host, and a slice on the device somewhere in it.

use crate::track::{DeviceGroup, micros};
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
    let mut args = args.clone();
    args.push("host_wall_us", &micros(host));
    args.push("device_wall_us", &micros(device));
    args.push("device_method", &"reported");
    let slack = host.checked_sub(device);
    let host_args = match slack {
        Some(_) => args.clone(),
        None => args
            .clone()
            .with("rejected", "device_wall_us is over host_wall_us"),
    };
    let host_ns = i64::try_from(host).unwrap_or(i64::MAX);
    duration(
        Level::Kernel,
        "kernel",
        walls.name,
        host_ns,
        Some(start_ns),
        &host_args,
    );
    let group = walls.device.and_then(|device| i32::try_from(device).ok());
    let track = group.and_then(|physical| DeviceGroup::new(physical, false).track("reported"));
    if let (Some(track), Some(slack)) = (track, slack) {
        let args = args.with("uncertainty_us", micros(slack / 2));
        track.duration(
            Level::Kernel,
            "kernel",
            walls.name,
            start_ns + slack / 2,
            device,
            &args,
        );
    }
}
