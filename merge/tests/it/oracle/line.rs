//! Parses one line: a valid event, or a kind of damage.

use serde_json::Value;

/// Recorder of a line, and its process.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) process: String,
    /// The nonce, or the file of a fragment without a header.
    pub(super) recorder: String,
    pub(super) offset_ns: i64,
    pub(super) is_ours: bool,
}

impl Source {
    pub(super) fn new(file: &str, header: Option<&Value>) -> Source {
        let Some(header) = header.filter(|header| header["version"] == 1) else {
            return Source {
                process: file.into(),
                recorder: file.into(),
                offset_ns: 0,
                is_ours: false,
            };
        };
        let process = ["host", "boot_id", "pid_ns", "pid", "start_time"]
            .map(|key| header[key].to_string())
            .join("/");
        let recorder = format!("{process}/{}", header["nonce"]);
        Source {
            process,
            recorder,
            offset_ns: header["monotonic_offset_ns"].as_i64().unwrap(),
            is_ours: true,
        }
    }
}

/// A valid event.
#[derive(Clone, Debug)]
pub(super) struct ValidLine {
    pub(super) source: Source,
    pub(super) value: Value,
}

impl ValidLine {
    pub(super) fn ts_ns(&self) -> i64 {
        super::shifted_ns(&self.value["ts"], self.source.offset_ns)
    }

    pub(super) fn process(&self) -> String {
        format!("{}#{}", self.source.process, self.value["pid"])
    }

    pub(super) fn thread(&self) -> String {
        let tid = self.value.get("tid").filter(|tid| **tid != 0);
        let tid = tid.unwrap_or(&self.value["pid"]);
        if self.source.is_ours && tid.as_u64().is_some_and(|tid| tid >= 1 << 22) {
            return format!("{}/{}/{tid}", self.process(), self.source.recorder);
        }
        format!("{}/{tid}", self.process())
    }

    /// Returns the id with its scope. A number and its hexadecimal text are the same id, like in
    /// viewers.
    pub(super) fn id(&self) -> Option<String> {
        if let Some(global) = self.value["id2"].get("global") {
            return Some(format!("global {}", id_key(global)));
        }
        let local = self.value["id2"].get("local");
        let local = local.or_else(|| self.value.get("id"))?;
        Some(format!("{} {}", self.process(), id_key(local)))
    }
}

fn id_key(id: &Value) -> String {
    let text = id.as_str();
    let digits = text.map(|text| text.strip_prefix("0x").unwrap_or(text));
    match digits.map(|digits| u64::from_str_radix(digits, 16)) {
        Some(Ok(number)) => number.to_string(),
        _ => id.to_string(),
    }
}

/// Returns the events and kinds of damage in a line without its newline, with their offsets.
pub(super) fn read(line: &[u8], ended: bool) -> Vec<(usize, Result<Value, &'static str>)> {
    if line.len() > 16 << 20 {
        return vec![(0, Err("line_too_long"))];
    }
    if line.contains(&0) {
        return around_nuls(line);
    }
    let leading = line.len() - line.trim_ascii_start().len();
    match event(line) {
        Ok(value) => value
            .map(|value| (leading, Ok(value)))
            .into_iter()
            .collect(),
        Err(_) if !ended => vec![(0, Err("torn_tail"))],
        Err(kind) => vec![(leading, Err(kind))],
    }
}

/// Reports each run of NUL bytes as damage. Text between the runs only counts if it is a whole
/// event.
fn around_nuls(line: &[u8]) -> Vec<(usize, Result<Value, &'static str>)> {
    let mut found = Vec::new();
    let mut at = 0;
    for run in line.chunk_by(|one, other| (*one == 0) == (*other == 0)) {
        if run[0] == 0 {
            found.push((at, Err("nul")));
        } else if let Ok(Some(value)) = event(run) {
            found.push((at, Ok(value)));
        }
        at += run.len();
    }
    found
}

/// Parses the event of a line. Returns `None` for an empty line, or the kind of damage.
fn event(line: &[u8]) -> Result<Option<Value>, &'static str> {
    let text = std::str::from_utf8(line).map_err(|_| "bad_utf8")?;
    let text = text.trim_ascii();
    if text.is_empty() {
        return Ok(None);
    }
    let value: Value = serde_json::from_str(text).map_err(|_| "bad_json")?;
    if !value.is_object() {
        return Err("bad_json");
    }
    if !is_event(&value) {
        return Err("bad_event");
    }
    rejection(&value).map_or(Ok(Some(value)), Err)
}

/// Returns the reason why viewers do not show an event.
fn rejection(value: &Value) -> Option<&'static str> {
    let is_id = |id: &Value| id.is_number() || id.is_string();
    match value["ph"].as_str().unwrap_or_default() {
        "s" | "t" | "f" | "b" | "n" | "e" | "S" | "T" | "F" | "p" => {
            let id2 = &value["id2"];
            let ids = [&value["id"], &id2["local"], &id2["global"]];
            (!ids.into_iter().any(is_id)).then_some("no_id")
        }
        "C" => {
            let args = value["args"].as_object();
            let is_drawn = args.is_some_and(|args| args.values().any(Value::is_number));
            (!is_drawn).then_some("bad_counter")
        }
        "M" if value["name"] == "process_name" || value["name"] == "thread_name" => {
            let name = value["args"]["name"].as_str();
            name.is_none_or(str::is_empty).then_some("bad_name")
        }
        "X" | "B" | "E" | "i" | "I" | "R" | "M" | "c" => None,
        _ => Some("unknown_phase"),
    }
}

fn is_event(value: &Value) -> bool {
    let Some(phase) = value["ph"].as_str().filter(|phase| phase.len() == 1) else {
        return false;
    };
    let timed = phase == "M" || micros(&value["ts"]).is_some();
    let lasting = phase != "X" || micros(&value["dur"]).is_some_and(|dur| dur >= 0.0);
    timed && lasting && is_id(&value["pid"]) && value.get("tid").is_none_or(is_id)
}

fn micros(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

fn is_id(value: &Value) -> bool {
    value.is_i64() || value.as_str().is_some_and(|text| !text.is_empty())
}
