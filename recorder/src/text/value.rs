//! Arg values as JSON text: integers, floats, booleans, strings, and lists of these.

use std::io::Write;

use crate::sys::memory::{count_loss, reserve};
use crate::text::encode::{SMALL_NUMBERS, small_number, string, string_bytes};
use sa_format::loss::Cause;

/// Maximum length of a string in bytes. Longer ones are cut and marked.
pub(crate) const MAX_STRING_BYTES: usize = 16 << 10;
/// JSON text for a value that has no other representation.
const NULL: &[u8] = b"null";
/// Room in bytes for a few args, so that the text does not grow in small steps.
const FIRST_BYTES: usize = 128;
/// Room in bytes for any number, and for `null`.
const NUMBER_BYTES: usize = 48;
/// Maximum number of elements of a list. Further ones are left out.
const MAX_LIST: usize = 4096;

/// A value for an arg of an event.
pub trait Value {
    /// Appends the value as JSON on one line. If the program's own implementation appends anything
    /// else, it is replaced with `null` and counted as `bad_value`.
    fn write(&self, out: &mut Vec<u8>);

    /// Returns the maximum number of bytes that [`Value::write`] appends for this value. The caller
    /// reserves that much before the call. If there is not enough memory, the argument is left out
    /// and counted. The default is 48, which is enough for any number.
    #[inline]
    fn max_bytes(&self) -> usize {
        NUMBER_BYTES
    }

    /// Returns what the type guarantees about the text that [`Value::write`] appends. Only types of
    /// this workspace override this.
    #[doc(hidden)]
    #[inline(always)]
    fn guarantee(&self) -> TextGuarantee {
        TextGuarantee::Nothing
    }
}

/// A type's guarantee about the text that its [`Value`] writes.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextGuarantee {
    /// No guarantee: the text is checked.
    Nothing,
    /// The text is valid JSON.
    Json,
    /// The text is a finite number, so a counter can draw it.
    Number,
}

/// Appends a value as JSON to args or a list. If the value's type belongs to the program, its text
/// is checked first, and invalid JSON is replaced with `null` and counted.
#[inline(always)]
fn append(out: &mut Vec<u8>, value: &(impl Value + ?Sized)) {
    if value.guarantee() != TextGuarantee::Nothing {
        value.write(out);
    } else {
        append_checked(out, value.max_bytes(), &mut |own| value.write(own));
    }
}

/// Calls `write`, which encodes a value of up to `bytes` bytes, with a separate buffer. Appends the
/// buffer's content to `out` if that is valid JSON, and `null` otherwise.
#[cold]
#[inline(never)]
fn append_checked(out: &mut Vec<u8>, bytes: usize, write: &mut dyn FnMut(&mut Vec<u8>)) {
    let mut own = Vec::new();
    if reserve(&mut own, bytes) {
        write(&mut own);
        let is_json = is_json(&own);
        if !is_json {
            count_loss(Cause::BadValue);
        } else if reserve(out, own.len()) {
            return out.extend_from_slice(&own);
        }
    }
    out.extend_from_slice(NULL);
}

/// Returns true if the text is a single JSON value on a single line.
fn is_json(text: &[u8]) -> bool {
    let is_printable = text.iter().all(|byte| *byte >= b' ');
    is_printable
        && std::str::from_utf8(text).is_ok()
        && serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok()
}

/// Returns the number of bytes to reserve before a value, or the `null` that may replace it, is
/// appended.
#[inline(always)]
fn room(value: &(impl Value + ?Sized)) -> usize {
    value.max_bytes().max(NULL.len())
}

/// Appends the decimal digits of a number that is negative or has more than eight digits.
#[inline(never)]
fn large_number(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

macro_rules! integers {
    ($($kind:ty)*) => {$(
        impl Value for $kind {
            #[inline(always)]
            fn write(&self, out: &mut Vec<u8>) {
                match u32::try_from(*self) {
                    Ok(small) if small < SMALL_NUMBERS => small_number(out, small),
                    _ => large_number(out, *self),
                }
            }

            #[inline(always)]
            fn guarantee(&self) -> TextGuarantee {
                TextGuarantee::Number
            }
        }
    )*};
}
integers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

impl Value for f64 {
    fn write(&self, out: &mut Vec<u8>) {
        if !self.is_finite() {
            out.extend_from_slice(NULL);
        } else if *self != 0.0 && !(1e-5..1e16).contains(&self.abs()) {
            let _ = write!(out, "{self:e}"); // writing to a `Vec` cannot fail
        } else {
            let _ = write!(out, "{self:?}");
        }
    }

    #[inline(always)]
    fn guarantee(&self) -> TextGuarantee {
        if self.is_finite() {
            TextGuarantee::Number
        } else {
            TextGuarantee::Json
        }
    }
}

impl Value for f32 {
    fn write(&self, out: &mut Vec<u8>) {
        // Converted through its own shortest text, so that 0.1f32 becomes 0.1.
        let mut text = [0; NUMBER_BYTES];
        let mut room = text.as_mut_slice();
        let _ = write!(room, "{self:e}"); // the text is always shorter than the buffer
        let rest = room.len();
        let text = std::str::from_utf8(&text[..NUMBER_BYTES - rest]).unwrap_or_default();
        text.parse::<f64>().unwrap_or(f64::NAN).write(out);
    }

    #[inline(always)]
    fn guarantee(&self) -> TextGuarantee {
        f64::from(*self).guarantee()
    }
}

impl Value for bool {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }

    #[inline(always)]
    fn guarantee(&self) -> TextGuarantee {
        TextGuarantee::Json
    }
}

