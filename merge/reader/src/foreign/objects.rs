//! The objects in a text that is not well formed as a whole, found in one go however deep they lie in each other.

use crate::event::json::Scanner;

/// Deepest nesting of an event: the scanner takes no more.
const MOST_LEVELS: usize = 127;

/// What stands behind a bracket.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Objects {
    /// Where each object begins, in order.
    pub(super) starts: Vec<usize>,
    /// Those of them that end, are not too deep, and have the members of an event; those within others before these.
    pub(super) events: Vec<usize>,
}

/// An object or array that has not ended.
struct OpenObject {
    start: usize,
    is_object: bool,
    has_phase: bool,
    has_pid: bool,
    /// Levels in it, with its own.
    levels: usize,
}

/// Goes over the object at `at`, up to its end or what is not well formed.
pub(super) fn objects(bytes: &[u8], at: usize) -> Objects {
    let mut walk = ObjectWalk {
        scanner: Scanner::lenient(bytes, at),
        open: Vec::new(),
        found: Objects::default(),
    };
    // Where that stops says nothing: what has ended by then counts.
    let _ = walk.all();
    walk.found
}

struct ObjectWalk<'a> {
    scanner: Scanner<'a>,
    open: Vec<OpenObject>,
    found: Objects,
}

impl ObjectWalk<'_> {
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

    /// The key of a member, if it is one of an object.
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

fn closer(is_object: bool) -> u8 {
    if is_object { b'}' } else { b']' }
}
