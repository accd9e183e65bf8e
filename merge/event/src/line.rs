//! One line → an [`Event`], or the [`Kind`] of damage it is.
//!
//! Two ways lead to the same event. [`parse`] scans the whole line, faster where it is in a well-known order. [`parse_canonical`] reads only the keys that
//! the format fixes at the front. It is for lines whose block has a checksum that vouches for the rest.

pub use crate::canonical::parse_canonical;
use crate::damage::Kind;
pub use crate::event::{ADDED, Event, is_left_out, own_record};
use crate::flow;
use crate::json::{Fields, Span, odd_number_len, scan_front, scan_object};
use crate::member::{self, is_name, names_something, phase_of};
use crate::mend::{hides_name, mended_event};
use crate::patch::is_exact;
use crate::profile;
use crate::pypto;
use sa_format::Phase;
use trace_base::number;
use trace_base::swar;
use xxhash_rust::xxh3::xxh3_64;

/// Parses a line of unknown origin.
///
/// # Errors
/// The kind of damage: `bad_utf8`, `bad_json`, `bad_event` or what viewers do not take of it.
pub fn parse(line: &[u8]) -> Result<Event<'_>, Kind> {
    if simdutf8::basic::from_utf8(line).is_err() {
        return Err(Kind::BadUtf8);
    }
    parse_utf8(line)
}

/// Parses a line that is known to be UTF-8.
#[inline]
pub(crate) fn parse_utf8(line: &[u8]) -> Result<Event<'_>, Kind> {
    match pypto::parse(line) {
        Some(event) => Ok(event),
        None => parse_any(line),
    }
}

/// Parses a line in any order and spacing that is known to be UTF-8.
pub(crate) fn parse_any(line: &[u8]) -> Result<Event<'_>, Kind> {
    let fields = scan_object(line).ok_or(Kind::BadJson)?;
    let mut event = event(line, fields)?;
    event.fields.hidden = hides_name(&event);
    Ok(event)
}

/// Returns why an object is no event: one of its members is no JSON, no time or no id, or its phase is one that viewers do not show.
#[cold]
fn refused(line: &[u8], fields: &Fields) -> Kind {
    let needed = [fields.ph, fields.ts, fields.dur, fields.pid, fields.tid];
    let is_odd = |member: Span| odd_number_len(member.of(line)).is_some();
    let is_unknown = phase_of(fields.ph.of(line)).is_some_and(|byte| Phase::modern(byte).is_none());
    if is_unknown && event_of_phase(line, *fields, Phase::Instant).is_some() {
        return Kind::UnknownPhase;
    }
    match fields.odd_numbers && needed.into_iter().any(is_odd) {
        true => Kind::BadJson,
        false => Kind::BadEvent,
    }
}

/// Parses the front of a line that [`parse`] has accepted and that repeats no key.
#[inline]
pub fn parse_again(line: &[u8]) -> Option<Event<'_>> {
    match pypto::parse_front(line) {
        Some((event, _)) => Some(event),
        // None of these was at fault, and what comes after the front was not read now.
        None => {
            let fields = scan_front(line)?;
            plain_event(
                line,
                Fields {
                    odd: false,
                    ..fields
                },
            )
        }
    }
}

/// The event in an object of which the members are known.
///
/// # Errors
/// If it is none, or none that viewers take.
#[inline]
pub fn event(line: &[u8], fields: Fields) -> Result<Event<'_>, Kind> {
    let mut event = plain_event(line, fields).ok_or_else(|| refused(line, &fields))?;
    if !is_taken(&event) {
        event.fields.odd = has_to_be_mended(&event)?;
    }
    Ok(event)
}

/// The event in an object, whatever viewers make of its other members.
#[inline]
fn plain_event(line: &[u8], fields: Fields) -> Option<Event<'_>> {
    event_of_phase(line, fields, Phase::modern(phase_of(fields.ph.of(line))?)?)
}

#[inline]
fn event_of_phase(line: &[u8], fields: Fields, phase: Phase) -> Option<Event<'_>> {
    let pid = id_number(fields.pid.of(line))?;
    let tid = match fields.tid.of(line) {
        b"" | b"null" => pid,
        text => id_number(text)?,
    };
    let mut event = Event::untimed(line, phase, (pid, tid), fields);
    if phase != Phase::Metadata {
        read_times(&mut event)?;
    }
    Some(event)
}

