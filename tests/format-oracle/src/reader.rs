//! A naive reader of fragments and rings, written from FORMAT.md alone. Tests compare the recorder and the merge with it.
//!
//! The input is a run directory or a folder of fragments, of a live or dead process. The output is every event once, the losses that the recorder reported, the
//! unreadable places, and the open spans. The reader parses each line with serde_json and keeps everything in memory. It is deliberately slow and simple.

mod blocks;
mod fragment;
mod losses;
mod mapping;
mod owner;
mod ring;
mod stitch;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

pub use blocks::{block_sum, header_line};
pub use fragment::Fragment;
use ring::Ring;
pub use ring::checked_state;
pub use stitch::{Line, Stitched};

/// Contents of all fragments in a directory, with events of type `E`.
#[derive(Debug)]
pub struct Recording<E = Value> {
    /// All events once, fragment by fragment: slices, instants, counters, flows, names, but not the recorder's own metadata.
    pub events: Vec<E>,
    /// Number of events that `sa_loss` records report as lost. Changed events do not count.
    pub lost: u64,
    /// Unreadable places: `<kind> <file name>:<offset> <detail>`.
    pub damage: Vec<String>,
    /// Spans without an end, as `B` events, from the ring or from a settled fragment.
    pub unfinished: Vec<Value>,
    /// Args of all `sa_fragment` records.
    pub headers: Vec<Value>,
}

/// An unreadable place.
#[derive(Clone, Debug)]
pub struct Damage {
    /// Kind as in FORMAT.md §5, or [`GAP_AT_END`] or [`LOST_BLOCK`].
    pub kind: &'static str,
    /// Name of the file.
    pub file: String,
    /// Offset in the file, or 0 if the damage has no exact place.
    pub offset: usize,
    /// Further text.
    pub detail: String,
}

/// Kind of missing positions above the last complete line of a stream. A merge does not report them as a gap.
pub const GAP_AT_END: &str = "gap_at_end";
/// Kind of an incomplete block whose positions a loss record reports. A merge does not report it as damage.
pub const LOST_BLOCK: &str = "bad_block_lost";

impl Damage {
    fn new(kind: &'static str, file: String, detail: String) -> Damage {
        Damage {
            kind,
            file,
            offset: 0,
            detail,
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, offset) = (&self.file, self.offset);
        write!(f, "{} {file}:{offset} {}", self.kind, self.detail)
    }
}

/// Reads every fragment in `dir`, or in `dir/fragments` if that exists.
///
/// # Panics
///
/// If the directory cannot be listed, because a test that reads nothing must not pass.
pub fn read_dir(dir: &Path) -> Recording {
    let mut recording: Recording = read_dir_as(dir);
    let (events, others) = recording.events.into_iter().partition(is_event);
    recording.events = events;
    let others = Vec::<Value>::into_iter(others).map(|other| format!("bad_event {other}"));
    recording.damage.extend(others);
    recording
}

/// Reads like [`read_dir`], but parses each event into an `E`. A small struct is several times faster than a `Value`.
///
/// # Panics
///
/// If the directory cannot be listed.
pub fn read_dir_as<E: DeserializeOwned>(dir: &Path) -> Recording<E> {
    let mut recording = Recording {
        events: Vec::new(),
        lost: 0,
        damage: Vec::new(),
        unfinished: Vec::new(),
        headers: Vec::new(),
    };
    each_fragment(dir, |fragment, stitched| {
        recording.headers.extend(fragment.headers.iter().cloned());
        let damage = stitched.damage.iter().map(Damage::to_string);
        recording.damage.extend(damage);
        recording.unfinished.extend(stitched.unfinished);
        for line in &stitched.lines {
            add_line(line, &mut recording);
        }
    });
    recording
}

