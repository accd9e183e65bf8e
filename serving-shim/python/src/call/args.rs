//! The keywords of a call: what says where an event belongs, and its args as JSON text.

use pyo3::Borrowed;
use pyo3::prelude::*;
use pyo3::types::PyString;
use sa_recorder::Level;

use crate::call::Call;
use crate::call::misuse;
use crate::event::Event;
use crate::scratch::Scratch;
use crate::{names, value};

/// The keywords of an event.
pub(crate) struct Keywords<'a, 'py> {
    pub(crate) category: Option<Borrowed<'a, 'py, PyAny>>,
    pub(crate) level: Level,
    /// `"key":value,…`
    pub(crate) text: Scratch,
}

impl<'py> Keywords<'_, 'py> {
    /// Describes the event of this name.
    pub(crate) fn event<'e>(&'e self, name: &'e Bound<'py, PyAny>) -> PyResult<Event<'e, 'py>> {
        Event::new(self.level, self.category.as_deref(), name, &self.text.0)
    }
}

/// The keywords of a call that takes `cat`, `level` and any other as an arg of the event.
pub(crate) fn keywords<'a, 'py>(call: &Call<'a, 'py>) -> PyResult<Keywords<'a, 'py>> {
    let mut found = Keywords {
        category: None,
        level: Level::E2e,
        text: Scratch::take(),
    };
    for (key, value) in call.keywords() {
        match name(&key) {
            Some("cat") => found.category = Some(value),
            Some("level") => found.level = names::level(Some(&value))?,
            Some(name) => value::push_named(&mut found.text.0, name, &value),
            None => value::push(&mut found.text.0, &key, &value),
        }
    }
    Ok(found)
}

/// Where the keywords `cat` and `level` of a call stand; the others are not looked at.
pub(crate) fn places(call: &Call<'_, '_>) -> (Option<usize>, Option<usize>) {
    let (mut category, mut level) = (None, None);
    for (at, (key, _)) in call.keywords().enumerate() {
        match name(&key) {
            Some("cat") => category = Some(at),
            Some("level") => level = Some(at),
            _ => {}
        }
    }
    (category, level)
}

/// The keywords of a call that takes args alone.
pub(crate) fn args(call: &Call<'_, '_>) -> Scratch {
    let mut text = Scratch::take();
    for (key, value) in call.keywords() {
        value::push(&mut text.0, &key, &value);
    }
    text
}

/// Returns the series of a counter. The recorder leaves out those that are not finite numbers.
pub(crate) fn series(call: &Call<'_, '_>) -> Scratch {
    let mut text = Scratch::take();
    for (key, value) in call.keywords() {
        if name(&key) != Some("level") {
            push_series(&mut text.0, &key, &value);
        }
    }
    text
}

/// Appends a series of a counter, and warns once if its value is not a finite number.
pub(crate) fn push_series(text: &mut Vec<u8>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) {
    if !value::push_series(text, key, value) {
        misuse::no_number(key, value);
    }
}

/// A keyword as text; none if it has lone surrogates.
pub(crate) fn name<'a>(key: &'a Bound<'_, PyAny>) -> Option<&'a str> {
    key.cast_exact::<PyString>().ok()?.to_str().ok()
}

/// The `level` of a call.
pub(crate) fn level(call: &Call<'_, '_>) -> PyResult<Level> {
    let given = call.keywords().find(|(key, _)| name(key) == Some("level"));
    names::level(given.as_ref().map(|(_, value)| &**value))
}
