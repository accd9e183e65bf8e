//! Text → its events, with the freedoms that viewers take with JSON.

use super::event::Events;
use super::finding::Findings;
use super::rule::Rule;
use crate::json::{Fields, Scanner};

/// Nothing more can be read.
struct Stop;

/// Hands each event to `events`; what is wrong between them goes to `findings`.
pub(super) fn walk<'a>(text: &'a [u8], events: &mut Events<'a>, findings: &mut Findings) {
    let scanner = Scanner { bytes: text, at: 0 };
    let mut walk = Walk {
        scanner,
        events,
        findings,
        found_events: false,
    };
    // What stopped it has been told.
    let _ = walk.document();
}

struct Walk<'a, 'e, 'f> {
    scanner: Scanner<'a>,
    events: &'e mut Events<'a>,
    findings: &'f mut Findings,
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
            _ => return Err(self.unreadable(false)),
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
                self.expect(|scanner| scanner.value(1))?;
            }
            self.scanner.space();
            if self.scanner.peek() != b',' {
                return self.expect(|scanner| scanner.expect(b'}'));
            }
            self.scanner.at += 1;
            self.scanner.space();
        }
    }

    /// The array of events; one that is the whole document (`bare`) may lack its end.
    fn events(&mut self, bare: bool) -> Result<(), Stop> {
        self.found_events = true;
        self.scanner.at += 1;
        let (mut commas, mut is_first) = (0, true);
        loop {
            self.scanner.space();
            match self.scanner.peek() {
                b',' => {
                    commas += 1;
                    self.scanner.at += 1;
                    continue;
                }
                b']' => {
                    if commas > 0 {
                        self.tell(Rule::Comma);
                    }
                    self.scanner.at += 1;
                    return Ok(());
                }
                b'{' => {
                    if commas != u32::from(!is_first) {
                        self.tell(Rule::Comma);
                    }
                    self.event(bare)?;
                }
                _ if bare && self.is_at_end() => return Ok(()),
                _ => return Err(self.unreadable(bare)),
            }
            (commas, is_first) = (0, false);
        }
    }

    fn event(&mut self, bare: bool) -> Result<(), Stop> {
        let start = self.scanner.at;
        let mut fields = Fields::default();
        if self.scanner.members(&mut fields).is_none() {
            return Err(self.unreadable(bare));
        }
        let end = self.scanner.at;
        self.events.add(start..end, &fields, self.findings);
        Ok(())
    }

    fn expect(&mut self, step: impl FnOnce(&mut Scanner<'_>) -> Option<()>) -> Result<(), Stop> {
        match step(&mut self.scanner) {
            Some(()) => Ok(()),
            None => Err(self.unreadable(false)),
        }
    }

    fn is_at_end(&self) -> bool {
        self.scanner.at >= self.scanner.bytes.len()
    }

    /// Says why it does not go on. Of an array that is the whole document (`bare`) what stands before a cut is loaded.
    fn unreadable(&mut self, bare: bool) -> Stop {
        let rest = self.scanner.bytes.get(self.scanner.at..);
        let is_cut = rest.is_none_or(is_cut);
        self.findings.is_loaded &= bare && is_cut;
        self.tell(if is_cut { Rule::CutOff } else { Rule::NotJson });
        Stop
    }

    fn tell(&mut self, rule: Rule) {
        let here = self.events.here(self.scanner.at);
        self.findings.add(rule, here);
    }
}

/// Whether what cannot be read is the beginning of something that could be.
fn is_cut(rest: &[u8]) -> bool {
    let literals: [&[u8]; 3] = [b"true", b"false", b"null"];
    match rest {
        [] | [b'\\'] => true,
        [b'\\', b'u', digits @ ..] if digits.len() < 4 => digits.iter().all(u8::is_ascii_hexdigit),
        _ => literals.iter().any(|literal| literal.starts_with(rest)),
    }
}
