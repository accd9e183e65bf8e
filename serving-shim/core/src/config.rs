//! Reads the environment variables about devices into a [`Config`]. The recorder reads its own variables.

use std::ffi::OsString;

/// Variable that selects the device runtime for timing launches.
pub(crate) const DEVICE: &str = "SA_PROFILE_DEVICE";
/// Variable that sets the number of intercepted eager launches for each timed one.
pub(crate) const SAMPLE: &str = "SA_PROFILE_DEVICE_SAMPLE";

/// Variables that msprof sets in the processes that it profiles.
const MSPROF: [&str; 2] = ["PROFILER_SAMPLECONFIG", "PROFILING_MODE"];

const DEVICE_VALUES: &str = "auto, ascend, sim, off, mspti";
const DEFAULT_SAMPLE: u32 = 64;

/// The device runtime that times launches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The vendor's runtime, if it is installed.
    #[default]
    Vendor,
    /// The simulated runtime, which is only used if it is requested.
    Sim,
    /// No runtime. Launches only have host spans.
    Off,
}

/// The settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) choice: Choice,
    /// True if MSPTI, the vendor's records of kernels, is used.
    pub(crate) mspti: bool,
    pub(crate) sample: u32,
    /// Messages about values that were not understood.
    pub(crate) warnings: Vec<String>,
}

impl Config {
    /// Reads the settings for device times from environment variables. `lookup` returns the value of a variable.
    pub(crate) fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Config {
        let mut warnings = Vec::new();
        let text = |name: &str| {
            let value = lookup(name)?.to_string_lossy().trim().to_owned();
            (!value.is_empty()).then_some(value)
        };
        let (mut choice, mut mspti) = (Choice::default(), false);
        for value in text(DEVICE).unwrap_or_default().split(',').map(str::trim) {
            match value.to_ascii_lowercase().as_str() {
                "auto" | "ascend" => choice = Choice::Vendor,
                "sim" => choice = Choice::Sim,
                "off" => choice = Choice::Off,
                "mspti" => mspti = true,
                "" => {}
                _ => warnings.push(format!(
                    "{DEVICE}: expected one of {DEVICE_VALUES}, found {value:?}; ignoring it"
                )),
            }
        }
        let is_on = |name: &&str| text(name).is_some_and(|value| value != "false");
        if mspti && MSPROF.iter().any(is_on) {
            mspti = false; // one of the two would not get its records
            let why = "device times only come from event pairs: msprof is running";
            warnings.push(why.to_owned());
        }
        let sample = text(SAMPLE).map_or(DEFAULT_SAMPLE, |value| {
            let number = value.parse().ok().filter(|number| *number > 0);
            number.unwrap_or_else(|| {
                warnings.push(format!(
                    "{SAMPLE}: expected a number of at least 1, found {value:?}; using {DEFAULT_SAMPLE}"
                ));
                DEFAULT_SAMPLE
            })
        });
        Config {
            choice,
            mspti,
            sample,
            warnings,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(device: &str, sample: &str) -> (Choice, bool, u32, usize) {
        let config = Config::from_lookup(|name| match name {
            DEVICE => Some(device.into()),
            SAMPLE => Some(sample.into()),
            _ => None,
        });
        let warnings = config.warnings.len();
        (config.choice, config.mspti, config.sample, warnings)
    }

    #[test]
    fn values_are_trimmed_and_unknown_ones_are_reported() {
        assert_eq!(settings("", ""), (Choice::Vendor, false, 64, 0));
        assert_eq!(settings(" SIM ", "1"), (Choice::Sim, false, 1, 0));
        assert_eq!(settings("off", "1000"), (Choice::Off, false, 1000, 0));
        assert_eq!(settings("npu", "0"), (Choice::Vendor, false, 64, 2));
        assert_eq!(settings("ascend", "-1"), (Choice::Vendor, false, 64, 1));
        assert_eq!(settings("mspti", ""), (Choice::Vendor, true, 64, 0));
        assert_eq!(settings("sim, MSPTI", ""), (Choice::Sim, true, 64, 0));
        assert_eq!(settings(" ,sim, ,", ""), (Choice::Sim, false, 64, 0));
        assert_eq!(settings("sim,cupti", ""), (Choice::Sim, false, 64, 1));
    }

    #[test]
    fn mspti_is_not_used_under_msprof() {
        for (variable, value, expected) in [
            ("PROFILER_SAMPLECONFIG", "{}", (false, 1)),
            ("PROFILING_MODE", "dynamic", (false, 1)),
            ("PROFILING_MODE", "false", (true, 0)),
        ] {
            let config = Config::from_lookup(|name| match name {
                DEVICE => Some("mspti".into()),
                name => (name == variable).then(|| value.into()),
            });
            assert_eq!((config.mspti, config.warnings.len()), expected);
        }
    }
}
