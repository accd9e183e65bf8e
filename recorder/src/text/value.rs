//! Arg values → JSON text: integers, floats, booleans, strings, lists of these.

use crate::sys::memory::reserve;
use crate::text::encode::{SMALL_NUMBERS, small_number, string, string_bytes};

/// Longest string kept whole, in bytes; longer ones are cut and marked.
pub(crate) const MAX_STRING_BYTES: usize = 16 << 10;
/// Room for some args, so that the text does not grow in small steps.
const FIRST_BYTES: usize = 128;
/// Room for any number, and for `null`.
const NUMBER_BYTES: usize = 48;
/// Most elements of a list that are kept.
const MAX_LIST: usize = 4096;

/// A value that an event's args can hold.
pub trait Value {
    /// Appends the value as JSON.
    fn write(&self, out: &mut Vec<u8>);

    /// Most bytes that [`Value::write`] appends. There is room for so many when it is called; an argument without room is left out, and counted.
    fn most_bytes(&self) -> usize {
        0
    }
}

/// Appends a number that does not fit a register.
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

            #[inline]
            fn most_bytes(&self) -> usize {
                NUMBER_BYTES
            }
        }
    )*};
}
integers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

impl Value for f64 {
    fn write(&self, out: &mut Vec<u8>) {
        use std::io::Write;
        if !self.is_finite() {
            out.extend_from_slice(b"null");
        } else if *self != 0.0 && !(1e-5..1e16).contains(&self.abs()) {
            let _ = write!(out, "{self:e}"); // writing to a Vec cannot fail
        } else {
            let _ = write!(out, "{self:?}");
        }
    }

    fn most_bytes(&self) -> usize {
        NUMBER_BYTES
    }
}

impl Value for f32 {
    fn write(&self, out: &mut Vec<u8>) {
        use std::io::Write;
        // Through its own shortest text, so that 0.1f32 reads 0.1.
        let mut text = [0; NUMBER_BYTES];
        let mut room = text.as_mut_slice();
        let _ = write!(room, "{self:e}"); // it is not so long
        let rest = room.len();
        let text = std::str::from_utf8(&text[..NUMBER_BYTES - rest]).unwrap_or_default();
        text.parse::<f64>().unwrap_or(f64::NAN).write(out);
    }

    fn most_bytes(&self) -> usize {
        NUMBER_BYTES
    }
}

impl Value for bool {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }

    #[inline]
    fn most_bytes(&self) -> usize {
        NUMBER_BYTES
    }
}

impl Value for str {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        string(out, self, MAX_STRING_BYTES);
    }

    #[inline]
    fn most_bytes(&self) -> usize {
        string_bytes(self, MAX_STRING_BYTES)
    }
}

impl Value for String {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        self.as_str().write(out);
    }

    #[inline]
    fn most_bytes(&self) -> usize {
        self.as_str().most_bytes()
    }
}

impl<T: Value + ?Sized> Value for &T {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        (**self).write(out);
    }

    #[inline]
    fn most_bytes(&self) -> usize {
        (**self).most_bytes()
    }
}

impl<T: Value> Value for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.write(out),
            None => out.extend_from_slice(b"null"),
        }
    }

    fn most_bytes(&self) -> usize {
        self.as_ref().map_or(NUMBER_BYTES, Value::most_bytes)
    }
}

impl<T: Value> Value for [T] {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (at, value) in self.iter().take(MAX_LIST).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            value.write(out);
        }
        if self.len() > MAX_LIST {
            out.push(b',');
            out.extend_from_slice("\"…[+".as_bytes());
            let more = self.len() - MAX_LIST;
            out.extend_from_slice(itoa::Buffer::new().format(more).as_bytes());
            out.extend_from_slice(b" more]\"");
        }
        out.push(b']');
    }

    fn most_bytes(&self) -> usize {
        let kept = self.iter().take(MAX_LIST);
        kept.map(|value| 1 + value.most_bytes()).sum::<usize>() + 2 * NUMBER_BYTES
    }
}

