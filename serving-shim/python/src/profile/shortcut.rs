//! The drop-in's functions for call sites, as long as the recorder of the process stays what it is: a call of a function of Python alone takes half as long as an event.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule, PyString, PyTuple};
use pyo3::{Borrowed, ffi};
use sa_recorder::Level;

use crate::attached::Attached;
use crate::call::{self, Call};
use crate::{names, profile, session, span};

/// What is known of the recorder of the process.
#[pyclass(frozen, module = "sa_profile")]
pub(crate) struct Shortcut {
    python: PyOnceLock<InPython>,
    /// Goes up when what is known may hold no more.
    changes: AtomicU64,
    /// `changes`, when it was learned.
    learned: AtomicU64,
    /// The recording that it records into; 0 if none.
    session: AtomicU64,
    /// A bit for each level that it records.
    levels: AtomicU32,
}

/// Those of the modules of the process, of which each copy of the package has one. Functions belong to a module, so that pickle finds them by their names; to
/// find it among the module's names would cost a call that records nothing as much again.
static OF_MODULES: Attached<Vec<(Py<PyModule>, Py<Shortcut>)>> = Attached::new(Vec::new());

/// How many tuples of keywords' names are remembered.
const REMEMBERED: usize = 64;

/// The names of keywords that were used last and are those of the drop-in, by the identity of their tuples: a call site has one.
static USUAL_NAMES: Attached<[Option<Py<PyTuple>>; REMEMBERED]> =
    Attached::new([const { None }; REMEMBERED]);

/// Python's part.
struct InPython {
    /// A span that is not recorded.
    nothing: Py<PyAny>,
    /// The functions, for all that is not known and for unusual arguments.
    span: Py<PyAny>,
    instant: Py<PyAny>,
}

#[pymethods]
impl Shortcut {
    #[new]
    fn new() -> Shortcut {
        Shortcut {
            python: PyOnceLock::new(),
            changes: AtomicU64::new(1),
            learned: AtomicU64::new(0),
            session: AtomicU64::new(0),
            levels: AtomicU32::new(0),
        }
    }

    /// How often there was a change.
    fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Has the functions ask again.
    fn forget(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes what was found out when there had been so many changes.
    #[pyo3(signature = (changes, session, levels, /))]
    fn learn(&self, changes: u64, session: u64, levels: Vec<String>) -> PyResult<()> {
        let mut mask = 0;
        for level in &levels {
            mask |= names::level_of(level)?.bit();
        }
        self.session.store(session, Ordering::Relaxed);
        self.levels.store(mask, Ordering::Relaxed);
        self.learned.store(changes, Ordering::Relaxed);
        Ok(())
    }

    /// The functions for call sites, of the module that has this shortcut.
    #[pyo3(signature = (module, nothing, span, instant, /))]
    fn functions<'py>(
        slf: &Bound<'py, Self>,
        module: &Bound<'py, PyModule>,
        nothing: Py<PyAny>,
        span: Py<PyAny>,
        instant: Py<PyAny>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let python = InPython {
            nothing,
            span,
            instant,
        };
        let _ = slf.get().python.set(module.py(), python); // once in a module
        drop(Shortcut::belong(slf, module));
        Ok((
            call::method(module, c"profile_span", span_entry, SPAN)?,
            call::method(module, c"profile_instant", instant_entry, INSTANT)?,
        ))
    }
}

/// The arguments of a call.
struct Arguments<'a, 'py> {
    name: Borrowed<'a, 'py, PyAny>,
    category: Option<Borrowed<'a, 'py, PyAny>>,
    level: Option<Borrowed<'a, 'py, PyAny>>,
    args: Option<Borrowed<'a, 'py, PyAny>>,
}

impl<'a, 'py> Arguments<'a, 'py> {
    /// Those of a call as most are; `None` leaves the others to Python.
    fn of(call: &Call<'a, 'py>) -> Option<Arguments<'a, 'py>> {
        let mut found = Arguments {
            name: call.only_positional()?,
            category: None,
            level: None,
            args: None,
        };
        for (key, value) in call.keywords() {
            let place = if key.is(intern!(call.py, "cat")) {
                &mut found.category
            } else if key.is(intern!(call.py, "args")) {
                &mut found.args
            } else if key.is(intern!(call.py, "level")) {
                &mut found.level
            } else {
                return None;
            };
            *place = Some(value);
        }
        Some(found)
    }

