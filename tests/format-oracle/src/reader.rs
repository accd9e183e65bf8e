//! A naive second reader of fragments and rings, written from FORMAT.md alone: the oracle that recorder and merge are held against.
//!
//! In: a run directory (or a folder of fragments), of a live or a dead process. Out: every event once, the losses that the recorder reports, the
//! places that could not be read, and the spans still open. It parses each line with serde_json and keeps everything in memory: slow and plain on purpose.

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

/// The content of all fragments of a directory, with events of type `E`.
#[derive(Debug)]
pub struct Recording<E = Value> {
    /// Every event once, fragment by fragment: slices, instants, counters, flows, names; not the recorder's own metadata.
    pub events: Vec<E>,
    /// Events that the recorder says it lost (`sa_loss` records, changed events are not counted).
    pub lost: u64,
    /// The places that could not be read: `<kind> <file name>:<offset> <detail>`.
    pub damage: Vec<String>,
    /// Spans without an end, as `B` events: from the ring, or from a settled fragment.
    pub unfinished: Vec<Value>,
    /// The args of every `sa_fragment` record.
    pub headers: Vec<Value>,
}

/// A place that could not be read.
#[derive(Clone, Debug)]
pub struct Damage {
    /// The kind, as FORMAT.md §5 names it, [`GAP_AT_END`] or [`LOST_BLOCK`].
    pub kind: &'static str,
    /// Name of the file.
    pub file: String,
    /// Offset in the file, or 0 if the damage has no exact place.
    pub offset: usize,
    /// Further words about it.
    pub detail: String,
}

/// Kind of missing positions above the last complete line of a stream. A merge does not count them as a gap.
pub const GAP_AT_END: &str = "gap_at_end";
/// Kind of an incomplete block whose positions a loss record names. A merge does not count it as damage.
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

/// Reads every fragment in `dir` (or in `dir/fragments` where that exists).
///
/// # Panics
///
/// If the directory cannot be listed: a test that reads nothing must not pass.
pub fn read_dir(dir: &Path) -> Recording {
    let mut recording: Recording = read_dir_as(dir);
    let (events, others) = recording.events.into_iter().partition(is_event);
    recording.events = events;
    let others = Vec::<Value>::into_iter(others).map(|other| format!("bad_event {other}"));
    recording.damage.extend(others);
    recording
}

/// Reads like [`read_dir`], with each event parsed into an `E`: a small struct is several times faster than a `Value`.
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
            take_line(line, &mut recording);
        }
    });
    recording
}

/// Passes each fragment of a directory to `take`, with the content of both it and its ring. The ring is read first, then the segments (FORMAT.md §4).
///
/// # Panics
///
/// If the directory cannot be listed.
pub fn each_fragment(dir: &Path, mut take: impl FnMut(&Fragment, Stitched<'_>)) {
    for stem in fragment_stems(dir) {
        let ring = Ring::snapshot(&stem.with_file_name(file_name(&stem) + ".ring"));
        let fragment = Fragment::read(&stem);
        let alive = fragment.header().is_some_and(owner::is_alive);
        take(&fragment, stitch::stitch(&fragment, &ring, alive));
    }
}

/// Lists the fragments of a directory as their paths without `.jsonl`, segments of one fragment as one, sorted.
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

/// `trace.12.s3` → `trace.12`.
fn without_segment(stem: &str) -> &str {
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    let split = stem.rsplit_once(".s");
    split.map_or(
        stem,
        |(front, number)| if is_number(number) { front } else { stem },
    )
}

/// Sorts one whole line into events, unfinished spans, losses or damage.
fn take_line<E: DeserializeOwned>(line: &Line<'_>, recording: &mut Recording<E>) {
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

/// The causes of changes to events that were recorded.
const CHANGED: [&str; 4] = ["clamped", "cut", "bad_value", "bad_series"];

/// The events one `sa_loss` record counts; changed events are not lost.
fn lost_events(value: &Value) -> u64 {
    if value["name"] != "sa_loss"
        || value["cat"] != "sa_profile"
        || CHANGED.contains(&value["args"]["cause"].as_str().unwrap_or_default())
    {
        return 0;
    }
    value["args"]["events"].as_u64().unwrap_or(0)
}

/// Tells whether a value is an event with what its phase needs.
fn is_event(value: &Value) -> bool {
    let whole = |key: &str| value[key].is_u64();
    let time = |key: &str| value[key].as_f64().is_some_and(|time| time >= 0.0);
    let base = value["ph"].is_string() && whole("pid") && whole("tid") && value["name"].is_string();
    base && (value["ph"] == "M" || time("ts")) && (value["ph"] != "X" || time("dur"))
}

/// Gives the file name of a path as text.
fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Tells whether a line may be an `sa_removed` record.
fn is_removal(line: &[u8]) -> bool {
    line.starts_with(br#"{"ph":"M""#) && has(line, br#""name":"sa_removed""#)
}

/// Tells whether a line may be an `sa_loss` record.
fn is_loss(line: &[u8]) -> bool {
    line.starts_with(br#"{"ph":"i""#) && has(line, br#""name":"sa_loss""#)
}

fn has(line: &[u8], needle: &[u8]) -> bool {
    line.windows(needle.len()).any(|window| window == needle)
}
