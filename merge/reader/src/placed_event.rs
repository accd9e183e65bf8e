//! An event of the trace.

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

/// What stands before the values of members. A finder is made once: to make one costs as much as a search.
static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#","name":"#));
static CATEGORY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#","cat":"#));
static CPU_TIME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#","tdur":"#));
static ANY_CPU_TIME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""tdur""#));
static ARGS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#","args":"#));

/// An event with its place in the trace: when, on which row, and what its line says.
///
/// Phases are those of the [Chrome trace event format](https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU/preview).
#[derive(Clone, Copy, Debug)]
pub struct PlacedEvent<'a> {
    /// The phase.
    pub phase: Phase,
    /// The thread, by its number among `TraceEvents::threads`.
    pub thread: usize,
    /// 0 on the thread's own row, else which of the rows beside it: there lie spans that overlap others of the thread.
    pub row: usize,
    /// Start, in ns from the start of the trace; 0 for metadata.
    pub ts_ns: i64,
    /// Its duration in ns, 0 for all but `X`.
    pub dur_ns: i64,
    /// Of a begin when its span ends, of an end when its span began, if the other half is in the trace. Known only after
    /// `TraceEvents::match_spans`.
    pub other_ns: Option<i64>,
    /// Whether it is a span that crosses an edge of the window that was asked for.
    pub is_cut: bool,
    ordinal: u64,
    event: &'a Event<'a>,
}

/// The row of the trace that shows the events of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadRow {
    /// The number of the thread.
    pub thread: u32,
    /// 0 for the thread's own row, else the number of a row next to it.
    pub row: u32,
    /// The scope of its flow ids.
    pub ordinal: u64,
}