    /// The level, if it is one of the recorder's.
    fn level(&self) -> Option<Level> {
        let Some(level) = self.level else {
            return Some(Level::E2e);
        };
        match level.cast_exact::<PyString>().ok()?.to_str().ok()? {
            "e2e" => Some(Level::E2e),
            "kernel" => Some(Level::Kernel),
            "verbose" => Some(Level::Verbose),
            _ => None,
        }
    }
}

/// What a call does.
enum Answer<'a, 'py> {
    Nothing,
    Record(Level, Arguments<'a, 'py>),
}

impl Shortcut {
    /// That of the module whose function is called.
    fn of<'py>(call: &Call<'_, 'py>) -> PyResult<Bound<'py, Shortcut>> {
        let found = OF_MODULES.with(call.py, |all| {
            let its = all.iter().find(|(module, _)| call.is_of(module));
            its.map(|(_, shortcut)| shortcut.bind(call.py).clone())
        });
        let found = found.flatten();
        found.ok_or_else(|| PyTypeError::new_err("expected a module with a shortcut"))
    }

    /// Makes it that of a module; the one before, if any.
    fn belong(slf: &Bound<'_, Self>, module: &Bound<'_, PyModule>) -> Option<Py<Shortcut>> {
        let (new, its) = (slf.clone().unbind(), module.clone().unbind());
        let before = OF_MODULES.with(slf.py(), |all| {
            match all.iter_mut().find(|(module, _)| module.is(&its)) {
                Some((_, shortcut)) => Some(std::mem::replace(shortcut, new)),
                None => {
                    all.push((its, new));
                    None
                }
            }
        });
        before.flatten()
    }

    fn python(&self, call: &Call<'_, '_>) -> PyResult<&InPython> {
        let python = self.python.get(call.py);
        python.ok_or_else(|| PyTypeError::new_err("expected functions of Python"))
    }

    /// Whether what was learned holds.
    fn is_learned(&self) -> bool {
        self.learned.load(Ordering::Relaxed) == self.changes()
    }

    /// Whether the recording that it records into is under way.
    fn is_under_way(&self) -> bool {
        self.session.load(Ordering::Relaxed) == session::number()
    }

    /// What a call does; `None` leaves it to Python.
    fn answer<'a, 'py>(&self, call: &Call<'a, 'py>) -> Option<Answer<'a, 'py>> {
        if !self.is_learned() {
            return None;
        }
        let arguments = Arguments::of(call)?;
        if !self.is_under_way() {
            return Some(Answer::Nothing);
        }
        let level = arguments.level()?;
        let is_on = self.levels.load(Ordering::Relaxed) & level.bit() != 0;
        Some(match is_on {
            true => Answer::Record(level, arguments),
            false => Answer::Nothing,
        })
    }
}

/// Whether the call has no keywords but those of the drop-in.
fn has_usual_names(call: &Call<'_, '_>) -> bool {
    let Some(names) = call.names() else {
        return true;
    };
    let place = (names.as_ptr().addr() >> 4) % REMEMBERED;
    let is_kept = USUAL_NAMES.with(call.py, |kept| {
        let kept = kept[place].as_ref();
        kept.is_some_and(|kept| kept.as_ptr() == names.as_ptr())
    });
    is_kept == Some(true) || are_usual(call, names, place)
}

#[cold]
fn are_usual(call: &Call<'_, '_>, names: Borrowed<'_, '_, PyTuple>, place: usize) -> bool {
    let are_usual = Arguments::of(call).is_some();
    if are_usual {
        let names = names.to_owned().unbind();
        let replaced = USUAL_NAMES.with(call.py, |kept| kept[place].replace(names));
        drop(replaced); // after the look: dropping an object may run code
    }
    are_usual
}

