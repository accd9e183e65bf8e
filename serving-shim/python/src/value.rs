//! Python objects → JSON text of args. Numbers, texts, lists and dicts natively, UUIDs as texts; anything else by its type's name: it is never printed, and never
//! copied from a device.

mod key;

use std::ptr::null_mut;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use pyo3::{Borrowed, ffi};
use sa_recorder::host::note_cut;
use sa_recorder::{Known, Value};
use smallvec::SmallVec;

use crate::call::id;
use crate::value::key::{KEYS, Keys};

/// How deep lists and dicts are followed.
const MAX_DEPTH: u32 = 8;
/// Most elements of a list or dict that are kept.
const MAX_ELEMENTS: usize = 1024;
/// Where the args of an event are this long, what follows is left out: lists of lists multiply, and one may hold itself.
const MAX_BYTES: usize = 128 << 10;
/// Most pairs that are appended without a copy of the dict: that many stay below all bounds.
const MAX_PLAIN: usize = 32;
/// Room for some args, so that the text does not grow in small steps.
const FIRST_BYTES: usize = 96;
/// Stands for something that is left out.
const LEFT_OUT: &str = "…";

/// The JSON text of a value, which is written as it is where the value is an arg of an event. Classes that extend this one keep what it was made of.
#[pyclass(frozen, subclass, module = "sa_profile")]
pub(crate) struct EncodedValue(pub(crate) Vec<u8>);

/// A value whose text is made.
pub(crate) struct Encoded(Vec<u8>);

impl Encoded {
    pub(crate) fn of(value: &Bound<'_, PyAny>) -> Encoded {
        let mut text = Vec::new();
        write_whole(&mut text, value);
        Encoded(text)
    }
}

impl Value for Encoded {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn known(&self) -> Known {
        Known::Json
    }
}

/// Appends `"key":value`, with a comma before it unless the text is empty.
pub(crate) fn push(text: &mut Vec<u8>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) {
    begin(text);
    write_key(text, key, 0);
    text.push(b':');
    write_whole(text, value);
}

/// The same for a key that is text.
pub(crate) fn push_named(text: &mut Vec<u8>, key: &str, value: &Bound<'_, PyAny>) {
    begin(text);
    key.write(text);
    text.push(b':');
    write_whole(text, value);
}

/// The same for a value that is not Python's.
pub(crate) fn push_native(text: &mut Vec<u8>, key: &str, value: &(impl Value + ?Sized)) {
    begin(text);
    key.write(text);
    text.push(b':');
    value.write(text);
}

/// Appends a series of a counter. Returns true if its value is a finite number or a truth; the recorder leaves out any other.
pub(crate) fn push_series(
    text: &mut Vec<u8>,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> bool {
    begin(text);
    write_key(text, key, 0);
    text.push(b':');
    let at = text.len();
    write_whole(text, value);
    matches!(text.get(at), Some(b'-' | b'0'..=b'9' | b't' | b'f'))
}

fn begin(text: &mut Vec<u8>) {
    if text.is_empty() {
        text.reserve(FIRST_BYTES);
    } else {
        text.push(b',');
    }
}

/// Appends what a dict holds.
pub(crate) fn push_all(text: &mut Vec<u8>, dict: &Bound<'_, PyDict>) {
    let plain = KEYS.with(dict.py(), |keys| push_plain(keys, text, dict));
    let done = plain.unwrap_or(0);
    if done == dict.len() {
        return;
    }
    for (key, value) in pairs(dict).into_iter().skip(done) {
        push(text, &key, &value);
    }
    if dict.len() > MAX_ELEMENTS {
        note_cut();
    }
}

/// Appends the first texts and numbers of a small dict, up to one that is neither, and returns how many there were. No code of Python runs, so the dict stays as it is, and need not be
/// copied. After an error, whose object may have had garbage collected, nothing of the dict is looked at.
fn push_plain(keys: &mut Keys, text: &mut Vec<u8>, dict: &Bound<'_, PyDict>) -> usize {
    if dict.len() > MAX_PLAIN {
        return 0;
    }
    if text.is_empty() {
        text.reserve(FIRST_BYTES);
    }
    let (mut at, mut key, mut value) = (0, null_mut(), null_mut());
    let mut done = 0;
    // SAFETY: the dict is alive and unchanged since the last turn; the pointers are to places for borrowed references.
    while unsafe { ffi::PyDict_Next(dict.as_ptr(), &raw mut at, &raw mut key, &raw mut value) } != 0
    {
        // SAFETY: the dict holds it.
        let key = unsafe { Borrowed::from_ptr(dict.py(), key) };
        // SAFETY: as above.
        let value = unsafe { Borrowed::from_ptr(dict.py(), value) };
        let Ok(key) = key.cast_exact::<PyString>() else {
            break;
        };
        let before = text.len();
        if !key::push(keys, text, &key) || !write_plain(text, &value) {
            text.truncate(before);
            break;
        }
        done += 1;
    }
    done
}

/// The same for a list of texts, numbers and the like; whether it is written whole.
pub(crate) fn write_plain_list(text: &mut Vec<u8>, list: &Bound<'_, PyList>) -> bool {
    if list.len() > MAX_ELEMENTS {
        return false;
    }
    text.push(b'[');
    for (at, item) in list.iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        if text.len() > MAX_BYTES || !write_plain(text, &item) {
            return false;
        }
    }
    text.push(b']');
    true
}

