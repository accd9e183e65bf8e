//! Functions that take their keywords as they lie on the interpreter's stack: no dict is made for a call.

pub(crate) mod args;
pub(crate) mod id;
pub(crate) mod misuse;
pub(crate) mod whole;

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyModule, PyTuple};
use pyo3::{Borrowed, ffi};

use crate::attached::give_back_dropped;

/// What the interpreter calls.
pub(crate) type Entry = ffi::PyCFunctionFastWithKeywords;

/// The arguments of one call.
pub(crate) struct Call<'a, 'py> {
    pub(crate) py: Python<'py>,
    function: &'static str,
    positional: &'a [*mut ffi::PyObject],
    keywords: &'a [*mut ffi::PyObject],
    names: Option<Borrowed<'a, 'py, PyTuple>>,
}

impl<'a, 'py> Call<'a, 'py> {
    /// The positional arguments, of which there must be `N`.
    #[inline]
    pub(crate) fn positional<const N: usize>(
        &self,
        names: [&str; N],
    ) -> PyResult<[Borrowed<'a, 'py, PyAny>; N]> {
        let found = <&[*mut ffi::PyObject; N]>::try_from(self.positional);
        let found = found.map_err(|_| self.refused(&names))?;
        // SAFETY: the interpreter keeps the arguments alive during the call.
        Ok(found.map(|object| unsafe { Borrowed::from_ptr(self.py, object) }))
    }

    /// The error where there are not as many as these.
    #[cold]
    fn refused(&self, names: &[&str]) -> PyErr {
        let (function, given) = (self.function, self.positional.len());
        PyTypeError::new_err(format!(
            "{function}() takes {} positional arguments ({}), {given} given",
            names.len(),
            names.join(", ")
        ))
    }

    /// The name of a keyword.
    fn name(&self, at: usize) -> Option<Borrowed<'a, 'py, PyAny>> {
        let names = self.names.as_ref()?;
        let name = names.get_borrowed_item(at).ok()?.as_ptr();
        // SAFETY: the tuple keeps it alive, and the interpreter the tuple during the call.
        Some(unsafe { Borrowed::from_ptr(self.py, name) })
    }

    /// The names of the keywords, as the call's code has them: one tuple for each call site.
    pub(crate) fn names(&self) -> Option<Borrowed<'a, 'py, PyTuple>> {
        self.names
    }

    /// The value of the keyword at a place among the names.
    pub(crate) fn keyword(&self, at: usize) -> Option<Borrowed<'a, 'py, PyAny>> {
        let value = *self.keywords.get(at)?;
        // SAFETY: the interpreter keeps the arguments alive during the call.
        Some(unsafe { Borrowed::from_ptr(self.py, value) })
    }

    /// The keyword arguments in the order of the call.
    pub(crate) fn keywords(
        &self,
    ) -> impl Iterator<Item = (Borrowed<'a, 'py, PyAny>, Borrowed<'a, 'py, PyAny>)> + '_ {
        let values = self.keywords.iter();
        values.enumerate().filter_map(|(at, value)| {
            // SAFETY: as above.
            let value = unsafe { Borrowed::from_ptr(self.py, *value) };
            Some((self.name(at)?, value))
        })
    }
}

/// Runs a function's body: an error is raised, a panic of ours returns `None` to the program.
///
/// # Safety
///
/// The pointers are those the interpreter passed to a function with the flags of [`add`], and its thread is attached.
pub(crate) unsafe fn enter(
    function: &'static str,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
    body: impl FnOnce(&Call<'_, '_>) -> PyResult<*mut ffi::PyObject>,
) -> *mut ffi::PyObject {
    // SAFETY: the caller's thread is attached.
    let py = unsafe { Python::assume_attached() };
    give_back_dropped(py);
    let run = || {
        // SAFETY: null or a tuple, by the calling convention.
        let names = (!names.is_null()).then(|| unsafe { Borrowed::from_ptr(py, names) });
        let names = names.and_then(|names| names.cast_exact::<PyTuple>().ok());
        let more = names.map_or(0, |names| names.len());
        let count = usize::try_from(count).unwrap_or(0);
        let all: &[*mut ffi::PyObject] = if arguments.is_null() {
            &[]
        } else {
            // SAFETY: the convention's vector: the positional arguments, then the values of the keywords.
            unsafe { std::slice::from_raw_parts(arguments, count + more) }
        };
        let (positional, keywords) = all.split_at_checked(count).unwrap_or((all, &[]));
        let call = Call {
            py,
            function,
            positional,
            keywords,
            names,
        };
        body(&call)
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(object)) => object,
        Ok(Err(error)) => {
            error.restore(py);
            std::ptr::null_mut()
        }
        Err(_) => py.None().into_ptr(),
    }
}

/// Adds a function that is called by [`Entry`] to a module.
pub(crate) fn add(
    module: &Bound<'_, PyModule>,
    name: &'static CStr,
    entry: Entry,
    doc: &'static CStr,
) -> PyResult<()> {
    let module_name = module.name()?;
    let function = definition(name, entry, doc);
    // SAFETY: the definition is never freed, and describes a function of the kind its flags say.
    let function =
        unsafe { ffi::PyCFunction_NewEx(function, std::ptr::null_mut(), module_name.as_ptr()) };
    // SAFETY: a new reference, or null with an error set.
    let function = unsafe { Bound::from_owned_ptr_or_err(module.py(), function) }?;
    module.add(name.to_str().unwrap_or_default(), function)
}

fn definition(name: &'static CStr, entry: Entry, doc: &'static CStr) -> *mut ffi::PyMethodDef {
    // Leaked: the function object refers to it as long as it lives.
    Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunctionFastWithKeywords: entry,
        },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: doc.as_ptr(),
    }))
}

/// The functions that the interpreter calls, one for each body.
macro_rules! entries {
    ($($entry:ident => $name:literal, $body:path;)*) => {$(
        unsafe extern "C" fn $entry(
            _owner: *mut pyo3::ffi::PyObject,
            arguments: *const *mut pyo3::ffi::PyObject,
            count: pyo3::ffi::Py_ssize_t,
            names: *mut pyo3::ffi::PyObject,
        ) -> *mut pyo3::ffi::PyObject {
            // SAFETY: the interpreter calls it with the convention it was added with.
            unsafe { $crate::call::enter($name, arguments, count, names, |call| $body(call)) }
        }
    )*};
}
pub(crate) use entries;
