//! The values of an event's members that viewers refuse. The merge mends such events, and `--check` reports any that are left.
//!
//! In: a phase, a key and a value as JSON. Out: the consequence in Perfetto's importer, if it refuses the value. The merge's tests load every member with every
//! odd value into that importer and compare.

use crate::json::{Members, Scanner, is_unreadable};
use memchr::memchr2;
use sa_format::Phase;
use std::ops::RangeInclusive;
use trace_base::number::unquoted;

/// Maximum length of a number without an exponent that certainly fits a double.
const MAX_DIGITS: usize = 300;

/// Time in µs from which on its nanoseconds exceed 64 bits.
const MAX_US: f64 = 9.2e15;

/// Numeric pids that Perfetto uses as an index if they follow a text. 0 does no harm, because it is the index of the empty text.
const PIDS: RangeInclusive<f64> = 1.0..=4_294_967_295.0;

/// Consequence of a value that viewers refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A number that exceeds a double. Nothing of the file is loaded.
    Number,
    /// A time that is not a number. Nothing of the file is loaded.
    Time,
    /// Metadata with a negative time, which is dropped.
    NegativeTime,
    /// A number in `id2` that exceeds a double. The event is dropped.
    Id2,
    /// A number that exceeds a double in args that Perfetto parses immediately. Loading never ends.
    ArgsNumber,
    /// A name of a process or thread that is not a text. The event is dropped.
    Name,
    /// A text with an escaped surrogate and an escaped quote. Nothing of the file is loaded, or loading never ends.
    Surrogate,
}

/// Returns the consequence of a member's value in an event of this phase, or `None` if viewers accept or ignore the value. `name` is the name of the event.
///
/// The values of counters and ids are not checked here, because no single member decides if such an event is dropped.
pub fn fault(phase: Option<Phase>, name: &[u8], key: &[u8], value: &[u8]) -> Option<Fault> {
    if is_infinite(value) {
        return Some(Fault::Number);
    }
    if is_unreadable(key) || value.first() == Some(&b'"') && is_unreadable(value) {
        return Some(Fault::Surrogate);
    }
    match key {
        b"ts" | b"dur" | b"tts" | b"tdur" if !is_time(value) => Some(Fault::Time),
        b"ts" if phase == Some(Phase::Metadata) && is_negative(value) => Some(Fault::NegativeTime),
        b"id2" => (has_infinite(value) || is_unreadable(value)).then_some(Fault::Id2),
        b"args" => {
            let is_counter = phase == Some(Phase::Counter);
            let is_name = phase == Some(Phase::Metadata) && is_name(name);
            match is_counter || is_name {
                false => None,
                true if is_unreadable(value) => Some(Fault::Surrogate),
                true if has_infinite(value) => Some(Fault::ArgsNumber),
                true => (is_name && !has_valid_name(value)).then_some(Fault::Name),
            }
        }
        _ => None,
    }
}

/// Returns true if one of the other members, which any event may have, may have to be mended. This is a quick check.
#[inline]
pub(crate) fn is_odd(key: &[u8], value: &[u8]) -> bool {
    match value.first() {
        Some(b'-' | b'0'..=b'9') => may_be_infinite(value),
        _ => matches!(key, b"tts" | b"tdur"),
    }
}

/// Returns true if the value is a number that exceeds a double.
#[inline]
pub(crate) fn is_infinite(value: &[u8]) -> bool {
    matches!(value.first(), Some(b'-' | b'0'..=b'9'))
        && may_be_infinite(value)
        && !double(value).is_some_and(f64::is_finite)
}

fn may_be_infinite(number: &[u8]) -> bool {
    number.len() > MAX_DIGITS || memchr2(b'e', b'E', number).is_some()
}

/// Returns true if viewers draw this value of a counter: a number, or a text with a number in it.
#[inline]
pub(crate) fn is_counter_value(value: &[u8]) -> bool {
    match value.first() {
        Some(b'"') => double(unquoted(value)).is_some_and(f64::is_finite),
        Some(b'-' | b'0'..=b'9') => !is_infinite(value),
        _ => false,
    }
}

/// Returns true if the value can be the id of an arrow or async event: a number or a text.
#[inline]
pub(crate) fn is_id(value: &[u8]) -> bool {
    matches!(value.first(), Some(b'"' | b'-' | b'0'..=b'9')) && !is_infinite(value)
}

/// Returns the phase in the value of `ph`, which is one character.
#[inline]
pub fn parse_phase(value: &[u8]) -> Option<u8> {
    match *value {
        [b'"', phase, b'"'] if phase.is_ascii_graphic() && phase != b'\\' => Some(phase),
        _ => None,
    }
}

/// Returns true if events of the phase bring an arrow with them if they have a `bind_id`.
pub(crate) fn brings_arrow(phase: Phase) -> bool {
    matches!(
        phase,
        Phase::Complete | Phase::Begin | Phase::AsyncBegin | Phase::AsyncInstant
    )
}

