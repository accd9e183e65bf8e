//! A naive second reader of fragments and rings, written from FORMAT.md alone: the oracle that recorder and merge are held against.
//!
//! In: a run directory (or a folder of fragments), of a live or a dead process. Out: every event once, the losses the recorder told, what could
//! not be read, and the spans still open. It parses each line with serde_json and keeps everything in memory: slow and plain on purpose.

mod blocks;
mod fragment;
mod losses;
mod mapping;
mod owner;
mod ring;
mod stitch;

use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

use fragment::Fragment;
use ring::Ring;
pub use ring::checked_state;
use stitch::Line;

/// What the fragments of a directory hold, with events of type `E`.
#[derive(Debug)]
pub struct Recording<E = Value> {
    /// Every event once, fragment by fragment: slices, instants, counters, flows, names; not the recorder's own metadata.
    pub events: Vec<E>,
    /// Events that the recorder says it lost (`sa_loss` records, changed events are not counted).
    pub lost: u64,
    /// What could not be read: `<kind> <file name>:<offset> <detail>`.
    pub damage: Vec<String>,
    /// Spans without an end, as `B` events: from the ring, or from a settled fragment.
    pub unfinished: Vec<Value>,
    /// The args of every `sa_fragment` record.
    pub headers: Vec<Value>,
}

impl<E> Default for Recording<E> {
    fn default() -> Self {
        Recording {
            events: Vec::new(),
            lost: 0,
            damage: Vec::new(),
            unfinished: Vec::new(),
            headers: Vec::new(),
        }
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
    recording
        .damage
        .extend(Vec::<Value>::into_iter(others).map(|other| format!("bad_event {other}")));
    recording
}

/// Reads like [`read_dir`], with each event parsed into an `E`: a small struct is several times faster than a `Value`.
///
/// # Panics
///
/// If the directory cannot be listed.
pub fn read_dir_as<E: DeserializeOwned>(dir: &Path) -> Recording<E> {
    let mut recording = Recording::default();
    for stem in fragment_stems(dir) {
        read_fragment(&stem, &mut recording);
    }
    recording
}

/// Lists the fragments of a directory as their paths without `.jsonl`, segments of one fragment as one, sorted.
fn fragment_stems(dir: &Path) -> Vec<PathBuf> {
    let inner = dir.join("fragments");
    let dir = if inner.is_dir() {
        inner
    } else {
        dir.to_path_buf()
    };
    let entries = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
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
    match stem.rsplit_once(".s") {
        Some((front, number))
            if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            front
        }
        _ => stem,
    }
}

/// Reads one fragment: the ring first, then the segments (FORMAT.md §4).
fn read_fragment<E: DeserializeOwned>(stem: &Path, recording: &mut Recording<E>) {
    let ring = Ring::snapshot(&stem.with_file_name(file_name(stem) + ".ring"));
    let fragment = Fragment::read(stem);
    let alive = fragment.header().is_some_and(owner::is_alive);
    let stitched = stitch::stitch(&fragment, &ring, alive);
    recording.headers.extend(fragment.headers.iter().cloned());
    recording.damage.extend(fragment.damage.iter().cloned());
    recording.damage.extend(stitched.damage);
    recording.unfinished.extend(stitched.unfinished);
    for line in &stitched.lines {
        take_line(line, recording);
    }
}

/// Sorts one whole line into events, unfinished spans, losses or damage.
fn take_line<E: DeserializeOwned>(line: &Line<'_>, recording: &mut Recording<E>) {
    if line.bytes.starts_with(br#"{"ph":"M""#)
        || line.bytes.starts_with(br#"{"ph":"B""#)
        || is_loss(line.bytes)
    {
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
            "bad_json {} {error}: {:.120}",
            line.place,
            String::from_utf8_lossy(line.bytes)
        )),
    }
}

