//! The recorder's own records: metadata that a trace does not show, and the trait that gives each
//! record one parser.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::io::{self, Write};

/// Category of the records about the recording itself.
pub const OWN_CATEGORY: &str = "sa_profile";
/// Name of the metadata record that names a process.
pub const PROCESS_NAME: &str = "process_name";
/// Name of the metadata record that names a thread or lane.
pub const THREAD_NAME: &str = "thread_name";
/// Name of the metadata record with the settings of the engine in a process.
pub const ENGINE_SETTINGS: &str = "engine_settings";

/// The args of one of the recorder's own metadata records.
pub trait Record: Serialize + DeserializeOwned {
    /// Name of the record.
    const NAME: &'static str;

    /// Parses a line of a fragment as a record of this type. Returns `None` if its name is another
    /// one or its args are not as expected.
    fn parse(line: &[u8]) -> Option<Self> {
        parse_metadata(line, Self::NAME)
    }

    /// Writes the record as a line about process `pid`, with its newline.
    ///
    /// # Errors
    ///
    /// Returns the error of `out`.
    fn write(&self, pid: u32, out: &mut impl Write) -> io::Result<()> {
        write_metadata(out, (pid, pid), Self::NAME, self)
    }

    /// Returns the record as a line about process `pid`, with its newline.
    fn line(&self, pid: u32) -> Vec<u8> {
        let mut line = Vec::new();
        // Writing to a `Vec` cannot fail.
        let _ = self.write(pid, &mut line);
        line
    }
}

/// A line whose args have a known type.
#[derive(Deserialize)]
struct Line<'a, A> {
    #[serde(borrow)]
    ph: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    cat: Cow<'a, str>,
    #[serde(borrow, default)]
    s: Cow<'a, str>,
    args: A,
}

/// Parses a line as the metadata record with this name, and returns its args. Returns `None` if its
/// name is another one or its args are not as expected.
fn parse_metadata<A: DeserializeOwned>(line: &[u8], name: &str) -> Option<A> {
    let line: Line<'_, A> = serde_json::from_slice(line).ok()?;
    (line.ph == "M" && line.name == name).then_some(line.args)
}

/// Writes a metadata record with this name as a line about a process and thread, with its newline.
///
/// # Errors
///
/// Returns the error of `out`.
pub fn write_metadata(
    out: &mut impl Write,
    (pid, tid): (u32, u32),
    name: &str,
    args: &impl Serialize,
) -> io::Result<()> {
    write!(
        out,
        r#"{{"ph":"M","pid":{pid},"tid":{tid},"name":"{name}","args":"#
    )?;
    serde_json::to_writer(&mut *out, args)?;
    out.write_all(b"}\n")
}

/// Process, thread, time in ns and scope of one of the recorder's own instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstantPlace {
    /// Process id.
    pub pid: i64,
    /// Thread id.
    pub tid: i64,
    /// Time in ns of the process's `CLOCK_MONOTONIC`.
    pub time_ns: i64,
    /// True if the instant is about its thread alone, false if it is about the whole process.
    pub is_thread_scoped: bool,
}

/// Writes one of the recorder's own instants as a line, with its newline. `name` is the name of the
/// record.
///
/// # Errors
///
/// Returns the error of `out`.
pub fn write_instant(
    out: &mut impl Write,
    place: InstantPlace,
    name: &str,
    args: &impl Serialize,
) -> io::Result<()> {
    let (pid, tid) = (place.pid, place.tid);
    let sign = if place.time_ns < 0 { "-" } else { "" };
    let time_ns = place.time_ns.unsigned_abs();
    let (us, ns) = (time_ns / 1000, time_ns % 1000);
    let scope = if place.is_thread_scoped { 't' } else { 'p' };
    write!(
        out,
        r#"{{"ph":"i","pid":{pid},"tid":{tid},"ts":{sign}{us}.{ns:03},"s":"{scope}","name":"{name}","cat":"{OWN_CATEGORY}","args":"#
    )?;
    serde_json::to_writer(&mut *out, args)?;
    out.write_all(b"}\n")
}

/// Parses a line as one of the recorder's own instants. Returns true if it is about its thread
/// alone, and its args. Returns `None` if the line is not an instant of this name in the recorder's
/// category.
pub(crate) fn parse_instant<'a, A: Deserialize<'a>>(
    line: &'a [u8],
    name: &str,
) -> Option<(bool, A)> {
    let line: Line<'_, A> = serde_json::from_slice(line).ok()?;
    let is_own = matches!(&*line.ph, "i" | "I") && line.cat == OWN_CATEGORY && line.name == name;
    is_own.then_some((line.s == "t", line.args))
}

