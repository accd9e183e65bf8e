//! The control file, which says what the processes of a run record from now on, and the record of a switch (FORMAT.md §2.4, §6).

use crate::record::parse_instant;
use serde::{Deserialize, Serialize};

/// File that switches a live run, inside the run directory.
pub const CONTROL_FILE: &str = "control";
/// The version of the control file that this crate writes; others are not obeyed.
pub const CONTROL_VERSION: u32 = 1;
/// A longer control file is not read.
pub const MAX_CONTROL_BYTES: usize = 4096;
/// How far ahead of the store the instant of a switch should lie, in ns: by then every process has looked at the file.
pub const LEAD_NS: u64 = 350_000_000;

/// How detailed an event is; a process records the levels that its configuration names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Requests, scheduling, steps.
    E2e,
    /// Kernel launches.
    Kernel,
    /// Everything else.
    Verbose,
}

impl Level {
    /// Returns the bit of the level in a mask of levels.
    pub const fn bit(self) -> u32 {
        match self {
            Level::E2e => 1,
            Level::Kernel => 2,
            Level::Verbose => 4,
        }
    }
}

/// The contents of the control file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    /// [`CONTROL_VERSION`].
    pub version: u32,
    /// 16 random hex digits: the same text written twice is obeyed once.
    pub id: String,
    /// Run that is meant; processes of others ignore it.
    pub run: String,
    /// What the user, or the process that counted steps, wants.
    pub cause: SwitchCause,
    /// Levels to record, none to stop; absent: those that each process was configured with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<Vec<Level>>,
    /// The instant at which every process switches, in ns of wall time.
    pub from_realtime_ns: u64,
    /// The instant at which every process stops again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_realtime_ns: Option<u64>,
    /// Each process stops by itself after about so many events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// The first process that has recorded so many steps stops all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Steps>,
}

/// Which spans count as steps, and how many are enough.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steps {
    /// Name of the spans.
    pub name: String,
    /// Their category; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// How many of them.
    pub count: u64,
}

/// Why recording was switched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SwitchCause {
    /// The process began switched off.
    #[default]
    Paused,
    /// Switched on.
    Start,
    /// Switched off.
    Stop,
    /// Other levels.
    Level,
    /// The time of a start was over.
    For,
    /// The events of a start were recorded.
    Events,
    /// The steps of a start were recorded.
    Steps,
}

/// The args of an `sa_switch` record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// Levels recorded from then on.
    pub levels: Vec<Level>,
    /// Why.
    pub cause: SwitchCause,
    /// Id of the control that was obeyed, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
}

impl Switch {
    /// Name of the record.
    pub const NAME: &'static str = "sa_switch";

    /// Parses the line of a switch; `None` if it is none.
    pub fn parse(line: &[u8]) -> Option<Switch> {
        parse_instant(line, Switch::NAME).map(|(_, switch)| switch)
    }
}

impl Control {
    /// Reads a control file: one line of JSON of a known version that makes sense; `None` for anything else.
    pub fn parse(bytes: &[u8]) -> Option<Control> {
        let short = (bytes.len() <= MAX_CONTROL_BYTES).then_some(bytes);
        let line = short?.strip_suffix(b"\n")?;
        let control: Control = serde_json::from_slice(line).ok()?;
        control.makes_sense().then_some(control)
    }

    fn makes_sense(&self) -> bool {
        let is_id = self.id.len() == 16 && self.id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let ends = self.until_realtime_ns;
        let counts = self.steps.as_ref();
        self.version == CONTROL_VERSION
            && is_id
            && ends.is_none_or(|until| until > self.from_realtime_ns)
            && self.events != Some(0)
            && counts.is_none_or(|steps| steps.count > 0 && !steps.name.is_empty())
    }

    /// The file's text.
    pub fn text(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        text.push(b'\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control() -> Control {
        Control {
            version: CONTROL_VERSION,
            id: "0123456789abcdef".to_owned(),
            run: "r".to_owned(),
            cause: SwitchCause::Start,
            levels: Some(vec![Level::E2e, Level::Kernel]),
            from_realtime_ns: 1_795_248_902_123_456_789,
            ..Control::default()
        }
    }

    fn steps(name: &str, count: u64) -> Option<Steps> {
        Some(Steps {
            name: name.to_owned(),
            category: None,
            count,
        })
    }

    #[test]
    fn what_makes_no_sense_is_none() {
        let nonsense: [fn(&mut Control); 7] = [
            |control| control.version = 2,
            |control| control.id = "x".to_owned(),
            |control| control.until_realtime_ns = Some(control.from_realtime_ns),
            |control| control.events = Some(0),
            |control| control.steps = steps("", 1),
            |control| control.steps = steps("s", 0),
            |control| control.run = "r".repeat(MAX_CONTROL_BYTES),
        ];
        for spoil in nonsense {
            let mut control = control();
            spoil(&mut control);
            assert_eq!(Control::parse(&control.text()), None, "{control:?}");
        }
        let unknown = String::from_utf8(control().text()).unwrap();
        let unknown = unknown.replace("kernel", "everything");
        assert_eq!(Control::parse(unknown.as_bytes()), None);
    }
}
