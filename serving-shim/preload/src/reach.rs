//! Which functions this library sees in its process, said in the trace at the first launch: what is hidden from it would be missing without a word.
//!
//! A program reaches a wrapper by its name, or by asking `dlsym` for it with the vendor's handle, as torch_npu does. To whom a name leads the linker has
//! said when it loaded this library: nobody is asked. Only another library's `dlsym` before ours is asked, once and for one name, whether it goes on to ours.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use sa_format::Reach;
use sa_recorder::{Args, Recorder, host};

use crate::dlsym::dlsym;
use crate::hooks::LISTS;
use crate::real::{in_runtime, is_ours, path_of};

/// Somebody has looked in this process.
static LOOKED: AtomicBool = AtomicBool::new(false);
/// Our `dlsym` was called from our own work.
static PASSED_ON: AtomicBool = AtomicBool::new(false);

/// Looks, at the first launch in the life of the process, within our own work.
pub(crate) fn look_once() {
    static FORKS: AtomicBool = AtomicBool::new(false);
    if LOOKED.load(Ordering::Relaxed) {
        return;
    }
    if !FORKS.swap(true, Ordering::Relaxed) {
        host::run_after_fork(look_again);
    }
    if !LOOKED.swap(true, Ordering::Relaxed) {
        tell(&look());
    }
}

/// A child has a trace of its own.
extern "C" fn look_again() {
    LOOKED.store(false, Ordering::Relaxed);
}

/// Our `dlsym` was asked from within our own work, which calls the first one of the process: that goes on to ours.
pub(crate) fn passed_on() {
    PASSED_ON.store(true, Ordering::Relaxed);
}

fn look() -> Reach {
    let mut reach = Reach::default();
    // The linker has bound an exported name to whoever comes first, also where this library uses it itself.
    for (group, list) in LISTS
        .iter()
        .filter_map(|(name, list)| Some(((*name)?, list)))
    {
        let mut wrappers = list.iter().flatten().map(|hook| (hook.wrapper)());
        if let Some(other) = wrappers.find_map(path_of_other) {
            if !reach.interposed.iter().any(|known| known == group) {
                reach.interposed.push(group.to_owned());
            }
            reach.first.get_or_insert(other);
        }
    }
    reach.by_linking = Some(reach.interposed.is_empty());
    reach.dlsym = path_of_other(dlsym as *const () as *mut c_void);
    reach.by_handle = match reach.dlsym {
        None => Some(true),
        Some(_) => passes_on(),
    };
    reach
}

/// Whether the `dlsym` of another library goes on to ours; `None` where nothing of the vendor's is there to ask for. What it answers is not used, and ours
/// binds nothing for it.
fn passes_on() -> Option<bool> {
    PASSED_ON.store(false, Ordering::Relaxed);
    in_runtime(c"aclrtMemcpyAsync", dlsym)?;
    Some(PASSED_ON.load(Ordering::Relaxed))
}

/// The path of the object that a function lies in, if that is not this library.
fn path_of_other(function: *mut c_void) -> Option<String> {
    let other = NonNull::new(function).filter(|function| !is_ours(*function))?;
    let path = path_of(other.as_ptr())?;
    Some(path.to_string_lossy().into_owned())
}

fn tell(reach: &Reach) {
    let mut args = Args::new();
    for (key, seen) in [
        ("by_linking", reach.by_linking),
        ("by_handle", reach.by_handle),
    ] {
        if let Some(seen) = seen {
            args.push(key, &seen);
        }
    }
    if !reach.interposed.is_empty() {
        args.push("interposed", &reach.interposed);
    }
    for (key, path) in [("first", &reach.first), ("dlsym", &reach.dlsym)] {
        if let Some(path) = path {
            args.push(key, path);
        }
    }
    Recorder::get().own_instant(Reach::NAME, &args);
}