impl Value for str {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        string(out, self, MAX_STRING_BYTES);
    }

    #[inline]
    fn max_bytes(&self) -> usize {
        string_bytes(self, MAX_STRING_BYTES)
    }

    #[inline(always)]
    fn guarantee(&self) -> TextGuarantee {
        TextGuarantee::Json
    }
}

impl<T: Value> Value for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Some(value) => append(out, value),
            None => out.extend_from_slice(NULL),
        }
    }

    fn max_bytes(&self) -> usize {
        self.as_ref().map_or(NUMBER_BYTES, room)
    }

    #[inline(always)]
    fn guarantee(&self) -> TextGuarantee {
        TextGuarantee::Json
    }
}

impl<T: Value> Value for [T] {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (at, value) in self.iter().take(MAX_LIST).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            append(out, value);
        }
        if self.len() > MAX_LIST {
            count_loss(Cause::Cut);
            let _ = write!(out, ",\"…[+{} more]\"", self.len() - MAX_LIST); // writing to a `Vec` cannot fail
        }
        out.push(b']');
    }

    fn max_bytes(&self) -> usize {
        let kept = self.iter().take(MAX_LIST);
        kept.map(|value| 1 + room(value)).sum::<usize>() + 2 * NUMBER_BYTES
    }

    #[inline(always)]
    fn guarantee(&self) -> TextGuarantee {
        TextGuarantee::Json
    }
}

/// Implements `Value` for types that are written as another value: the target of a reference, or
/// the contents of a container.
macro_rules! pointers {
    ($(($($generics:tt)*) $kind:ty => $target:ty;)*) => {$(
        impl<$($generics)*> Value for $kind {
            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                <$target>::write(self, out);
            }

            #[inline]
            fn max_bytes(&self) -> usize {
                <$target>::max_bytes(self)
            }

            #[inline(always)]
            fn guarantee(&self) -> TextGuarantee {
                <$target>::guarantee(self)
            }
        }
    )*};
}
pointers! {
    (T: Value + ?Sized) &T => T;
    () String => str;
    (T: Value) Vec<T> => [T];
    (T: Value, const N: usize) [T; N] => [T];
}

/// Args of an event that is recorded by a call instead of a macro.
#[derive(Clone, Debug, Default)]
pub struct Args {
    text: Vec<u8>,
}

impl Args {
    /// Creates empty args.
    pub fn new() -> Args {
        Args::default()
    }

    /// Adds one argument and returns the args, so that calls can be chained.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Value) -> Args {
        self.push(key, &value);
        self
    }

    /// Adds one argument to these args.
    pub fn push(&mut self, key: &str, value: &dyn Value) {
        let first = self.is_first();
        push_after(&mut self.text, first, key, value);
    }

    /// Adds one argument whose key was encoded by [`encode_key`], which saves encoding it each
    /// time.
    #[doc(hidden)]
    pub fn push_with_encoded_key(&mut self, key: &str, value: &dyn Value) {
        let first = self.is_first();
        push_encoded(&mut self.text, first, key, value);
    }

    /// Returns true if there are no args yet, and then reserves memory for a few.
    fn is_first(&mut self) -> bool {
        let first = self.text.is_empty();
        if first {
            let _ = self.text.try_reserve(FIRST_BYTES); // if this fails, the next append reserves what it needs
        }
        first
    }

    /// Creates args from JSON text: `"key":value,…`, without braces. The text is not checked.
    #[doc(hidden)]
    pub fn from_text(text: Vec<u8>) -> Args {
        Args { text }
    }

    /// Adds args that are already JSON text, as for [`Args::from_text`].
    #[doc(hidden)]
    pub fn raw(&mut self, text: &[u8]) {
        let first = self.text.is_empty();
        raw_after(&mut self.text, first, text);
    }

    /// Returns the args as JSON text without the braces: `"key":value,…`.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }
}

