//! Annotations of a domain: a name that groups them. Where the vendor's library gives no handle, one of our own stands for it and never goes there.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::is_recorded;
use crate::names::{self, Name};
use crate::thread::{self, unnoticed};

/// Most domains.
const MAX_DOMAINS: usize = 1024;

/// Stands for a handle that the vendor may give again, to another domain.
static DESTROYED: u8 = 0;

#[derive(Debug)]
struct Domain {
    /// The vendor's handle; null for one of our own, whose handle is this record's address; [`DESTROYED`] once the vendor's is no more.
    given: AtomicPtr<c_void>,
    name: AtomicPtr<c_char>,
}

static DOMAINS: [Domain; MAX_DOMAINS] = [const {
    Domain {
        given: AtomicPtr::new(ptr::null_mut()),
        name: AtomicPtr::new(ptr::null_mut()),
    }
}; MAX_DOMAINS];
static MADE: AtomicUsize = AtomicUsize::new(0);

/// `mstxDomainCreateA`.
pub(crate) fn create(
    real: Option<impl FnOnce() -> *mut c_void>,
    name: *const c_char,
) -> *mut c_void {
    let given = real.map_or(ptr::null_mut(), |real| real());
    if !is_recorded() {
        return given;
    }
    unnoticed(|| remember(given, name)).unwrap_or(given)
}

/// `mstxDomainDestroy`. The name is kept: what it marked may still be open, and the domain may be made again.
pub(crate) fn destroy(real: Option<impl FnOnce()>, domain: *mut c_void) {
    if thread::is_outside() && !is_our_own(domain) {
        forget(domain); // first: once it is destroyed, another thread may get the same handle
    }
    if let Some(real) = real.filter(|_| !is_our_own(domain)) {
        real();
    }
}

/// Remembers a domain's name, and gives its handle: the vendor's, else one of our own.
fn remember(given: *mut c_void, name: *const c_char) -> *mut c_void {
    let Name::Text(name) = names::of_text(name) else {
        return given;
    };
    if let Some(known) = find(given, name).or_else(|| revive(given, name)) {
        return handle_of(known);
    }
    let Some(domain) = DOMAINS.get(MADE.fetch_add(1, Ordering::Relaxed)) else {
        MADE.store(MAX_DOMAINS, Ordering::Relaxed);
        return given;
    };
    domain.given.store(given, Ordering::Relaxed);
    domain
        .name
        .store(CString::from(name).into_raw(), Ordering::Release);
    handle_of(domain)
}

/// The newest record of a handle and name: a handle may be another domain's where its end was not seen.
fn find(given: *mut c_void, name: &CStr) -> Option<&'static Domain> {
    let mut known = DOMAINS.iter().rev();
    known.find(|domain| {
        domain.given.load(Ordering::Relaxed) == given && name_in(domain) == Some(name)
    })
}

/// A record of this name whose own handle is no more, now with a handle of the vendor's.
fn revive(given: *mut c_void, name: &CStr) -> Option<&'static Domain> {
    let (order, failed) = (Ordering::AcqRel, Ordering::Relaxed);
    let takes = |domain: &&Domain| {
        let revived = domain
            .given
            .compare_exchange(destroyed(), given, order, failed);
        revived.is_ok()
    };
    let mut named = DOMAINS
        .iter()
        .filter(|domain| name_in(domain) == Some(name));
    named.find(takes)
}

/// Forgets a handle that the vendor's library is about to destroy.
fn forget(handle: *mut c_void) {
    if handle.is_null() {
        return;
    }
    for domain in &DOMAINS {
        let (order, failed) = (Ordering::AcqRel, Ordering::Relaxed);
        let _ = domain
            .given
            .compare_exchange(handle, destroyed(), order, failed);
    }
}

fn destroyed() -> *mut c_void {
    (&raw const DESTROYED).cast_mut().cast()
}

fn handle_of(domain: &'static Domain) -> *mut c_void {
    let given = domain.given.load(Ordering::Relaxed);
    if given.is_null() {
        ptr::from_ref(domain).cast_mut().cast()
    } else {
        given
    }
}

pub(super) fn is_our_own(handle: *mut c_void) -> bool {
    DOMAINS.as_ptr_range().contains(&handle.cast_const().cast())
}

pub(super) fn name_of(handle: *mut c_void) -> Option<String> {
    let mut named = DOMAINS.iter().rev().filter(|domain| {
        let given = domain.given.load(Ordering::Relaxed);
        given == handle && !given.is_null() || ptr::eq(*domain, handle.cast())
    });
    let name = named.find_map(name_in)?;
    Some(name.to_string_lossy().into_owned())
}

fn name_in(domain: &'static Domain) -> Option<&'static CStr> {
    let name = domain.name.load(Ordering::Acquire);
    // SAFETY: not null, it came from `CString::into_raw` and is never freed.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_that_is_given_again_has_the_name_it_was_given_last() {
        let handle = ptr::without_provenance_mut(0xe0);
        for _ in 0..2 * MAX_DOMAINS {
            for name in [c"first", c"second"] {
                assert_eq!(remember(handle, name.as_ptr()), handle);
                assert_eq!(name_of(handle).as_deref(), name.to_str().ok());
                destroy(None::<fn()>, handle);
                assert_eq!(name_of(handle), None);
            }
        }
    }
}
