//! A table of the values that viewers do not take in an event's members. The merge mends events by it, and `--check` reports those that are left.
//!
//! In: a phase, a key and a value as they stand in the text. Out: what Perfetto's importer makes of it, if it does not take it. The merge's
//! tests load every member with every odd value into that importer and so hold the table.

use crate::json::{Members, Scanner, is_unreadable};
use memchr::memchr2;
use sa_format::Phase;
use std::ops::RangeInclusive;
use trace_base::number::unquoted;

/// The longest text of a number that is surely one of a double.
const MOST_DIGITS: usize = 300;

/// From here on the nanoseconds of a time do not fit 64 bits.
const MOST_US: f64 = 9.2e15;

/// The pids that Perfetto takes, but for 0, where it finds an empty text.
const PIDS: RangeInclusive<f64> = 1.0..=4_294_967_295.0;

/// What comes of a value that viewers do not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A number that no double holds: nothing of the file is loaded.
    Number,
    /// A time that is no number: nothing of the file is loaded.
    Time,
    /// Metadata before 0, which is dropped.
    NegativeTime,
    /// A number that no double holds among the ids in `id2`: the event is dropped.
    Id2,
    /// A number that no double holds in args that are read at once: loading never ends.
    Endless,
    /// The name of a process or thread that is no text: the event is dropped.
    Name,
    /// A text with half a character as an escape and an escaped quote: nothing of the file is loaded, or loading never ends.
    Half,
}

/// What comes of a member of an event of a phase; `None` if viewers take its value, or pass over it. `name` is the event's.
///
/// It says nothing of the values of counters and of ids, because no single member decides whether such an event is dropped.
pub fn fault(phase: Option<Phase>, name: &[u8], key: &[u8], value: &[u8]) -> Option<Fault> {
    if is_infinite(value) {
        return Some(Fault::Number);
    }
    if is_unreadable(key) || value.first() == Some(&b'"') && is_unreadable(value) {
        return Some(Fault::Half);
    }
    match key {
        b"ts" | b"dur" | b"tts" | b"tdur" if !is_time(value) => Some(Fault::Time),
        b"ts" if phase == Some(Phase::Metadata) && is_negative(value) => Some(Fault::NegativeTime),
        b"id2" => (holds_infinite(value) || is_unreadable(value)).then_some(Fault::Id2),
        b"args" => {
            let is_counter = phase == Some(Phase::Counter);
            let is_name = phase == Some(Phase::Metadata) && is_name(name);
            match is_counter || is_name {
                false => None,
                true if is_unreadable(value) => Some(Fault::Half),
                true if holds_infinite(value) => Some(Fault::Endless),
                true => (is_name && !names_something(value)).then_some(Fault::Name),
            }
        }
        _ => None,
    }
}

/// Whether a member that every event may have, beside those that all events have, may be at fault: a quick look.
#[inline]
pub(crate) fn is_odd(key: &[u8], value: &[u8]) -> bool {
    match value.first() {
        Some(b'-' | b'0'..=b'9') => may_be_infinite(value),
        _ => matches!(key, b"tts" | b"tdur"),
    }
}

/// Whether it is a number that no double holds.
#[inline]
pub(crate) fn is_infinite(value: &[u8]) -> bool {
    matches!(value.first(), Some(b'-' | b'0'..=b'9'))
        && may_be_infinite(value)
        && !double(value).is_some_and(f64::is_finite)
}

fn may_be_infinite(number: &[u8]) -> bool {
    number.len() > MOST_DIGITS || memchr2(b'e', b'E', number).is_some()
}

/// A value of a counter that is drawn: a number, or a text that is one.
#[inline]
pub(crate) fn is_counter_value(value: &[u8]) -> bool {
    match value.first() {
        Some(b'"') => double(unquoted(value)).is_some_and(f64::is_finite),
        Some(b'-' | b'0'..=b'9') => !is_infinite(value),
        _ => false,
    }
}

/// Whether a value is an id, of an arrow or an async event: a number or a text.
#[inline]
pub(crate) fn is_id(value: &[u8]) -> bool {
    matches!(value.first(), Some(b'"' | b'-' | b'0'..=b'9')) && !is_infinite(value)
}

/// Returns the phase in the value of `ph`, which is one character.
#[inline]
pub fn phase_of(value: &[u8]) -> Option<u8> {
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

/// Whether metadata of this name, which stands in quotes, names a process or thread.
pub(crate) fn is_name(name: &[u8]) -> bool {
    matches!(name, b"\"process_name\"" | b"\"thread_name\"")
}

/// Whether the args hold a `name`, and each of them can be one: of two Perfetto minds either.
pub(crate) fn names_something(args: &[u8]) -> bool {
    let mut names = Members::of(args)
        .filter(|(key, _)| *key == b"name")
        .peekable();
    let is_text = |(_, value): (&[u8], &[u8])| matches!(value, [b'"', first, ..] if *first != b'"');
    names.peek().is_some() && names.all(is_text)
}

/// Whether a member of the object is a number that no double holds. Objects in it do not matter: they are not read at once.
pub(crate) fn holds_infinite(object: &[u8]) -> bool {
    may_be_infinite(object) && Members::of(object).any(|(_, value)| is_infinite(value))
}

/// Whether a value is a time: a number, or a text that is one.
pub fn is_time(value: &[u8]) -> bool {
    double(unquoted(value)).is_some_and(f64::is_finite)
}

/// Whether Perfetto takes a time for one below zero: it is, or its nanoseconds do not fit 64 bits.
fn is_negative(value: &[u8]) -> bool {
    double(unquoted(value)).is_some_and(|number| !(0.0..MOST_US).contains(&number))
}

/// Whether Perfetto breaks down at an event with these pids, one behind the other: it remembers that one was a text, and takes a number behind it for the
/// text's place among all texts.
pub fn breaks_down<'a>(pids: impl Iterator<Item = &'a [u8]>) -> bool {
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

/// The number in a text that has nothing else in it, as JSON has it: of a time Perfetto takes no other.
fn double(text: &[u8]) -> Option<f64> {
    let mut scanner = Scanner::new(text, 0);
    matches!(text.first(), Some(b'-' | b'0'..=b'9')).then(|| scanner.value(1))??;
    let text = std::str::from_utf8(text).ok()?;
    text.parse().ok().filter(|_| scanner.at == text.len())
}

/// Returns true if these args have at least one value and viewers draw all of them.
pub(crate) fn is_drawn(args: &[u8]) -> bool {
    let mut values = Members::of(args);
    let is_good = |(_, value): (&[u8], &[u8])| is_counter_value(value);
    values.next().is_some_and(is_good) && values.by_ref().all(is_good) && values.is_at_end()
}

/// Returns true if the line ends with a counter's args and viewers draw all of their values. May return false if a name contains a brace; such a line
/// needs a full scan.
#[inline]
pub fn ends_drawn(line: &[u8]) -> bool {
    let args = memchr::memrchr(b'{', line).and_then(|start| line.get(start..line.len() - 1));
    args.is_some_and(is_drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_comes_of_a_value() {
        // Expected fault, phase, key, and values.
        let table = include_str!("../tests/faults.txt");
        for case in table.lines() {
            let mut words = case.split(' ');
            let (expected, phase, key) = (words.next(), words.next(), words.next());
            let (phase, key) = (phase.unwrap().as_bytes()[0], key.unwrap());
            for value in words {
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
    fn a_number_behind_a_text_is_no_pid() {
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
            assert_eq!(breaks_down(all), breaks, "{pids:?}");
        }
    }
}
