//! Reads the `ASCEND_SIM_*` variables into [`Config`]. Only this module names the variables; README.md describes them.

use crate::clock::Step;
use crate::faults::Faults;
use crate::refuse;
use durations::Durations;
use std::env;
use std::path::PathBuf;
use std::sync::OnceLock;
use variables::{Refused, Variables};

pub(crate) use durations::Bounds;

mod durations;
mod variables;

/// The simulated chip, as far as a profiler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Soc {
    /// Ticks of 20 ns.
    A2,
    /// Ticks of 1 ns.
    A5,
}

impl Soc {
    pub(crate) fn tick_mhz(self) -> u64 {
        match self {
            Self::A2 => 50,
            Self::A5 => 1000,
        }
    }
}

/// Settings of MSPTI's estimate of the devices' clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mspti {
    /// Time between two comparisons of the devices' clocks with the host's.
    pub(crate) anchor_ns: u64,
    /// Error of a comparison, alternately early and late.
    pub(crate) anchor_off_ns: u64,
}

impl Mspti {
    fn from<F: Fn(&str) -> Option<String>>(variables: &Variables<F>) -> Result<Self, Refused> {
        Ok(Self {
            anchor_ns: variables.us("ASCEND_SIM_MSPTI_ANCHOR_US", 7e6)?,
            anchor_off_ns: variables.us("ASCEND_SIM_MSPTI_ANCHOR_OFF_US", 15.0)?,
        })
    }
}

/// All settings.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) soc: Soc,
    /// The devices that the process sees, by logical id.
    pub(crate) visible: Vec<u32>,
    /// Time of the device clock at CLOCK_MONOTONIC 0, by logical id, in ns.
    pub(crate) offsets_ns: Vec<i64>,
    /// Drift of the device clock, positive if it is fast, by logical id, in parts per 10⁹.
    pub(crate) drifts_ppb: Vec<i64>,
    pub(crate) step: Option<Step>,
    pub(crate) durations: Durations,
    pub(crate) hal: bool,
    pub(crate) depth: u64,
    pub(crate) old: bool,
    /// True if a new object may get the handle of a destroyed one, as with addresses.
    pub(crate) reuse: bool,
    pub(crate) mspti: Mspti,
    pub(crate) truth: Option<PathBuf>,
    pub(crate) truth_through: bool,
    pub(crate) faults: Faults,
}

/// Returns the settings of this process. The first call reads the environment.
pub(crate) fn config() -> &'static Config {
    static CONFIG: OnceLock<Config> = OnceLock::new();
    let read = || Config::from_env().unwrap_or_else(|refused| refuse(&refused.to_string()));
    CONFIG.get_or_init(read)
}

impl Config {
    /// Reads the environment.
    fn from_env() -> Result<Self, Refused> {
        Self::from(|name| env::var(name).ok(), std::process::id())
    }