/// What `answer` says, where nothing is recorded and the call is as most are. No value of the call is looked at.
fn nothing<R>(call: &Call<'_, '_>, answer: impl FnOnce(&InPython) -> R) -> Option<R> {
    call.only_positional()?;
    let find = |all: &mut Vec<(Py<PyModule>, Py<Shortcut>)>| {
        let (_, shortcut) = all.iter().find(|(module, _)| call.is_of(module))?;
        let shortcut = shortcut.get();
        let python = shortcut.python.get(call.py)?;
        let is_off = shortcut.is_learned() && !shortcut.is_under_way();
        is_off.then(|| answer(python))
    };
    let answer = OF_MODULES.with(call.py, find).flatten()?;
    has_usual_names(call).then_some(answer)
}

fn span(call: &Call<'_, '_>) -> PyResult<*mut ffi::PyObject> {
    match nothing(call, |python| python.nothing.clone_ref(call.py)) {
        Some(nothing) => Ok(nothing.into_ptr()),
        None => any_span(call),
    }
}

// Not inlined: what it needs of the stack would cost a call that records nothing.
#[inline(never)]
fn any_span(call: &Call<'_, '_>) -> PyResult<*mut ffi::PyObject> {
    let shortcut = Shortcut::of(call)?;
    let shortcut = shortcut.get();
    let python = shortcut.python(call)?;
    let made = match shortcut.answer(call) {
        None => None,
        Some(Answer::Nothing) => Some(python.nothing.clone_ref(call.py)),
        Some(Answer::Record(level, found)) => record_span(level, &found),
    };
    match made {
        Some(span) => Ok(span.into_ptr()),
        None => in_python(call, &python.span),
    }
}

/// A span, if name, category and args are of the types that they should be.
fn record_span(level: Level, found: &Arguments<'_, '_>) -> Option<Py<PyAny>> {
    let args = dict(found.args)?;
    let span = span::of_drop_in(level, found.category.as_deref(), &found.name, args);
    span.ok().map(|span| span.into_any().unbind())
}

fn instant(call: &Call<'_, '_>) -> PyResult<*mut ffi::PyObject> {
    match nothing(call, |_| ()) {
        Some(()) => Ok(call.py.None().into_ptr()),
        None => any_instant(call),
    }
}

#[inline(never)]
fn any_instant(call: &Call<'_, '_>) -> PyResult<*mut ffi::PyObject> {
    let shortcut = Shortcut::of(call)?;
    let shortcut = shortcut.get();
    let is_done = match shortcut.answer(call) {
        None => false,
        Some(Answer::Nothing) => true,
        Some(Answer::Record(level, found)) => record_instant(level, &found).is_some(),
    };
    match is_done {
        true => Ok(call.py.None().into_ptr()),
        false => in_python(call, &shortcut.python(call)?.instant),
    }
}

/// Records an instant, if name, category and args are of the types that they should be.
fn record_instant(level: Level, found: &Arguments<'_, '_>) -> Option<()> {
    let args = dict(found.args)?;
    profile::instant(
        level,
        found.category.as_deref(),
        &found.name,
        args.as_deref(),
    )
    .ok()
}

/// The args of a call: a dict, or nothing.
fn dict<'a, 'py>(
    args: Option<Borrowed<'a, 'py, PyAny>>,
) -> Option<Option<Borrowed<'a, 'py, PyDict>>> {
    match args.filter(|args| !args.is_none()) {
        None => Some(None),
        Some(args) => args.cast::<PyDict>().ok().map(Some),
    }
}

/// Makes the same call of a function of Python.
#[cold]
fn in_python(call: &Call<'_, '_>, function: &Py<PyAny>) -> PyResult<*mut ffi::PyObject> {
    let keywords = PyDict::new(call.py);
    for (key, value) in call.keywords() {
        keywords.set_item(key, value)?;
    }
    let positional = PyTuple::new(call.py, call.all_positional())?;
    let function = function.bind(call.py);
    Ok(function.call(positional, Some(&keywords))?.into_ptr())
}

call::entries! {
    span_entry => "profile_span", span;
    instant_entry => "profile_instant", instant;
}

const SPAN: &CStr = c"profile_span(name, *, cat='e2e', level='e2e', args=None)\n--\n\nA span of the process's recorder: a context manager. ``args`` is read when it ends.";

const INSTANT: &CStr = c"profile_instant(name, *, cat='e2e', level='e2e', args=None)\n--\n\nAn instant of the process's recorder.";
