//! The keywords of a call: what says where an event belongs, and its args as JSON text.

use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::{Borrowed, intern};
use sa_recorder::Level;

use crate::call::Call;
use crate::scratch::Scratch;
use crate::{names, value};

/// The keywords of an event.
pub(crate) struct Keywords<'a, 'py> {
    pub(crate) category: Option<Borrowed<'a, 'py, PyAny>>,
    pub(crate) level: Level,
    /// `"key":value,…`
    pub(crate) text: Scratch,
}

/// The keywords of a call that takes `cat`, `level` and any other as an arg of the event.
pub(crate) fn keywords<'a, 'py>(call: &Call<'a, 'py>) -> PyResult<Keywords<'a, 'py>> {
    let mut found = Keywords {
        category: None,
        level: Level::E2e,
        text: Scratch::take(),
    };
    let (cat, level) = (intern!(call.py, "cat"), intern!(call.py, "level"));
    for (key, value) in call.keywords() {
        if is(&key, cat) {
            found.category = Some(value);
        } else if is(&key, level) {
            found.level = names::level(Some(&value))?;
        } else {
            value::push(&mut found.text.0, &key, &value);
        }
    }
    Ok(found)
}

/// The keywords of a call that takes args alone.
pub(crate) fn args(call: &Call<'_, '_>) -> Scratch {
    let mut text = Scratch::take();
    for (key, value) in call.keywords() {
        value::push(&mut text.0, &key, &value);
    }
    text
}

/// Whether a keyword is this one. Those of a call are interned, but for some that were made at run time.
fn is(key: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> bool {
    key.as_ptr() == name.as_ptr()
}

/// The `level` of a call.
pub(crate) fn level(call: &Call<'_, '_>) -> PyResult<Level> {
    let level = intern!(call.py, "level");
    let given = call.keywords().find(|(key, _)| is(key, level));
    names::level(given.as_ref().map(|(_, value)| &**value))
}
