//! How many files the command may have open: each earlier run of a directory takes some.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit as far as the caller's hard one goes. The soft one is low for programs that use `select`, as this one does not.
pub(crate) fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where that is refused, what cannot be opened is told by its path.
    let _ = setrlimit(Resource::Nofile, limit);
}
