//! Finds where to continue after an object that is not well formed.
//!
//! Some profilers write names with unescaped quotes, numbers that JSON does not allow, or lists with an extra comma. The events after such an object
//! are valid.

use crate::event::damage::Kind;
use crate::event::json::{Scanner, scan_object_at_front, string_end};
use crate::event::line::event;
use memchr::{memchr, memchr_iter};
use std::iter::Peekable;
use std::vec::IntoIter;

/// Number of bytes within which a broken element should end. Its brackets are not searched beyond that.
const MOST_BYTES: usize = 1 << 20;

/// Returns the offset at which reading can continue after the malformed element at `at`; `None` if nothing like an element follows.
pub(super) fn next_element(bytes: &[u8], at: usize) -> Option<usize> {
    let end = balanced_end(bytes, at);
    let next = next_event(bytes, at + 1, end.unwrap_or(bytes.len()));
    next.or(end)
}

/// Returns the offset after the bracket that closes the one at `start`. Returns `None` if the brackets do not match, or if neither an element nor
/// the end of the list follows.
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
            // In ASCII, the code of a closing bracket is 2 more than that of the opening one.
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

/// Searches damaged text for a complete event. Returns the offset of the first one that begins between `from` and `to`.
pub(super) fn next_event(bytes: &[u8], from: usize, to: usize) -> Option<usize> {
    let (mut first, mut examined) = (None, ExaminedObjects::default());
    for hit in memchr_iter(b'{', bytes.get(from..to)?) {
        let at = from + hit;
        if first.is_some_and(|first| first <= at) {
            break;
        }
        if examined.contains(at) || bytes[at + 1..].trim_ascii_start().first() != Some(&b'"') {
            continue;
        }
        let mut found = objects(bytes, at);
        found.events.sort_unstable();
        let events = found.events.into_iter().take_while(|event| *event < to);
        let event = events.into_iter().find(|event| is_event(&bytes[*event..]));
        first = first.into_iter().chain(event).min();
        examined.add(found.starts);
    }
    first
}

/// Starts of objects that were already examined. If a quote is missing, one pass may take for text what the next one does not, so there may be
/// several lists.
#[derive(Default)]
struct ExaminedObjects(Vec<Peekable<IntoIter<usize>>>);

impl ExaminedObjects {
    /// Adds the start offsets of the objects that one pass found.
    fn add(&mut self, starts: Vec<usize>) {
        self.0.push(starts.into_iter().peekable());
    }

    /// Returns true if an earlier pass examined the object that begins at offset `at`. Offsets must increase from call to call.
    fn contains(&mut self, at: usize) -> bool {
        let mut has = false;
        for starts in &mut self.0 {
            while starts.next_if(|start| *start < at).is_some() {}
            has |= starts.peek() == Some(&at);
        }
        self.0.retain_mut(|starts| starts.peek().is_some());
        has
    }
}

/// Returns true if `bytes` begins with a well-formed object that is an event with a pid.
fn is_event(bytes: &[u8]) -> bool {
    scan_object_at_front(bytes).is_ok_and(|(fields, end)| {
        let event = event(&bytes[..end], fields);
        fields.pid.is_some() && event.map_or_else(Kind::is_unshown, |_| true)
    })
}

/// Returns the offset of the line after the one that contains offset `at`; the end of `bytes` if there is none.
pub(super) fn next_line(bytes: &[u8], at: usize) -> usize {
    memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |newline| at + newline + 1)
}

/// Returns true if an object that is malformed at offset `stop` may only be cut off by the end of `bytes`. This means that `stop` is within the
/// last 8 bytes, more than the longest literal or escape, and that no newline follows.
pub(super) fn is_at_end(bytes: &[u8], stop: usize) -> bool {
    stop + 8 > bytes.len() && !bytes[stop.min(bytes.len())..].contains(&b'\n')
}

/// Maximum nesting of an event, which is the scanner's limit.
const MOST_LEVELS: usize = 127;

/// Objects found inside an object, including itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Objects {
    /// Start of each object, in order.
    pub(super) starts: Vec<usize>,
    /// Starts of the objects that are complete, not nested too deeply, and have the members of an event. Inner objects come before outer ones.
    pub(super) events: Vec<usize>,
}

/// An object or array that is still open.
struct OpenObject {
    start: usize,
    is_object: bool,
    has_phase: bool,
    has_pid: bool,
    /// Nesting depth in it, including itself.
    levels: usize,
}

/// Finds the JSON objects nested in the object at offset `at`, up to its end or to the first malformed byte. The result includes that object
/// itself.
pub(super) fn objects(bytes: &[u8], at: usize) -> Objects {
    let mut walk = ObjectWalk {
        scanner: Scanner::lenient(bytes, at),
        open: Vec::new(),
        found: Objects::default(),
    };
    // An early stop is fine: the objects that were complete by then count.
    let _ = walk.all();
    walk.found
}

struct ObjectWalk<'a> {
    scanner: Scanner<'a>,
    open: Vec<OpenObject>,
    found: Objects,
}

impl ObjectWalk<'_> {
    /// Walks through the outermost object and the ones nested in it. Returns `None` at its end or at malformed text.
    fn all(&mut self) -> Option<()> {
        loop {
            match self.scanner.peek() {
                byte @ (b'{' | b'[') => {
                    self.begin(byte == b'{');
                    if self.scanner.peek() != closer(byte == b'{') {
                        self.key()?;
                        continue;
                    }
                }
                _ => self.scanner.value(1)?,
            }
            loop {
                self.scanner.space();
                let inner = self.open.last()?;
                if self.scanner.expect(b',').is_some() {
                    self.scanner.space();
                    self.key()?;
                    break;
                }
                self.scanner.expect(closer(inner.is_object))?;
                self.end();
            }
        }
    }

    /// Enters the object or array that begins at the scanner's offset, as the new innermost one.
    fn begin(&mut self, is_object: bool) {
        let start = self.scanner.at;
        if is_object {
            self.found.starts.push(start);
        }
        self.open.push(OpenObject {
            start,
            is_object,
            has_phase: false,
            has_pid: false,
            levels: 1,
        });
        self.scanner.at += 1;
        self.scanner.space();
    }

    /// Reads the key of the next member, and notes if it is `ph` or `pid`. Does nothing in an array. Returns `None` if the key is malformed.
    fn key(&mut self) -> Option<()> {
        let (inner, scanner) = (self.open.last_mut()?, &mut self.scanner);
        if !inner.is_object {
            return Some(());
        }
        let start = scanner.at;
        scanner.string()?;
        match &scanner.bytes[start + 1..scanner.at - 1] {
            b"ph" => inner.has_phase = true,
            b"pid" => inner.has_pid = true,
            _ => {}
        }
        scanner.colon()
    }

    /// Leaves the innermost object or array, and keeps it as an event if it has the members of one.
    fn end(&mut self) {
        let Some(inner) = self.open.pop() else { return };
        if inner.has_phase && inner.has_pid && inner.levels <= MOST_LEVELS {
            self.found.events.push(inner.start);
        }
        if let Some(outer) = self.open.last_mut() {
            outer.levels = outer.levels.max(inner.levels + 1);
        }
    }
}

/// Returns the bracket that closes an object or an array.
fn closer(is_object: bool) -> u8 {
    if is_object { b'}' } else { b']' }
}