/// Appends an argument to `text` as `"key":value`, with a comma before it unless it is the `first`
/// one.
pub(crate) fn push_after(text: &mut Vec<u8>, first: bool, key: &str, value: &dyn Value) {
    if !reserve(text, string_bytes(key, MAX_STRING_BYTES) + 2 + room(value)) {
        return;
    }
    if !first {
        text.push(b',');
    }
    string(text, key, MAX_STRING_BYTES);
    text.push(b':');
    append(text, value);
}

/// Encodes the key of an argument as `"key":`, for functions such as
/// [`Args::push_with_encoded_key`].
#[doc(hidden)]
pub fn encode_key(key: &str) -> String {
    let mut text = Vec::new();
    if reserve(&mut text, string_bytes(key, MAX_STRING_BYTES) + 1) {
        string(&mut text, key, MAX_STRING_BYTES);
        text.push(b':');
    }
    String::from_utf8(text).unwrap_or_default()
}

/// Appends an argument to `text` like [`push_after`], but with a `key` that [`encode_key`] has
/// encoded.
#[inline(always)]
pub(crate) fn push_encoded(
    text: &mut Vec<u8>,
    first: bool,
    key: &str,
    value: &(impl Value + ?Sized),
) {
    if !reserve(text, key.len() + 1 + room(value)) {
        return;
    }
    if !first {
        text.push(b',');
    }
    text.extend_from_slice(key.as_bytes());
    append(text, value);
}

/// Appends args that are already JSON text to `text`, with a comma before them unless they are the
/// `first` ones.
pub(crate) fn raw_after(text: &mut Vec<u8>, first: bool, args: &[u8]) {
    if !reserve(text, args.len() + 1) {
        return;
    }
    if !first && !args.is_empty() {
        text.push(b',');
    }
    text.extend_from_slice(args);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_json() {
        let args = Args::new()
            .with("i", -1)
            .with("u", u64::MAX)
            .with("f", 1.5)
            .with("whole", 2.0)
            .with("small", 1e-300)
            .with("large", 1e300)
            .with("nan", f64::NAN)
            .with("infinite", f32::INFINITY)
            .with("single", 0.1f32)
            .with("b", true)
            .with("s", "a\"b\n")
            .with("list", ["x", "y"])
            .with("none", None::<i32>)
            .with("nested", vec![vec![1, 2], vec![]]);
        let text = format!("{{{}}}", String::from_utf8(args.text().to_vec()).unwrap());
        let expected = json!({"i": -1, "u": u64::MAX, "f": 1.5, "whole": 2.0, "small": 1e-300, "large": 1e300, "nan": null,
            "infinite": null, "single": 0.1, "b": true, "s": "a\"b\n", "list": ["x", "y"], "none": null, "nested": [[1, 2], []]});
        let found: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(found, expected);
    }

    #[test]
    fn text_joins_other_args() {
        let mut args = Args::from_text(br#""a":1"#.to_vec()).with("b", 2);
        args.raw(b"");
        args.raw(br#""c":3,"d":4"#);
        assert_eq!(args.text(), br#""a":1,"b":2,"c":3,"d":4"#);
        let mut args = Args::new();
        args.raw(br#""c":3"#);
        assert_eq!(args.text(), br#""c":3"#);
    }

    /// A value that writes its bytes unchanged.
    struct Written(&'static [u8]);

    impl Value for Written {
        fn write(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(self.0);
        }
    }

    #[test]
    fn issue_47_a_value_of_the_programs_own_is_json_or_null() {
        for good in [&b"1"[..], b"\"a\"", br#"{"a": [1, "b\\"]}"#, b"null"] {
            let args = Args::new().with("v", Written(good)).with("n", 1);
            let text = String::from_utf8(args.text().to_vec()).unwrap();
            let good = std::str::from_utf8(good).unwrap();
            assert_eq!(text, format!(r#""v":{good},"n":1"#));
        }
        let bad = b"|text|\"half|NaN|1,\"x\":2|1}|[1,\n2]|\"a\tb\"|\"\xff\"";
        for bad in bad.split(|byte| *byte == b'|') {
            let args = Args::new()
                .with("v", Written(bad))
                .with("list", [Some(&Written(bad)), Some(&Written(b"2"))])
                .with("n", 1);
            let text = String::from_utf8_lossy(args.text()).into_owned();
            assert_eq!(text, r#""v":null,"list":[null,2],"n":1"#, "{bad:?}");
        }
    }

    #[test]
    fn long_lists_are_cut_and_marked() {
        let mut out = Vec::new();
        vec![0u8; MAX_LIST + 3].write(&mut out);
        let list: Vec<serde_json::Value> = serde_json::from_slice(&out).unwrap();
        assert_eq!(list.len(), MAX_LIST + 1);
        assert_eq!(list.last(), Some(&json!("…[+3 more]")));
    }
}
