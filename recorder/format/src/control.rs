//! The control file, which sets the levels that the processes of a run record from now on, and the
//! record of a switch (FORMAT.md §2.4, §6).

use crate::record::parse_instant;
use serde::{Deserialize, Serialize};

/// File that switches a live run, inside the run directory.
pub const CONTROL_FILE: &str = "control";
/// Version of the control file that this crate writes. Files of other versions are ignored.
pub const CONTROL_VERSION: u32 = 1;
/// Maximum length of a control file in bytes. Longer files are not read.
pub const MAX_CONTROL_BYTES: usize = 4096;
/// Time in ns between storing a control file and the instant of its switch. By then every process
/// has read the file.
pub const LEAD_NS: u64 = 350_000_000;

/// Level of detail of an event. A process records the levels that its configuration names.
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
    /// Returns the bit of the level in a mask: 1, 2 or 4.
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
    /// 16 random hex digits. A file with an id that was already applied is ignored.
    pub id: String,
    /// Id of the run to switch. Processes of other runs ignore the file.
    pub run: String,
    /// Reason for the switch.
    pub cause: SwitchCause,
    /// Levels to record; empty to stop. If absent, each process records the levels it was
    /// configured with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<Vec<Level>>,
    /// Time at which every process switches, in ns of wall time.
    pub from_realtime_ns: u64,
    /// Time at which every process stops again, in ns of wall time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_realtime_ns: Option<u64>,
    /// Approximate number of events after which each process stops by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// Steps to record. The first process that has recorded them all stops every process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Steps>,
}

/// The spans that count as steps, and the number of them to record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steps {
    /// Name of the spans.
    pub name: String,
    /// Category of the spans; absent for any category.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Number of spans to record.
    pub count: u64,
}

/// Reason why recording was switched.
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
    /// The levels changed.
    Level,
    /// The time limit of a start was reached.
    For,
    /// The event limit of a start was reached.
    Events,
    /// The step limit of a start was reached.
    Steps,
}

/// The args of an `sa_switch` record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// Levels recorded from then on.
    pub levels: Vec<Level>,
    /// Reason for the switch.
    pub cause: SwitchCause,
    /// Id of the control file that caused the switch, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
}

impl Switch {
    /// Name of the record.
    pub const NAME: &'static str = "sa_switch";

    /// Parses a line of a fragment as an `sa_switch` record, which says that the recorded levels
    /// changed. Returns `None` if the line is not such a record.
    pub fn parse(line: &[u8]) -> Option<Switch> {
        parse_instant(line, Switch::NAME).map(|(_, switch)| switch)
    }
}

impl Control {
    /// Parses a control file: one line of JSON with a known version and consistent values. Returns
    /// `None` for anything else.
    pub fn parse(bytes: &[u8]) -> Option<Control> {
        let short = (bytes.len() <= MAX_CONTROL_BYTES).then_some(bytes);
        let line = short?.strip_suffix(b"\n")?;
        let control: Control = serde_json::from_slice(line).ok()?;
        control.is_consistent().then_some(control)
    }

    /// Returns true if the version is known and the values do not contradict each other.
    fn is_consistent(&self) -> bool {
        let is_id = self.id.len() == 16 && self.id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let ends = self.until_realtime_ns;
        let counts = self.steps.as_ref();
        self.version == CONTROL_VERSION
            && is_id
            && ends.is_none_or(|until| until > self.from_realtime_ns)
            && self.events != Some(0)
            && counts.is_none_or(|steps| steps.count > 0 && !steps.name.is_empty())
    }

    /// Returns the contents of the control file: one line of JSON with its newline.
    pub fn to_json_line(&self) -> Vec<u8> {
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
    fn inconsistent_controls_are_rejected() {
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
            assert_eq!(Control::parse(&control.to_json_line()), None, "{control:?}");
        }
        let unknown = String::from_utf8(control().to_json_line()).unwrap();
        let unknown = unknown.replace("kernel", "everything");
        assert_eq!(Control::parse(unknown.as_bytes()), None);
    }
}
