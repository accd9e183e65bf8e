//! Caches names and keys by their address, because a C program passes the same literals again and again. The text at the address is compared each time,
//! because it may have changed.

use std::borrow::Cow;
use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use sa_recorder::{Level, Site, encode_key};

use crate::text;

/// Maximum length of a cached text. Longer ones are not cached.
const MAX_BYTES: usize = 256;

static SITES: Table<Names, 512> = Table::new();
static KEYS: Table<Key, 256> = Table::new();

/// Values by the hash of their address, one per slot. Nothing is ever replaced or removed, so the memory stays bounded even if a host's names keep changing.
struct Table<T, const N: usize> {
    slots: [AtomicPtr<T>; N],
    /// True while a thread inserts a value. If two threads filled the same slot, one of the two values would be leaked.
    is_inserting: AtomicBool,
}

/// A category and a name, with their site.
struct Names {
    category: &'static CStr,
    name: &'static CStr,
    site: &'static Site,
}

/// A key, with its JSON text including the colon.
struct Key {
    key: &'static CStr,
    json: &'static str,
}

/// Returns the recorder's site (its interned text) for this level, category and name, if it is cached.
///
/// # Safety
///
/// Both pointers are null or C strings.
#[inline(always)]
pub(crate) unsafe fn site(
    level: Level,
    category: *const c_char,
    name: *const c_char,
) -> Option<&'static Site> {
    let names = SITES.get(hash(category, name, level))?;
    // SAFETY: guaranteed by the caller.
    let same = unsafe { is_same_text(names.name, name) };
    // SAFETY: guaranteed by the caller.
    let same = same && unsafe { is_same_text(names.category, category) };
    (same && names.site.level() == level).then_some(names.site)
}

/// Caches the recorder's site (its interned text) for this level, category and name. The last two are passed as C strings and as texts.
#[cold]
pub(crate) fn insert_site(
    level: Level,
    (category, name): (*const c_char, *const c_char),
    texts: [&Cow<'_, str>; 2],
) {
    let (hash, has_null) = (
        hash(category, name, level),
        category.is_null() || name.is_null(),
    );
    let [Cow::Borrowed(category), Cow::Borrowed(name)] = texts else {
        return; // a text with replaced bytes would never equal the one at the address
    };
    if has_null || category.len().max(name.len()) > MAX_BYTES {
        return;
    }
    SITES.insert(hash, || {
        let site = Site::intern(level, category, name)?;
        Some(Names {
            category: c_string(category)?,
            name: c_string(name)?,
            site,
        })
    });
}

/// Returns the JSON text of an arg's key, including the colon, if it is cached.
///
/// # Safety
///
/// `key` is null or a C string.
#[inline(always)]
pub(crate) unsafe fn key_json(key: *const c_char) -> Option<&'static str> {
    let cached = KEYS.get(hash(key, key, Level::E2e))?;
    // SAFETY: guaranteed by the caller.
    unsafe { is_same_text(cached.key, key) }.then_some(cached.json)
}

/// Returns the text of an arg's key that is not cached, and caches the key if possible.
///
/// # Safety
///
/// `key` is null or a C string.
#[cold]
pub(crate) unsafe fn insert_key<'a>(key: *const c_char) -> Cow<'a, str> {
    // SAFETY: guaranteed by the caller.
    let name = unsafe { text::name(key) };
    if let Cow::Borrowed(name) = name {
        insert_key_text(key, name); // a text with replaced bytes would never equal the one at the address
    }
    name
}

/// Caches an arg's key, which is passed as a C string and as its text.
fn insert_key_text(key: *const c_char, text: &str) {
    if key.is_null() || text.len() > MAX_BYTES {
        return;
    }
    KEYS.insert(hash(key, key, Level::E2e), || {
        let json = encode_key(text);
        Some(Key {
            key: c_string(text)?,
            json: (!json.is_empty()).then(|| &*json.leak())?,
        })
    });
}

impl<T: 'static, const N: usize> Table<T, N> {
    const fn new() -> Table<T, N> {
        Table {
            slots: [const { AtomicPtr::new(std::ptr::null_mut()) }; N],
            is_inserting: AtomicBool::new(false),
        }
    }

    #[inline(always)]
    fn slot(&self, hash: usize) -> &AtomicPtr<T> {
        &self.slots[hash % N]
    }

    #[inline(always)]
    fn get(&self, hash: usize) -> Option<&'static T> {
        // SAFETY: a pointer that is not null points to a leaked value.
        unsafe { self.slot(hash).load(Ordering::Acquire).as_ref() }
    }

    /// Stores the value that `make` creates in the slot for this hash, if the slot is free and no other thread is inserting.
    fn insert(&self, hash: usize, make: impl FnOnce() -> Option<T>) {
        if self.is_inserting.swap(true, Ordering::Acquire) {
            return; // a later call inserts it
        }
        let mut room = Vec::new();
        if self.get(hash).is_none()
            && room.try_reserve_exact(1).is_ok()
            && let Some(made) = make()
        {
            room.push(made);
            if let Some(made) = room.leak().first_mut() {
                self.slot(hash).store(made, Ordering::Release);
            }
        }
        self.is_inserting.store(false, Ordering::Release);
    }
}

#[inline(always)]
fn hash(one: *const c_char, other: *const c_char, level: Level) -> usize {
    let sum = one.addr().rotate_left(20) ^ other.addr() ^ (level as usize) << 50;
    sum.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48
}

/// Returns true if `other` is a C string with the same text. Null is never the same.
///
/// # Safety
///
/// `other` is null or a C string.
#[inline(always)]
unsafe fn is_same_text(text: &CStr, other: *const c_char) -> bool {
    // SAFETY: `text` is a C string, and so is `other`, as the caller guarantees.
    !other.is_null() && unsafe { libc::strcmp(text.as_ptr(), other) } == 0
}

/// Copies a text to a C string that is never freed, or returns `None` if there is not enough memory.
fn c_string(text: &str) -> Option<&'static CStr> {
    let mut copy: Vec<u8> = Vec::new();
    copy.try_reserve_exact(text.len() + 1).ok()?;
    copy.extend_from_slice(text.as_bytes());
    copy.push(0);
    CStr::from_bytes_with_nul(copy.leak()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(level: Level, name: &[u8]) -> Option<&'static Site> {
        // SAFETY: C strings.
        unsafe { site(level, c"known".as_ptr(), name.as_ptr().cast()) }
    }

    #[test]
    fn names_are_found_until_they_change() {
        let mut name = *b"known\0";
        assert!(find(Level::E2e, &name).is_none());
        let pointers = (c"known".as_ptr(), name.as_ptr().cast());
        insert_site(Level::E2e, pointers, [&Cow::Borrowed("known"); 2]);
        let site = find(Level::E2e, &name).unwrap();
        let interned = Site::intern(Level::E2e, "known", "known").unwrap();
        assert!(std::ptr::eq(site, interned));
        assert!(find(Level::Kernel, &name).is_none());
        for byte in [b'm', 0] {
            name[4] = byte;
            assert!(find(Level::E2e, &name).is_none());
        }
    }
}
