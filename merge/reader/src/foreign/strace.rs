//! Reads the log lines of the runtime `simpler`, `[STRACE]` and `[CLOCK_ANCHOR]`, as a trace: the times that its processes measured on the host and
//! on the clock of their chip.
//!
//! Lines of several processes may be joined without a newline, with any other text between them. Therefore a record begins with its marker and ends
//! where the next line or the next prefix begins.

mod chip;
mod record;

use super::clock::{TimeOrigin, recording_anchor};
use super::lines::Lines;
use super::resync::next_line;
use crate::base::number::write_micros;
use crate::event::damage::Kind;
use crate::fragment::recording::Recording;
use chip::{Chips, PlacedSpan};
use memchr::memmem;
use record::{LogRecord, LogSpan};
use sa_format::FragmentHeader;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

const SPAN: &[u8] = b"[STRACE]";
const ANCHOR: &[u8] = b"[CLOCK_ANCHOR]";
/// Prefix of each line.
const PREFIX: &[u8] = b"[mono_ns=";

/// Data in a log apart from its spans.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StraceLog {
    /// Wall time in ns at the zero of the monotonic clock, by process.
    pub(super) walls_ns: BTreeMap<i64, i64>,
    /// The processes that have spans.
    pub(super) pids: BTreeSet<i64>,
    /// Number of spans on the clock of a chip that could not be placed.
    pub(super) unplaced: u64,
}

/// Returns true if the bytes of a file are a log of the runtime `simpler` and not a JSON document. No JSON document begins with a bracket and a
/// word.
pub(super) fn is_log(bytes: &[u8]) -> bool {
    let first = bytes.trim_ascii_start();
    let is_document = match first.first() {
        Some(b'{') => true,
        Some(b'[') => matches!(
            first[1..].trim_ascii_start().first(),
            None | Some(b'{' | b']')
        ),
        _ => false,
    };
    !is_document && (find(bytes, SPAN).is_some() || find(bytes, ANCHOR).is_some())
}

/// Returns the offset of the first record in a log that begins with this marker; `None` if there is none.
fn find(bytes: &[u8], marker: &[u8]) -> Option<usize> {
    memmem::find(bytes, &[marker, b" v="].concat())
}

/// Reads a whole log of the runtime `simpler`. Adds its spans to `lines` as events, and calls `passed` with the current offset after each record.
/// Returns the clocks and processes of the log.
pub(super) fn read(
    bytes: &[u8],
    lines: &mut Lines<'_>,
    passed: &mut dyn FnMut(usize),
) -> io::Result<StraceLog> {
    let mut reader = LogReader {
        lines,
        log: StraceLog::default(),
        chips: Chips::default(),
    };
    let mut at = 0;
    while let Some((start, marker)) = next_marker(bytes, at) {
        let end = record_end(bytes, start + marker.len());
        let text = &bytes[start + marker.len()..end];
        reader.record(marker, text, start, end == bytes.len())?;
        at = end;
        passed(at);
    }
    reader.finish()
}

/// Returns the offset of the next marker of a record at or after offset `at`, and the marker itself.
fn next_marker(bytes: &[u8], at: usize) -> Option<(usize, &'static [u8])> {
    let rest = &bytes[at..];
    let mut hits = memchr::memchr_iter(b'[', rest);
    hits.find_map(|hit| {
        let mut markers = [SPAN, ANCHOR]
            .into_iter()
            .filter(|marker| rest[hit..].starts_with(marker));
        Some((at + hit, markers.next()?))
    })
}

/// Returns the offset where a record of the log ends: the begin of the next line or of the next prefix `[mono_ns=`. `at` is the offset after the
/// record's marker.
fn record_end(bytes: &[u8], at: usize) -> usize {
    let line = next_line(bytes, at);
    memmem::find(&bytes[at..line], PREFIX).map_or(line, |hit| at + hit)
}

struct LogReader<'a, 'f> {
    lines: &'a mut Lines<'f>,
    log: StraceLog,
    chips: Chips,
}

impl LogReader<'_, '_> {
    /// Processes a record, by its marker and the text after it. `at` is its offset. If it `is_last` in the log and has no newline, it may be cut
    /// off.
    fn record(&mut self, marker: &[u8], text: &[u8], at: usize, is_last: bool) -> io::Result<()> {
        let is_whole = !is_last || text.ends_with(b"\n");
        match LogRecord::parse(marker == ANCHOR, text) {
            Some(LogRecord::Anchor { pid, wall_ns }) => {
                self.log.walls_ns.insert(pid, wall_ns);
            }
            // A number that was cut off may still be a valid number.
            Some(LogRecord::Span(span)) if is_whole => return self.span(&span, at),
            _ if is_whole => self.lines.damage(at, Kind::BadEvent),
            _ => self.lines.torn(at),
        }
        Ok(())
    }

