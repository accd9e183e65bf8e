//! Environment → [`Config`]. Comes in: a lookup function; goes out: data. The recorder's variables are its own; these are those about devices.

use std::ffi::OsString;

/// Which device runtime times launches.
pub(crate) const DEVICE: &str = "SA_PROFILE_DEVICE";
/// One eager launch in so many is timed where launches are intercepted.
pub(crate) const SAMPLE: &str = "SA_PROFILE_DEVICE_SAMPLE";

/// Variables by which msprof tells the processes that it looks at.
const MSPROF: [&str; 2] = ["PROFILER_SAMPLECONFIG", "PROFILING_MODE"];

const DEVICE_WORDS: &str = "auto, ascend, sim, off, mspti";
const DEFAULT_SAMPLE: u32 = 64;

/// Which device runtime times launches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The vendor's if it is there.
    #[default]
    Auto,
    /// The vendor's.
    Ascend,
    /// The simulated one, which nothing but its name chooses.
    Sim,
    /// None: host spans alone.
    Off,
}

/// What the environment asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) choice: Choice,
    /// Whether MSPTI, the vendor's records of kernels, is used.
    pub(crate) mspti: bool,
    pub(crate) sample: u32,
    /// What was not understood.
    pub(crate) warnings: Vec<String>,
}

impl Config {
    pub(crate) fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Config {
        let mut warnings = Vec::new();
        let text = |name: &str| {
            let value = lookup(name)?.to_string_lossy().trim().to_owned();
            (!value.is_empty()).then_some(value)
        };
        let (mut choice, mut mspti) = (Choice::Auto, false);
        for word in text(DEVICE).unwrap_or_default().split(',').map(str::trim) {
            match self::word(word) {
                Some(Word::Runtime(runtime)) => choice = runtime,
                Some(Word::Mspti) => mspti = true,
                None if word.is_empty() => {}
                None => warnings.push(format!(
                    "{DEVICE}: expected one of {DEVICE_WORDS}, found {word:?}; leaving it out"
                )),
            }
        }
        let is_on = |name: &&str| text(name).is_some_and(|value| value != "false");
        if mspti && MSPROF.iter().any(is_on) {
            mspti = false; // one of both would not get its records
            let why = "device times come from event pairs alone: msprof is at work";
            warnings.push(why.to_owned());
        }
        let sample = text(SAMPLE).map_or(DEFAULT_SAMPLE, |word| {
            let number = word.parse().ok().filter(|number| *number > 0);
            number.unwrap_or_else(|| {
                warnings.push(format!(
                    "{SAMPLE}: expected a number from 1 up, found {word:?}; using {DEFAULT_SAMPLE}"
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

/// What a word in `SA_PROFILE_DEVICE` asks for.
enum Word {
    Runtime(Choice),
    Mspti,
}

fn word(word: &str) -> Option<Word> {
    Some(match word.to_ascii_lowercase().as_str() {
        "auto" => Word::Runtime(Choice::Auto),
        "ascend" => Word::Runtime(Choice::Ascend),
        "sim" => Word::Runtime(Choice::Sim),
        "off" => Word::Runtime(Choice::Off),
        "mspti" => Word::Mspti,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(device: &str, sample: &str) -> (Choice, u32, usize) {
        let config = Config::from_lookup(|name| match name {
            DEVICE => Some(device.into()),
            SAMPLE => Some(sample.into()),
            _ => None,
        });
        (config.choice, config.sample, config.warnings.len())
    }

    #[test]
    fn words_are_trimmed_and_unknown_ones_are_told() {
        assert_eq!(of("", ""), (Choice::Auto, 64, 0));
        assert_eq!(of(" SIM ", "1"), (Choice::Sim, 1, 0));
        assert_eq!(of("off", "1000"), (Choice::Off, 1000, 0));
        assert_eq!(of("npu", "0"), (Choice::Auto, 64, 2));
        assert_eq!(of("ascend", "-1"), (Choice::Ascend, 64, 1));
    }

    #[test]
    fn mspti_is_asked_for_alone_or_beside_a_runtime() {
        let of = |device: &str| {
            let config =
                Config::from_lookup(|name| (name == DEVICE).then(|| device.to_owned().into()));
            (config.choice, config.mspti, config.warnings.len())
        };
        assert_eq!(of(""), (Choice::Auto, false, 0));
        assert_eq!(of("mspti"), (Choice::Auto, true, 0));
        assert_eq!(of("sim, MSPTI"), (Choice::Sim, true, 0));
        assert_eq!(of(" ,sim, ,"), (Choice::Sim, false, 0));
        assert_eq!(of("sim,cupti"), (Choice::Sim, false, 1));
    }

    #[test]
    fn mspti_is_not_used_where_msprof_is_at_work() {
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
