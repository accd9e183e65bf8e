//! An event with its place in the trace.

use crate::base::number::{Micros, micros};
use crate::device::group::is_of_mspti;
use crate::event::flow::{trace_bind_id, trace_id};
use crate::event::json::{Members, Scanner, last_member};
use crate::event::mend::{mend_line, mended_event};
use crate::event::{Event, What};
use memchr::memmem::{self, Finder};
use sa_format::Phase;
use std::borrow::Cow;
use std::sync::LazyLock;

/// Searchers for the keys of members. They are static because creating one takes as long as a search.
static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#","name":"#));
static CATEGORY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#","cat":"#));
static CPU_TIME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#","tdur":"#));
static ANY_CPU_TIME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""tdur""#));
static ARGS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#","args":"#));

/// An event with its place in the trace: its time, its track, and access to its line.
///
/// Phases are those of the [Chrome trace event format](https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU/preview).
#[derive(Clone, Copy, Debug)]
pub struct PlacedEvent<'a> {
    /// Phase of the event.
    pub phase: Phase,
    /// Number of its thread in `TraceEvents::threads`.
    pub thread: usize,
    /// 0 on the thread's own track. Spans that overlap others of the thread are on additional tracks, numbered from 1.
    pub track: usize,
    /// Start, in ns from the start of the trace; 0 for metadata.
    pub ts_ns: i64,
    /// Its duration in ns; 0 for all phases except `X`.
    pub dur_ns: i64,
    /// End of the span for a begin, begin of the span for an end, if both are in the trace. Only set by `TraceEvents::match_spans`.
    pub other_ns: Option<i64>,
    /// True for a span that crosses an edge of the requested window.
    pub is_cut: bool,
    ordinal: u64,
    event: &'a Event<'a>,
}

/// Track of the trace on which the events of a thread are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadTrack {
    /// Number of the thread.
    pub thread: u32,
    /// 0 for the thread's own track, otherwise the number of an additional track.
    pub track: u32,
    /// Scope of its flow ids.
    pub ordinal: u64,
}

impl<'a> PlacedEvent<'a> {
    /// Creates a placed event from an event of a recording and its track. `shift_ns` converts its recorded time to ns from the start of the
    /// trace.
    pub fn new(event: &'a Event<'a>, place: ThreadTrack, shift_ns: i64) -> PlacedEvent<'a> {
        let ts_ns = event.ts_ns.saturating_add(shift_ns).max(0);
        PlacedEvent {
            phase: event.phase,
            thread: place.thread as usize,
            track: place.track as usize,
            ts_ns: if event.is_metadata() { 0 } else { ts_ns },
            dur_ns: event.dur_ns,
            other_ns: None,
            is_cut: false,
            ordinal: place.ordinal,
            event,
        }
    }

    /// Returns the end of a span in ns from the start of the trace. It is known for phase `X`, and for `B` or `b` if `other_ns` is set; otherwise
    /// `None`.
    pub fn end_ns(&self) -> Option<i64> {
        match self.phase {
            Phase::Complete => Some(self.ts_ns.saturating_add(self.dur_ns)),
            Phase::Begin | Phase::AsyncBegin => self.other_ns,
            _ => None,
        }
    }

    /// Returns true for a span that has no recorded end, because it was open when its process died or when the ring buffer was read (FORMAT.md
    /// §2).
    pub fn is_unfinished(&self) -> bool {
        self.event.is_unfinished()
    }

    /// Returns the event's name as decoded text; empty if it has none.
    pub fn name(&self) -> Cow<'a, str> {
        text(self.member_value(What::Name))
    }

    /// Returns the event's category as decoded text; empty if it has none.
    pub fn category(&self) -> Cow<'a, str> {
        text(self.member_value(What::Category))
    }

    /// Returns the event's args as the text of a JSON object; empty if it has none. The line is only searched for them when this is called.
    pub fn args(&self) -> &'a [u8] {
        self.member_value(What::Args)
    }

    /// Returns the event's name, category and args, each as JSON text (empty if absent). This is faster than getting them one by one.
    pub fn what(&self) -> [&'a [u8]; 3] {
        let in_order = match self.event.fields.args.is_some() {
            true => [&[][..]; 3], // the scan has found all members that there are
            false => self.event.members_up_to_args(),
        };
        [What::Name, What::Category, What::Args].map(|what| self.member_or(what, || in_order))
    }

    /// Returns the JSON text of the arg called `name`; `None` if the event has no such arg. The name must not need escapes in JSON.
    pub fn arg(&self, name: &str) -> Option<&'a [u8]> {
        arg_in(self.args(), name.as_bytes())
    }

    /// Returns the CPU time in ns that the thread used during this span (member `tdur`); `None` if it was not recorded.
    pub fn cpu_ns(&self) -> Option<i64> {
        // Most lines have no CPU time, and a search is faster than parsing the members.
        ANY_CPU_TIME.find(self.event.line)?;
        let value = self.member(&CPU_TIME);
        micros(value).map(Micros::ns).filter(|ns| *ns >= 0)
    }

    /// Returns the id of the flow or async span that this event is part of; `None` for other phases. Events with equal ids and categories belong
    /// together, even if they are of different processes.
    pub fn id(&self) -> Option<u64> {
        let id = || Some(trace_id(self.event, self.ordinal)?.0);
        self.phase.has_id().then(id).flatten()
    }

    /// Returns the id of the flow (arrow between spans) that this span names in its `bind_id` member; `None` if it has no such member. It equals
    /// the `id` of the flow's other events.
    pub fn bind_id(&self) -> Option<u64> {
        let fields = &self.event.fields;
        let has_one = fields.bind_id.is_some();
        has_one.then(|| trace_bind_id(self.event, self.ordinal))
    }

    /// Returns the event's JSON line as it was recorded, except that text which viewers do not accept is repaired.
    pub fn line(&self) -> &'a [u8] {
        self.event.line
    }

    /// Returns the JSON text of the event's name, category or args, as chosen by `what`; empty if absent.
    fn member_value(&self, what: What) -> &'a [u8] {
        self.member_or(what, || self.event.members_in_order(what))
    }

    /// Returns the JSON text of the event's name, category or args; empty if absent. It tries the cheapest source first: the members that the
    /// parser located, then `in_order` (the three values, if the line has the recorder's order of members), then a search of the line.
    fn member_or(&self, what: What, in_order: impl FnOnce() -> [&'a [u8]; 3]) -> &'a [u8] {
        let fields = &self.event.fields;
        let (known, start) = match what {
            What::Name => (fields.name, &NAME),
            What::Category => (fields.cat, &CATEGORY),
            What::Args => (fields.args, &ARGS),
        };
        if known.is_some() {
            return known.slice(self.event.line);
        }
        match in_order()[what as usize] {
            [] => self.member(start),
            value => value,
        }
    }

    /// Searches the event's line for a member and returns its JSON text; empty if absent. `start` is the member's key with its comma, quotes and
    /// colon.
    fn member(&self, start: &Finder<'_>) -> &'a [u8] {
        let line = self.event.line;
        if let Some(value) = top_level_value(line, start) {
            return value;
        }
        let start = start.needle();
        let key = &start[2..start.len() - 2];
        let found = Members::new(line).find(|(found, _)| *found == key);
        found.map_or(&[], |(_, value)| value)
    }
}

/// Calls `use_event` with a repaired copy of an event whose line contains text that viewers do not accept.
#[cold]
pub fn with_repairs(event: &Event<'_>, use_event: impl FnOnce(&Event<'_>)) {
    let text = mended_event(event.line, event.phase).map(|(text, _)| text);
    let mut line = text.unwrap_or_else(|| event.line.to_vec());
    mend_line(&mut line, 0);
    use_event(&event.in_line(&line));
}

/// Returns the JSON text of the arg called `name` in the object `args`; the last one if there are several, as in viewers. A search comes first
/// because most events do not have the arg.
fn arg_in<'a>(args: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let at = memmem::find(args, name)?;
    plain_arg(args, at, name).or_else(|| last_member(args, name))
}

