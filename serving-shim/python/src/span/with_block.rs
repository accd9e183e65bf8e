//! What a `with` block finds of a span: its methods, and while nothing is recorded functions that do nothing.
//!
//! A block asks the type for `__enter__` and `__exit__`, and binds both before it calls the first. Binding a method makes an object; what does nothing needs none. So what a block
//! that began unrecorded calls at its end knows of it, and leaves alone what others have opened meanwhile. Who calls `__enter__` without having asked for both will ask
//! for its end later: for that one the span has to remember the beginning. Python asks for `__exit__` first since 3.14, and Cython always has. So who asks for that
//! without a call, and then calls `__enter__`, is taken for a block.

use std::cell::Cell;
use std::ffi::{CStr, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use pyo3::Borrowed;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::{bound_half, nothing};
use crate::call;
use crate::span::Span;

/// The two methods, and what stands for them.
static PARTS: PyOnceLock<Parts> = PyOnceLock::new();

struct Parts {
    enter: Py<PyAny>,
    exit: Py<PyAny>,
    /// The type of the two with a span, as a block finds them.
    bound_half: Py<PyAny>,
    /// What `__enter__` is while nothing is recorded.
    nothing_enter: Py<PyAny>,
    /// What `__exit__` is then.
    nothing_exit: Py<PyAny>,
}

/// What a block asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Enter,
    Exit,
}

/// A span of which nothing is recorded, and somebody has asked for one of the two, and not called it yet.
struct Asked {
    /// A block gives its own reference back before it calls.
    span: Py<PyAny>,
    half: Half,
    /// Whether the other one was asked for too, as a block does.
    is_block: bool,
}

thread_local! {
    /// The last one. Where nobody calls it, the thread gives it back when it ends.
    static ASKED: Cell<Option<Asked>> = const { Cell::new(None) };
}

impl Asked {
    /// Whether this half of this span is the one that was not asked for yet, so that who asks is a block.
    fn awaits(&self, span: *mut ffi::PyObject, second: Half) -> bool {
        self.span.as_ptr() == span && self.half != second && !self.is_block
    }
}

/// The span, if nothing is recorded of it.
fn unrecorded<'py>(py: Python<'py>, span: *mut ffi::PyObject) -> Option<Borrowed<'py, 'py, PyAny>> {
    // SAFETY: null, or an object that the interpreter keeps alive during the call.
    let span = unsafe { Borrowed::from_ptr_or_opt(py, span) };
    span.filter(|span| {
        span.cast_exact::<Span>()
            .is_ok_and(|span| Span::is_unrecorded(&span))
    })
}

/// Whether a half does nothing: so does the other one of a block, or nothing is recorded of the span, which is remembered then.
fn is_nothing(py: Python<'_>, span: *mut ffi::PyObject, half: Half) -> bool {
    let look = |place: &Cell<Option<Asked>>| {
        let mut before = place.take();
        if let Some(asked) = before.as_mut().filter(|asked| asked.awaits(span, half)) {
            asked.is_block = true;
            place.set(before);
            return (true, None);
        }
        let asked = unrecorded(py, span).map(|span| Asked {
            span: span.to_owned().unbind(),
            half,
            is_block: false,
        });
        let is_unrecorded = asked.is_some();
        if is_unrecorded {
            place.set(asked);
        }
        (is_unrecorded, before)
    };
    let Ok((is_nothing, before)) = ASKED.try_with(look) else {
        return false; // the thread ends
    };
    if let Some(before) = before {
        drop(before.span.into_bound(py)); // now: the thread is attached, of which a `Py` alone knows nothing here
    }
    is_nothing
}

/// What a block finds as `__enter__`.
unsafe extern "C" fn find_enter(
    _descriptor: *mut ffi::PyObject,
    span: *mut ffi::PyObject,
    _kind: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guarded(|py, parts| match is_nothing(py, span, Half::Enter) {
        true => parts.nothing_enter.clone_ref(py).into_ptr(),
        false => bound(py, span, &parts.enter, |span| {
            bound_half::enter_of(&parts.bound_half, span)
        }),
    })
}

