//! Writes the events of another profiler to a temporary file, one per line, and collects statistics about them.

use super::early_arrows::EarlyArrows;
use super::event::write_line;
use crate::device::category::TrackCategories;
use crate::event::damage::{Kind, Places};
use crate::event::era::{Days, Era};
use crate::event::json::{Fields, Members, build_object, scan_object_at_front};
use crate::event::mend::{Repair, Repairs};
use memchr::memmem::Finder;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::LazyLock;

/// Maximum number of pids, and of text ids whose names are kept. No profiler has that many.
const MOST_TEXTS: usize = 10_000;
const BUFFER_BYTES: usize = 1 << 18;

/// Properties of a trace that the first reading found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FirstReading {
    /// The era of its events, if some of the times are wrong.
    pub(super) era: Option<Era>,
    /// True if all CPU times are 0, so that none was measured.
    pub(super) lacks_cpu_times: bool,
}

/// Events that have been read.
pub(super) struct Lines<'f> {
    out: BufWriter<File>,
    /// Number of bytes written so far.
    written: u64,
    line: Vec<u8>,
    /// Damage, by its offset in the input.
    pub(super) places: Places,
    pub(super) repairs: Repairs,
    /// Begin of the first event and end of the last one.
    pub(super) time: Option<(i64, i64)>,
    /// Begin of the last event.
    pub(super) last_begin_ns: i64,
    /// Days on which the events began.
    pub(super) days: Days,
    first: FirstReading,
    pub(super) events: u64,
    pub(super) cpu_times: CpuTimes,
    /// Ids that are texts, by the numbers that replace them.
    pub(super) texts: BTreeMap<i64, String>,
    /// Categories of the spans on each track, by pid and tid.
    pub(super) rows: BTreeMap<(i64, i64), TrackCategories>,
    arrows: EarlyArrows<'f>,
    /// The processes that have events with a time.
    pub(super) pids: BTreeSet<i64>,
}