impl<T: Value> Value for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.as_slice().write(out);
    }

    fn most_bytes(&self) -> usize {
        self.as_slice().most_bytes()
    }
}

impl<T: Value, const N: usize> Value for [T; N] {
    fn write(&self, out: &mut Vec<u8>) {
        self.as_slice().write(out);
    }

    fn most_bytes(&self) -> usize {
        self.as_slice().most_bytes()
    }
}

/// Args of an event that is recorded by a call instead of a macro.
#[derive(Clone, Debug, Default)]
pub struct Args {
    text: Vec<u8>,
}

impl Args {
    /// Makes empty args.
    pub fn new() -> Args {
        Args::default()
    }

    /// Adds one argument.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Value) -> Args {
        self.push(key, &value);
        self
    }

    /// Adds one argument in place.
    pub fn push(&mut self, key: &str, value: &dyn Value) {
        let first = self.is_first();
        push_after(&mut self.text, first, key, value);
    }

    /// Adds one argument whose key is JSON text of [`key_text`].
    #[doc(hidden)]
    pub fn push_known(&mut self, key: &str, value: &dyn Value) {
        let first = self.is_first();
        known_after(&mut self.text, first, key, value);
    }

    /// Whether there are none yet; then there is room for some.
    fn is_first(&mut self) -> bool {
        let first = self.text.is_empty();
        if first {
            let _ = self.text.try_reserve(FIRST_BYTES); // else what is needed is asked for
        }
        first
    }

    /// Takes args that are JSON text already: `"key":value,…`, without braces. Nothing looks at the text.
    #[doc(hidden)]
    pub fn from_text(text: Vec<u8>) -> Args {
        Args { text }
    }

    /// Adds args that are JSON text already, as [`Args::from_text`] takes them.
    #[doc(hidden)]
    pub fn raw(&mut self, text: &[u8]) {
        let first = self.text.is_empty();
        raw_after(&mut self.text, first, text);
    }

    /// The args as JSON text without the braces.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }
}

/// Appends `"key":value`, with a comma before it unless it is the first.
pub(crate) fn push_after(text: &mut Vec<u8>, first: bool, key: &str, value: &dyn Value) {
    if !reserve(
        text,
        string_bytes(key, MAX_STRING_BYTES) + 2 + value.most_bytes(),
    ) {
        return;
    }
    if !first {
        text.push(b',');
    }
    string(text, key, MAX_STRING_BYTES);
    text.push(b':');
    value.write(text);
}

/// `"key":`, for [`known_after`].
#[doc(hidden)]
pub fn key_text(key: &str) -> String {
    let mut text = Vec::new();
    if reserve(&mut text, string_bytes(key, MAX_STRING_BYTES) + 1) {
        string(&mut text, key, MAX_STRING_BYTES);
        text.push(b':');
    }
    String::from_utf8(text).unwrap_or_default()
}

/// Appends an argument as [`push_after`] does; `key` is `"key":` as JSON.
#[inline(always)]
pub(crate) fn known_after(
    text: &mut Vec<u8>,
    first: bool,
    key: &str,
    value: &(impl Value + ?Sized),
) {
    if !reserve(text, key.len() + 1 + value.most_bytes()) {
        return;
    }
    if !first {
        text.push(b',');
    }
    text.extend_from_slice(key.as_bytes());
    value.write(text);
}

/// Appends args that are JSON text already, with a comma before them unless they are the first.
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
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            expected
        );
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

    #[test]
    fn long_lists_are_cut_and_marked() {
        let mut out = Vec::new();
        vec![0u8; MAX_LIST + 3].write(&mut out);
        let list: Vec<serde_json::Value> = serde_json::from_slice(&out).unwrap();
        assert_eq!(
            (list.len(), list.last()),
            (MAX_LIST + 1, Some(&json!("…[+3 more]")))
        );
    }
}