fn is_own_metadata(value: &Value) -> bool {
    value["ph"] == "M"
        && [
            "sa_fragment",
            "sa_anchor",
            "sa_removed",
            "sa_block",
            "sa_end",
        ]
        .iter()
        .any(|name| value["name"] == **name)
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
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Tells whether a line is an `sa_removed` record.
fn is_removal(line: &[u8]) -> bool {
    let needle = br#""name":"sa_removed""#;
    line.starts_with(br#"{"ph":"M""#) && line.windows(needle.len()).any(|window| window == needle)
}

/// Tells whether a line may be an `sa_loss` record.
fn is_loss(line: &[u8]) -> bool {
    let needle = br#""name":"sa_loss""#;
    line.starts_with(br#"{"ph":"i""#) && line.windows(needle.len()).any(|window| window == needle)
}

#[cfg(test)]
mod sample;
#[cfg(test)]
mod torn_headers;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_belong_to_their_fragment() {
        assert_eq!(without_segment("trace.12.s3"), "trace.12");
        assert_eq!(without_segment("trace.12"), "trace.12");
        assert_eq!(without_segment("trace.12.s"), "trace.12.s");
    }

    fn names(recording: &Recording) -> Vec<&str> {
        let names = recording.events.iter();
        names.filter_map(|event| event["name"].as_str()).collect()
    }

    #[test]
    fn blocks_and_ring_make_one_stream() {
        let dir = tempfile::tempdir().unwrap();
        let sample = sample::Sample::new(&["a", "b", "c"], 2);
        sample.write(dir.path());
        let recording = read_dir(dir.path());
        assert_eq!(names(&recording), ["a", "b", "c"]);
        assert_eq!(recording.damage, Vec::<String>::new());
        assert_eq!(recording.unfinished.len(), 1);
        assert_eq!(recording.unfinished[0]["name"], "open");
        assert_eq!(recording.unfinished[0]["ts"], 1234.567);
        assert_eq!(recording.headers[0]["nonce"], "00000000000000ff");
    }

    #[test]
    fn block_that_the_ring_still_holds_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut sample = sample::Sample::new(&["a", "b", "c"], 2);
        sample.flushed_lines = 0;
        sample.write(dir.path());
        assert_eq!(names(&read_dir(dir.path())), ["a", "b", "c"]);
    }

    #[test]
    fn missing_ring_and_broken_sum_are_damage() {
        let dir = tempfile::tempdir().unwrap();
        let mut sample = sample::Sample::new(&["a", "b", "c"], 2);
        sample.sum_xor = 1;
        let (_, ring) = sample.write(dir.path());
        let recording = read_dir(dir.path());
        assert_eq!(
            names(&recording),
            ["c", "a", "b"],
            "lines of a broken block are saved"
        );
        assert!(
            recording.damage[0].starts_with("bad_block"),
            "{:?}",
            recording.damage
        );
        fs::remove_file(ring).unwrap();
        let damage = read_dir(dir.path()).damage;
        assert!(
            damage
                .iter()
                .any(|damage| damage.starts_with("ring_missing")),
            "{damage:?}"
        );
    }

    #[test]
    fn positions_that_nothing_holds_are_a_gap() {
        let dir = tempfile::tempdir().unwrap();
        let mut sample = sample::Sample::new(&["a", "b", "c"], 1);
        sample.flushed_lines = 2;
        sample.write(dir.path());
        let recording = read_dir(dir.path());
        assert_eq!(names(&recording), ["a", "c"]);
        assert!(
            recording.damage[0].starts_with("gap"),
            "{:?}",
            recording.damage
        );
    }

    #[test]
    fn torn_last_line_of_a_dead_process_is_damage_and_a_piece_of_a_header_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (fragment, _) = sample::Sample::new(&["a"], 1).write(dir.path());
        let whole = fs::read(&fragment).unwrap();
        fs::write(
            &fragment,
            [&whole[..], br#"{"ph":"M","name":"sa_blo"#].concat(),
        )
        .unwrap();
        assert_eq!(read_dir(dir.path()).damage, Vec::<String>::new());
        fs::write(&fragment, [&whole[..], br#"{"ph":"X","pid":1"#].concat()).unwrap();
        assert_eq!(read_dir(dir.path()).damage.len(), 1);
    }
}
