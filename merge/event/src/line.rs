//! Parses a line to an [`Event`], or determines the [`Kind`] of damage.
//!
//! There are two parsers with the same result. [`parse`] scans the whole line, and is faster if its keys are in a well-known order. [`parse_canonical`] reads
//! only the keys at the beginning, whose order the format defines. It is for lines in a block with a valid checksum, which covers the rest.

pub use crate::canonical::parse_canonical;
use crate::damage::Kind;
pub use crate::event::{ADDED, Event, is_left_out, own_record};
use crate::flow;
use crate::json::{Fields, Span, odd_number_len, scan_front, scan_object};
use crate::member::{self, has_valid_name, is_name, parse_phase};
use crate::mend::{has_invisible_name, mended_event};
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
/// Returns the kind of damage: `bad_utf8`, `bad_json`, `bad_event`, or a kind of event that viewers do not show.
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

/// Parses a line that is known to be UTF-8, with any order of keys and any white space.
pub(crate) fn parse_any(line: &[u8]) -> Result<Event<'_>, Kind> {
    let fields = scan_object(line).ok_or(Kind::BadJson)?;
    let mut event = event(line, fields)?;
    event.fields.hidden = has_invisible_name(&event);
    Ok(event)
}

/// Returns the reason why an object is not an event: a member is not valid JSON, not a time or not an id, or viewers do not show its phase.
#[cold]
fn refusal(line: &[u8], fields: &Fields) -> Kind {
    let needed = [fields.ph, fields.ts, fields.dur, fields.pid, fields.tid];
    let is_odd = |member: Span| odd_number_len(member.slice(line)).is_some();
    let is_unknown =
        parse_phase(fields.ph.slice(line)).is_some_and(|byte| Phase::modern(byte).is_none());
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
        // The members that were scanned are valid, and the rest of the line was not scanned this time.
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

/// Converts an object whose members were found to an event.
///
/// # Errors
/// If it is not an event, or one that viewers do not show.
#[inline]
pub fn event(line: &[u8], fields: Fields) -> Result<Event<'_>, Kind> {
    let mut event = plain_event(line, fields).ok_or_else(|| refusal(line, &fields))?;
    if !is_surely_accepted(&event) {
        event.fields.odd = needs_mending(&event)?;
    }
    Ok(event)
}

/// Converts an object to an event, without checking if viewers accept its other members.
#[inline]
fn plain_event(line: &[u8], fields: Fields) -> Option<Event<'_>> {
    event_of_phase(
        line,
        fields,
        Phase::modern(parse_phase(fields.ph.slice(line))?)?,
    )
}

#[inline]
fn event_of_phase(line: &[u8], fields: Fields, phase: Phase) -> Option<Event<'_>> {
    let pid = id_number(fields.pid.slice(line))?;
    let tid = match fields.tid.slice(line) {
        b"" | b"null" => pid,
        text => id_number(text)?,
    };
    let mut event = Event::untimed(line, phase, (pid, tid), fields);
    if phase != Phase::Metadata {
        read_times(&mut event)?;
    }
    Some(event)
}

/// Returns true if viewers certainly accept the event as it is. This quick check succeeds for nearly all events.
#[inline]
fn is_surely_accepted(event: &Event<'_>) -> bool {
    let (line, fields) = (event.line, &event.fields);
    let begins = |span: Span, byte: u8| !span.is_some() || line.get(span.start) == Some(&byte);
    let is_odd = fields.odd | fields.repeated | fields.odd_numbers | fields.odd_escapes;
    let has_length = fields.dur.is_some() == (event.phase == Phase::Complete);
    // This is false for Chrome's older phases, which are converted to newer ones.
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
            Phase::Counter => !fields.id.is_some() && member::is_drawn(fields.args.slice(line)),
            phase => phase.has_id() && flow::has_id(line, fields),
        }
}

/// Returns true if an event contains anything that viewers refuse and that the trace must not contain.
///
/// # Errors
/// If viewers do not show such an event even when it is mended.
fn needs_mending(event: &Event<'_>) -> Result<bool, Kind> {
    let (text, fields) = (event.line, &event.fields);
    let Some((mended, _)) = mended_event(text, event.phase) else {
        return missing_member(event.phase, text, fields).map_or(Ok(false), Err);
    };
    let fields = scan_object(&mended).ok_or(Kind::BadJson)?;
    missing_member(event.phase, &mended, &fields).map_or(Ok(true), Err)
}

/// Returns the kind of damage if the event lacks a valid member that viewers need to show it.
fn missing_member(phase: Phase, text: &[u8], fields: &Fields) -> Option<Kind> {
    let args = fields.args.slice(text);
    match phase {
        Phase::Counter => (!member::is_drawn(args)).then_some(Kind::BadCounter),
        Phase::Sample => {
            (!profile::is_drawn(fields.id.slice(text), args)).then_some(Kind::UnknownPhase)
        }
        Phase::Metadata if is_name(fields.name.slice(text)) => {
            (!has_valid_name(args)).then_some(Kind::BadName)
        }
        phase if phase.has_id() => (!flow::has_id(text, fields)).then_some(Kind::NoId),
        _ => None,
    }
}

#[inline]
fn read_times(event: &mut Event<'_>) -> Option<()> {
    let ts_text = event.fields.ts.slice(event.line);
    let ts = number::micros(ts_text)?;
    event.ts_ns = ts.ns();
    if event.phase == Phase::Complete {
        let dur_text = event.fields.dur.slice(event.line);
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

/// Parses a process or thread id: an integer, or a text that is hashed.
#[inline]
fn id_number(text: &[u8]) -> Option<i64> {
    match swar::digits(text, 0) {
        Some((number, len)) if len == text.len() => Some(number),
        _ => odd_id_number(text),
    }
}

/// Parses an id that is negative, huge or a text.
#[cold]
fn odd_id_number(text: &[u8]) -> Option<i64> {
    let inner = number::unquoted(text);
    let number = std::str::from_utf8(inner).ok()?.parse::<i128>();
    match number {
        Ok(number) => Some(i64::try_from(number).unwrap_or_else(|_| hashed_id(inner))),
        // Some profilers write an empty text, which viewers accept like any other.
        Err(_) if text.starts_with(b"\"") => Some(hashed_id(inner)),
        Err(_) => None,
    }
}

/// Returns a negative number that represents an id that is not a number of 64 bits.
pub(crate) fn hashed_id(text: &[u8]) -> i64 {
    (xxh3_64(text) | 1 << 63).cast_signed()
}