    /// Writes a span as an event. A span on the clock of a chip waits until it can be converted to the host's clock.
    fn span(&mut self, span: &LogSpan, at: usize) -> io::Result<()> {
        let time = (span.ts_ns, span.ts_ns.saturating_add(span.dur_ns));
        if !span.is_on_chip && self.lines.is_far(Some(time)) {
            self.lines.damage(at, Kind::BadTime);
            return Ok(());
        }
        self.log.pids.insert(span.pid);
        if !span.is_on_chip {
            write(self.lines, span, span.tid, span.ts_ns, None)?;
        }
        for PlacedSpan {
            span,
            ts_ns,
            uncertainty_ns,
        } in self.chips.add_span(span)
        {
            write(
                self.lines,
                &span,
                Chips::track(),
                ts_ns,
                Some(uncertainty_ns),
            )?;
        }
        Ok(())
    }

    /// Writes the records that name the tracks of chips, and returns what the log contains apart from its spans.
    fn finish(mut self) -> io::Result<StraceLog> {
        self.log.unplaced = self.chips.unplaced();
        for line in self.chips.track_records() {
            self.lines.write_generated(line.as_bytes())?;
        }
        Ok(self.log)
    }
}

/// Writes a span to `lines` as an event on track `tid`, with start `ts_ns`. A span of a chip has an uncertainty, which is added to the args.
fn write(
    lines: &mut Lines<'_>,
    span: &LogSpan,
    tid: i64,
    ts_ns: i64,
    uncertainty_ns: Option<i64>,
) -> io::Result<()> {
    let mut args = Map::new();
    args.insert("inv".to_owned(), span.inv.into());
    args.insert("hid".to_owned(), span.hid.clone().into());
    args.insert("depth".to_owned(), span.depth.into());
    if let Some(ns) = uncertainty_ns {
        // The uncertainty is rounded up.
        args.insert(
            "uncertainty_us".to_owned(),
            (ns + 999).div_euclid(1000).into(),
        );
        args.insert("device_ts_ns".to_owned(), span.ts_ns.into());
    }
    for (key, value) in &span.attributes {
        args.entry(key.clone())
            .or_insert_with(|| value.clone().into());
    }
    let name = Value::from(span.name.as_str());
    let (ts, dur, args) = (micros(ts_ns), micros(span.dur_ns), Value::Object(args));
    let line = format!(
        r#"{{"ph":"X","pid":{},"tid":{tid},"ts":{ts},"dur":{dur},"name":{name},"cat":"strace","args":{args}}}"#,
        span.pid
    );
    lines.events += 1;
    lines.add_time(Some((ts_ns, ts_ns + span.dur_ns)));
    lines.write_generated(line.as_bytes())
}

/// Formats nanoseconds as microseconds without rounding, as in the events of a trace.
fn micros(ns: i64) -> String {
    let mut text = Vec::new();
    write_micros(ns.max(0).unsigned_abs(), &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Maximum difference between the wall times at the zero of two monotonic clocks of the same boot. It is not 0 because the wall clock may have been
/// set before an anchor was written.
const SAME_BOOT_NS: i64 = 1_000_000_000;

/// Matches the processes of a log with the recorded ones. Returns the header of the recording for each pid in both, and the origin of the log's
/// times.
pub(super) fn join(
    log: &StraceLog,
    recordings: &[Recording],
) -> (BTreeMap<i64, FragmentHeader>, TimeOrigin) {
    let mut joined: BTreeMap<i64, FragmentHeader> = BTreeMap::new();
    let Some(wall_ns) = common_wall_ns(log) else {
        let why = match log.walls_ns.is_empty() {
            true => "no [CLOCK_ANCHOR]",
            false => "[CLOCK_ANCHOR]s of several boots",
        };
        return (joined, TimeOrigin::Unknown(why.to_owned()));
    };
    for recording in recordings {
        let Some(header) = matching_header(recording, log, wall_ns) else {
            continue;
        };
        joined
            .entry(i64::from(header.pid))
            .or_insert_with(|| header.clone());
    }
    let origin = match joined.values().next() {
        Some(header) => TimeOrigin::Host(Box::new(header.clone())),
        None => TimeOrigin::Wall(wall_ns, "[CLOCK_ANCHOR]"),
    };
    (joined, origin)
}

/// Returns the wall time, in ns since 1970, at the zero of the monotonic clock that the log's processes share. Returns `None` if the log has no
/// anchors, or if they are from several boots.
fn common_wall_ns(log: &StraceLog) -> Option<i64> {
    let (least, most) = (log.walls_ns.values().min()?, log.walls_ns.values().max()?);
    (most.checked_sub(*least)? < SAME_BOOT_NS).then_some(*least)
}

/// Returns the header of a recording if the recorded process is one of the log's: the same pid, in the same boot. `wall_ns` is the wall time at
/// the zero of the log's monotonic clock.
fn matching_header<'a>(
    recording: &'a Recording,
    log: &StraceLog,
    wall_ns: i64,
) -> Option<&'a FragmentHeader> {
    let header = recording.header()?;
    let anchor = recording_anchor(recording)?;
    let [real_ns, monotonic_ns] =
        [anchor.realtime_ns, anchor.monotonic_ns].map(|ns| i64::try_from(ns).ok());
    let recording_wall_ns = real_ns?.checked_sub(monotonic_ns?)?;
    let apart = recording_wall_ns.checked_sub(wall_ns)?.unsigned_abs();
    let is_same = apart < SAME_BOOT_NS.unsigned_abs();
    (is_same && log.pids.contains(&i64::from(header.pid))).then_some(header)
}

#[cfg(test)]
mod tests;
