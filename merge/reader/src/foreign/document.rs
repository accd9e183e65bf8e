//! Reads a document of trace events in any form: an object with the events in `traceEvents`, a list, a list without its end, or one event after the
//! other. Any of them may be cut off or damaged. The events are written to [`Lines`], the other members to [`DocumentMembers`].

use super::lines::Lines;
use super::members::DocumentMembers;
use super::resync::{is_at_end, next_element, next_event, next_line};
use crate::event::damage::Kind;
use crate::event::json::{Scanner, scan_object_at_front};
use memchr::memmem;
use std::io;

/// Key of the member that contains the events.
const EVENTS: &[u8] = b"traceEvents";
const BOM: &[u8] = b"\xef\xbb\xbf";
/// Number of bytes after a malformed member within which the events are searched for.
const MOST_SKIPPED_BYTES: usize = 1 << 20;

/// Reads a whole document of trace events. Adds its events to `lines` and calls `passed` with the current offset from time to time. Returns its
/// form (`object`, `list` or `lines`) and its members other than the events.
pub(super) fn read(
    bytes: &[u8],
    lines: &mut Lines<'_>,
    passed: &mut dyn FnMut(usize),
) -> io::Result<(&'static str, DocumentMembers)> {
    let mut reader = DocumentReader {
        bytes,
        at: 0,
        lines,
        members: DocumentMembers::default(),
        form: None,
        passed,
    };
    if bytes.starts_with(BOM) {
        reader.lines.damage(0, Kind::Bom);
        reader.at = BOM.len();
    }
    while reader.next()? {}
    Ok((reader.form.unwrap_or("lines"), reader.members))
}

struct DocumentReader<'a, 'f> {
    bytes: &'a [u8],
    at: usize,
    lines: &'a mut Lines<'f>,
    members: DocumentMembers,
    /// Form of the document, which its first element decides: `object`, `list` or `lines`.
    form: Option<&'static str>,
    passed: &'a mut dyn FnMut(usize),
}

