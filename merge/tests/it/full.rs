//! How much of the long tests runs: all of it with `SA_PROFILE_FULL`.

/// Tells whether the long versions of the tests were asked for.
pub(crate) fn is_full() -> bool {
    std::env::var_os("SA_PROFILE_FULL").is_some()
}

/// Of `all` random cases those that run: all, or usually a fifth.
pub(crate) fn cases(all: u64) -> u64 {
    if is_full() { all } else { all.div_ceil(5) }
}
