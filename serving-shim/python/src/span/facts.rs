//! [`Facts`]: what a span says of itself.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use sa_recorder::Level;
use smallvec::SmallVec;

use crate::names::{self, Named};

/// Args as text; those of most spans lie in the object.
pub(super) type Text = SmallVec<[u8; 64]>;

/// Names and args of a span.
pub(super) struct Facts {
    pub(super) named: Named,
    pub(super) name: Py<PyAny>,
    pub(super) category: Option<Py<PyAny>>,
    pub(super) args: Text,
    /// Args that are read when the span ends.
    pub(super) dict: Option<Py<PyDict>>,
    /// Whether it is one of the drop-in profiler, whose events always have the member `args`, and say nothing of errors.
    pub(super) is_drop_in: bool,
}

impl Facts {
    /// Those of a span without args.
    pub(super) fn of(
        level: Level,
        category: Option<&Bound<'_, PyAny>>,
        name: &Bound<'_, PyAny>,
    ) -> PyResult<Facts> {
        Ok(Facts {
            named: names::named(level, category, name)?,
            name: name.clone().unbind(),
            category: category.map(|category| category.clone().unbind()),
            args: Text::new(),
            dict: None,
            is_drop_in: false,
        })
    }

    /// Those of an object that is no span for now.
    pub(super) fn none(py: Python<'_>) -> Facts {
        Facts {
            named: Named::Unkept(Level::E2e),
            name: py.None(),
            category: None,
            args: Text::new(),
            dict: None,
            is_drop_in: false,
        }
    }

    /// Gives its objects back now, which may run code: the thread is attached, of which a `Py` alone knows nothing here.
    pub(super) fn give_back(self, py: Python<'_>) {
        drop(self.name.into_bound(py));
        drop(self.category.map(|category| category.into_bound(py)));
        drop(self.dict.map(|dict| dict.into_bound(py)));
    }
}