/// Appends the value of an argument as JSON, and counts it if something of it is left out.
fn write_whole(text: &mut Vec<u8>, value: &Bound<'_, PyAny>) {
    if write(text, value, 0) {
        note_cut();
    }
}

/// Appends a value as JSON; most are of these types and not of a subclass. Returns true if elements of it are left out; texts count by themselves.
fn write(text: &mut Vec<u8>, value: &Bound<'_, PyAny>, depth: u32) -> bool {
    !write_plain(text, value) && write_any(text, value, depth)
}

/// The same for a text, a number, a truth, `None`, or a value whose text is made: no code of Python runs. Whether it is one. A text with lone surrogates is none.
fn write_plain(text: &mut Vec<u8>, value: &Bound<'_, PyAny>) -> bool {
    if let Ok(number) = value.cast_exact::<PyInt>() {
        let Some(number) = small_int(number) else {
            return false;
        };
        number.write(text);
    } else if let Ok(string) = value.cast_exact::<PyString>() {
        let Ok(string) = string.to_str() else {
            return false;
        };
        string.write(text);
    } else if let Ok(number) = value.cast_exact::<PyFloat>() {
        number.value().write(text);
    } else if value.is_none() {
        text.extend_from_slice(b"null");
    } else if let Ok(truth) = value.cast_exact::<PyBool>() {
        truth.is_true().write(text);
    } else if let Ok(encoded) = value.cast::<EncodedValue>() {
        text.extend_from_slice(&encoded.get().0);
    } else {
        return false;
    }
    true
}

fn write_any(text: &mut Vec<u8>, value: &Bound<'_, PyAny>, depth: u32) -> bool {
    if let Ok(string) = value.cast::<PyString>() {
        write_string(text, string);
    } else if let Ok(number) = value.cast::<PyInt>() {
        write_int(text, number);
    } else if let Ok(number) = value.cast::<PyFloat>() {
        number.value().write(text);
    } else if depth >= MAX_DEPTH || text.len() > MAX_BYTES {
        LEFT_OUT.write(text);
        return true;
    } else if let Ok(list) = value.cast::<PyList>() {
        return write_list(text, list.iter(), list.len(), depth);
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        return write_list(text, tuple.iter(), tuple.len(), depth);
    } else if let Ok(dict) = value.cast::<PyDict>() {
        return write_dict(text, dict, depth);
    } else {
        write_other(text, value);
    }
    false
}

fn write_string(text: &mut Vec<u8>, string: &Bound<'_, PyString>) {
    match string.to_str() {
        Ok(string) => string.write(text),
        Err(_) => string.to_string_lossy().write(text), // lone surrogates
    }
}

/// A number of 64 bits with a sign. No exception is made where it is none.
fn small_int(number: &Bound<'_, PyInt>) -> Option<i64> {
    let mut overflow = 0;
    // SAFETY: an int, which is alive, and a place for a number.
    let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(number.as_ptr(), &raw mut overflow) };
    (overflow == 0).then_some(value)
}

/// A number as far as 64 bits go; a larger one as text, since viewers read doubles.
fn write_int(text: &mut Vec<u8>, number: &Bound<'_, PyInt>) {
    if let Some(number) = small_int(number) {
        number.write(text);
    } else if let Ok(number) = number.extract::<u64>() {
        number.write(text);
    } else if let Ok(number) = number.extract::<i128>() {
        number.to_string().write(text);
    } else {
        "an int of over 128 bits".write(text);
    }
}

