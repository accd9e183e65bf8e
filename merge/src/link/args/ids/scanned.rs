//! Reads the ids of any line: slower than the fast path, but always correct.

use super::super::candidates::{IdOwner, id_owner};
use super::{RequestId, RequestIds};
use crate::base::number::unquoted;
use crate::event::json::{Scanner, scan_object};
use crate::event::line::Event;
use xxhash_rust::xxh3::xxh3_64;

impl<'a> RequestIds<'a> {
    /// Reads the ids of any line.
    pub(super) fn read_args(&mut self, event: &Event<'a>) {
        let args = match event.fields.args.slice(event.line) {
            b"" => scan_object(event.line).map_or(&[][..], |fields| fields.args.slice(event.line)),
            args => args,
        };
        let mut scanner = Scanner::lenient(args, 0);
        // Args that are not an object have no ids; the line itself is valid.
        let _ = self.read_members(&mut scanner);
    }

    fn read_members(&mut self, scanner: &mut Scanner<'a>) -> Option<()> {
        scanner.expect(b'{')?;
        loop {
            scanner.space();
            let name = scanner.at;
            scanner.string()?;
            let name = &scanner.bytes[name + 1..scanner.at - 1];
            scanner.space();
            scanner.expect(b':')?;
            scanner.space();
            match id_owner(name) {
                Some(owner) => self.read_ids(owner, scanner)?,
                None => scanner.value(2)?,
            }
            scanner.space();
            scanner.expect(b',')?;
        }
    }

    /// Reads an id or a list of ids.
    fn read_ids(&mut self, owner: IdOwner, scanner: &mut Scanner<'a>) -> Option<()> {
        if scanner.peek() != b'[' {
            return self.read_id(owner, scanner);
        }
        scanner.at += 1;
        scanner.space();
        while scanner.peek() != b']' {
            self.read_id(owner, scanner)?;
            scanner.space();
            if scanner.peek() == b',' {
                scanner.at += 1;
                scanner.space();
            }
        }
        scanner.expect(b']')
    }

    fn read_id(&mut self, owner: IdOwner, scanner: &mut Scanner<'a>) -> Option<()> {
        let start = scanner.at;
        scanner.value(2)?;
        if let Some(id) = id(&scanner.bytes[start..scanner.at]) {
            self.push(owner, id);
        }
        Some(())
    }
}

/// Parses an id: a string or a whole number. Returns `None` for anything else.
fn id(value: &[u8]) -> Option<RequestId<'_>> {
    match value {
        [b'"', .., b'"'] => {
            let written = unquoted(value);
            let id = RequestId { key: 0, written };
            let key = xxh3_64(&id.text());
            (!written.is_empty()).then_some(RequestId { key, written })
        }
        digits if digits.iter().all(u8::is_ascii_digit) => Some(RequestId::plain(digits)),
        _ => None,
    }
}
