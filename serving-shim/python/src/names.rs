//! Converts the level, category and name of a call to the recorder's interned texts.

use std::borrow::Cow;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use sa_recorder::{Level, Site};

use crate::attached::Attached;

/// Number of recently used names that are cached by the identity of their objects. The objects of one call site are the same each time.
const CACHED_NAMES: usize = 512;

/// Category of events without a category.
pub(crate) const DEFAULT_CATEGORY: &str = "e2e";

/// The interned text of events with the same name, or their level.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Named {
    /// Interned text.
    Site(&'static Site),
    /// Not interned, because there were too many names.
    Uninterned(Level),
}

impl Named {
    pub(crate) fn level(self) -> Level {
        match self {
            Named::Site(site) => site.level(),
            Named::Uninterned(level) => level,
        }
    }
}

struct CachedName {
    name: Py<PyAny>,
    category: Option<Py<PyAny>>,
    level: Level,
    site: &'static Site,
}

impl CachedName {
    fn matches(
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

static RECENT: Attached<[Option<CachedName>; CACHED_NAMES]> =
    Attached::new([const { None }; CACHED_NAMES]);

/// Returns the recorder's stored text for events with this level, category and name. A cache finds it by the identity of the objects.
pub(crate) fn intern(
    level: Level,
    category: Option<&Bound<'_, PyAny>>,
    name: &Bound<'_, PyAny>,
) -> PyResult<Named> {
    let site = RECENT.with(name.py(), |recent| {
        let cached = recent[slot_index(name)].as_ref();
        let cached = cached.filter(|cached| cached.matches(level, category, name));
        cached.map(|cached| cached.site)
    });
    match site.flatten() {
        Some(site) => Ok(Named::Site(site)),
        None => intern_new(level, category, name),
    }
}

/// Returns the index in the cache at which this name is stored. It depends on the address of the name's object.
fn slot_index(name: &Bound<'_, PyAny>) -> usize {
    (name.as_ptr().addr() >> 4) % CACHED_NAMES
}

#[cold]
fn intern_new(
    level: Level,
    category: Option<&Bound<'_, PyAny>>,
    name: &Bound<'_, PyAny>,
) -> PyResult<Named> {
    let (name_text, category_text) = (text("name", name)?, category_text(category)?);
    let Some(site) = Site::intern(level, &category_text, &name_text) else {
        return Ok(Named::Uninterned(level));
    };
    let cached = CachedName {
        name: name.clone().unbind(),
        category: category.map(|category| category.clone().unbind()),
        level,
        site,
    };
    let replaced = RECENT.with(name.py(), |recent| recent[slot_index(name)].replace(cached));
    drop(replaced); // outside `with`, because dropping an object may run code
    Ok(Named::Site(site))
}

/// Returns the text of a category argument, or `e2e` if it was not given.
pub(crate) fn category_text(category: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
    self::category(category, DEFAULT_CATEGORY).map(Cow::into_owned)
}

/// Returns the text of a Python argument, which must be a str. `what` names the argument in the error message.
pub(crate) fn text<'a>(what: &str, object: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, str>> {
    let string = object.cast::<PyString>().map_err(|_| {
        let found = object.get_type();
        PyTypeError::new_err(format!("{what}: expected a str, found {found}"))
    })?;
    Ok(string.to_string_lossy())
}

/// Returns the text of a category argument, or `default` if it was not given.
pub(crate) fn category<'a>(
    category: Option<&'a Bound<'_, PyAny>>,
    default: &'static str,
) -> PyResult<Cow<'a, str>> {
    category.map_or(Ok(Cow::Borrowed(default)), |category| text("cat", category))
}

/// Returns the level that an argument names, or `e2e` if it was not given.
pub(crate) fn level(name: Option<&Bound<'_, PyAny>>) -> PyResult<Level> {
    name.map_or(Ok(Level::E2e), |name| level_of(&text("level", name)?))
}

/// Parses the name of a level: `e2e`, `kernel` or `verbose`, in upper or lower case.
pub(crate) fn level_of(name: &str) -> PyResult<Level> {
    let levels = [Level::E2e, Level::Kernel, Level::Verbose];
    let is_named = |level: &Level| name.trim().eq_ignore_ascii_case(level_name(*level));
    match levels.into_iter().find(is_named) {
        Some(level) => Ok(level),
        None => Err(PyValueError::new_err(format!(
            "level: expected one of e2e, kernel, verbose, found {name:?}"
        ))),
    }
}

/// Returns the name of a level of detail: `e2e`, `kernel` or `verbose`.
pub(crate) fn level_name(level: Level) -> &'static str {
    match level {
        Level::E2e => "e2e",
        Level::Kernel => "kernel",
        Level::Verbose => "verbose",
    }
}
