//! Keys and values of args off the bytes of a line as recorders write it: without white space, without objects in the args, without escapes in ids.

use super::candidates::{IdKey, known};
use crate::base::swar::{eight, plain_len, sixteen};
use memchr::{memchr, memchr2, memrchr2};

/// What stands before args.
const ARGS: &[u8] = br#","args":"#;

/// Returns where the object with a hit begins, by the brace before the hit: 0 for the line itself. Returns `None` if only a scan can find out.
#[inline(always)]
pub(crate) fn object(line: &[u8], hit: usize) -> Option<usize> {
    let brace = memrchr2(b'{', b'}', &line[..hit])?;
    (line[brace] == b'{').then_some(brace)
}

/// Whether the object that begins at `brace` is the value of a top-level member `args` of a good line. What follows `from` is neither brace nor
/// within a string, and no brace stands between the two.
///
/// No string can hold the quotes of `,"args":` as they are, so it is a member; and it is one of the line's own if only two objects end behind it.
#[inline(always)]
pub(crate) fn is_args(line: &[u8], brace: usize, from: usize) -> bool {
    let rest = &line[from..];
    let ends = || rest == b"}}" || memchr2(b'{', b'}', rest).is_some_and(|at| at + 2 == rest.len());
    line[..brace].ends_with(ARGS)
        && (ends() && line.ends_with(b"}}") || memchr(b'{', &line[1..]) == Some(brace - 1))
}

const REQUEST: u64 = u64::from_le_bytes(*br#""request"#);
const ONE: u64 = u64::from_le_bytes(*b"_id\":\0\0\0");
const LIST: u64 = u64::from_le_bytes(*b"_ids\":\0\0");

/// Returns the name that the hit is part of and where its value begins, if it is that of an arg with ids. Returns `None` if only a scan can find out.
#[inline(always)]
pub(crate) fn key_at(line: &[u8], hit: usize) -> Option<Option<(IdKey, usize)>> {
    let before = hit.checked_sub(9).map(|at| (line[at], eight(line, at + 1)));
    if let Some((b',' | b'{', REQUEST)) = before {
        let after = eight(line, hit);
        if after << 24 == ONE << 24 {
            return Some(Some((IdKey::Inside, hit + 5)));
        }
        if after << 16 == LIST << 16 {
            return Some(Some((IdKey::Inside, hit + 6)));
        }
    }
    any_key_at(line, hit)
}

/// The same for any name.
///
/// A quote without a backslash before it begins or ends a string, so the bytes next to it say what the string is.
fn any_key_at(line: &[u8], hit: usize) -> Option<Option<(IdKey, usize)>> {
    let is_of_name = |byte: &&u8| byte.is_ascii_lowercase() || **byte == b'_';
    let before = line[..hit].iter().rev().take_while(is_of_name).count();
    let after = line[hit..].iter().take_while(is_of_name).count();
    let (start, end) = (hit - before, hit + after);
    let (Some([outer, b'"']), Some([b'"', next])) =
        (line[..start].last_chunk(), line[end..].first_chunk())
    else {
        return Some(None);
    };
    match (outer, next) {
        (b'{' | b',', b':') => Some(known(&line[start..end]).map(|known| (known, end + 2))),
        (b' ' | b'\t' | b'\r', _) | (_, b' ' | b'\t' | b'\r') => None,
        _ => Some(None),
    }
}

/// Reads a value of ids that holds no white space and no escapes, and begins at `at`: calls `found` with each id and gives where the value ends. `None`
/// if it is not of this kind.
#[inline(always)]
pub(crate) fn read<'a>(
    line: &'a [u8],
    mut at: usize,
    mut found: impl FnMut(&'a [u8]),
) -> Option<usize> {
    let is_list = *line.get(at)? == b'[';
    at += usize::from(is_list);
    if is_list && *line.get(at)? == b']' {
        return Some(at + 1);
    }
    loop {
        let (text, end) = one(line, at)?;
        if !text.is_empty() {
            found(text);
        }
        match *line.get(end)? {
            b',' if is_list => at = end + 1,
            b']' if is_list => return Some(end + 1),
            b',' | b'}' if !is_list => return Some(end),
            _ => return None,
        }
    }
}

/// A string or digits, and where they end; anything else is left to the scanner.
#[inline(always)]
fn one(line: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = line.get(at..)?;
    match rest.first()? {
        b'"' => {
            let len = string_len(rest)?;
            Some((&rest[1..len], at + len + 1))
        }
        b'0'..=b'9' => {
            let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            Some((&rest[..len], at + len))
        }
        _ => None,
    }
}

/// How many bytes stand before the quote that ends the string which the bytes begin with, if there is no escape in it.
#[inline(always)]
fn string_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        let len = plain_len(sixteen(bytes, at));
        at += len;
        if len < 16 {
            return (*bytes.get(at)? == b'"').then_some(at);
        }
    }
}