    fn from(lookup: impl Fn(&str) -> Option<String>, pid: u32) -> Result<Self, Refused> {
        let variables = Variables(lookup);
        let devices = variables.number("ASCEND_SIM_DEVICES", 8)?;
        let per_device = |value: &str| by_device(value, devices);
        let default_offsets = default_offsets_ns(devices);
        let truth = variables.text("ASCEND_SIM_TRUTH");
        let default_ns = variables.us("ASCEND_SIM_KERNEL_US", 10.0)?;
        let kernels = |value: &str| Durations::parse(value, default_ns);
        Ok(Self {
            soc: variables.choice("ASCEND_SIM_SOC", [("910b", Soc::A2), ("950", Soc::A5)])?,
            visible: variables.parsed(
                "ASCEND_RT_VISIBLE_DEVICES",
                all(devices),
                |value| visible(value, devices),
                "device numbers",
            )?,
            offsets_ns: variables
                .parsed(
                    "ASCEND_SIM_CLOCK_OFFSET_S",
                    None,
                    |value| per_device(value).map(Some),
                    "seconds, or 0=seconds,1=seconds",
                )?
                .map_or(default_offsets, |seconds| scaled(&seconds, 1e9)),
            drifts_ppb: variables
                .parsed(
                    "ASCEND_SIM_DRIFT_PPM",
                    vec![0.0; devices],
                    per_device,
                    "parts per million, or 0=ppm,1=ppm",
                )
                .map(|ppm| scaled(&ppm, 1e3))?,
            step: variables.parsed(
                "ASCEND_SIM_CLOCK_STEP",
                None,
                |value| Step::parse(value).map(Some),
                "after_s=N,by_us=N",
            )?,
            durations: variables.parsed(
                "ASCEND_SIM_KERNELS",
                Durations::all(default_ns),
                kernels,
                "name=us,name=us..us",
            )?,
            hal: variables.text("ASCEND_SIM_HAL").as_deref() != Some("absent"),
            depth: variables
                .number("ASCEND_SIM_DEPTH", 2048)
                .map(|depth: u64| depth.max(1))?,
            old: variables.switch("ASCEND_SIM_OLD")?,
            reuse: variables.switch("ASCEND_SIM_REUSE")?,
            mspti: Mspti::from(&variables)?,
            truth: truth.map(|path| PathBuf::from(path.replace("{pid}", &pid.to_string()))),
            truth_through: variables.switch("ASCEND_SIM_TRUTH_THROUGH")?,
            faults: variables.parsed(
                "ASCEND_SIM_FAULTS",
                Faults::none(),
                Faults::parse,
                "call:when=value, see README.md",
            )?,
        })
    }
}

fn all(devices: usize) -> Vec<u32> {
    (0..u32::try_from(devices).unwrap_or(0)).collect()
}

/// Returns the listed devices, up to the first number that is not a device, like the vendor's runtime.
fn visible(value: &str, devices: usize) -> Option<Vec<u32>> {
    let ids = value.split(',').map(|id| id.trim().parse::<u32>());
    let ids: Result<Vec<u32>, _> = ids.collect();
    let exists = |id: &u32| (*id as usize) < devices;
    ids.ok()
        .map(|ids| ids.into_iter().take_while(exists).collect())
}

/// Returns clock offsets for devices that were started at different times, hours before the host's clock.
fn default_offsets_ns(devices: usize) -> Vec<i64> {
    let hours =
        (1..=devices as i64).map(|device| device * 3_600_000_000_000 + device * 123_456_789);
    hours.collect()
}

/// Parses one number for all devices, or a list such as `0=1.5,1=-2` with 0 for the other devices.
fn by_device(value: &str, devices: usize) -> Option<Vec<f64>> {
    if let Ok(one) = value.parse() {
        return Some(vec![one; devices]);
    }
    let mut numbers = vec![0.0; devices];
    for pair in value.split(',') {
        let (device, number) = pair.split_once('=')?;
        *numbers.get_mut(device.trim().parse::<usize>().ok()?)? = number.trim().parse().ok()?;
    }
    Some(numbers)
}

fn scaled(numbers: &[f64], factor: f64) -> Vec<i64> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a cast from float saturates"
    )]
    let whole = |number: &f64| (number * factor).round() as i64;
    numbers.iter().map(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Config, Refused> {
        let lookup = |name: &str| {
            let found = pairs.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Config::from(lookup, 42)
    }

    #[test]
    fn a_wrong_value_is_refused_with_its_name() {
        for (name, value) in [
            ("ASCEND_SIM_DEVICES", "two"),
            ("ASCEND_SIM_SOC", "h100"),
            ("ASCEND_SIM_KERNEL_US", "-1"),
            ("ASCEND_SIM_KERNELS", "matmul"),
            ("ASCEND_SIM_DRIFT_PPM", "9=1"),
            ("ASCEND_SIM_OLD", "yes"),
            ("ASCEND_SIM_FAULTS", "launch"),
            ("ASCEND_SIM_CLOCK_STEP", "soon"),
        ] {
            let refused = read(&[(name, value)]).unwrap_err();
            assert!(refused.to_string().starts_with(name), "{refused:?}");
        }
    }
}