/// Whether viewers surely take it as it is: so are nearly all.
#[inline]
fn is_taken(event: &Event<'_>) -> bool {
    let (line, fields) = (event.line, &event.fields);
    let begins = |span: Span, byte: u8| !span.is_some() || line.get(span.start) == Some(&byte);
    let is_odd = fields.odd | fields.repeated | fields.odd_numbers | fields.odd_escapes;
    let has_length = fields.dur.is_some() == (event.phase == Phase::Complete);
    // One of Chrome's older phases stands for another.
    let is_modern = line.get(fields.ph.start + 1) == Some(&event.phase.byte());
    let is_plain = !(is_odd | fields.id2.is_some() | fields.bind_id.is_some())
        && is_modern
        && has_length
        && begins(fields.name, b'"')
        && begins(fields.cat, b'"')
        && begins(fields.args, b'{');
    is_plain
        && match event.phase {
            Phase::Complete | Phase::Begin | Phase::End | Phase::Instant => !fields.id.is_some(),
            Phase::Counter => !fields.id.is_some() && member::is_drawn(fields.args.of(line)),
            phase => phase.has_id() && flow::is_named(line, fields),
        }
}

/// Whether an event has something in it that viewers do not take, which the trace is to have without it.
///
/// # Errors
/// If viewers take no such event.
fn has_to_be_mended(event: &Event<'_>) -> Result<bool, Kind> {
    let (text, fields) = (event.line, &event.fields);
    let Some((mended, _)) = mended_event(text, event.phase) else {
        return what_lacks(event.phase, text, fields).map_or(Ok(false), Err);
    };
    let fields = scan_object(&mended).ok_or(Kind::BadJson)?;
    what_lacks(event.phase, &mended, &fields).map_or(Ok(true), Err)
}

/// What viewers do not show such an event without.
pub(crate) fn what_lacks(phase: Phase, text: &[u8], fields: &Fields) -> Option<Kind> {
    let args = fields.args.of(text);
    match phase {
        Phase::Counter => (!member::is_drawn(args)).then_some(Kind::BadCounter),
        Phase::Sample => {
            (!profile::is_drawn(fields.id.of(text), args)).then_some(Kind::UnknownPhase)
        }
        Phase::Metadata if is_name(fields.name.of(text)) => {
            (!names_something(args)).then_some(Kind::BadName)
        }
        phase if phase.has_id() => (!flow::is_named(text, fields)).then_some(Kind::NoId),
        _ => None,
    }
}

#[inline]
fn read_times(event: &mut Event<'_>) -> Option<()> {
    let ts_text = event.fields.ts.of(event.line);
    let ts = number::micros(ts_text)?;
    event.ts_ns = ts.ns();
    if event.phase == Phase::Complete {
        let dur_text = event.fields.dur.of(event.line);
        let dur = number::micros(dur_text)?;
        event.dur_ns = ts.span_ns(dur);
        let is_exact = is_exact(event.dur_ns.unsigned_abs());
        event.rounds_dur = !(dur.is_whole_ns() && is_exact) || dur_text.starts_with(b"\"");
        if dur_text.starts_with(b"-") || event.dur_ns < 0 {
            return None;
        }
    }
    Some(())
}

/// Reads a process or thread id: an integer, or a text that is hashed.
#[inline]
fn id_number(text: &[u8]) -> Option<i64> {
    match swar::digits(text, 0) {
        Some((number, len)) if len == text.len() => Some(number),
        _ => odd_id_number(text),
    }
}

/// Reads an id that is negative, huge or a text.
#[cold]
fn odd_id_number(text: &[u8]) -> Option<i64> {
    let inner = number::unquoted(text);
    let number = std::str::from_utf8(inner).ok()?.parse::<i128>();
    match number {
        Ok(number) => Some(i64::try_from(number).unwrap_or_else(|_| hashed_id(inner))),
        // Some profilers leave it empty, and viewers take that for a name like any other.
        Err(_) if text.starts_with(b"\"") => Some(hashed_id(inner)),
        Err(_) => None,
    }
}

/// The number that stands for an id that is none, or none of 64 bits.
pub(crate) fn hashed_id(text: &[u8]) -> i64 {
    (xxh3_64(text) | 1 << 63).cast_signed()
}
