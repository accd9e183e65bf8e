//! Extent of the long tests: they run completely with `SA_PROFILE_FULL`.

/// Returns true if the long versions of the tests are requested.
pub(crate) fn is_full() -> bool {
    std::env::var_os("SA_PROFILE_FULL").is_some()
}

/// Returns the number of random cases to run: all, or usually a fifth.
pub(crate) fn cases(all: u64) -> u64 {
    if is_full() { all } else { all.div_ceil(5) }
}
