//! Encoded keys of args, cached because a call site's keys are the same objects each time.

use pyo3::prelude::*;
use pyo3::types::PyString;
use sa_recorder::Value;

use crate::attached::Attached;

/// Number of cached keys, the most recently used ones.
const CACHED_KEYS: usize = 256;
/// Maximum length of a cached key in bytes. The whole buffer is copied, so that the length does not matter.
const MAX_BYTES: usize = 32;

/// A key and its encoded text.
pub(super) struct CachedKey {
    key: Py<PyString>,
    /// `,"key":`
    text: [u8; 1 + MAX_BYTES],
    /// Length without the leading comma.
    len: usize,
}

/// Cached keys, by the identity of their objects.
pub(super) type Keys = [Option<CachedKey>; CACHED_KEYS];

pub(super) static KEYS: Attached<Keys> = Attached::new([const { None }; CACHED_KEYS]);

impl CachedKey {
    fn new(key: &Bound<'_, PyString>, written: &[u8]) -> Option<CachedKey> {
        let mut text = [b','; 1 + MAX_BYTES];
        let is_short = written.len() < MAX_BYTES;
        let slot = text.get_mut(1..=written.len()).filter(|_| is_short)?;
        slot.copy_from_slice(written);
        Some(CachedKey {
            key: key.clone().unbind(),
            text,
            len: written.len(),
        })
    }

    /// Appends the encoded key and a colon to the encoded args in `text`, with a comma before them unless the text is empty.
    #[inline]
    fn push(&self, text: &mut Vec<u8>) {
        let skipped = usize::from(text.is_empty());
        let end = text.len() + 1 - skipped + self.len;
        if let Some(block) = self.text[skipped..].first_chunk::<MAX_BYTES>() {
            text.extend_from_slice(block);
            text.truncate(end);
        }
    }
}

/// Appends the key of an arg and a colon to the encoded args in `text`, with a comma before them unless the text is empty. Uses cached keys. Returns false for
/// a key with lone surrogates.
#[inline]
pub(super) fn push(keys: &mut Keys, text: &mut Vec<u8>, key: &Bound<'_, PyString>) -> bool {
    let slot = &mut keys[(key.as_ptr().addr() >> 4) % CACHED_KEYS];
    if let Some(cached) = slot.as_ref().filter(|cached| cached.key.is(key)) {
        cached.push(text);
        return true;
    }
    push_new(slot, text, key)
}

#[inline(never)]
fn push_new(slot: &mut Option<CachedKey>, text: &mut Vec<u8>, key: &Bound<'_, PyString>) -> bool {
    let Ok(name) = key.to_str() else {
        return false;
    };
    if !text.is_empty() {
        text.push(b',');
    }
    let from = text.len();
    name.write(text);
    text.push(b':');
    if let Some(cached) = CachedKey::new(key, &text[from..]) {
        *slot = Some(cached); // dropping the previous key runs no code
    }
    true
}
