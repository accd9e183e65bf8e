//! Mends an event: removes or replaces the members and values that viewers refuse.

use super::{Repair, mended_with};
use crate::json::{Members, build_object};
use crate::member::{
    Fault, brings_arrow, fault, is_counter_value, is_id, is_infinite, parse_phase,
};
use sa_format::Phase;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

/// Change of a member.
enum Change<'a> {
    Keep,
    Drop(Repair),
    Replace(Cow<'a, [u8]>, Repair),
}

/// Returns the text of an event of this phase without anything that viewers refuse, and the repairs. Returns `None` if there was nothing to mend. The result may
/// lack a member that the event needs.
#[cold]
pub fn mended_event(
    text: &[u8],
    phase: impl Into<Option<Phase>>,
) -> Option<(Vec<u8>, BTreeSet<Repair>)> {
    let (phase, mut repairs) = (phase.into(), BTreeSet::new());
    let text = mended_with(text, |repair| {
        repairs.insert(repair);
    });
    let text = text.as_ref();
    let object = Object::parse(text);
    let kept = Members::new(text)
        .enumerate()
        .filter_map(|(number, (key, value))| {
            let change = match object.last.get(key) {
                Some((last, _)) if *last != number => Change::Drop(Repair::Key),
                _ => object.change(phase, key, value),
            };
            let (value, repair) = match change {
                Change::Keep => (Some(Cow::Borrowed(value)), None),
                Change::Replace(value, repair) => (Some(value), Some(repair)),
                Change::Drop(repair) => (None, Some(repair)),
            };
            repairs.extend(repair);
            Some((key, value?))
        });
    let out = build_object(kept);
    (!repairs.is_empty()).then_some((out, repairs))
}

/// Members of an event that determine how each member is changed.
struct Object<'a> {
    /// Number and value of the last member of each key.
    last: HashMap<&'a [u8], (usize, &'a [u8])>,
    name: &'a [u8],
    /// True if the event has `flow_in` or `flow_out`, the direction of its arrow.
    has_direction: bool,
}

impl<'a> Object<'a> {
    fn parse(text: &'a [u8]) -> Object<'a> {
        let members = (0..).zip(Members::new(text));
        let last: HashMap<_, _> = members
            .map(|(number, (key, value))| (key, (number, value)))
            .collect();
        let value = |key: &[u8]| last.get(key).map(|(_, value)| *value);
        let is_true = |key: &[u8]| value(key) == Some(b"true");
        Object {
            name: value(b"name").unwrap_or_default(),
            has_direction: is_true(b"flow_in") || is_true(b"flow_out"),
            last,
        }
    }

    fn change<'v>(&self, phase: Option<Phase>, key: &[u8], value: &'v [u8]) -> Change<'v> {
        let null = || Cow::Borrowed(&b"null"[..]);
        match (fault(phase, self.name, key, value), key) {
            (_, b"bind_id") if phase.is_some_and(brings_arrow) => {
                match self.has_direction && is_id(value) {
                    true => Change::Keep,
                    false => Change::Drop(Repair::Arrow),
                }
            }
            (Some(Fault::Number | Fault::Time), b"ts" | b"dur" | b"tts" | b"tdur")
            | (Some(Fault::NegativeTime), _) => Change::Drop(Repair::Time),
            (Some(Fault::Number | Fault::Time), _) => Change::Replace(null(), Repair::Number),
            (Some(Fault::Id2), _) => Change::Drop(Repair::Number),
            (_, b"args") if phase == Some(Phase::Counter) => counter_change(value),
            (Some(Fault::ArgsNumber), _) => Change::Replace(finite(value).into(), Repair::Number),
            (_, b"ph") => match parse_phase(value).map(|byte| (byte, Phase::modern(byte))) {
                Some((old, Some(new))) if old != new.byte() => {
                    Change::Replace(vec![b'"', new.byte(), b'"'].into(), Repair::Phase)
                }
                _ => Change::Keep,
            },
            _ => Change::Keep,
        }
    }
}

/// Removes the values of a counter that viewers cannot draw.
fn counter_change(args: &[u8]) -> Change<'_> {
    let is_good = |(_, value): &(&[u8], &[u8])| is_counter_value(value);
    if Members::new(args).all(|member| is_good(&member)) {
        return Change::Keep;
    }
    let values = Members::new(args).filter(is_good);
    let values = values.map(|(key, value)| (key, value.into()));
    Change::Replace(build_object(values).into(), Repair::Counter)
}

/// Replaces numbers that are too large for a double with `null`.
fn finite(args: &[u8]) -> Vec<u8> {
    build_object(
        Members::new(args).map(|(key, value)| match is_infinite(value) {
            true => (key, b"null"[..].into()),
            false => (key, value.into()),
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_viewers_refuse_is_changed() {
        // Expected repairs, an event, and the expected result.
        let table = include_str!("../../tests/mended.txt");
        for case in table.lines() {
            let parts: Vec<&str> = case.split('|').map(str::trim).collect();
            let [kinds, text, expected] = parts[..] else {
                panic!("{case}");
            };
            let phase = sa_format::Phase::modern(text.as_bytes()[7]);
            let (mended, repairs) = mended_event(text.as_bytes(), phase).unwrap_or_default();
            assert_eq!(String::from_utf8_lossy(&mended), expected, "{text}");
            let repairs: Vec<String> = repairs.iter().map(|kind| format!("{kind:?}")).collect();
            assert_eq!(repairs.join(" "), kinds, "{text}");
            assert_eq!(mended_event(&mended, phase), None, "mended once: {text}");
        }
    }
}
