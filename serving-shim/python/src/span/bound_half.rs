//! [`BoundHalf`]: `__enter__` or `__exit__` of a span that is recorded, as a `with` block finds them. To make and drop a method of Python's for each would take a third of an event.

use std::ffi::{c_int, c_uint, c_ulong, c_void};
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};

use pyo3::Borrowed;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::attached::{Attached, give_back_dropped};
use crate::span::{Span, spare};

/// A method of a span with the span.
#[repr(C)]
struct BoundHalf {
    _object: ffi::PyObject,
    /// What a call runs; the interpreter finds it by the type's `__vectorcalloffset__`.
    call: Option<ffi::vectorcallfunc>,
    /// A reference.
    span: *mut ffi::PyObject,
}

/// The memory of one that is gone.
struct Spare(*mut ffi::PyObject);

// SAFETY: nobody else has it, and any thread may use the interpreter's memory.
unsafe impl Send for Spare {}

/// Most that are kept: few blocks of a process begin or end at one time.
const MOST_SPARE: usize = 32;

static SPARE: Attached<Vec<Spare>> = Attached::new(Vec::new());

/// `Py_TPFLAGS_HAVE_VECTORCALL`, which Python has had since 3.9, and the headers of the stable ABI since 3.12.
const HAVE_VECTORCALL: c_ulong = 1 << 11;
/// In the number of arguments: the place before the first one may be written to.
const ARGUMENTS_OFFSET: usize = 1 << (usize::BITS - 1);

/// `__enter__` of this span.
pub(super) fn enter_of(kind: &Py<PyAny>, span: &Bound<'_, Span>) -> *mut ffi::PyObject {
    bind(kind, span, enter)
}

/// `__exit__` of this span.
pub(super) fn exit_of(kind: &Py<PyAny>, span: &Bound<'_, Span>) -> *mut ffi::PyObject {
    bind(kind, span, exit)
}

/// A new reference, or null with an error set.
fn bind(kind: &Py<PyAny>, span: &Bound<'_, Span>, call: ffi::vectorcallfunc) -> *mut ffi::PyObject {
    let kind = kind.as_ptr().cast::<ffi::PyTypeObject>();
    let half = match SPARE.with(span.py(), Vec::pop).flatten() {
        // SAFETY: memory of an object of this type, which nobody has.
        Some(Spare(half)) => unsafe { ffi::PyObject_Init(half, kind) },
        // SAFETY: the type is alive.
        None => unsafe { ffi::PyType_GenericAlloc(kind, 0) },
    };
    // SAFETY: null, or an object that nobody else has yet.
    if let Some(half) = unsafe { half.cast::<BoundHalf>().as_mut() } {
        half.call = Some(call);
        half.span = span.clone().into_ptr();
    }
    half
}

/// Gives the memory back, then the span.
unsafe extern "C" fn dealloc(object: *mut ffi::PyObject) {
    // SAFETY: the interpreter calls a slot with its thread attached.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: an object of this type that nobody has any more.
    let span = unsafe { (*object.cast::<BoundHalf>()).span };
    // SAFETY: as above.
    let kind = unsafe { ffi::Py_TYPE(object) };
    let keep = |spare: &mut Vec<Spare>| {
        let has_room = spare.len() < MOST_SPARE;
        if has_room {
            spare.push(Spare(object));
        }
        has_room
    };
    if SPARE.with(py, keep) != Some(true) {
        // SAFETY: the memory is of `PyType_GenericAlloc`, for a type without garbage collection.
        unsafe { ffi::PyObject_Free(object.cast()) };
    }
    // SAFETY: an object has a reference to its type, as it is made on the heap.
    unsafe { ffi::Py_DECREF(kind.cast()) };
    // SAFETY: the object's reference; null if the object was never made whole.
    let span = unsafe { Bound::from_owned_ptr_or_opt(py, span) };
    if let Some(Ok(span)) = span.map(|span| span.cast_into_exact::<Span>()) {
        spare::let_go(span); // last: it may run code
    }
}

unsafe extern "C" fn enter(
    half: *mut ffi::PyObject,
    _arguments: *const *mut ffi::PyObject,
    count: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    if count & !ARGUMENTS_OFFSET > 0 || !names.is_null() {
        return refuse("__enter__() takes no arguments");
    }
    run(half, |span| {
        Span::enter(span);
        span.clone().into_any()
    })
}

unsafe extern "C" fn exit(
    half: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let count = count & !ARGUMENTS_OFFSET;
    if count > 3 || !names.is_null() {
        return refuse("__exit__() takes at most three arguments, and no keywords");
    }
    run(half, |span| {
        give_back_dropped(span.py());
        let has_kind = count > 0;
        // SAFETY: so many pointers lie there.
        let kind = has_kind.then(|| unsafe { *arguments });
        // SAFETY: the interpreter keeps the arguments alive during the call.
        let kind = kind.map(|kind| unsafe { Borrowed::from_ptr(span.py(), kind) });
        let kind = kind.filter(|kind| !kind.is_none());
        Span::exit(span, kind.as_deref());
        span.py().None().into_bound(span.py())
    })
}

