//! A log of bytes for data of an event that does not fit into a record of fixed size: its CPU time, id, name and args.
//!
//! An entry begins with a byte of flags, followed by the data that they announce. Numbers are stored with seven bits in each byte, the lowest first.

use super::texts::{TextPair, UNNUMBERED};
use parquet::data_type::ByteArray;

const HAS_CPU: u8 = 1;
const HAS_ID: u8 = 2;
const HAS_NAME: u8 = 4;
const HAS_ARGS: u8 = 8;

/// Value of an arg, with its text or the position of its text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ArgValue<T> {
    Int(i64),
    Bool(bool),
    Real(f64),
    Text(T),
}

impl<T> ArgValue<T> {
    /// Returns the same value with another form of its text.
    pub(crate) fn with_text<U>(self, text: impl FnOnce(T) -> U) -> ArgValue<U> {
        match self {
            ArgValue::Int(value) => ArgValue::Int(value),
            ArgValue::Bool(value) => ArgValue::Bool(value),
            ArgValue::Real(value) => ArgValue::Real(value),
            ArgValue::Text(value) => ArgValue::Text(text(value)),
        }
    }
}

/// Key of an arg: its number, or its text if it has no number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ArgKey {
    Number(u32),
    Inline(TextPair),
}

/// Contents of an entry.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Entry<'a> {
    /// CPU time of a span, in ns.
    pub(crate) cpu_ns: Option<i64>,
    /// Hash that identifies the track of an async event, or an arrow.
    pub(crate) id: u64,
    /// Category and name, if they have no number.
    pub(crate) name: Option<TextPair>,
    args: &'a [u8],
}

/// Appends an entry (the data of an event that few events have: CPU time, id, name) to `out`, and
/// returns its position. If the event has args, [`begin_args`] and [`write_arg`] must write them
/// next.
pub(crate) fn write_entry(
    out: &mut Vec<u8>,
    cpu_ns: Option<i64>,
    id: Option<u64>,
    name: Option<&TextPair>,
) -> usize {
    let flags_at = out.len();
    out.push(0);
    if let Some(cpu_ns) = cpu_ns {
        out[flags_at] |= HAS_CPU;
        write_number(out, zigzag(cpu_ns));
    }
    if let Some(id) = id {
        out[flags_at] |= HAS_ID;
        out.extend_from_slice(&id.to_le_bytes());
    }
    if let Some(name) = name {
        out[flags_at] |= HAS_NAME;
        write_pair(out, name);
    }
    flags_at
}

/// Writes the number of args of the last entry, which begins at `flags_at`. Writes nothing if it is 0.
pub(super) fn begin_args(out: &mut Vec<u8>, flags_at: usize, count: usize) {
    if count > 0 {
        out[flags_at] |= HAS_ARGS;
        write_number(out, count as u64);
    }
}

/// Appends an arg to the entry that was written last. `pair` returns the text of the key, and is
/// called only if `key` is [`UNNUMBERED`].
pub(crate) fn write_arg(
    out: &mut Vec<u8>,
    key: u32,
    pair: impl FnOnce() -> TextPair,
    value: ArgValue<&[u8]>,
) {
    let kind = match value {
        ArgValue::Int(_) => 0,
        ArgValue::Real(_) => 1,
        ArgValue::Text(_) => 2,
        ArgValue::Bool(_) => 3,
    };
    // Kinds are 0 to 3, so the number of a key and a kind is at least 4.
    match key {
        UNNUMBERED => {
            write_number(out, kind);
            write_pair(out, &pair());
        }
        key => write_number(out, (u64::from(key) + 1) << 2 | kind),
    }
    match value {
        ArgValue::Int(value) => write_number(out, zigzag(value)),
        ArgValue::Bool(value) => out.push(u8::from(value)),
        ArgValue::Real(value) => out.extend_from_slice(&value.to_le_bytes()),
        ArgValue::Text(text) => write_text(out, text),
    }
}

impl<'a> Entry<'a> {
    /// Reads the entry at the beginning of `bytes`.
    pub(crate) fn read(mut bytes: &'a [u8]) -> Entry<'a> {
        let flags = bytes.first().copied().unwrap_or(0);
        bytes = bytes.get(1..).unwrap_or_default();
        let from = &mut bytes;
        Entry {
            cpu_ns: (flags & HAS_CPU != 0).then(|| unzigzag(read_number(from))),
            id: match flags & HAS_ID {
                0 => 0,
                _ => read_long(from),
            },
            name: (flags & HAS_NAME != 0).then(|| read_pair(from)),
            args: if flags & HAS_ARGS != 0 { bytes } else { &[] },
        }
    }

    pub(crate) fn has_args(&self) -> bool {
        !self.args.is_empty()
    }

    /// Calls `found` with each arg.
    pub(crate) fn each_arg(&self, mut found: impl FnMut(ArgKey, ArgValue<&'a [u8]>)) {
        let mut bytes = self.args;
        let from = &mut bytes;
        if from.is_empty() {
            return;
        }
        for _ in 0..read_number(from) {
            let key_and_kind = read_number(from);
            let key = match u32::try_from(key_and_kind >> 2) {
                Ok(0) | Err(_) => ArgKey::Inline(read_pair(from)),
                Ok(number) => ArgKey::Number(number - 1),
            };
            let value = match key_and_kind & 3 {
                0 => ArgValue::Int(unzigzag(read_number(from))),
                1 => ArgValue::Real(f64::from_bits(read_long(from))),
                2 => ArgValue::Text(read_text(from)),
                _ => ArgValue::Bool(read_number(from) == 1),
            };
            found(key, value);
        }
    }
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// Writes a number with seven bits in each byte, the lowest first.
#[inline]
pub(crate) fn write_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

#[inline]
fn read_number(from: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let [byte, rest @ ..] = *from {
        *from = rest;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if *byte < 0x80 || shift > 63 {
            break;
        }
    }
    number
}

fn read_long(from: &mut &[u8]) -> u64 {
    let Some((long, rest)) = from.split_first_chunk() else {
        return 0;
    };
    *from = rest;
    u64::from_le_bytes(*long)
}

fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    write_number(out, text.len() as u64);
    out.extend_from_slice(text);
}

fn read_text<'a>(from: &mut &'a [u8]) -> &'a [u8] {
    let len = usize::try_from(read_number(from)).unwrap_or(usize::MAX);
    let (text, rest) = from.split_at(len.min(from.len()));
    *from = rest;
    text
}

fn write_pair(out: &mut Vec<u8>, TextPair(first, second): &TextPair) {
    out.push(u8::from(first.is_some()));
    write_text(out, first.as_ref().map_or(&[], ByteArray::data));
    write_text(out, second.data());
}

fn read_pair(from: &mut &[u8]) -> TextPair {
    let has_first = from.first() == Some(&1);
    *from = from.get(1..).unwrap_or_default();
    let first = ByteArray::from(read_text(from));
    TextPair(has_first.then_some(first), ByteArray::from(read_text(from)))
}
