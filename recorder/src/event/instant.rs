//! Events without a place on the stack of open spans: instants, counters, flows, and durations
//! recorded afterwards.

use crate::event::span::{SiteArgs, site_args, site_series};
use crate::process::{mask, start};
use crate::sys::clock::now_ns;
use crate::text::encode::Line;
use crate::text::name::write_name;
use crate::text::series;
use crate::text::site::Site;
use crate::text::value::Args;
use crate::thread::event_writer::{Body, Name};
use crate::thread::open_span::Piece;
use crate::thread::slot_writer::SlotWriter;
use crate::thread::thread_state;
use sa_format::Level;
use sa_format::loss::Cause;
use twox_hash::XxHash3_64;

/// The id of a flow. Events with the same id belong to the same flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowId {
    /// Unique within this process.
    Process(u64),
    /// The same flow in every process that uses this id.
    Global(u64),
}

impl FlowId {
    /// Returns the id of the flow that a text identifies, such as the id of a request. The same
    /// text gives the same id in every process.
    ///
    /// If events have that text in their args, the merge also extends the flow to events that the
    /// program did not record as part of it.
    pub fn from_text(text: &str) -> FlowId {
        FlowId::Global(XxHash3_64::oneshot(text.as_bytes()))
    }
}

/// The position of an event in a flow. The event is attached to the span that encloses it on its
/// thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowPhase {
    /// The first event.
    Start,
    /// An event in between.
    Step,
    /// The last event.
    End,
}

/// Maximum duration of a span in ns: a year.
const MAX_DURATION_NS: u64 = 366 * 24 * 3600 * 1_000_000_000;
const THREAD_INSTANT: &[u8] = br#","s":"t""#;

/// Writes an event of a call site now, on the calling thread, if its level is on. `phase` is its
/// letter in the trace format, `middle` the fields between its time and name. `args` appends its
/// args.
#[inline(always)]
fn site_event(
    site: &'static Site,
    phase: u8,
    middle: &[u8],
    args: impl FnOnce(&mut Vec<u8>) -> Piece,
) {
    thread_state::with(|_, writer| {
        if mask::wants(site.level()) {
            let piece = args(&mut writer.text);
            if phase == b'C' && piece.len == 0 {
                return; // no series is left
            }
            let now = now_ns();
            let args = writer.text.get(piece.from as usize..);
            let body = site_body(site, middle, args.unwrap_or_default());
            writer.events.write(phase, now, &body);
            writer.release(piece);
        }
    });
}

/// Combines the name and category of a call site with one event's own text (`middle`) and `args`,
/// ready to be written.
#[inline(always)]
fn site_body<'a>(site: &'static Site, middle: &'a [u8], args: &'a [u8]) -> Body<'a> {
    Body {
        duration_ns: None,
        middle,
        name: Name::Site(site.text()),
        args,
    }
}

/// Writes an instant of a call site. `args` appends its arguments. Used by
/// [`instant!`](crate::instant!).
#[doc(hidden)]
#[inline(always)]
pub fn site_instant(site: &'static Site, args: impl FnOnce(&mut SiteArgs<'_>)) {
    site_event(site, b'i', THREAD_INSTANT, |text| site_args(text, args));
}

/// Writes an instant of a call site whose args are already encoded. Returns `None` if the calling
/// thread has recorded nothing yet; the caller must then record the instant by name. Reaches no
/// cancellation point.
#[doc(hidden)]
#[inline(always)]
pub fn ready_instant(site: &'static Site, args: &Args) -> Option<()> {
    thread_state::with_ready(|_, writer| {
        if mask::wants(site.level()) {
            let body = site_body(site, THREAD_INSTANT, args.text());
            writer.events.write(b'i', now_ns(), &body);
        }
    })
    .map(drop)
}

/// Writes the values of a call site's counter. `args` appends its series. Used by
/// [`counter!`](crate::counter!).
#[doc(hidden)]
#[inline(always)]
pub fn site_counter(site: &'static Site, args: impl FnOnce(&mut SiteArgs<'_>)) {
    site_event(site, b'C', b"", |text| site_series(text, args));
}