/// Returns true if metadata of this name, which includes its quotes, names a process or thread.
pub(crate) fn is_name(name: &[u8]) -> bool {
    matches!(name, b"\"process_name\"" | b"\"thread_name\"")
}

/// Returns true if the args have a `name` that is a text and not empty. If there are several, Perfetto checks each of them.
pub(crate) fn has_valid_name(args: &[u8]) -> bool {
    let mut names = Members::new(args)
        .filter(|(key, _)| *key == b"name")
        .peekable();
    let is_text = |(_, value): (&[u8], &[u8])| matches!(value, [b'"', first, ..] if *first != b'"');
    names.peek().is_some() && names.all(is_text)
}

/// Returns true if a member of the object is a number that exceeds a double. Nested objects are ignored, because Perfetto does not parse them immediately.
fn has_infinite(object: &[u8]) -> bool {
    may_be_infinite(object) && Members::new(object).any(|(_, value)| is_infinite(value))
}

/// Returns true if the value is a time: a number, or a text with a number in it.
pub fn is_time(value: &[u8]) -> bool {
    double(unquoted(value)).is_some_and(f64::is_finite)
}

/// Returns true if Perfetto considers a time negative, because it is, or because its nanoseconds exceed 64 bits.
fn is_negative(value: &[u8]) -> bool {
    double(unquoted(value)).is_some_and(|number| !(0.0..MAX_US).contains(&number))
}

/// Returns true if Perfetto's import fails on an event that has these `pid` members in this order. It remembers that a pid was a text, and uses a number after
/// it as an index into its table of texts.
pub fn breaks_import<'a>(pids: impl Iterator<Item = &'a [u8]>) -> bool {
    let (mut had_text, mut is_number) = (false, false);
    for pid in pids {
        match pid.first() {
            Some(b'"') => (had_text, is_number) = (true, false),
            Some(b'-' | b'0'..=b'9') => {
                is_number = double(pid).is_some_and(|pid| PIDS.contains(&pid));
            }
            _ => {}
        }
    }
    had_text && is_number
}

/// Parses a text that consists of one JSON number. Perfetto accepts only such a text as a time.
fn double(text: &[u8]) -> Option<f64> {
    let mut scanner = Scanner::new(text, 0);
    matches!(text.first(), Some(b'-' | b'0'..=b'9')).then(|| scanner.value(1))??;
    let text = std::str::from_utf8(text).ok()?;
    text.parse().ok().filter(|_| scanner.at == text.len())
}

/// Returns true if these args have at least one value and viewers draw all of them.
pub(crate) fn is_drawn(args: &[u8]) -> bool {
    let mut values = Members::new(args);
    let is_good = |(_, value): (&[u8], &[u8])| is_counter_value(value);
    values.next().is_some_and(is_good) && values.by_ref().all(is_good) && values.is_at_end()
}

/// Returns true if the line ends with a counter's args and viewers draw all of their values. May return false if a name contains a brace. Such a line needs a
/// full scan.
#[inline]
pub fn ends_drawn(line: &[u8]) -> bool {
    let args = memchr::memrchr(b'{', line).and_then(|start| line.get(start..line.len() - 1));
    args.is_some_and(is_drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_faults_of_values() {
        // Expected fault, phase, key, and values.
        let table = include_str!("../tests/faults.txt");
        for case in table.lines() {
            let mut columns = case.split(' ');
            let (expected, phase, key) = (columns.next(), columns.next(), columns.next());
            let (phase, key) = (phase.unwrap().as_bytes()[0], key.unwrap());
            for value in columns {
                let (key, value) = (key.as_bytes(), value.as_bytes());
                let found = fault(Phase::modern(phase), b"\"process_name\"", key, value);
                let found = found.map_or("-".to_owned(), |fault| format!("{fault:?}"));
                assert_eq!(Some(&*found), expected, "{case}");
            }
        }
        let digits = "9".repeat(400);
        assert!(is_infinite(digits.as_bytes()) && !is_infinite(&digits.as_bytes()[..300]));
    }

    #[test]
    fn a_number_after_a_text_is_not_a_pid() {
        for (pids, breaks) in [
            (&["\"a\"", "900"][..], true),
            (&["\"\"", "900"], true),
            (&["\"5\"", "1"], true),
            (&["\"a\"", "900", "null"], true),
            (&["900", "\"a\"", "{}", "900"], true),
            (&["\"a\"", "900", "0"], false),
            (&["\"a\"", "900", "-7"], false),
            (&["\"a\"", "900", "\"a\""], false),
            (&["\"a\"", "4294967296"], false),
            (&["900", "\"a\""], false),
            (&["900", "900"], false),
            (&["\"a\""], false),
        ] {
            let all = pids.iter().map(|pid| pid.as_bytes());
            assert_eq!(breaks_import(all), breaks, "{pids:?}");
        }
    }
}