impl<'f> Lines<'f> {
    /// Creates a writer to a new temporary file in `folder`. `first` has the results of an earlier reading of the same trace, and is the default
    /// at the first one.
    pub(super) fn new(folder: &'f Path, first: FirstReading) -> io::Result<Lines<'f>> {
        Ok(Lines {
            out: BufWriter::with_capacity(BUFFER_BYTES, tempfile::tempfile_in(folder)?),
            written: 0,
            line: Vec::new(),
            places: Places::default(),
            repairs: Repairs::default(),
            time: None,
            last_begin_ns: i64::MIN,
            days: Days::default(),
            first,
            events: 0,
            cpu_times: CpuTimes::default(),
            texts: BTreeMap::new(),
            rows: BTreeMap::new(),
            arrows: EarlyArrows::new(folder),
            pids: BTreeSet::new(),
        })
    }

    /// Writes the line of an object that should be an event, and updates the statistics. `fields` locates its members, and `at` is its offset in
    /// the document. An invalid event is recorded as damage instead.
    pub(super) fn object(&mut self, text: &[u8], fields: Fields, at: usize) -> io::Result<()> {
        self.cpu_times.add(text);
        if self.first.lacks_cpu_times
            && let Some(text) = without_cpu_times(text)
            && let Ok((fields, _)) = scan_object_at_front(&text)
        {
            return self.event(&text, fields, at);
        }
        self.event(text, fields, at)
    }

    /// Writes the line of an event whose CPU times were already handled, and updates the statistics.
    fn event(&mut self, text: &[u8], fields: Fields, at: usize) -> io::Result<()> {
        self.line.clear();
        match write_line(text, fields, &mut self.line) {
            Ok(Some(written)) if self.is_far(written.time) => {
                self.damage(at, Kind::BadTime);
                Ok(())
            }
            Ok(Some(written)) => {
                self.events += 1;
                if written.had_hidden {
                    self.repairs.add(Repair::Name);
                }
                self.repairs.add_all(written.repairs);
                self.add_time(written.time);
                let (row, categories) = written.row;
                if categories.any() {
                    self.rows.entry(row).or_default().add(categories);
                }
                if written.time.is_some() && self.pids.len() < MOST_TEXTS {
                    self.pids.insert(row.0);
                }
                for (id, text) in written.texts.into_iter().flatten() {
                    // Perfetto does not accept an empty name.
                    if !text.is_empty() && self.texts.len() < MOST_TEXTS {
                        self.texts.entry(id).or_insert(text);
                    }
                }
                if let Some(end) = written.arrow_end {
                    self.arrows.add(end, &self.line, self.written)?;
                }
                self.written += self.line.len() as u64;
                self.out.write_all(&self.line)
            }
            Ok(None) => Ok(()),
            Err(kind) => {
                self.damage(at, kind);
                Ok(())
            }
        }
    }

    /// Adds damage to the statistics of the trace: its offset `at` in the input and its kind.
    pub(super) fn damage(&mut self, at: usize, kind: Kind) {
        self.places.add(at as u64, kind);
    }

    /// Records that the input is cut off at offset `at`. Only the first such place is kept.
    pub(super) fn torn(&mut self, at: usize) {
        if !self.is_torn() {
            self.damage(at, Kind::TornTail);
        }
    }

    /// Returns true if the input was found to be cut off.
    pub(super) fn is_torn(&self) -> bool {
        self.places.totals.contains_key(&Kind::TornTail)
    }

    /// Writes a line that has no counterpart in the input, such as an anchor. `line` has no newline. Does not count it as an event.
    pub(super) fn write_generated(&mut self, line: &[u8]) -> io::Result<()> {
        self.written += line.len() as u64 + 1;
        self.out.write_all(line)?;
        self.out.write_all(b"\n")
    }

    /// Returns true if the time of an event, its begin and end in ns, is more than 30 days from all other events and must be wrong. The first
    /// reading finds the usual times, so the result is always false during it.
    pub(super) fn is_far(&self, time: Option<(i64, i64)>) -> bool {
        let is_far = |era: Era| time.is_some_and(|time| !era.holds(time));
        self.first.era.is_some_and(is_far)
    }

    /// Returns what the first reading found out, after its last event. If this is not the default, the trace must be read a second time with it.
    /// `keeps_times` keeps events whose times are far from all others.
    pub(super) fn first_reading(&self, keeps_times: bool) -> FirstReading {
        let doubtful_era = |(_, end_ns): (i64, i64)| self.days.doubt(Days::default(), end_ns);
        FirstReading {
            era: self.time.filter(|_| !keeps_times).and_then(doubtful_era),
            lacks_cpu_times: self.cpu_times == CpuTimes::Zero,
        }
    }

    /// Extends the time range of the trace by an event. `time` is its begin and end in ns, or `None` for metadata, which changes nothing.
    pub(super) fn add_time(&mut self, time: Option<(i64, i64)>) {
        let Some((start, end)) = time else { return };
        self.days.see(start);
        self.last_begin_ns = self.last_begin_ns.max(start);
        let (first, last) = self.time.unwrap_or((start, end));
        self.time = Some((first.min(start), last.max(end)));
    }

    /// Finishes the temporary file and reverses launch arrows in it that end before they begin. Returns the file, and the number of such ends.
    pub(super) fn finish(self) -> io::Result<(File, u64)> {
        let file = self
            .out
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        let reversed = self.arrows.reverse(&file)?;
        Ok((file, reversed))
    }
}

static TIME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""tdur""#));
static START: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""tts""#));

/// The CPU times of all events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CpuTimes {
    /// No event has one.
    #[default]
    Absent,
    /// All are 0.
    Zero,
    Measured,
}

impl CpuTimes {
    /// Updates the state by the CPU times in the text of an event.
    pub(super) fn add(&mut self, text: &[u8]) {
        if *self == CpuTimes::Measured || !has_any(text) {
            return;
        }
        for (_, value) in Members::new(text).filter(|(key, _)| is_cpu_time(key)) {
            *self = match value {
                b"null" => continue,
                value if value.iter().all(|byte| b"0.\"".contains(byte)) => CpuTimes::Zero,
                _ => return *self = CpuTimes::Measured,
            };
        }
    }
}

/// Returns true if the text of an event may contain a CPU time.
fn has_any(text: &[u8]) -> bool {
    TIME.find(text).is_some() || START.find(text).is_some()
}

/// Returns true for the keys of the members with CPU times.
fn is_cpu_time(key: &[u8]) -> bool {
    matches!(key, b"tts" | b"tdur")
}

/// Returns the text of an event without its CPU times; `None` if it has none.
pub(super) fn without_cpu_times(text: &[u8]) -> Option<Vec<u8>> {
    if !has_any(text) {
        return None;
    }
    let members = Members::new(text).filter(|(key, _)| !is_cpu_time(key));
    Some(build_object(
        members.map(|(key, value)| (key, value.into())),
    ))
}