/// Returns the JSON text of the arg whose name is at offset `at`. Returns `None` unless a simple check is enough: no object or list before it, no
/// white space, and no second occurrence of the name.
fn plain_arg<'a>(args: &'a [u8], at: usize, name: &[u8]) -> Option<&'a [u8]> {
    let behind = at + name.len();
    let before = args.get(at.checked_sub(2)?..at)?;
    let is_key = matches!(before, b"{\"" | b",\"") && args[behind..].starts_with(b"\":");
    let is_flat = memchr::memchr2(b'{', b'[', args.get(1..at - 1)?).is_none();
    if !is_key || !is_flat || memmem::find(&args[behind..], name).is_some() {
        return None;
    }
    let mut scanner = Scanner::lenient(args, behind + 2);
    let from = scanner.at;
    scanner.value(1)?;
    args.get(from..scanner.at)
}

/// Returns the JSON text of a member if it comes before any nested object or list of the line. `start` finds its key. Inside a string the quotes
/// would be escaped, so a match is a key.
fn top_level_value<'a>(line: &'a [u8], start: &Finder<'_>) -> Option<&'a [u8]> {
    let at = start.find(line)?;
    if memchr::memchr2(b'{', b'[', line.get(1..at)?).is_some() {
        return None;
    }
    let mut scanner = Scanner::lenient(line, at + start.needle().len());
    let from = scanner.at;
    scanner.value(2)?;
    line.get(from..scanner.at)
}

/// Decodes a JSON string, the value of a member. Returns any other JSON value as it is written.
fn text(value: &[u8]) -> Cow<'_, str> {
    let quoted = value
        .strip_prefix(b"\"")
        .and_then(|text| text.strip_suffix(b"\""));
    match quoted {
        Some(text) if memchr::memchr(b'\\', text).is_none() => String::from_utf8_lossy(text),
        Some(_) => serde_json::from_slice::<String>(value)
            .map_or_else(|_| String::from_utf8_lossy(value), Cow::Owned),
        None => String::from_utf8_lossy(value),
    }
}

/// A thread, a lane of async work, or a track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceThread {
    /// Number of its process in `TraceEvents::processes`.
    pub process: usize,
    /// Its id in the trace.
    pub tid: u32,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// True for the main thread of its process.
    pub is_main: bool,
    /// True for a lane of async work or a track, such as a stream of a device.
    pub is_lane: bool,
    /// Output ids of the additional tracks for its overlapping spans.
    pub overlap_tracks: Vec<u32>,
}

impl TraceThread {
    /// Returns the text that reports show for the thread: its name, or `tid N` if it has none.
    pub fn label(&self) -> String {
        let name = self.name.clone();
        name.unwrap_or_else(|| format!("tid {}", self.tid))
    }

    /// Returns true for a track with records of MSPTI (an Ascend profiling interface). They repeat the work that other tracks of the device show.
    pub fn is_of_mspti(&self) -> bool {
        self.name.as_deref().is_some_and(is_of_mspti)
    }
}
