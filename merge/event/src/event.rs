//! An event: its line, and where in it the members stand.

use crate::json::Fields;
use trace_base::number;

/// An event as far as the merge looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The line without its newline.
    pub line: &'a [u8],
    /// The phase, one character.
    pub phase: u8,
    /// Process id as the line says; text ids are hashed to negative numbers.
    pub pid: i64,
    /// Thread id; the process id where the line has none.
    pub tid: i64,
    /// Time in ns as the line says, 0 for metadata.
    pub ts_ns: i64,
    /// Duration in ns, 0 for everything but complete events.
    pub dur_ns: i64,
    /// Where the members stand.
    pub fields: Fields,
    /// Whether the duration has to be written anew, because it is no whole number of ns or a string.
    pub rounds_dur: bool,
}

impl<'a> Event<'a> {
    /// Tells whether this is metadata, which has no time.
    #[inline]
    pub fn is_metadata(&self) -> bool {
        self.phase == b'M'
    }

    /// The name between its quotes, as written.
    #[inline]
    pub fn name(&self) -> &'a [u8] {
        number::unquoted(self.fields.name.of(self.line))
    }

    /// Tells whether it is an unfinished span (FORMAT.md §2).
    #[inline]
    pub fn is_unfinished(&self) -> bool {
        self.phase == b'B' && memchr::memmem::find(self.line, br#""unfinished":true"#).is_some()
    }
}
