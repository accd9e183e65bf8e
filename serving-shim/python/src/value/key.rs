//! Keys of args as they are written: those of one call site are the same objects each time.

use pyo3::prelude::*;
use pyo3::types::PyString;
use sa_recorder::Value;

use crate::attached::Attached;

/// How many keys are remembered, those that were used last.
const REMEMBERED: usize = 256;
/// Most bytes of one that is. It is copied as a whole, so that its length need not be asked.
const MOST_BYTES: usize = 32;

/// A key whose text is made.
pub(super) struct Known {
    key: Py<PyString>,
    /// `,"key":`
    text: [u8; 1 + MOST_BYTES],
    /// Without the comma.
    len: usize,
}

/// By the identity of their objects.
pub(super) type Keys = [Option<Known>; REMEMBERED];

pub(super) static KEYS: Attached<Keys> = Attached::new([const { None }; REMEMBERED]);

impl Known {
    fn of(key: &Bound<'_, PyString>, written: &[u8]) -> Option<Known> {
        let mut text = [b','; 1 + MOST_BYTES];
        let is_short = written.len() < MOST_BYTES;
        let place = text.get_mut(1..=written.len()).filter(|_| is_short)?;
        place.copy_from_slice(written);
        Some(Known {
            key: key.clone().unbind(),
            text,
            len: written.len(),
        })
    }

    /// Appends it, with a comma before it unless the text is empty.
    #[inline]
    fn push(&self, text: &mut Vec<u8>) {
        let skipped = usize::from(text.is_empty());
        let end = text.len() + 1 - skipped + self.len;
        if let Some(block) = self.text[skipped..].first_chunk::<MOST_BYTES>() {
            text.extend_from_slice(block);
            text.truncate(end);
        }
    }
}

/// Appends a key and a colon, with a comma before them unless the text is empty. A key with lone surrogates is none: whether it was appended.
#[inline]
pub(super) fn push(keys: &mut Keys, text: &mut Vec<u8>, key: &Bound<'_, PyString>) -> bool {
    let place = &mut keys[(key.as_ptr().addr() >> 4) % REMEMBERED];
    if let Some(known) = place.as_ref().filter(|known| known.key.is(key)) {
        known.push(text);
        return true;
    }
    push_new(place, text, key)
}

#[inline(never)]
fn push_new(place: &mut Option<Known>, text: &mut Vec<u8>, key: &Bound<'_, PyString>) -> bool {
    let Ok(name) = key.to_str() else {
        return false;
    };
    if !text.is_empty() {
        text.push(b',');
    }
    let from = text.len();
    name.write(text);
    text.push(b':');
    if let Some(known) = Known::of(key, &text[from..]) {
        *place = Some(known); // dropping the text before runs no code
    }
    true
}