/// What a block finds as `__exit__`.
unsafe extern "C" fn find_exit(
    _descriptor: *mut ffi::PyObject,
    span: *mut ffi::PyObject,
    _kind: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guarded(|py, parts| match is_nothing(py, span, Half::Exit) {
        true => parts.nothing_exit.clone_ref(py).into_ptr(),
        false => bound(py, span, &parts.exit, |span| {
            bound_half::exit_of(&parts.bound_half, span)
        }),
    })
}

/// A half of a span that is recorded, or what the type has where no span asks; a new reference, or null with an error set.
fn bound(
    py: Python<'_>,
    span: *mut ffi::PyObject,
    method: &Py<PyAny>,
    half_of: impl FnOnce(&Bound<'_, Span>) -> *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: null, or an object that the interpreter keeps alive during the call.
    let span = unsafe { Borrowed::from_ptr_or_opt(py, span) };
    match span.map(|span| span.cast_exact::<Span>()) {
        None => method.clone_ref(py).into_ptr(),
        Some(Ok(span)) => half_of(&span),
        Some(Err(_)) => {
            PyTypeError::new_err("expected a span").restore(py);
            null_mut()
        }
    }
}

/// Runs the body of a slot; a panic of ours is an error to the program, as there is nothing else that a block could call.
fn guarded(body: impl FnOnce(Python<'_>, &Parts) -> *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls a slot with its thread attached.
    let py = unsafe { Python::assume_attached() };
    let found = PARTS
        .get(py)
        .and_then(|parts| catch_unwind(AssertUnwindSafe(|| body(py, parts))).ok());
    found.unwrap_or_else(|| {
        PyTypeError::new_err("a span could not be entered").restore(py);
        null_mut()
    })
}

/// Gives the span to the block that asked for it. Outside of one it begins as any other does, so that its end finds the beginning.
fn enter_nothing(py: Python<'_>) -> *mut ffi::PyObject {
    let Ok(Some(asked)) = ASKED.try_with(Cell::take) else {
        return py.None().into_ptr();
    };
    let span = asked.span.into_bound(py);
    if !asked.is_block
        && let Ok(span) = span.cast_exact::<Span>()
    {
        Span::enter(span);
    }
    span.into_ptr()
}

call::bare_entries! {
    enter_entry => enter_nothing;
}

/// An object that stands on a type in the place of a method, and does nothing but to be asked by `find`.
fn descriptor<'py>(
    py: Python<'py>,
    name: &'static CStr,
    find: ffi::descrgetfunc,
) -> PyResult<Bound<'py, PyAny>> {
    let mut slots = [
        ffi::PyType_Slot {
            slot: ffi::Py_tp_descr_get,
            pfunc: find as *mut c_void,
        },
        ffi::PyType_Slot {
            slot: 0,
            pfunc: null_mut(),
        },
    ];
    let mut spec = ffi::PyType_Spec {
        name: name.as_ptr(),
        basicsize: 0, // that of an object
        itemsize: 0,
        flags: c_uint::try_from(ffi::Py_TPFLAGS_DEFAULT).unwrap_or(0),
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: name and slots are as the flags say; what is kept of them is the name, which is static, and the function.
    let kind = unsafe { ffi::PyType_FromSpec(&raw mut spec) };
    // SAFETY: a new reference, or null with an error set.
    let kind = unsafe { Bound::from_owned_ptr_or_err(py, kind) }?;
    kind.call0()
}

/// Puts these in the place of the type's own methods.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let kind = py.get_type::<Span>();
    let doc = c"Does nothing but to return the span.";
    let parts = Parts {
        enter: kind.getattr("__enter__")?.unbind(),
        exit: kind.getattr("__exit__")?.unbind(),
        bound_half: bound_half::kind(py)?,
        nothing_enter: call::function(module, c"__enter__", enter_entry, doc)?.unbind(),
        nothing_exit: nothing::exit(module)?.unbind(),
    };
    let _ = PARTS.set(py, parts); // once in a process
    kind.setattr(
        "__enter__",
        descriptor(py, c"sa_profile.SpanEnter", find_enter)?,
    )?;
    kind.setattr(
        "__exit__",
        descriptor(py, c"sa_profile.SpanExit", find_exit)?,
    )
}
