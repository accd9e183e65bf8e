//! Files under a temporary name, so that a process that is told to end can take them with it.

use crate::base::folder::Place;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

type Names = Mutex<BTreeSet<Place>>;

/// Nothing is kept before a program asks for it. A name whose file is gone stays: names are used once.
static NAMES: OnceLock<Names> = OnceLock::new();

/// The names, if they are kept; whoever gives a file a name, or takes one away, holds this meanwhile.
pub(super) fn unfinished() -> Option<MutexGuard<'static, BTreeSet<Place>>> {
    NAMES.get().map(lock)
}

fn lock(names: &'static Names) -> MutexGuard<'static, BTreeSet<Place>> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The files that merges of this process have under temporary names, for programs that a signal ends.
///
/// In a process that has none, merges wait for nobody.
#[derive(Clone, Copy, Debug)]
pub struct Unfinished(&'static Names);

impl Unfinished {
    /// Keeps the names from now on; to be called before the first merge.
    pub fn track() -> Unfinished {
        Unfinished(NAMES.get_or_init(Names::default))
    }

    /// Removes the files and calls `end`, which should end the process: until it returns no trace gets its name.
    pub fn abandon(self, end: impl FnOnce()) {
        let names = lock(self.0);
        for name in names.iter() {
            let _ = name.remove(); // perhaps it is gone already
        }
        end();
    }
}