/// An event whose name is not known at the call site.
pub(crate) struct NamedEvent<'a> {
    pub(crate) phase: u8,
    /// Time of the event; `None` for now.
    pub(crate) ts_ns: Option<u64>,
    /// Duration for `X`.
    pub(crate) duration_ns: Option<u64>,
    pub(crate) category: &'a str,
    pub(crate) name: &'a str,
    /// Text between the time and the name.
    pub(crate) middle: &'a [u8],
    /// Args as JSON without the braces.
    pub(crate) args: &'a [u8],
}

impl<'a> NamedEvent<'a> {
    /// Describes an event that happens now. `phase` is its letter in the trace format, and `args`
    /// are JSON without braces.
    pub(crate) fn new(
        phase: u8,
        category: &'a str,
        name: &'a str,
        args: &'a [u8],
    ) -> NamedEvent<'a> {
        NamedEvent {
            phase,
            ts_ns: None,
            duration_ns: None,
            category,
            name,
            middle: if phase == b'i' { THREAD_INSTANT } else { b"" },
            args,
        }
    }

    /// Records the event on the calling thread if its level is on.
    pub(crate) fn record(&self, level: Level) {
        if mask::wants(level) {
            thread_state::with(|_, writer| {
                if mask::wants(level) {
                    self.write(writer, None);
                }
            });
        }
    }

    /// Writes the event into the calling thread's slot, with the thread's own tid or with the given
    /// one.
    pub(crate) fn write(&self, writer: &mut SlotWriter, tid: Option<u32>) {
        if let Some(ts_ns) = self.ts_ns {
            writer.process.open_horizon.observe(ts_ns);
        }
        let from = writer.text.len();
        if !write_name(&mut writer.text, self.category, self.name) {
            return; // counted
        }
        let body = Body {
            duration_ns: self.duration_ns,
            middle: self.middle,
            name: Name::Text(writer.text.get(from..).unwrap_or_default()),
            args: self.args,
        };
        let ts_ns = self.ts_ns.unwrap_or_else(now_ns);
        (writer.events).write_on(tid, self.phase, ts_ns, &body, None);
        writer.text.truncate(from);
    }
}

/// Records a counter on the calling thread if its level is on. Leaves out values that a counter
/// cannot draw.
pub(crate) fn counter(level: Level, name: &str, series: &Args) {
    if mask::wants(level)
        && let Some(series) = series::numbers(series)
    {
        NamedEvent::new(b'C', "counter", name, series.text()).record(level);
    }
}

/// Category of flows for which the program gives none. It is the same in Rust, C, C++ and Python.
///
/// Events only belong to one flow if their category, name and id are equal. Programs that share a
/// flow should therefore not choose a category.
pub const FLOW_CATEGORY: &str = "flow";

/// Records one event of a flow now, on the calling thread, in the category [`FLOW_CATEGORY`]. The
/// event is attached to the span that encloses it there.
///
/// The events of a flow have the same name and id.
pub fn flow(phase: FlowPhase, name: &str, id: FlowId) {
    flow_now(Level::E2e, phase, FLOW_CATEGORY, name, id);
}

/// Records one event of a flow now, like [`flow`], with a level and a category chosen by the
/// caller.
pub fn flow_now(level: Level, phase: FlowPhase, category: &str, name: &str, id: FlowId) {
    write_flow(level, phase, None, category, name, id);
}

/// Records one event of a flow on the calling thread, at the time `ts_ns` as returned by
/// [`now_ns`]. The event is attached to the span there that encloses that time.
pub fn flow_at(level: Level, phase: FlowPhase, category: &str, name: &str, id: FlowId, ts_ns: u64) {
    write_flow(level, phase, Some(ts_ns), category, name, id);
}

/// Records one event of a flow on the calling thread, at `ts_ns` or by default now, if its level is
/// on.
fn write_flow(
    level: Level,
    phase: FlowPhase,
    ts_ns: Option<u64>,
    category: &str,
    name: &str,
    id: FlowId,
) {
    if mask::wants(level) {
        let mut room = [0; 64];
        let (letter, middle) = flow_middle(&mut room, phase, id);
        let event = NamedEvent {
            ts_ns,
            middle,
            ..NamedEvent::new(letter, category, name, b"")
        };
        event.record(level);
    }
}

