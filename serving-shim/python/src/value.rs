//! Encodes Python objects as JSON text for args. Numbers, texts, lists and dicts become their JSON counterparts, and UUIDs become texts. Any other object is recorded as the name of its
//! type: it is never printed or copied from a device.

mod key;

use std::ptr::null_mut;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use pyo3::{Borrowed, ffi};
use sa_recorder::host::count_cut;
use sa_recorder::{TextGuarantee, Value};
use smallvec::SmallVec;

use crate::call::id;
use crate::value::key::{KEYS, Keys};

/// Maximum depth of nested lists and dicts.
const MAX_DEPTH: u32 = 8;
/// Maximum number of recorded elements of a list or dict.
const MAX_ELEMENTS: usize = 1024;
/// Length of an event's args from which the rest is left out, because nested lists multiply, and a list may contain itself.
const MAX_BYTES: usize = 128 << 10;
/// Maximum number of pairs that are appended without a copy of the dict. So few cannot exceed any other limit.
const MAX_PLAIN: usize = 32;
/// Initial capacity, so that the text does not grow in small steps.
const INITIAL_BYTES: usize = 96;
/// Stands for values that are left out.
const LEFT_OUT: &str = "…";

/// The JSON text of a value, which is copied into an event's args. Subclasses store the value that it was made from.
#[pyclass(frozen, subclass, module = "sa_profile")]
pub(crate) struct EncodedValue(pub(crate) Vec<u8>);

/// A value that is already encoded.
pub(crate) struct Encoded(Vec<u8>);

impl Encoded {
    pub(crate) fn new(value: &Bound<'_, PyAny>) -> Encoded {
        let mut text = Vec::new();
        write_whole(&mut text, value);
        Encoded(text)
    }
}

impl Value for Encoded {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn guarantee(&self) -> TextGuarantee {
        TextGuarantee::Json
    }
}

/// Appends the arg `"key":value` to the encoded args in `text`, with a comma before it unless the text is empty.
pub(crate) fn push(text: &mut Vec<u8>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) {
    begin(text);
    write_key(text, key, 0);
    text.push(b':');
    write_whole(text, value);
}

/// Appends the arg `"key":value` to the encoded args in `text`. The key is a Rust text, and the value a Python object.
pub(crate) fn push_named(text: &mut Vec<u8>, key: &str, value: &Bound<'_, PyAny>) {
    begin(text);
    key.write(text);
    text.push(b':');
    write_whole(text, value);
}

/// Appends the arg `"key":value` to the encoded args in `text`. Neither the key nor the value is a Python object.
pub(crate) fn push_native(text: &mut Vec<u8>, key: &str, value: &(impl Value + ?Sized)) {
    begin(text);
    key.write(text);
    text.push(b':');
    value.write(text);
}

/// Appends one series of a counter, `"key":value`, to the encoded series in `text`. Returns true if the value is a finite number or a bool. The recorder
/// leaves out all others.
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
        text.reserve(INITIAL_BYTES);
    } else {
        text.push(b',');
    }
}

/// Appends all pairs of a dict to the encoded args in `text`.
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
        count_cut();
    }
}

/// Appends the leading texts and numbers of a small dict to the encoded args, up to the first other value, and returns how many there were. No Python code
/// runs, so the dict cannot change, and need not be copied. After an error, whose object may have triggered the garbage collector, the dict is not accessed
/// again.
fn push_plain(keys: &mut Keys, text: &mut Vec<u8>, dict: &Bound<'_, PyDict>) -> usize {
    if dict.len() > MAX_PLAIN {
        return 0;
    }
    if text.is_empty() {
        text.reserve(INITIAL_BYTES);
    }
    let (mut at, mut key, mut value) = (0, null_mut(), null_mut());
    let mut done = 0;
    // SAFETY: the dict is alive and unchanged since the last iteration. The pointers are to places for borrowed references.
    while unsafe { ffi::PyDict_Next(dict.as_ptr(), &raw mut at, &raw mut key, &raw mut value) } != 0
    {
        // SAFETY: the dict keeps it alive.
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

/// Appends a list of texts, numbers and other plain values as JSON. Returns false if the list contains others or is too long, which leaves a part of it in the
/// text.
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

/// Appends the value of an arg as JSON, and counts the arg as cut if something in it is left out.
fn write_whole(text: &mut Vec<u8>, value: &Bound<'_, PyAny>) {
    if write(text, value, 0) {
        count_cut();
    }
}

/// Appends any Python value as JSON. `depth` is the number of lists and dicts around it. Returns true if elements are left out. Texts that are cut are counted
/// elsewhere.
fn write(text: &mut Vec<u8>, value: &Bound<'_, PyAny>, depth: u32) -> bool {
    !write_plain(text, value) && write_any(text, value, depth)
}

/// Appends a Python value as JSON if it is a text, a 64-bit int, a float, a bool, `None`, or already encoded. Runs no Python code. Returns false, and appends
/// nothing, for all other values and for texts with lone surrogates.
fn write_plain(text: &mut Vec<u8>, value: &Bound<'_, PyAny>) -> bool {
    if let Ok(number) = value.cast_exact::<PyInt>() {
        let Some(number) = to_i64(number) else {
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
    } else if let Ok(boolean) = value.cast_exact::<PyBool>() {
        boolean.is_true().write(text);
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
        Err(_) => string.to_string_lossy().write(text), // it contains lone surrogates
    }
}

/// Converts a Python int to an `i64`, or returns `None` if it does not fit. Creates no exception.
fn to_i64(number: &Bound<'_, PyInt>) -> Option<i64> {
    let mut overflow = 0;
    // SAFETY: the object is an int and alive, and the pointer is to a place for a number.
    let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(number.as_ptr(), &raw mut overflow) };
    (overflow == 0).then_some(value)
}

/// Appends a Python int as JSON. One of more than 64 bits is written as text, because viewers read numbers as doubles.
fn write_int(text: &mut Vec<u8>, number: &Bound<'_, PyInt>) {
    if let Some(number) = to_i64(number) {
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

/// Appends the elements of a list or dict, separated by commas, until the text is too long. Returns how many of `len` were left out, with a comma for them, or
/// `None` if all were written. Also returns whether something inside an element was left out.
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

/// Returns a copy of a dict's items, up to the maximum number that is recorded. They are copied because another thread may change the dict while a value is
/// encoded. Copying runs no Python code, so the dict cannot change meanwhile.
fn pairs<'py>(dict: &Bound<'py, PyDict>) -> SmallVec<[Pair<'py>; 8]> {
    dict.iter().take(MAX_ELEMENTS).collect()
}

/// Appends the key of a dict as JSON. JSON keys are texts, so a key of another type is written as the text of its value.
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

/// Appends an object that is no text, number, list or dict: a numpy number as a number, a UUID as its text, and anything else as the name of its type.
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
    if let Ok(boolean) = value.cast::<PyBool>() {
        boolean.is_true().write(text);
    } else if let Ok(number) = value.cast::<PyInt>() {
        write_int(text, number);
    } else {
        value.cast::<PyFloat>().ok()?.value().write(text);
    }
    Some(())
}