/// Calls `use_fragment` for each fragment of a directory, with the joined contents of fragment and ring. The ring is read before the segments (FORMAT.md §4).
///
/// # Panics
///
/// If the directory cannot be listed.
pub fn each_fragment(dir: &Path, mut use_fragment: impl FnMut(&Fragment, Stitched<'_>)) {
    for stem in fragment_stems(dir) {
        let ring = Ring::snapshot(&stem.with_file_name(file_name(&stem) + ".ring"));
        let fragment = Fragment::read(&stem);
        let alive = fragment.header().is_some_and(owner::is_alive);
        use_fragment(&fragment, stitch::stitch(&fragment, &ring, alive));
    }
}

/// Returns the paths of a directory's fragments without `.jsonl`, sorted. All segments of a fragment have the same path.
fn fragment_stems(dir: &Path) -> Vec<PathBuf> {
    let inner = Some(dir.join("fragments")).filter(|inner| inner.is_dir());
    let dir = inner.as_deref().unwrap_or(dir);
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut stems: Vec<String> = names
        .filter(|name| name.starts_with("trace."))
        .filter_map(|name| Some(without_segment(name.strip_suffix(".jsonl")?).to_owned()))
        .collect();
    stems.sort();
    stems.dedup();
    stems.into_iter().map(|stem| dir.join(stem)).collect()
}

/// Removes the segment number: `trace.12.s3` → `trace.12`.
fn without_segment(stem: &str) -> &str {
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    let split = stem.rsplit_once(".s");
    split.map_or(
        stem,
        |(front, number)| if is_number(number) { front } else { stem },
    )
}

/// Adds a complete line to the events, unfinished spans, losses or damage.
fn add_line<E: DeserializeOwned>(line: &Line<'_>, recording: &mut Recording<E>) {
    let starts = [br#"{"ph":"M""#, br#"{"ph":"B""#];
    if starts.iter().any(|start| line.bytes.starts_with(*start)) || is_loss(line.bytes) {
        match serde_json::from_slice::<Value>(line.bytes) {
            Ok(value) if is_own_metadata(&value) => return,
            Ok(value) if is_unfinished(&value) => return recording.unfinished.push(value),
            Ok(value) => recording.lost += lost_events(&value),
            Err(_) => {}
        }
    }
    match serde_json::from_slice(line.bytes) {
        Ok(event) => recording.events.push(event),
        Err(error) => recording.damage.push(format!(
            "bad_json {}:{} {error}: {:.120}",
            line.file,
            line.offset,
            String::from_utf8_lossy(line.bytes)
        )),
    }
}

fn is_own_metadata(value: &Value) -> bool {
    let names = ["fragment", "anchor", "removed", "block", "end"];
    let name = value["name"]
        .as_str()
        .and_then(|name| name.strip_prefix("sa_"));
    value["ph"] == "M" && name.is_some_and(|name| names.contains(&name))
}

fn is_unfinished(value: &Value) -> bool {
    value["ph"] == "B" && value["args"]["unfinished"] == true
}

/// Causes of losses that only changed recorded events.
const CHANGED: [&str; 4] = ["clamped", "cut", "bad_value", "bad_series"];

/// Returns the number of lost events in an `sa_loss` record. Changed events are not lost.
fn lost_events(value: &Value) -> u64 {
    if value["name"] != "sa_loss"
        || value["cat"] != "sa_profile"
        || CHANGED.contains(&value["args"]["cause"].as_str().unwrap_or_default())
    {
        return 0;
    }
    value["args"]["events"].as_u64().unwrap_or(0)
}

/// Returns true if a value is an event that has everything its phase needs.
fn is_event(value: &Value) -> bool {
    let is_integer = |key: &str| value[key].is_u64();
    let is_time = |key: &str| value[key].as_f64().is_some_and(|time| time >= 0.0);
    let base = value["ph"].is_string()
        && is_integer("pid")
        && is_integer("tid")
        && value["name"].is_string();
    base && (value["ph"] == "M" || is_time("ts")) && (value["ph"] != "X" || is_time("dur"))
}

/// Returns the file name of a path as text.
fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns true if a line may be an `sa_removed` record.
fn is_removal(line: &[u8]) -> bool {
    line.starts_with(br#"{"ph":"M""#) && has(line, br#""name":"sa_removed""#)
}

/// Returns true if a line may be an `sa_loss` record.
fn is_loss(line: &[u8]) -> bool {
    line.starts_with(br#"{"ph":"i""#) && has(line, br#""name":"sa_loss""#)
}

fn has(line: &[u8], needle: &[u8]) -> bool {
    line.windows(needle.len()).any(|window| window == needle)
}
