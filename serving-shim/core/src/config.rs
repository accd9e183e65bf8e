//! Environment → [`Config`]. Comes in: a lookup function; goes out: data. The recorder's variables are its own; these are those about devices.

use std::ffi::OsString;

/// Which device runtime times launches.
pub(crate) const DEVICE: &str = "SA_PROFILE_DEVICE";
/// One eager launch in so many is timed where launches are intercepted.
pub(crate) const SAMPLE: &str = "SA_PROFILE_DEVICE_SAMPLE";

const DEVICE_WORDS: &str = "auto, ascend, sim, off, mspti, events";
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

/// What MSPTI, the vendor's records of kernels, is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Records {
    /// Replays of graphs, if it is there: nothing else says what runs in them.
    #[default]
    Replays,
    /// All launches that are recorded.
    All,
    /// Nothing.
    Never,
}

impl Records {
    /// The word for the trace.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Records::Replays => "replays",
            Records::All => "all launches",
            Records::Never => "nothing",
        }
    }
}

/// What the environment asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) choice: Choice,
    pub(crate) records: Records,
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
        let (mut choice, mut records) = (Choice::Auto, Records::Replays);
        for word in text(DEVICE).unwrap_or_default().split(',') {
            match self::word(word.trim()) {
                Some(Word::Runtime(runtime)) => choice = runtime,
                Some(Word::Records(of)) => records = of,
                None if word.is_empty() => {}
                None => warnings.push(format!(
                    "{DEVICE}: expected one of {DEVICE_WORDS}, found {word:?}; using auto"
                )),
            }
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
            records,
            sample,
            warnings,
        }
    }
}

/// What a word in `SA_PROFILE_DEVICE` asks for.
enum Word {
    Runtime(Choice),
    Records(Records),
}

fn word(word: &str) -> Option<Word> {
    Some(match word.to_ascii_lowercase().as_str() {
        "auto" => Word::Runtime(Choice::Auto),
        "ascend" => Word::Runtime(Choice::Ascend),
        "sim" => Word::Runtime(Choice::Sim),
        "off" => Word::Runtime(Choice::Off),
        "mspti" => Word::Records(Records::All),
        "events" => Word::Records(Records::Never),
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
    fn a_word_for_mspti_stands_alone_or_beside_a_runtime() {
        let of = |device: &str| {
            let config =
                Config::from_lookup(|name| (name == DEVICE).then(|| device.to_owned().into()));
            (config.choice, config.records, config.warnings.len())
        };
        assert_eq!(of(""), (Choice::Auto, Records::Replays, 0));
        assert_eq!(of("mspti"), (Choice::Auto, Records::All, 0));
        assert_eq!(of("sim, MSPTI"), (Choice::Sim, Records::All, 0));
        assert_eq!(of("events,ascend"), (Choice::Ascend, Records::Never, 0));
        assert_eq!(of("sim,cupti"), (Choice::Sim, Records::Replays, 1));
    }
}
