//! Where reading goes on behind an object that is not well formed.
//!
//! Profilers write names with quotes they do not escape, numbers that JSON has not, lists with a comma too many. What follows such an event is good.

use super::event::string_end;
use crate::json::scan_object_at_front;
use crate::line::event;
use memchr::{memchr, memchr_iter, memmem};

/// Bytes in which a broken element should end; further on its brackets say nothing.
const MOST_BYTES: usize = 1 << 20;

/// Where the next element begins after the broken one at `at`; `None` if nothing that could be one follows.
pub(super) fn behind(bytes: &[u8], at: usize) -> Option<usize> {
    let end = balanced_end(bytes, at);
    let next = next_event(bytes, at + 1, end.unwrap_or(bytes.len()));
    next.or(end)
}

/// Where the brackets that open at `at` are closed again, if what follows could be the next element or the end of the list.
fn balanced_end(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut open) = (start, Vec::new());
    let bytes = &bytes[..bytes.len().min(start + MOST_BYTES)];
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at);
                continue;
            }
            b'{' | b'[' => open.push(*byte),
            // In ASCII a bracket closes what stands two before it.
            b'}' | b']' => _ = open.pop().filter(|open| *open + 2 == *byte)?,
            0 => return None,
            _ => {}
        }
        at += 1;
        if open.is_empty() {
            let rest = bytes.get(at..)?.trim_ascii_start();
            return matches!(rest.first(), None | Some(b',' | b']' | b'{')).then_some(at);
        }
    }
    None
}

/// The first place from `from` on, and before `to`, at which a whole event stands.
pub(super) fn next_event(bytes: &[u8], from: usize, to: usize) -> Option<usize> {
    let found = memchr_iter(b'{', bytes.get(from..to)?).map(|hit| from + hit);
    let mut found = found.filter(|at| is_event(&bytes[*at..]));
    found.next()
}

fn is_event(bytes: &[u8]) -> bool {
    let inside = bytes[1..].trim_ascii_start();
    inside.first() == Some(&b'"')
        && scan_object_at_front(bytes).is_ok_and(|(fields, end)| {
            fields.pid.is_some() && event(&bytes[..end], fields).is_some()
        })
}

/// Behind the newline that ends the line at `at`.
pub(super) fn next_line(bytes: &[u8], at: usize) -> usize {
    memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |newline| at + newline + 1)
}

/// Whether what is not well formed at `stop` may only be cut off there: the longest literal or escape is shorter.
pub(super) fn is_at_end(bytes: &[u8], stop: usize) -> bool {
    stop + 8 > bytes.len() && !bytes[stop.min(bytes.len())..].contains(&b'\n')
}

/// Whether `one` stands before any `other`.
pub(super) fn is_first(bytes: &[u8], one: &[u8], other: &[u8]) -> bool {
    match (memmem::find(bytes, one), memmem::find(bytes, other)) {
        (Some(one), Some(other)) => one < other,
        (one, _) => one.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_on_at_the_next_event() {
        let good = r#"{"ph":"i","pid":1,"ts":2}"#;
        for bad in [
            r#"{"ph":"X","name":"step "one"","pid":1,"ts":2,"dur":1}"#,
            r#"{"ph":"X","name":"one quote " in it","pid":1,"ts":2,"dur":1}"#,
            r#"{"ph":"X","pid":1,"ts":NaN,"dur":1,"args":{"a":[1,]}}"#,
            r#"{"ph":"X","pid":1,"ts":2,"dur":1"#,
        ] {
            let text = format!("{bad},\n{good},{good}]");
            let next = behind(text.as_bytes(), 0).unwrap();
            let left = text[next..].trim_start_matches([',', '\n']);
            assert_eq!(left, format!("{good},{good}]"), "{bad}");
            let alone = format!("{bad}]");
            let next = behind(alone.as_bytes(), 0);
            assert!(next.is_none_or(|next| &alone[next..] == "]"), "{bad}");
        }
    }
}
