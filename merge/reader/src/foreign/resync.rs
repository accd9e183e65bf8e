//! Where reading goes on behind an object that is not well formed.
//!
//! Profilers write names with quotes they do not escape, numbers that JSON has not, lists with a comma too many. What follows such an event is good.

use super::objects::objects;
use crate::event::damage::Kind;
use crate::event::json::{scan_object_at_front, string_end};
use crate::event::line::event;
use memchr::{memchr, memchr_iter};
use std::iter::Peekable;
use std::vec::IntoIter;

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
    let (mut first, mut seen) = (None, PassedObjects::default());
    for hit in memchr_iter(b'{', bytes.get(from..to)?) {
        let at = from + hit;
        if first.is_some_and(|first| first <= at) {
            break;
        }
        if seen.has(at) || bytes[at + 1..].trim_ascii_start().first() != Some(&b'"') {
            continue;
        }
        let mut found = objects(bytes, at);
        found.events.sort_unstable();
        let events = found.events.into_iter().take_while(|event| *event < to);
        let event = events.into_iter().find(|event| is_event(&bytes[*event..]));
        first = first.into_iter().chain(event).min();
        seen.add(found.starts);
    }
    first
}

/// Objects that have been gone over. Where a quote is missing, what one walk takes for text is none to the next, so there may be several.
#[derive(Default)]
struct PassedObjects(Vec<Peekable<IntoIter<usize>>>);

impl PassedObjects {
    fn add(&mut self, starts: Vec<usize>) {
        self.0.push(starts.into_iter().peekable());
    }

    /// Whether an object at `at` has been gone over; the next question is about one behind it.
    fn has(&mut self, at: usize) -> bool {
        let mut has = false;
        for starts in &mut self.0 {
            while starts.next_if(|start| *start < at).is_some() {}
            has |= starts.peek() == Some(&at);
        }
        self.0.retain_mut(|starts| starts.peek().is_some());
        has
    }
}

fn is_event(bytes: &[u8]) -> bool {
    scan_object_at_front(bytes).is_ok_and(|(fields, end)| {
        let event = event(&bytes[..end], fields);
        fields.pid.is_some() && event.map_or_else(Kind::is_unshown, |_| true)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Going over a deep object takes about as long as going over it once, where each object in it was tried by itself before.
    #[test]
    fn issue_19_a_deep_object_is_gone_over_a_few_times() {
        let levels = 1 << 17;
        let deep = r#"{"a":"#.repeat(levels) + "1" + &"}".repeat(levels);
        let text = deep + ",{\"ph\":\"i\",\"pid\":1,\"ts\":2}]";
        let good = text.rfind('{').unwrap();
        let least = |work: &dyn Fn()| {
            let time = |_| {
                let begin = std::time::Instant::now();
                work();
                begin.elapsed()
            };
            (0..3).map(time).min().unwrap()
        };
        assert_eq!(behind(text.as_bytes(), 0), Some(good - 1));
        let once = least(&|| assert_eq!(objects(text.as_bytes(), 0).starts.len(), levels));
        let all = least(&|| assert!(behind(text.as_bytes(), 0).is_some()));
        assert!(
            all < 20 * once,
            "{all:?}, and {once:?} for going over it once"
        );
    }
}
