//! The devices in labels and names of processes: `NPU 3`, `GPU 0, pid 4711`, `/device:TPU:0`.

use std::fmt;

/// Kinds of devices, as profilers write them.
const KINDS: [&str; 12] = [
    "NPU", "GPU", "TPU", "XPU", "HPU", "MTIA", "MLU", "MUSA", "GCU", "DCU", "IPU", "AIU",
];
/// Label of processes on the host.
const HOST: &str = "CPU";
/// Prefix of the name of a device in traces of XLA, before its kind and number.
const XLA: &str = "/device:";
/// Kinds in names of XLA that are not accelerators.
const XLA_HOSTS: [&str; 2] = ["CPU", "CUSTOM"];
/// Prefix of the label with the pid of a process, which a merge writes.
const PID: &str = "pid ";
/// Prefix of a merge's label that names the trace with all kernels of a sampled device.
const SAMPLED: &str = "sampled; all kernels in ";
/// Prefix of a merge's label for a killed process. One of [`ENDS`] may follow.
const KILLED: &str = "killed";
const ENDS: [&str; 2] = [" by ", " with exit code "];
/// A merge's label for a process whose ring was in memory.
const RING: &str = "ring in memory";
/// Prefix of a merge's label about the clock of a process. [`CLOCK_ERROR`] follows.
const CLOCK: &str = "clock ";
const CLOCK_ERROR: &str = " ±";

/// The kind and number of a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceLabel {
    /// Kind of the device, such as `NPU`.
    pub kind: String,
    /// Number of the device. Some profilers do not write it if there is only one device.
    pub number: Option<u32>,
}

impl DeviceLabel {
    /// Finds the device in the comma-separated labels of a process, such as `GPU 0, pid 4711`. Returns `None` if no label names a device.
    pub fn in_labels(labels: &str) -> Option<DeviceLabel> {
        parts(labels).find_map(from_label)
    }

    /// Finds the device in the name of a process, such as `/device:TPU:0`. Returns `None` for a name without a device number, because programs
    /// may be called `GPU`, too.
    pub fn in_name(name: &str) -> Option<DeviceLabel> {
        let name = without_pid(name);
        from_xla_name(name).or_else(|| parts(name).find_map(DeviceLabel::numbered))
    }

    /// Returns true if this label may mean the device `other`: the kinds are equal, and so are the numbers, unless this label has none.
    pub fn names(&self, other: &DeviceLabel) -> bool {
        let is_number = self.number.is_none() || self.number == other.number;
        self.kind == other.kind && is_number
    }

    /// Parses a text whose last words are a device kind and a number, such as `NPU 3`.
    fn numbered(text: &str) -> Option<DeviceLabel> {
        let mut words = text.rsplit(' ');
        let number = words.next()?.parse().ok()?;
        let kind = words.next().filter(|word| KINDS.contains(word))?;
        Some(DeviceLabel::new(kind, Some(number)))
    }

    /// Creates a label from the kind of a device, such as `NPU`, and its number.
    fn new(kind: &str, number: Option<u32>) -> DeviceLabel {
        DeviceLabel {
            kind: kind.to_owned(),
            number,
        }
    }
}

impl fmt::Display for DeviceLabel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(number) => write!(out, "{} {number}", self.kind),
            None => out.write_str(&self.kind),
        }
    }
}

/// Parses one label of a process as a device kind with or without a number. Returns `None` if the label is about something else.
fn from_label(text: &str) -> Option<DeviceLabel> {
    let is_kind = KINDS.contains(&text);
    let bare = || is_kind.then(|| DeviceLabel::new(text, None));
    DeviceLabel::numbered(text).or_else(bare)
}

/// Parses the name that XLA gives a device, such as `/device:TPU:0`. TensorFlow writes a host before it. Returns `None` for CPUs and for other
/// names.
fn from_xla_name(name: &str) -> Option<DeviceLabel> {
    let (_, device) = name.split_once(XLA)?;
    let (kind, number) = device.split_once(':')?;
    let digits = number.find(|byte: char| !byte.is_ascii_digit());
    let number = number[..digits.unwrap_or(number.len())].parse().ok()?;
    let is_device = !kind.is_empty() && !XLA_HOSTS.contains(&kind);
    is_device.then(|| DeviceLabel::new(kind, Some(number)))
}

/// Returns true if the name of a process is one that XLA gives an accelerator, such as `/device:TPU:0`.
pub fn is_of_xla(name: &str) -> bool {
    from_xla_name(name).is_some()
}