impl<'a> DocumentReader<'a, '_> {
    /// Reads the next top-level element of the document: a list of events, an object that contains events, or a single event. Returns `false` at
    /// the end.
    fn next(&mut self) -> io::Result<bool> {
        self.skip(b" \t\r\n,");
        let Some(byte) = self.peek() else {
            return Ok(false);
        };
        match byte {
            b'[' => {
                self.form.get_or_insert("list");
                self.at += 1;
                self.events()?;
            }
            b'{' if self.holds_events() => {
                self.form.get_or_insert("object");
                self.at += 1;
                self.members()?;
            }
            b'{' => {
                self.form.get_or_insert("lines");
                self.element()?;
            }
            0 => self.nuls(),
            _ => {
                self.lines.damage(self.at, Kind::BadJson);
                let next = next_line(self.bytes, self.at);
                self.at = next_event(self.bytes, self.at, next).unwrap_or(next);
            }
        }
        Ok(true)
    }

    /// Returns the next byte of the document without advancing; `None` at the end.
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Skips all bytes that are in `any`.
    fn skip(&mut self, any: &[u8]) {
        let skipped = self.bytes[self.at..].iter();
        self.at += skipped.take_while(|byte| any.contains(byte)).count();
    }

    /// Skips zero bytes, which are a hole in the file, and records them as damage.
    fn nuls(&mut self) {
        self.lines.damage(self.at, Kind::Nul);
        self.skip(&[0]);
    }

    /// Returns true if the object at the current offset has a member `traceEvents`, and false if it is an event itself.
    fn holds_events(&self) -> bool {
        let mut scanner = self.scanner(self.at + 1);
        loop {
            scanner.space();
            let start = scanner.at;
            if scanner.string().is_none() {
                return false;
            }
            match &self.bytes[start + 1..scanner.at - 1] {
                b"ph" => return false,
                EVENTS => return true,
                _ => {}
            }
            let value = scanner.colon().and_then(|()| scanner.value(1));
            scanner.space();
            if value.is_none() || !matches!(scanner.peek(), b',' | b'}') {
                // Some profilers write malformed members before their events.
                let ahead = &self.bytes[start..self.bytes.len().min(start + MOST_SKIPPED_BYTES)];
                let events = memmem::find(ahead, br#""traceEvents""#);
                let before = &ahead[..events.unwrap_or(0)];
                return events.is_some() && memmem::find(before, br#""ph""#).is_none();
            }
            if scanner.expect(b',').is_none() {
                return false;
            }
        }
    }

    /// Creates a JSON scanner that starts at offset `at` of the document. It can look ahead, because it does not move the reader.
    fn scanner(&self, at: usize) -> Scanner<'a> {
        Scanner::lenient(self.bytes, at)
    }

    /// Reads the members of the object that contains the events, from the offset after its opening bracket to its end.
    fn members(&mut self) -> io::Result<()> {
        let mut has_events = false;
        loop {
            self.skip(b" \t\r\n,");
            match self.peek() {
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                None => {
                    self.lines.torn(self.at);
                    return Ok(());
                }
                Some(_) => {}
            }
            match self.member() {
                Some(true) => {
                    has_events = true;
                    if !self.events()? {
                        self.lines.torn(self.at);
                    }
                }
                Some(false) => {}
                None if self.broken_member(has_events) => {}
                None => return Ok(()),
            }
        }
    }

    /// Reads a member of the object that contains the events. Returns `true` if the member is the list of events, and then stops before its first
    /// event. If the member is malformed, returns `None` and does not advance.
    fn member(&mut self) -> Option<bool> {
        let mut scanner = self.scanner(self.at);
        let start = scanner.at;
        scanner.string()?;
        let key = &self.bytes[start + 1..scanner.at - 1];
        scanner.colon()?;
        if key == EVENTS && scanner.expect(b'[').is_some() {
            self.at = scanner.at;
            return Some(true);
        }
        let value = scanner.at;
        scanner.value(1)?;
        self.members.add(key, &self.bytes[value..scanner.at]);
        self.at = scanner.at;
        Some(false)
    }

    /// Records a malformed member as damage. Skips to the list of events and returns true if it is still to come. Otherwise skips to the end of
    /// the document and returns false.
    fn broken_member(&mut self, has_events: bool) -> bool {
        let start = self.at;
        let rest = &self.bytes[start + 1..];
        let events = memmem::find(rest, br#""traceEvents""#).filter(|_| !has_events);
        self.at = events.map_or(self.bytes.len(), |hit| start + 1 + hit);
        if events.is_none() && self.fails_at_end(start) {
            self.lines.torn(start);
        } else {
            self.lines.damage(start, Kind::BadJson);
        }
        events.is_some()
    }

    /// Returns true if the member at offset `start` is only cut off: it is well formed up to the end of the document.
    fn fails_at_end(&self, start: usize) -> bool {
        let mut scanner = self.scanner(start);
        scanner.pair(1).is_none() && is_at_end(self.bytes, scanner.at)
    }

    /// Reads the elements of a list of events, from the offset after its opening bracket, and adds the events to the lines. Returns `false` if
    /// the document ends before the list does.
    fn events(&mut self) -> io::Result<bool> {
        loop {
            self.skip(b" \t\r\n,");
            match self.peek() {
                None => return Ok(false),
                Some(b']') => {
                    self.at += 1;
                    return Ok(true);
                }
                Some(b'{') if self.is_end_mark() => {}
                Some(b'{') => self.element()?,
                Some(0) => self.nuls(),
                Some(_) => self.skip_other(),
            }
        }
    }

    /// Skips the empty object that JAX writes at the end of its list, so that it can put a comma after each event. Returns false if there is no
    /// such object here.
    fn is_end_mark(&mut self) -> bool {
        let mut scanner = self.scanner(self.at + 1);
        scanner.space();
        let is_empty = scanner.expect(b'}').is_some();
        let after = scanner.at;
        scanner.space();
        let is_last = is_empty && scanner.peek() == b']';
        if is_last {
            self.at = after;
        }
        is_last
    }

    /// Skips an element of a list that is not an object, and records it as damage. If it is malformed, skips to the next event.
    fn skip_other(&mut self) {
        let mut scanner = self.scanner(self.at);
        if scanner.value(1).is_some() {
            self.lines.damage(self.at, Kind::BadEvent);
            self.at = scanner.at;
            return;
        }
        self.lines.damage(self.at, Kind::BadJson);
        let from = self.at + 1;
        self.at = next_event(self.bytes, from, self.bytes.len()).unwrap_or(self.bytes.len());
    }

    /// Reads an object that should be an event, and adds it to the lines. Skips it as damage if it is malformed.
    fn element(&mut self) -> io::Result<()> {
        let rest = &self.bytes[self.at..];
        match scan_object_at_front(rest) {
            Ok((fields, len)) => {
                self.lines.object(&rest[..len], fields, self.at)?;
                self.at += len;
            }
            Err(stop) => self.broken_element(self.at + stop),
        }
        (self.passed)(self.at);
        Ok(())
    }

    /// Records a malformed object as damage, and skips to where reading can continue. `stop` is the offset at which it is malformed.
    fn broken_element(&mut self, stop: usize) {
        let next = next_element(self.bytes, self.at);
        let is_torn = next.is_none() && is_at_end(self.bytes, stop);
        let kind = match is_torn {
            true => Kind::TornTail,
            false if self.bytes[self.at..next.unwrap_or(stop)].contains(&0) => Kind::Nul,
            false => Kind::BadJson,
        };
        match kind {
            Kind::TornTail => self.lines.torn(self.at),
            kind => self.lines.damage(self.at, kind),
        }
        self.at = next.unwrap_or(self.bytes.len());
    }
}

#[cfg(test)]
mod tests;
