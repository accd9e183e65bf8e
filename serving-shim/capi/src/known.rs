//! Names and keys that were passed before, found by their address: a C program passes the same literals again and again. The text at the address
//! is compared each time, for it may be another one by now.

use std::borrow::Cow;
use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use sa_recorder::{Level, Site, key_text};

use crate::text;

/// Longer texts are not kept.
const MAX_BYTES: usize = 256;

static SITES: Table<Names, 512> = Table::new();
static KEYS: Table<Key, 256> = Table::new();

/// What was seen, each at the place that belongs to its address. Nothing is ever replaced or removed, so that a host whose names change shall not grow without end.
struct Table<T, const N: usize> {
    places: [AtomicPtr<T>; N],
    /// Somebody makes a value: two for one place would leave one of them leaked and out of reach.
    is_making: AtomicBool,
}

/// Category and name, and the site of both.
struct Names {
    category: &'static CStr,
    name: &'static CStr,
    site: &'static Site,
}

/// A key, and its JSON text with the colon.
struct Key {
    key: &'static CStr,
    text: &'static str,
}

/// The site of a category and a name that were kept.
///
/// # Safety
///
/// Both are null or C strings.
#[inline(always)]
pub(crate) unsafe fn site(
    level: Level,
    category: *const c_char,
    name: *const c_char,
) -> Option<&'static Site> {
    let names = SITES.get(hash(category, name, level))?;
    // SAFETY: the caller's.
    let same = unsafe { is(names.name, name) };
    // SAFETY: the caller's.
    let same = same && unsafe { is(names.category, category) };
    (same && names.site.level() == level).then_some(names.site)
}

/// Keeps the site of a category and a name, given as C strings and as texts.
#[cold]
pub(crate) fn keep_site(
    level: Level,
    (category, name): (*const c_char, *const c_char),
    texts: [&Cow<'_, str>; 2],
) {
    let (hash, has_null) = (
        hash(category, name, level),
        category.is_null() || name.is_null(),
    );
    let [Cow::Borrowed(category), Cow::Borrowed(name)] = texts else {
        return; // it would not be found: other bytes lie there
    };
    if has_null || category.len().max(name.len()) > MAX_BYTES {
        return;
    }
    SITES.keep(hash, || {
        let site = Site::intern(level, category, name)?;
        Some(Names {
            category: c_string(category)?,
            name: c_string(name)?,
            site,
        })
    });
}

/// The JSON text of a key that was kept.
///
/// # Safety
///
/// It is null or a C string.
#[inline(always)]
pub(crate) unsafe fn key(key: *const c_char) -> Option<&'static str> {
    let known = KEYS.get(hash(key, key, Level::E2e))?;
    // SAFETY: the caller's.
    unsafe { is(known.key, key) }.then_some(known.text)
}

/// The text of a key that was not kept yet, which is kept now.
///
/// # Safety
///
/// It is null or a C string.
#[cold]
pub(crate) unsafe fn name_of_key<'a>(key: *const c_char) -> Cow<'a, str> {
    // SAFETY: the caller's.
    let name = unsafe { text::name(key) };
    if let Cow::Borrowed(name) = name {
        keep_key(key, name); // else it would not be found: other bytes lie there
    }
    name
}

/// Keeps a key, given as a C string and as its text.
fn keep_key(key: *const c_char, text: &str) {
    if key.is_null() || text.len() > MAX_BYTES {
        return;
    }
    KEYS.keep(hash(key, key, Level::E2e), || {
        let json = key_text(text);
        Some(Key {
            key: c_string(text)?,
            text: (!json.is_empty()).then(|| &*json.leak())?,
        })
    });
}

impl<T: 'static, const N: usize> Table<T, N> {
    const fn new() -> Table<T, N> {
        Table {
            places: [const { AtomicPtr::new(std::ptr::null_mut()) }; N],
            is_making: AtomicBool::new(false),
        }
    }

    #[inline(always)]
    fn place(&self, hash: usize) -> &AtomicPtr<T> {
        &self.places[hash % N]
    }

    #[inline(always)]
    fn get(&self, hash: usize) -> Option<&'static T> {
        // SAFETY: a non-null pointer is one of a leaked value.
        unsafe { self.place(hash).load(Ordering::Acquire).as_ref() }
    }

    /// Keeps what `make` makes, if the place is free and nobody else is at it.
    fn keep(&self, hash: usize, make: impl FnOnce() -> Option<T>) {
        if self.is_making.swap(true, Ordering::Acquire) {
            return; // the next call keeps it
        }
        let mut room = Vec::new();
        if self.get(hash).is_none()
            && room.try_reserve_exact(1).is_ok()
            && let Some(made) = make()
        {
            room.push(made);
            if let Some(made) = room.leak().first_mut() {
                self.place(hash).store(made, Ordering::Release);
            }
        }
        self.is_making.store(false, Ordering::Release);
    }
}

#[inline(always)]
fn hash(one: *const c_char, other: *const c_char, level: Level) -> usize {
    let sum = one.addr().rotate_left(20) ^ other.addr() ^ (level as usize) << 50;
    sum.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48
}

/// Whether a C string is this one.
///
/// # Safety
///
/// `other` is null or a C string.
#[inline(always)]
unsafe fn is(text: &CStr, other: *const c_char) -> bool {
    // SAFETY: a C string, and the caller's.
    !other.is_null() && unsafe { libc::strcmp(text.as_ptr(), other) } == 0
}

/// A copy of a text that stays; nothing without memory.
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
    fn names_are_found_while_they_are_what_they_were() {
        let mut name = *b"known\0";
        assert!(find(Level::E2e, &name).is_none());
        let pointers = (c"known".as_ptr(), name.as_ptr().cast());
        keep_site(Level::E2e, pointers, [&Cow::Borrowed("known"); 2]);
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