/// A call with other arguments than those of a block.
#[cold]
fn refuse(why: &'static str) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls with its thread attached.
    let py = unsafe { Python::assume_attached() };
    PyTypeError::new_err(why).restore(py);
    null_mut()
}

/// Runs what a half does; a panic of ours returns `None` to the program.
fn run(
    half: *mut ffi::PyObject,
    act: impl for<'py> FnOnce(&Bound<'py, Span>) -> Bound<'py, PyAny>,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls with its thread attached.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: it calls with an object of this type, which it keeps alive, and so its span.
    let span = unsafe { (*half.cast::<BoundHalf>()).span };
    // SAFETY: as above, or null.
    let span = unsafe { Borrowed::from_ptr_or_opt(py, span) };
    let span = span.and_then(|span| span.cast_exact::<Span>().ok());
    let done = catch_unwind(AssertUnwindSafe(|| span.map(|span| act(&span).into_ptr())));
    done.ok().flatten().unwrap_or_else(|| py.None().into_ptr())
}

/// A call that does not come as a vector.
unsafe extern "C" fn call(
    half: *mut ffi::PyObject,
    arguments: *mut ffi::PyObject,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls a slot with its thread attached.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: a tuple, which the interpreter keeps alive.
    let arguments = unsafe { Borrowed::from_ptr(py, arguments) };
    let arguments = arguments.cast::<PyTuple>().ok();
    let vector: Vec<_> = arguments.map_or(Vec::new(), |all| {
        all.iter_borrowed().map(|one| one.as_ptr()).collect()
    });
    // SAFETY: null, or a dict, which the interpreter keeps alive.
    let keywords = unsafe { Borrowed::from_ptr_or_opt(py, keywords) };
    let keywords = keywords.and_then(|all| all.cast::<PyDict>().ok());
    if keywords.is_some_and(|all| !all.is_empty()) {
        return refuse("__enter__() and __exit__() take no keywords");
    }
    // SAFETY: an object of this type.
    let act = unsafe { (*half.cast::<BoundHalf>()).call };
    let Some(act) = act else {
        return refuse("expected the method of a span");
    };
    // SAFETY: the vector and its length.
    unsafe { act(half, vector.as_ptr(), vector.len(), null_mut()) }
}

/// Their type.
pub(super) fn kind(py: Python<'_>) -> PyResult<Py<PyAny>> {
    SPARE.with(py, |spare| spare.reserve(MOST_SPARE));
    let mut members = [
        ffi::PyMemberDef {
            name: c"__vectorcalloffset__".as_ptr(),
            type_code: ffi::Py_T_PYSSIZET,
            offset: ffi::Py_ssize_t::try_from(offset_of!(BoundHalf, call)).unwrap_or(0),
            flags: ffi::Py_READONLY,
            doc: null(),
        },
        ffi::PyMemberDef {
            name: c"__self__".as_ptr(),
            type_code: ffi::Py_T_OBJECT_EX,
            offset: ffi::Py_ssize_t::try_from(offset_of!(BoundHalf, span)).unwrap_or(0),
            flags: ffi::Py_READONLY,
            doc: null(),
        },
        ffi::PyMemberDef::default(),
    ];
    let slot = |slot: c_int, pfunc: *mut c_void| ffi::PyType_Slot { slot, pfunc };
    let mut slots = [
        slot(ffi::Py_tp_members, members.as_mut_ptr().cast()),
        slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
        slot(ffi::Py_tp_call, call as *mut c_void),
        slot(0, null_mut()),
    ];
    let closed = ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION | ffi::Py_TPFLAGS_IMMUTABLETYPE;
    let flags = ffi::Py_TPFLAGS_DEFAULT | HAVE_VECTORCALL | closed;
    let mut spec = ffi::PyType_Spec {
        name: c"sa_profile.SpanHalf".as_ptr(),
        basicsize: c_int::try_from(size_of::<BoundHalf>()).unwrap_or(0),
        itemsize: 0,
        flags: c_uint::try_from(flags).unwrap_or(0),
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: name, members and slots are as the flags say. What is kept of them is copied, but for the name, which is static, and the functions.
    let kind = unsafe { ffi::PyType_FromSpec(&raw mut spec) };
    // SAFETY: a new reference, or null with an error set.
    unsafe { Bound::from_owned_ptr_or_err(py, kind) }.map(Bound::unbind)
}
