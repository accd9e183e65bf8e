//! Reads keys and values of args directly from a line as recorders write it: without white space,
//! objects in the args, or escapes in ids.

use super::candidates::{IdOwner, id_owner};
use crate::base::swar::{eight, plain_len, sixteen};
use memchr::{memchr, memchr2, memrchr2};

/// Text before args.
const ARGS: &[u8] = br#","args":"#;

/// Returns the start of the object with a hit, which is the brace before the hit: 0 for the line
/// itself. Returns `None` if only a scan can find it.
#[inline(always)]
pub(crate) fn object_start(line: &[u8], hit: usize) -> Option<usize> {
    let brace = memrchr2(b'{', b'}', &line[..hit])?;
    (line[brace] == b'{').then_some(brace)
}

/// Returns true if the object that begins at `brace` is the value of a top-level member `args` of a
/// valid line. The text from `from` on starts outside of strings, and there is no brace between
/// `brace` and `from`.
///
/// A string cannot contain the unescaped quotes of `,"args":`, so this is a member. It is a member
/// of the line itself if exactly two objects end after it.
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

/// Returns the kind of name that the hit is part of and the start of its value, if it is the name
/// of an arg with ids. Returns `None` if only a scan can find it.
#[inline(always)]
pub(crate) fn key_at(line: &[u8], hit: usize) -> Option<Option<(IdOwner, usize)>> {
    let before = hit.checked_sub(9).map(|at| (line[at], eight(line, at + 1)));
    if let Some((b',' | b'{', REQUEST)) = before {
        let after = eight(line, hit);
        if after << 24 == ONE << 24 {
            return Some(Some((IdOwner::Engine, hit + 5)));
        }
        if after << 16 == LIST << 16 {
            return Some(Some((IdOwner::Engine, hit + 6)));
        }
    }
    any_key_at(line, hit)
}

/// Does the same as [`key_at`] for any name.
///
/// A quote without a backslash before it begins or ends a string, so the bytes next to it determine
/// which string this is.
fn any_key_at(line: &[u8], hit: usize) -> Option<Option<(IdOwner, usize)>> {
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
        (b'{' | b',', b':') => Some(id_owner(&line[start..end]).map(|owner| (owner, end + 2))),
        (b' ' | b'\t' | b'\r', _) | (_, b' ' | b'\t' | b'\r') => None,
        _ => Some(None),
    }
}

/// Reads a value of ids that begins at `at` and has no white space and no escapes. Calls `found`
/// with each id and returns the end of the value, or `None` if it has another form.
#[inline(always)]
pub(crate) fn read_ids<'a>(
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
        let (text, end) = read_id(line, at)?;
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

/// Reads a string or digits, and returns the end. Anything else is left to the scanner.
#[inline(always)]
fn read_id(line: &[u8], at: usize) -> Option<(&[u8], usize)> {
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

/// Returns the offset of the quote that ends the string at the start of `bytes`, unless the string
/// contains an escape.
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
