//! Records at the first launch which calls other libraries hide from this one. Without this record the hidden calls would be missing silently.
//!
//! A program calls a wrapper by its name, or asks `dlsym` for it with the vendor's handle, as torch_npu does. The linker bound the names when it loaded this
//! library, so reading those bindings calls nothing. Only if another library's `dlsym` comes before ours is it called, once and for one name, to find out whether it calls ours.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use sa_format::Visibility;
use sa_recorder::{Args, Recorder, host};

use crate::dlsym::dlsym;
use crate::hooks::LISTS;
use crate::real::{find_in_runtime, is_ours, path_of};

/// True once this process has recorded what is hidden from it.
static RECORDED: AtomicBool = AtomicBool::new(false);
/// True once our `dlsym` was called from our own work.
static OWN_DLSYM_CALLED: AtomicBool = AtomicBool::new(false);

/// Records which of the host's calls this library can intercept, at the first launch of the process. Must be called within our own work.
pub(crate) fn record_once() {
    static HANDLES_FORKS: AtomicBool = AtomicBool::new(false);
    if RECORDED.load(Ordering::Relaxed) {
        return;
    }
    if !HANDLES_FORKS.swap(true, Ordering::Relaxed) {
        host::run_after_fork(forget_in_child);
    }
    if !RECORDED.swap(true, Ordering::Relaxed) {
        record(&visibility());
    }
}

/// Makes the child of a fork record again which calls can be intercepted, because it has its own trace.
extern "C" fn forget_in_child() {
    RECORDED.store(false, Ordering::Relaxed);
}

/// Records that our own work has called our `dlsym`. That work calls the first `dlsym` of the process, so the first one calls ours.
pub(crate) fn own_dlsym_called() {
    OWN_DLSYM_CALLED.store(true, Ordering::Relaxed);
}

fn visibility() -> Visibility {
    let mut visibility = Visibility::default();
    // The linker binds an exported name to its first definition, even where this library itself uses the name.
    for (group, list) in LISTS
        .iter()
        .filter_map(|(name, list)| Some(((*name)?, list)))
    {
        let mut wrappers = list.iter().flatten().map(|hook| (hook.wrapper)());
        if let Some(other) = wrappers.find_map(path_of_other) {
            if !visibility
                .interposed
                .iter()
                .any(|interposed| interposed == group)
            {
                visibility.interposed.push(group.to_owned());
            }
            visibility.first.get_or_insert(other);
        }
    }
    visibility.by_linking = Some(visibility.interposed.is_empty());
    visibility.dlsym = path_of_other(dlsym as *const () as *mut c_void);
    visibility.by_handle = match visibility.dlsym {
        None => Some(true),
        Some(_) => other_dlsym_calls_ours(),
    };
    visibility
}

/// Returns true if the `dlsym` of another library, which comes before ours, calls ours. Returns `None` if no vendor library is loaded that could be queried.
/// The result of the query is not used, and our `dlsym` binds nothing for it.
fn other_dlsym_calls_ours() -> Option<bool> {
    OWN_DLSYM_CALLED.store(false, Ordering::Relaxed);
    find_in_runtime(c"aclrtMemcpyAsync", dlsym)?;
    Some(OWN_DLSYM_CALLED.load(Ordering::Relaxed))
}

/// Returns the path of the library that contains a function, unless it is this library.
fn path_of_other(function: *mut c_void) -> Option<String> {
    let other = NonNull::new(function).filter(|function| !is_ours(*function))?;
    let path = path_of(other.as_ptr())?;
    Some(path.to_string_lossy().into_owned())
}

fn record(visibility: &Visibility) {
    let mut args = Args::new();
    for (key, is_reached) in [
        ("by_linking", visibility.by_linking),
        ("by_handle", visibility.by_handle),
    ] {
        if let Some(is_reached) = is_reached {
            args.push(key, &is_reached);
        }
    }
    if !visibility.interposed.is_empty() {
        args.push("interposed", &visibility.interposed);
    }
    for (key, path) in [("first", &visibility.first), ("dlsym", &visibility.dlsym)] {
        if let Some(path) = path {
            args.push(key, path);
        }
    }
    Recorder::get().own_instant(Visibility::NAME, &args);
}
