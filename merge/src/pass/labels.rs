//! What events are told apart by beside their thread: name and category.

use crate::base::number::unquoted;
use crate::event::json::scan_object;
use crate::event::line::Event;
use std::borrow::Cow;
use xxhash_rust::xxh3::xxh3_64;

/// Hashes of an event's category and name, 0 for one that is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Labels {
    pub(crate) category: u32,
    pub(crate) name: u32,
}

impl Labels {
    pub(crate) fn of(event: &Event<'_>) -> Labels {
        // They may stand behind the front, which alone has been read of most lines.
        let fields = scan_object(event.line).unwrap_or(event.fields);
        let hash = |text: &[u8]| match &*unescaped(text) {
            b"" => 0,
            text => u32::try_from(xxh3_64(text) >> 32).map_or(1, |hash| hash.max(1)),
        };
        Labels {
            category: hash(fields.cat.of(event.line)),
            name: hash(fields.name.of(event.line)),
        }
    }

    /// Whether an end with these labels ends a span that began with those: it has the same ones, or none.
    pub(crate) fn end(self, begin: Labels) -> bool {
        let same = |of_end: u32, of_begin: u32| of_end == 0 || of_end == of_begin;
        same(self.category, begin.category) && same(self.name, begin.name)
    }
}

/// What a JSON string says: two writers may escape the same name differently.
fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', text).is_some()
        && let Ok(plain) = serde_json::from_slice::<String>(text)
    {
        return Cow::Owned(plain.into_bytes());
    }
    Cow::Borrowed(unquoted(text))
}
