//! Mends events that viewers would refuse. The event stays in the trace, and each repair is counted.

mod event;

pub use event::mended_event;

use crate::damage::named_kinds;
use crate::event::Event;
use crate::json::{Fields, Span, odd_number_len, readable, scan_object, string_end};
use memchr::memchr2;
use sa_format::{is_invisible, visible};
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

named_kinds! {
    /// A kind of repair.
    Repair {
        /// A number that is invalid in JSON (`NaN`, `Infinity`, `-Infinity`) or too large for a double (`1e999`). It becomes `null`.
        Number "repaired_number"
        /// A name with invisible characters, such as marks that change the direction of text. They are spelled out: `<U+202E>`.
        Name "repaired_name"
        /// An escape that viewers cannot read. A pair of surrogates, as Python writes it (`\ud83e\udd14`), becomes its character, and a lone surrogate becomes
        /// U+FFFD. A backslash at the end of a text becomes `\u005c`.
        Escape "repaired_escape"
        /// A time other than the event's own (`tts`, `tdur`, `dur` of an event that has no duration, `ts` of metadata) that is negative or not a number. It is
        /// left out.
        Time "repaired_time"
        /// A key that appears more than once. The last one counts.
        Key "repaired_key"
        /// Values of a counter that are not numbers. They are left out.
        Counter "repaired_counter"
        /// A `bind_id` that is invalid, or one without `flow_in` and `flow_out`. It is left out.
        Arrow "repaired_arrow"
        /// A phase of Chrome's older async events. It becomes the newer one.
        Phase "repaired_phase"
    }
}

/// Number of mended events by kind of repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repairs(BTreeMap<Repair, u64>);

impl Repairs {
    /// Counts one event with this repair.
    pub fn add(&mut self, kind: Repair) {
        *self.0.entry(kind).or_default() += 1;
    }

    /// Counts one event with these repairs.
    pub fn add_all(&mut self, kinds: impl IntoIterator<Item = Repair>) {
        kinds.into_iter().for_each(|kind| self.add(kind));
    }

    /// Adds the counts of `other`.
    pub fn append(&mut self, other: &Repairs) {
        for (kind, count) in &other.0 {
            *self.0.entry(*kind).or_default() += count;
        }
    }

    /// Iterates over the kinds and the number of events of each.
    pub fn iter(&self) -> impl Iterator<Item = (Repair, u64)> {
        self.0.iter().map(|(kind, count)| (*kind, *count))
    }
}

/// Deserializes JSON, which may contain `NaN` and the like. They become `null`.
pub fn from_slice<T: DeserializeOwned>(text: &[u8]) -> Option<T> {
    serde_json::from_slice(text)
        .or_else(|_| serde_json::from_slice(&mended(text)))
        .ok()
}

/// Replaces `NaN` and the like with `null`, and escapes that viewers cannot read with others. Apart from these numbers, the text must be valid JSON.
pub(crate) fn mended(text: &[u8]) -> Cow<'_, [u8]> {
    mended_with(text, |_| {})
}

/// Mends the text like [`mended`], and calls `report` with each repair.
fn mended_with(text: &[u8], mut report: impl FnMut(Repair)) -> Cow<'_, [u8]> {
    let (mut out, mut at, mut copied) = (Vec::new(), 0, 0);
    while let Some(byte) = text.get(at) {
        let (len, replacement) = match byte {
            b'"' => {
                let len = string_end(text, at) - at;
                (len, readable(&text[at..at + len]))
            }
            b'N' | b'I' | b'-' => match odd_number_len(&text[at..]) {
                Some(len) => (len, Some(b"null".to_vec())),
                None => (1, None),
            },
            _ => (1, None),
        };
        if let Some(replacement) = replacement {
            report(match byte {
                b'"' => Repair::Escape,
                _ => Repair::Number,
            });
            out.extend_from_slice(&text[copied..at]);
            out.extend_from_slice(&replacement);
            copied = at + len;
        }
        at += len;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.extend_from_slice(&text[copied..]);
    Cow::Owned(out)
}

/// Serializes a value to JSON that viewers can read.
pub fn json_text(value: &serde_json::Value) -> String {
    String::from_utf8_lossy(&mended(value.to_string().as_bytes())).into_owned()
}

/// Mends the last line in `out`, which begins at `start`.
#[cold]
pub fn mend_line(out: &mut Vec<u8>, start: usize) {
    let mut line = mended(&out[start..]).into_owned();
    if let Some(fields) = scan_object(&line) {
        let is_metadata = fields.ph.slice(&line) == br#""M""#;
        let mut edits = name_edits(&line, &fields, is_metadata);
        edits.sort_by_key(|(range, _)| Reverse(range.start));
        for (range, name) in edits {
            line.splice(range, name);
        }
    }
    out.truncate(start);
    out.extend_from_slice(&line);
}

/// Returns true if the JSON string at `name` has invisible characters.
#[inline(always)]
pub(crate) fn has_invisible_characters(line: &[u8], name: Span) -> bool {
    !is_plain(line, name) && is_hidden(name.slice(line))
}

/// Returns true if the name of an event has invisible characters, or the name that it gives to a process or thread.
#[inline(always)]
pub fn has_invisible_name(event: &Event<'_>) -> bool {
    let Fields { name, args, .. } = event.fields;
    has_invisible_characters(event.line, name)
        || event.is_metadata() && !is_plain(event.line, args) && !metadata_edits(event).is_empty()
}

/// Returns the edits for the invisible characters in the names of a metadata event.
#[cold]
fn metadata_edits(event: &Event<'_>) -> Vec<(Range<usize>, Vec<u8>)> {
    name_edits(event.line, &event.fields, true)
}

/// Returns the ranges of names with invisible characters, and their replacements. The names that metadata gives to processes and threads are in its args.
pub fn name_edits(line: &[u8], fields: &Fields, is_metadata: bool) -> Vec<(Range<usize>, Vec<u8>)> {
    let mut edits = Vec::new();
    let mut edit = |name: Span| {
        if let Some(text) = from_slice::<String>(name.slice(line))
            && let Cow::Owned(shown) = visible(&text)
        {
            let shown = json_text(&shown.into());
            edits.push((name.start..name.end, shown.into_bytes()));
        }
    };
    edit(fields.name);
    if is_metadata
        && fields.ph.slice(line) == br#""M""#
        && let Some(args) = scan_object(fields.args.slice(line))
        && args.name.is_some()
    {
        let start = fields.args.start;
        edit(Span::new(start + args.name.start, start + args.name.end));
    }
    edits
}

#[cold]
#[inline(never)]
fn is_hidden(name: &[u8]) -> bool {
    from_slice::<String>(name).is_some_and(|name| name.contains(is_invisible))
}

/// Returns true if a text is ASCII without escapes and delete characters, so that it cannot have invisible characters.
#[inline(always)]
fn is_plain(line: &[u8], text: Span) -> bool {
    let text = text.slice(line);
    text.is_ascii() && memchr2(b'\\', 0x7f, text).is_none()
}