fn write_list<'py>(
    text: &mut Vec<u8>,
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    len: usize,
    depth: u32,
) -> bool {
    text.push(b'[');
    let (left_out, mut is_cut) = write_each(text, items.take(MAX_ELEMENTS), len, |text, item| {
        write(text, &item, depth + 1)
    });
    if let Some(more) = left_out {
        format!("…[+{more} more]").write(text);
        is_cut = true;
    }
    text.push(b']');
    is_cut
}

fn write_dict(text: &mut Vec<u8>, dict: &Bound<'_, PyDict>, depth: u32) -> bool {
    text.push(b'{');
    let items = pairs(dict).into_iter();
    let (left_out, mut is_cut) = write_each(text, items, dict.len(), |text, (key, value)| {
        write_key(text, &key, depth);
        text.push(b':');
        write(text, &value, depth + 1)
    });
    if let Some(more) = left_out {
        LEFT_OUT.write(text);
        text.push(b':');
        format!("+{more} more").write(text);
        is_cut = true;
    }
    text.push(b'}');
    is_cut
}

/// Writes elements with commas between them, until the text is too long. Returns how many of `len` were left out, with a comma written for them, or `None` if all were written; and
/// whether something of an element was left out.
fn write_each<T>(
    text: &mut Vec<u8>,
    items: impl Iterator<Item = T>,
    len: usize,
    write: impl Fn(&mut Vec<u8>, T) -> bool,
) -> (Option<usize>, bool) {
    let (mut written, mut is_cut) = (0, false);
    for item in items {
        if text.len() > MAX_BYTES {
            break;
        }
        if written > 0 {
            text.push(b',');
        }
        is_cut |= write(text, item);
        written += 1;
    }
    let left_out = len.checked_sub(written).filter(|more| *more > 0);
    if left_out.is_some() && written > 0 {
        text.push(b',');
    }
    (left_out, is_cut)
}

/// A key and its value.
type Pair<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// The items of a dict that are written. A copy: another thread may change the dict while a value is looked at. None does while it is copied, which runs no code of Python.
fn pairs<'py>(dict: &Bound<'py, PyDict>) -> SmallVec<[Pair<'py>; 8]> {
    dict.iter().take(MAX_ELEMENTS).collect()
}

/// Keys are texts in JSON: any other is written as its value's text.
fn write_key(text: &mut Vec<u8>, key: &Bound<'_, PyAny>, depth: u32) {
    if let Ok(key) = key.cast_exact::<PyString>() {
        return write_string(text, key);
    }
    let mut other = Vec::new();
    write(&mut other, key, depth + 1);
    String::from_utf8_lossy(&other)
        .trim_matches('"')
        .write(text);
}

/// A number of numpy is a number, a UUID its text; of anything else the type's name.
fn write_other(text: &mut Vec<u8>, value: &Bound<'_, PyAny>) {
    let kind = value.get_type();
    let module = kind.module();
    let module = module
        .as_ref()
        .map_or("", |module| module.to_str().unwrap_or(""));
    let name = kind.qualname();
    let name = name.as_ref().map_or("", |name| name.to_str().unwrap_or(""));
    if module == "numpy" && is_numpy_number(name) && write_numpy_number(text, value).is_some() {
        return;
    }
    if id::is_uuid(value)
        && let Ok(uuid) = value.str()
    {
        return write_string(text, &uuid);
    }
    match module {
        "" | "builtins" | "__main__" => name.write(text),
        module => format!("{module}.{name}").write(text),
    }
}

fn is_numpy_number(name: &str) -> bool {
    ["int", "uint", "float", "bool"]
        .iter()
        .any(|kind| name.starts_with(kind))
}

fn write_numpy_number(text: &mut Vec<u8>, value: &Bound<'_, PyAny>) -> Option<()> {
    let value = value.call_method0("item").ok()?;
    if let Ok(truth) = value.cast::<PyBool>() {
        truth.is_true().write(text);
    } else if let Ok(number) = value.cast::<PyInt>() {
        write_int(text, number);
    } else {
        value.cast::<PyFloat>().ok()?.value().write(text);
    }
    Some(())
}
