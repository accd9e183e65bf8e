//! Name and category of an event. They match an end with its begin on a thread.

use crate::base::number::unquoted;
use crate::event::json::scan_object;
use crate::event::line::Event;
use std::borrow::Cow;
use xxhash_rust::xxh3::xxh3_64;

/// Hashes of an event's category and name; 0 for one that is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Labels {
    pub(crate) category: u32,
    pub(crate) name: u32,
}

impl Labels {
    pub(crate) fn new(event: &Event<'_>) -> Labels {
        // Of most lines, only the first members have been parsed, and these may come later.
        let fields = scan_object(event.line).unwrap_or(event.fields);
        let hash = |text: &[u8]| match &*unescaped(text) {
            b"" => 0,
            text => u32::try_from(xxh3_64(text) >> 32).map_or(1, |hash| hash.max(1)),
        };
        Labels {
            category: hash(fields.cat.slice(event.line)),
            name: hash(fields.name.slice(event.line)),
        }
    }

    /// Returns true if an end with these labels can end a span with the labels `begin`. A label
    /// that the end does not have matches any.
    pub(crate) fn can_end(self, begin: Labels) -> bool {
        let matches = |end: u32, begin: u32| end == 0 || end == begin;
        matches(self.category, begin.category) && matches(self.name, begin.name)
    }
}

/// Decodes a JSON string, because two writers may escape the same name differently.
fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', text).is_some()
        && let Ok(plain) = serde_json::from_slice::<String>(text)
    {
        return Cow::Owned(plain.into_bytes());
    }
    Cow::Borrowed(unquoted(text))
}
