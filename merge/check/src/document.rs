//! Text → its events, with the freedoms that viewers take with JSON.

use super::deep::is_json;
use super::event::Events;
use super::finding::Findings;
use super::loose::{Unread, read, skip};
use super::rule::Rule;
use std::io;
use std::ops::Range;
use trace_event::json::{Fields, Scanner};

/// Why nothing more is read.
enum Stop {
    /// The text ends, or cannot be read on; that has been told.
    Told,
    /// A temporary file cannot be written.
    Failed(io::Error),
}

/// Hands each event to `events`; what is wrong between them goes to `findings`.
pub(super) fn walk<'a>(
    text: &'a [u8],
    events: &mut Events<'a, '_>,
    findings: &mut Findings,
) -> io::Result<()> {
    let scanner = Scanner::new(text, 0);
    let mut walk = Walk {
        scanner,
        events,
        findings,
        found_events: false,
    };
    match walk.document() {
        Err(Stop::Failed(error)) => Err(error),
        Ok(()) | Err(Stop::Told) => Ok(()),
    }
}

struct Walk<'a, 'f, 'r> {
    scanner: Scanner<'a>,
    events: &'r mut Events<'a, 'f>,
    findings: &'r mut Findings,
    /// Whether there was an array of events.
    found_events: bool,
}

impl Walk<'_, '_, '_> {
    fn document(&mut self) -> Result<(), Stop> {
        self.scanner.space();
        let is_array = self.scanner.peek() == b'[';
        match self.scanner.peek() {
            b'[' => self.events(true)?,
            b'{' => self.object()?,
            _ if self.is_at_end() => {}
            _ => return Err(self.unreadable(false, false)),
        }
        // An empty array is no trace to Perfetto; an object with an empty one is.
        if !self.found_events || is_array && self.events.count() == 0 {
            self.tell(Rule::NotATrace);
        }
        self.scanner.space();
        if !self.is_at_end() && self.found_events {
            self.tell(Rule::AfterEnd);
        }
        Ok(())
    }

    /// An object, of which `traceEvents` are the events.
    fn object(&mut self) -> Result<(), Stop> {
        self.scanner.at += 1;
        self.scanner.space();
        if self.scanner.peek() == b'}' {
            self.scanner.at += 1;
            return Ok(());
        }
        loop {
            let start = self.scanner.at;
            self.expect(|scanner| scanner.string())?;
            let key = &self.scanner.bytes[start..self.scanner.at];
            self.scanner.space();
            self.expect(|scanner| scanner.expect(b':'))?;
            self.scanner.space();
            if key == b"\"traceEvents\"" && self.scanner.peek() == b'[' {
                self.events(false)?;
            } else {
                self.other()?;
            }
            self.scanner.space();
            if self.scanner.peek() != b',' {
                return self.expect(|scanner| scanner.expect(b'}'));
            }
            self.scanner.at += 1;
            self.scanner.space();
            if self.scanner.peek() == b'}' {
                self.tell(Rule::Comma);
                self.scanner.at += 1;
                return Ok(());
            }
        }
    }

    /// A value beside the events.
    fn other(&mut self) -> Result<(), Stop> {
        let start = self.scanner.at;
        if self.scanner.value(1).is_some() {
            return Ok(());
        }
        match skip(self.scanner.bytes, start) {
            Ok(end) => self.take_loosely(start..end),
            Err(unread) => return Err(self.give_up(unread, false)),
        }
        Ok(())
    }

    /// The array of events; one that is the whole document (`bare`) may lack its end.
    fn events(&mut self, bare: bool) -> Result<(), Stop> {
        self.found_events = true;
        self.findings.is_bare = bare;
        self.scanner.at += 1;
        let (mut has_comma, mut is_first) = (false, true);
        loop {
            self.scanner.space();
            match self.scanner.peek() {
                // Perfetto looks for one, whether it belongs there or not.
                b',' if !has_comma => {
                    has_comma = true;
                    self.scanner.at += 1;
                    continue;
                }
                b']' => {
                    if has_comma {
                        self.tell(Rule::Comma);
                    }
                    self.scanner.at += 1;
                    return Ok(());
                }
                b'{' => {
                    if has_comma == is_first {
                        self.tell(Rule::Comma);
                    }
                    self.event(bare)?;
                }
                _ if bare && self.is_at_end() => return Ok(()),
                _ => return Err(self.unreadable(self.is_at_end(), bare)),
            }
            (has_comma, is_first) = (false, false);
        }
    }

    fn event(&mut self, bare: bool) -> Result<(), Stop> {
        let start = self.scanner.at;
        let mut fields = Fields::default();
        self.scanner.odd_escapes = false;
        let is_json = self.scanner.members(&mut fields).is_some();
        fields.odd_escapes = self.scanner.odd_escapes;
        if !is_json {
            match read(self.scanner.bytes, start) {
                Ok((loose, end)) => {
                    fields = loose;
                    self.take_loosely(start..end);
                }
                Err(unread) => return Err(self.give_up(unread, bare)),
            }
        }
        let range = start..self.scanner.at;
        let added = self.events.add(range, &fields, self.findings);
        added.map_err(Stop::Failed)?;
        // Perfetto waits for the rest of the event, and ends a bare array there.
        let last = [Rule::BadTime, Rule::BadNumber, Rule::LastBackslash];
        let is_last = last.into_iter().any(|rule| self.findings.is_found(rule));
        match bare && is_last {
            true => Err(Stop::Told),
            false => Ok(()),
        }
    }

    /// Goes over what Perfetto reads and the scanner did not, for it is no JSON or only very deep.
    fn take_loosely(&mut self, range: Range<usize>) {
        self.scanner.at = range.end;
        let place = self.events.here(range.start);
        if !is_json(&self.scanner.bytes[range]) {
            self.findings.add(Rule::LooseJson, place);
        }
    }

    fn give_up(&mut self, (unread, at): (Unread, usize), bare: bool) -> Stop {
        self.scanner.at = at;
        self.unreadable(unread == Unread::Cut, bare)
    }

    fn expect(&mut self, step: impl FnOnce(&mut Scanner<'_>) -> Option<()>) -> Result<(), Stop> {
        match step(&mut self.scanner) {
            Some(()) => Ok(()),
            None => Err(self.unreadable(self.is_at_end(), false)),
        }
    }

    fn is_at_end(&self) -> bool {
        self.scanner.at >= self.scanner.bytes.len()
    }

    /// Says why it does not go on. Of an array that is the whole document (`bare`) what stands before a cut is loaded.
    fn unreadable(&mut self, is_cut: bool, bare: bool) -> Stop {
        self.findings.is_loaded &= bare && is_cut;
        self.tell(if is_cut { Rule::CutOff } else { Rule::NotJson });
        Stop::Told
    }

    fn tell(&mut self, rule: Rule) {
        let here = self.events.here(self.scanner.at);
        self.findings.add(rule, here);
    }
}
