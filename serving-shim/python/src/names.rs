//! Converts the level, category and name of a call to the recorder's interned texts.

use std::borrow::Cow;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use sa_recorder::{Level, Site};

use crate::attached::Attached;

/// Number of recently used names that are cached by the identity of their objects. The objects of one call site are the same each time.
const REMEMBERED: usize = 512;

/// Category of events without a category.
pub(crate) const DEFAULT_CATEGORY: &str = "e2e";

/// The interned text of events with the same name, or their level.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Named {
    /// Interned text.
    Site(&'static Site),
    /// Not interned, because there were too many names.
    Unkept(Level),
}

impl Named {
    pub(crate) fn level(self) -> Level {
        match self {
            Named::Site(site) => site.level(),
            Named::Unkept(level) => level,
        }
    }
}

struct Remembered {
    name: Py<PyAny>,
    category: Option<Py<PyAny>>,
    level: Level,
    site: &'static Site,
}

impl Remembered {
    fn is_of(
        &self,
        level: Level,
        category: Option<&Bound<'_, PyAny>>,
        name: &Bound<'_, PyAny>,
    ) -> bool {
        self.name.as_ptr() == name.as_ptr()
            && self.category.as_ref().map(Py::as_ptr) == category.map(Bound::as_ptr)
            && self.level == level
    }
}

static RECENT: Attached<[Option<Remembered>; REMEMBERED]> =
    Attached::new([const { None }; REMEMBERED]);

/// Returns the interned text for events of this name.
pub(crate) fn named(
    level: Level,
    category: Option<&Bound<'_, PyAny>>,
    name: &Bound<'_, PyAny>,
) -> PyResult<Named> {
    let kept = RECENT.with(name.py(), |recent| {
        let kept = recent[place(name)].as_ref();
        let kept = kept.filter(|kept| kept.is_of(level, category, name));
        kept.map(|kept| kept.site)
    });
    match kept.flatten() {
        Some(site) => Ok(Named::Site(site)),
        None => look_up(level, category, name),
    }
}

/// Returns the index of a name in the cache.
fn place(name: &Bound<'_, PyAny>) -> usize {
    (name.as_ptr().addr() >> 4) % REMEMBERED
}

#[cold]
fn look_up(
    level: Level,
    category: Option<&Bound<'_, PyAny>>,
    name: &Bound<'_, PyAny>,
) -> PyResult<Named> {
    let (name_text, category_text) = (text("name", name)?, category_text(category)?);
    let Some(site) = Site::intern(level, &category_text, &name_text) else {
        return Ok(Named::Unkept(level));
    };
    let remembered = Remembered {
        name: name.clone().unbind(),
        category: category.map(|category| category.clone().unbind()),
        level,
        site,
    };
    let replaced = RECENT.with(name.py(), |recent| recent[place(name)].replace(remembered));
    drop(replaced); // outside `with`, because dropping an object may run code
    Ok(Named::Site(site))
}

/// Returns the text of a category, by default `e2e`.
pub(crate) fn category_text(category: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
    self::category(category, DEFAULT_CATEGORY).map(Cow::into_owned)
}

/// Returns the text of a str argument.
pub(crate) fn text<'a>(what: &str, object: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, str>> {
    let string = object.cast::<PyString>().map_err(|_| {
        let found = object.get_type();
        PyTypeError::new_err(format!("{what}: expected a str, found {found}"))
    })?;
    Ok(string.to_string_lossy())
}

/// Returns the text of an optional category.
pub(crate) fn category<'a>(
    category: Option<&'a Bound<'_, PyAny>>,
    default: &'static str,
) -> PyResult<Cow<'a, str>> {
    category.map_or(Ok(Cow::Borrowed(default)), |category| text("cat", category))
}

/// Returns the level that an argument names, by default `e2e`.
pub(crate) fn level(word: Option<&Bound<'_, PyAny>>) -> PyResult<Level> {
    word.map_or(Ok(Level::E2e), |word| level_of(&text("level", word)?))
}

/// Parses the name of a level.
pub(crate) fn level_of(word: &str) -> PyResult<Level> {
    let levels = [Level::E2e, Level::Kernel, Level::Verbose];
    let is_named = |level: &Level| word.trim().eq_ignore_ascii_case(level_name(*level));
    match levels.into_iter().find(is_named) {
        Some(level) => Ok(level),
        None => Err(PyValueError::new_err(format!(
            "level: expected one of e2e, kernel, verbose, found {word:?}"
        ))),
    }
}

/// Returns the name of a level.
pub(crate) fn level_name(level: Level) -> &'static str {
    match level {
        Level::E2e => "e2e",
        Level::Kernel => "kernel",
        Level::Verbose => "verbose",
    }
}
