//! Domains, which group annotations under a name. If the vendor's library returns no handle, we return our own, which is never passed to that library.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::is_recorded;
use crate::names::{self, Name};
use crate::thread::{self, unnoticed};

/// Maximum number of domains.
const MAX_DOMAINS: usize = 1024;

/// Marker for a destroyed handle, which the vendor may reuse for another domain.
static DESTROYED: u8 = 0;

#[derive(Debug)]
struct Domain {
    /// The vendor's handle. Null for a domain of our own, whose handle is the address of this record. [`DESTROYED`] after the vendor's handle was destroyed.
    vendor_handle: AtomicPtr<c_void>,
    name: AtomicPtr<c_char>,
}

static DOMAINS: [Domain; MAX_DOMAINS] = [const {
    Domain {
        vendor_handle: AtomicPtr::new(ptr::null_mut()),
        name: AtomicPtr::new(ptr::null_mut()),
    }
}; MAX_DOMAINS];
/// Number of used records.
static USED: AtomicUsize = AtomicUsize::new(0);

/// Forwards a call of `mstxDomainCreateA` to the vendor's library, and stores the name of the domain (a group of annotations). Returns the domain's handle.
pub(crate) fn create(
    real: Option<impl FnOnce() -> *mut c_void>,
    name: *const c_char,
) -> *mut c_void {
    let vendor_handle = real.map_or(ptr::null_mut(), |real| real());
    if !is_recorded() {
        return vendor_handle;
    }
    unnoticed(|| store(vendor_handle, name)).unwrap_or(vendor_handle)
}

/// Forwards a call of `mstxDomainDestroy` to the vendor's library, and marks the domain's handle as destroyed. The name is kept, because ranges of the domain
/// may still be open and the domain may be created again.
pub(crate) fn destroy(real: Option<impl FnOnce()>, domain: *mut c_void) {
    if thread::is_outside() && !is_our_own(domain) {
        forget(domain); // before the call: once it is destroyed, another thread may get the same handle
    }
    if let Some(real) = real.filter(|_| !is_our_own(domain)) {
        real();
    }
}

/// Stores the name of an annotation domain and returns the domain's handle: the vendor's, or one of our own if the vendor returned none.
fn store(vendor_handle: *mut c_void, name: *const c_char) -> *mut c_void {
    let Name::Text(name) = names::from_text(name) else {
        return vendor_handle;
    };
    if let Some(domain) = find(vendor_handle, name).or_else(|| revive(vendor_handle, name)) {
        return handle_of(domain);
    }
    let Some(domain) = DOMAINS.get(USED.fetch_add(1, Ordering::Relaxed)) else {
        USED.store(MAX_DOMAINS, Ordering::Relaxed);
        return vendor_handle;
    };
    domain.vendor_handle.store(vendor_handle, Ordering::Relaxed);
    domain
        .name
        .store(CString::from(name).into_raw(), Ordering::Release);
    handle_of(domain)
}

/// Returns the newest domain with this handle and name. An older one may have the same handle if its end was not seen.
fn find(vendor_handle: *mut c_void, name: &CStr) -> Option<&'static Domain> {
    let mut newest_first = DOMAINS.iter().rev();
    newest_first.find(|domain| {
        domain.vendor_handle.load(Ordering::Relaxed) == vendor_handle
            && name_in(domain) == Some(name)
    })
}

/// Finds a destroyed domain with this name, gives it the vendor's new handle, and returns it. Returns `None` if there is none.
fn revive(vendor_handle: *mut c_void, name: &CStr) -> Option<&'static Domain> {
    let (order, failed) = (Ordering::AcqRel, Ordering::Relaxed);
    let is_revived = |domain: &&Domain| {
        let exchanged =
            domain
                .vendor_handle
                .compare_exchange(destroyed(), vendor_handle, order, failed);
        exchanged.is_ok()
    };
    let mut named = DOMAINS
        .iter()
        .filter(|domain| name_in(domain) == Some(name));
    named.find(is_revived)
}

/// Marks the handle of a domain as destroyed, before the vendor's library destroys it.
fn forget(handle: *mut c_void) {
    if handle.is_null() {
        return;
    }
    for domain in &DOMAINS {
        let (order, failed) = (Ordering::AcqRel, Ordering::Relaxed);
        let _ = domain
            .vendor_handle
            .compare_exchange(handle, destroyed(), order, failed);
    }
}

fn destroyed() -> *mut c_void {
    (&raw const DESTROYED).cast_mut().cast()
}

fn handle_of(domain: &'static Domain) -> *mut c_void {
    let vendor_handle = domain.vendor_handle.load(Ordering::Relaxed);
    if vendor_handle.is_null() {
        ptr::from_ref(domain).cast_mut().cast()
    } else {
        vendor_handle
    }
}

pub(super) fn is_our_own(handle: *mut c_void) -> bool {
    DOMAINS.as_ptr_range().contains(&handle.cast_const().cast())
}

pub(super) fn name_of(handle: *mut c_void) -> Option<String> {
    let mut named = DOMAINS.iter().rev().filter(|domain| {
        let vendor_handle = domain.vendor_handle.load(Ordering::Relaxed);
        vendor_handle == handle && !vendor_handle.is_null() || ptr::eq(*domain, handle.cast())
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
    fn a_reused_handle_has_its_newest_name() {
        let handle = ptr::without_provenance_mut(0xe0);
        for _ in 0..2 * MAX_DOMAINS {
            for name in [c"first", c"second"] {
                assert_eq!(store(handle, name.as_ptr()), handle);
                assert_eq!(name_of(handle).as_deref(), name.to_str().ok());
                destroy(None::<fn()>, handle);
                assert_eq!(name_of(handle), None);
            }
        }
    }
}