/// Returns the name that a record gives to a process or thread. Returns `None` if the record is not
/// the one called `name`, which is [`PROCESS_NAME`] or [`THREAD_NAME`].
pub fn parse_name(line: &[u8], name: &str) -> Option<String> {
    let args: Name<'static> = parse_metadata(line, name)?;
    Some(args.name.into_owned())
}

/// The args of a `process_name` or `thread_name` record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name<'a> {
    /// The name.
    pub name: Cow<'a, str>,
}

/// The args of an `sa_end` record: number of open spans, how the process ended, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// `CLOCK_MONOTONIC` in ns.
    #[serde(default)]
    pub monotonic_ns: u64,
    /// Number of open spans, if a reader wrote the record on behalf of a dead process or for a
    /// snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<u64>,
    /// How the process ended, if the reader had waited for it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "known_exit"
    )]
    pub exit: Option<Exit>,
    /// True if the process was still running: the record ends a snapshot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub running: bool,
}

impl Record for End {
    const NAME: &'static str = "sa_end";
}

/// The end of a process, as the program that waited for it saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself, with this exit code.
    Code(i32),
    /// By this signal, such as `SIGKILL`.
    Signal(String),
}

/// Signals that may end an idle program in the normal course of operation.
const ORDERLY: [&str; 5] = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGPIPE"];

impl Exit {
    /// Returns true if the process was ended by a signal that ends a program only in a crash or a
    /// kill.
    pub fn is_crash(&self) -> bool {
        matches!(self, Exit::Signal(name) if !ORDERLY.contains(&name.as_str()))
    }

    /// Returns a phrase that says how the process ended, such as `by SIGKILL`.
    pub fn text(&self) -> String {
        match self {
            Exit::Code(code) => format!("with exit code {code}"),
            Exit::Signal(name) => format!("by {name}"),
        }
    }
}

/// Reads how a process ended from a record. Returns `None` for a value that this version does not
/// know, so that the rest of the record can still be read.
fn known_exit<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Exit>, D::Error> {
    let value = Value::deserialize(from)?;
    Ok(serde_json::from_value(value).ok())
}

/// The args of an `sa_removed` record: how far each stream had got at the end of the removed
/// segments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedStreams {
    /// First segment that is not removed. The loss record contains the same number.
    pub first: u32,
    /// Number of events in the removed segments. The loss record contains the same number.
    pub events: u64,
    /// Slot, generation, and the position after the last one removed.
    pub streams: Vec<(u32, u32, u64)>,
}

impl Record for RemovedStreams {
    const NAME: &'static str = "sa_removed";
}

/// The args of an `sa_anchor` record: one reading of the monotonic and the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// `CLOCK_MONOTONIC` in ns.
    pub monotonic_ns: u64,
    /// `CLOCK_REALTIME` in ns since the epoch.
    pub realtime_ns: u64,
    /// Half the time that the reading took, in ns.
    pub uncertainty_ns: u64,
}

impl Record for Anchor {
    const NAME: &'static str = "sa_anchor";
}

/// The args of the `sa_track` record: the meaning of the record's `tid`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackRecord {
    /// The group of tracks it belongs to, shown as a process.
    pub process: String,
    /// A short label of the group.
    pub label: String,
    /// Sort key of the group among groups of its kind.
    pub sort_index: u32,
    /// Name of the track itself.
    pub thread: String,
}

impl Record for TrackRecord {
    const NAME: &'static str = "sa_track";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_read_if_its_exit_is_unknown() {
        let parse = |args: &str| {
            let line = format!(r#"{{"ph":"M","pid":7,"tid":7,"name":"sa_end","args":{args}}}"#);
            End::parse(line.as_bytes())
        };
        let end = |exit| End {
            monotonic_ns: 9,
            open: Some(2),
            exit,
            running: false,
        };
        let killed = Some(Exit::Signal("SIGKILL".to_owned()));
        for (exit, expected) in [(r#"{"signal":"SIGKILL"}"#, killed), (r#""eaten""#, None)] {
            let args = format!(r#"{{"monotonic_ns":9,"open":2,"exit":{exit}}}"#);
            assert_eq!(parse(&args), Some(end(expected)), "{exit}");
        }
        let running = parse(r#"{"monotonic_ns":9,"running":true}"#);
        assert!(running.is_some_and(|end| end.running && end.open.is_none()));
    }
}