/// Buffer for the fields between the time and the name of a flow event.
pub(crate) type MiddleRoom = [u8; 64];

/// Returns the letter of a flow event's phase, and the fields of its line between time and name,
/// which contain the flow's id. `room` is the buffer for these fields.
pub(crate) fn flow_middle(room: &mut MiddleRoom, phase: FlowPhase, id: FlowId) -> (u8, &[u8]) {
    let (letter, more) = match phase {
        FlowPhase::Start => (b's', ""),
        FlowPhase::Step => (b't', ""),
        FlowPhase::End => (b'f', r#","bp":"e""#),
    };
    let (scope, id) = match id {
        FlowId::Process(id) => ("local", id),
        FlowId::Global(id) => ("global", id),
    };
    let mut line = Line::new(room);
    line.literal(br#","id2":{""#);
    line.text(scope.as_bytes());
    line.literal(br#"":"0x"#);
    // Rust's own formatting takes half as long as the whole event.
    let digits = 16 - (id | 1).leading_zeros() / 4;
    for at in (0..digits).rev() {
        line.literal(&[b"0123456789abcdef"[(id >> (4 * at) & 15) as usize]]);
    }
    line.literal(br#""}"#);
    line.text(more.as_bytes());
    let len = line.len();
    (letter, room.get(..len).unwrap_or_default())
}

/// Records a span that has already ended and is `dur_ns` long. It began at `start_ns`, a time as
/// returned by [`now_ns`]. Without `start_ns`, it ends now.
///
/// A negative duration becomes 0. A duration of more than a year, or one that reaches back beyond
/// the clock's origin, is shortened. Each such case is counted as `clamped`.
pub fn duration(
    level: Level,
    category: &str,
    name: &str,
    dur_ns: i64,
    start_ns: Option<u64>,
    args: &Args,
) {
    if !mask::wants(level) {
        return;
    }
    let wanted = u64::try_from(dur_ns).unwrap_or(0);
    let (start, dur) = start_and_length(now_ns(), wanted, start_ns);
    if (dur_ns < 0 || dur != wanted || start_ns.is_some_and(|wanted| wanted != start))
        && mask::wants(level)
        && let Some(process) = start::current()
    {
        process.lost.count(Cause::Clamped);
    }
    let event = NamedEvent {
        ts_ns: Some(start),
        duration_ns: Some(dur),
        ..NamedEvent::new(b'X', category, name, args.text())
    };
    event.record(level);
}

/// Returns the start and the duration of a span in ns, both limited to plausible values. The span
/// lasts `wanted` ns and began at `start_ns`; without `start_ns`, it ends at `now`.
fn start_and_length(now: u64, wanted: u64, start_ns: Option<u64>) -> (u64, u64) {
    let dur = wanted.min(MAX_DURATION_NS);
    match start_ns {
        Some(start) => (start.min(now + MAX_DURATION_NS), dur),
        None => (now - dur.min(now), dur.min(now)),
    }
}

#[cfg(test)]
mod tests {
    use super::{FlowId, FlowPhase, MAX_DURATION_NS, flow_middle, start_and_length};

    #[test]
    fn a_duration_may_be_longer_than_the_machine_is_up() {
        assert_eq!(start_and_length(10, 20, Some(5)), (5, 20));
        assert_eq!(start_and_length(10, 20, None), (0, 10));
        let long = start_and_length(10, u64::MAX, Some(u64::MAX));
        assert_eq!(long, (10 + MAX_DURATION_NS, MAX_DURATION_NS));
    }

    #[test]
    fn a_flow_has_its_id_in_base_16() {
        for id in [0, 1, 0xf, 0x10, 0x0123_4567_89ab_cdef, u64::MAX] {
            let mut room = [0; 64];
            let (letter, middle) = flow_middle(&mut room, FlowPhase::End, FlowId::Global(id));
            let expected = format!(r#","id2":{{"global":"{id:#x}"}},"bp":"e""#);
            assert_eq!((letter, middle), (b'f', expected.as_bytes()));
        }
    }
}