impl<'a> PlacedEvent<'a> {
    /// Places an event; `shift_ns` brings its time to the axis.
    pub fn new(event: &'a Event<'a>, place: ThreadRow, shift_ns: i64) -> PlacedEvent<'a> {
        let ts_ns = event.ts_ns.saturating_add(shift_ns).max(0);
        PlacedEvent {
            phase: event.phase,
            thread: place.thread as usize,
            row: place.row as usize,
            ts_ns: if event.is_metadata() { 0 } else { ts_ns },
            dur_ns: event.dur_ns,
            other_ns: None,
            is_cut: false,
            ordinal: place.ordinal,
            event,
        }
    }

    /// When its span ends: of an `X`, and of a `B` or `b` whose end is known.
    pub fn end_ns(&self) -> Option<i64> {
        match self.phase {
            Phase::Complete => Some(self.ts_ns.saturating_add(self.dur_ns)),
            Phase::Begin | Phase::AsyncBegin => self.other_ns,
            _ => None,
        }
    }

    /// Whether it is a span that its process died in, or that was open when it was read (FORMAT.md §2).
    pub fn is_unfinished(&self) -> bool {
        self.event.is_unfinished()
    }

    /// The name, empty if it has none.
    pub fn name(&self) -> Cow<'a, str> {
        text(self.one(What::Name))
    }

    /// The category, empty if it has none.
    pub fn category(&self) -> Cow<'a, str> {
        text(self.one(What::Category))
    }

    /// The args as JSON, empty if it has none. Nothing of them is read before this.
    pub fn args(&self) -> &'a [u8] {
        self.one(What::Args)
    }

    /// Name, category and args as JSON, in less time than one by one. The args end where their value does: more of the line may stand behind them.
    pub fn what(&self) -> [&'a [u8]; 3] {
        let in_order = match self.event.fields.args.is_some() {
            true => [&[][..]; 3], // all that it has are known
            false => self.event.members_up_to_args(),
        };
        [What::Name, What::Category, What::Args].map(|what| self.known_or(what, || in_order))
    }

    /// The value of an arg as JSON, if it has one of that name. The name must be one that JSON writes without an escape.
    pub fn arg(&self, name: &str) -> Option<&'a [u8]> {
        arg_in(self.args(), name.as_bytes())
    }

    /// The CPU time that its thread took during a span, in ns, where it was recorded (`tdur`).
    pub fn cpu_ns(&self) -> Option<i64> {
        // Most lines have none, and a search costs less than a walk.
        ANY_CPU_TIME.find(self.event.line)?;
        let value = self.member(&CPU_TIME);
        micros(value).map(Micros::ns).filter(|ns| *ns >= 0)
    }

    /// The id of a flow or an async span: equal ids, with the same category, are one in the whole trace.
    pub fn id(&self) -> Option<u64> {
        let id = || Some(trace_id(self.event, self.ordinal)?.0);
        self.phase.has_id().then(id).flatten()
    }

    /// The id of the flow that a span is bound to by its `bind_id`.
    pub fn bind_id(&self) -> Option<u64> {
        let fields = &self.event.fields;
        let has_one = fields.bind_id.is_some();
        has_one.then(|| trace_bind_id(self.event, self.ordinal))
    }

    /// The line as it was recorded, but for what no viewer takes: that is mended.
    pub fn line(&self) -> &'a [u8] {
        self.event.line
    }

    fn one(&self, what: What) -> &'a [u8] {
        self.known_or(what, || self.event.members_in_order(what))
    }

    /// Returns a member: from the scan of the line's front if that found it, from `in_order` if the members are in the order of the recorder, or else by
    /// a search.
    fn known_or(&self, what: What, in_order: impl FnOnce() -> [&'a [u8]; 3]) -> &'a [u8] {
        let fields = &self.event.fields;
        let (known, start) = match what {
            What::Name => (fields.name, &NAME),
            What::Category => (fields.cat, &CATEGORY),
            What::Args => (fields.args, &ARGS),
        };
        if known.is_some() {
            return known.of(self.event.line);
        }
        match in_order()[what as usize] {
            [] => self.member(start),
            value => value,
        }
    }

    /// A member by what stands before its value in lines without white space.
    fn member(&self, start: &Finder<'_>) -> &'a [u8] {
        let line = self.event.line;
        if let Some(value) = near_front(line, start) {
            return value;
        }
        let start = start.needle();
        let key = &start[2..start.len() - 2];
        let found = Members::of(line).find(|(found, _)| *found == key);
        found.map_or(&[], |(_, value)| value)
    }
}

/// Calls `tell` with an event as the trace has it, in which something is mended.
#[cold]
pub fn mended(event: &Event<'_>, tell: impl FnOnce(&Event<'_>)) {
    let text = mended_event(event.line, event.phase).map(|(text, _)| text);
    let mut line = text.unwrap_or_else(|| event.line.to_vec());
    mend_line(&mut line, 0);
    tell(&event.in_line(&line));
}

/// The value of an arg: the last one of that name, as viewers take it. A search costs less than a walk, and most events have no such arg.
fn arg_in<'a>(args: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let at = memmem::find(args, name)?;
    plain_arg(args, at, name).or_else(|| last_member(args, name))
}

/// The value of the arg whose name begins at `at`, if that is plain to see: no object or list before it, no white space, and the name not again.
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

/// The value of a member that stands before any object or list but the line itself. No string can hold the quotes of its name as they are, so it is a member.
fn near_front<'a>(line: &'a [u8], start: &Finder<'_>) -> Option<&'a [u8]> {
    let at = start.find(line)?;
    if memchr::memchr2(b'{', b'[', line.get(1..at)?).is_some() {
        return None;
    }
    let mut scanner = Scanner::lenient(line, at + start.needle().len());
    let from = scanner.at;
    scanner.value(2)?;
    line.get(from..scanner.at)
}

/// What a JSON string says, or the text of any other value.
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
    /// Its process, by its number among `TraceEvents::processes`.
    pub process: usize,
    /// Its id in the trace.
    pub tid: u32,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// True for the main thread of its process.
    pub is_main: bool,
    /// True for a lane of async work or a track, such as a stream of a device.
    pub is_lane: bool,
    /// Output ids of the rows for its overlapping spans.
    pub rows: Vec<u32>,
}

impl TraceThread {
    /// Returns its name, or its id if it has none.
    pub fn label(&self) -> String {
        let name = self.name.clone();
        name.unwrap_or_else(|| format!("tid {}", self.tid))
    }

    /// Returns true for a row of MSPTI's records, which repeat the work that other rows of a device show.
    pub fn is_of_mspti(&self) -> bool {
        self.name.as_deref().is_some_and(is_of_mspti)
    }
}