/// Returns the name of a process without the `[pid]` at its end, which a merge adds if several processes have the same name.
pub(crate) fn without_pid(name: &str) -> &str {
    let with_pid = name
        .strip_suffix(']')
        .and_then(|name| name.rsplit_once('['));
    match with_pid {
        Some((name, pid)) if pid.parse::<i64>().is_ok() => name,
        _ => name,
    }
}

/// Returns true if the comma-separated labels of a process mark it as one of the host (`CPU`).
pub fn is_of_host(labels: &str) -> bool {
    parts(labels).any(|part| part == HOST)
}

/// Parts of the labels of a process that a merge added.
#[derive(Debug, Default)]
pub struct LabelNotes<'a> {
    /// Text after `pid `: the pid, or the text that the trace contains in its place. The host follows if there were several.
    pub pid: Option<&'a str>,
    /// Input trace from which the process comes. Empty for processes recorded by us.
    pub trace: String,
    /// Input trace that contains all kernels of this sampled device. Empty for other processes.
    pub sampled_from: String,
}

impl<'a> LabelNotes<'a> {
    /// Parses the comma-separated labels of a process in a merged trace. If merged traces were merged again, there are several pids. The first
    /// one is the pid in the original input.
    pub fn parse(labels: &'a str) -> LabelNotes<'a> {
        let has_pid = parts(labels).any(|part| part.starts_with(PID));
        // Names of traces may contain commas.
        let (mut trace, mut sampled, mut is_sampled) = (Vec::new(), Vec::new(), false);
        let mut pid = None;
        for part in parts(labels).filter(|part| !is_about_recording(part)) {
            if let Some(noted) = part.strip_prefix(PID) {
                is_sampled = false;
                pid = pid.or(Some(noted));
            } else if let Some(whole) = part.strip_prefix(SAMPLED) {
                is_sampled = true;
                sampled.push(whole);
            } else if is_sampled {
                sampled.push(part);
            } else if pid.is_some() || !has_pid && part != HOST && from_label(part).is_none() {
                trace.push(part);
            }
        }
        if !sampled.is_empty() {
            sampled.extend(&trace);
        }
        LabelNotes {
            pid,
            trace: trace.join(", "),
            sampled_from: sampled.join(", "),
        }
    }

    /// Returns the pid in the process's label `pid N`; `None` if there is no such label or the pid is not a number.
    pub fn pid_number(&self) -> Option<i64> {
        self.pid?.split(' ').next()?.parse().ok()
    }
}

/// Returns true for a label about the recording of a process, which [`LabelNotes`] ignores: how the process ended, that its ring was in memory,
/// or how uncertain its clock is.
fn is_about_recording(part: &str) -> bool {
    let is_killed = |how: &str| how.is_empty() || ENDS.iter().any(|end| how.starts_with(end));
    let is_clock = part.starts_with(CLOCK) && part.contains(CLOCK_ERROR);
    part == RING || is_clock || part.strip_prefix(KILLED).is_some_and(is_killed)
}

/// Splits the comma-separated labels of a process into single labels without spaces around them.
fn parts(labels: &str) -> impl Iterator<Item = &str> {
    labels.split(',').map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_found_in_labels_and_names() {
        for case in include_str!("../../tests/devices.txt").lines() {
            let (text, expected) = case.split_once(" -> ").unwrap();
            let found = match text.split_once(": ") {
                Some(("labels", labels)) => DeviceLabel::in_labels(labels),
                Some((_, name)) => DeviceLabel::in_name(name),
                None => panic!("{case}"),
            };
            let found = found.map_or("none".to_owned(), |label| label.to_string());
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn notes_of_a_merge_are_read_back() {
        // Labels, each with its pid, its trace and the trace that contains all its kernels. In the last two, a merged trace was merged again.
        for case in include_str!("../../tests/labels.txt").lines() {
            let (labels, expected) = case.split_once(" -> ").unwrap();
            let LabelNotes {
                pid,
                trace,
                sampled_from,
            } = LabelNotes::parse(labels);
            let found = [pid.unwrap_or("-"), &trace, &sampled_from].join("|");
            assert_eq!(found, expected, "{labels}");
        }
        assert_eq!(LabelNotes::parse("pid 7 host node1").pid_number(), Some(7));
        assert_eq!(LabelNotes::parse("pid [TP1] 0").pid_number(), None);
        assert!(is_of_host("CPU, pid 9") && !is_of_host("pid 9"));
    }
}
