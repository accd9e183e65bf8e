//! Files under a temporary name, so that a process that is told to end can take them with it.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A name whose file is gone stays: names are used once.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// The names; whoever gives a file a name, or takes one away, holds this meanwhile.
pub(super) fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the files that merges of this process have under temporary names, and calls `end`, which should end the process: until it
/// returns no trace gets its name. For programs that a signal ends.
pub fn abandon(end: impl FnOnce()) {
    let names = unfinished();
    for name in names.iter() {
        let _ = fs::remove_file(name); // perhaps it is gone already
    }
    end();
}
