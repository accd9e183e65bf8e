//! Finds the events in the text of a trace.
//!
//! In: arbitrary text. Out: each event, for [`Events`], and at most one reason why the rest cannot be read. Only this module knows which forms a trace may have:
//! an array of events, which may lack its end, or an object with such an array as `traceEvents`.

use crate::event::Events;
use crate::report::Rule;
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;
use std::fmt::{Formatter, Result as FmtResult};
use std::io;

/// A trace that is being read, or the array of events in it.
struct Trace<'a, 'e, 'f> {
    events: &'e mut Events<'a, 'f>,
    form: &'e mut Form,
    is_inner: bool,
}

/// Form of a trace, as far as it was read.
#[derive(Default)]
struct Form {
    /// True if there is an array of events.
    has_events: bool,
    /// True if that array is the whole document.
    is_bare: bool,
    /// Offset after the last event.
    end: usize,
    /// Error of a temporary file, which ended the check.
    failed: Option<io::Error>,
}

/// Passes each event to `events`, and any problem of the text around them. `is_cut` is true if the text was compressed and ends too early.
pub(crate) fn read<'a>(text: &'a str, is_cut: bool, events: &mut Events<'a, '_>) -> io::Result<()> {
    let mut form = Form::default();
    let mut json = serde_json::Deserializer::from_str(text);
    let trace = Trace {
        events: &mut *events,
        form: &mut form,
        is_inner: false,
    };
    let read = trace.deserialize(&mut json).and_then(|()| json.end());
    if let Some(error) = form.failed.take() {
        return Err(error);
    }
    let Some(rule) = form.rule(text, &read, is_cut) else {
        return Ok(());
    };
    let (at, problem) = match read {
        Err(error) => (offset(text, &error), error.to_string()),
        Ok(()) if rule == Rule::CutOff => (text.len(), "expected more compressed data".to_owned()),
        Ok(()) => (
            0,
            "expected an event, and traceEvents in an object".to_owned(),
        ),
    };
    events.findings.add_text(rule, at as u64, &problem);
    // Perfetto loads the complete events of an array that is cut off.
    events.findings.is_loaded &= form.is_bare && !is_cut;
    Ok(())
}

/// Returns the offset at which an error was found.
fn offset(text: &str, error: &serde_json::Error) -> usize {
    if error.is_eof() {
        return text.len();
    }
    let mut newlines = memchr::memchr_iter(b'\n', text.as_bytes());
    let line = error
        .line()
        .checked_sub(2)
        .and_then(|line| newlines.nth(line));
    let start = line.map_or(0, |newline| newline + 1);
    (start + error.column().saturating_sub(1)).min(text.len())
}

impl Form {
    /// Returns the rule that the text around the events breaks.
    fn rule(&self, text: &str, read: &serde_json::Result<()>, is_cut: bool) -> Option<Rule> {
        let is_between = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
        let is_complete = || text.as_bytes()[self.end..].iter().all(is_between);
        match read.as_ref().map_err(serde_json::Error::classify) {
            Err(Category::Syntax) => Some(Rule::NotJson),
            Err(Category::Eof) if self.is_bare && self.end > 0 && is_complete() => None,
            Err(Category::Eof) if !text.trim().is_empty() => Some(Rule::CutOff),
            // Perfetto does not recognize an empty array as a trace, but it accepts an object with one.
            Ok(()) if self.has_events && (self.end > 0 || !self.is_bare) => None,
            _ => Some(Rule::NotATrace),
        }
        .or(is_cut.then_some(Rule::CutOff))
    }
}

impl<'a> DeserializeSeed<'a> for Trace<'a, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Trace<'a, '_, '_> {
    type Value = ();

    fn expecting(&self, to: &mut Formatter<'_>) -> FmtResult {
        to.write_str("an array of events")?;
        match self.is_inner {
            true => Ok(()),
            false => to.write_str(" or an object with traceEvents"),
        }
    }

    fn visit_map<A: MapAccess<'a>>(self, mut members: A) -> Result<(), A::Error> {
        if self.is_inner {
            return Err(Error::invalid_type(Unexpected::Map, &self));
        }
        let Trace { events, form, .. } = self;
        while let Some(key) = members.next_key::<String>()? {
            if key == "traceEvents" {
                members.next_value_seed(Trace {
                    events,
                    form,
                    is_inner: true,
                })?;
            } else {
                members.next_value::<&RawValue>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<(), A::Error> {
        let Trace { events, form, .. } = self;
        (form.has_events, form.is_bare) = (true, !self.is_inner);
        while let Some(event) = list.next_element::<&RawValue>()? {
            match events.add(event.get().as_bytes()) {
                Ok(end) => form.end = end,
                Err(error) => {
                    form.failed = Some(error);
                    return Err(Error::custom("a temporary file cannot be written"));
                }
            }
        }
        Ok(())
    }
}
