//! Tests in an emulator of another machine, which does some calls of the system in its own way.

/// Set where the tests run in one.
const EMULATED: &str = "SA_TEST_EMULATED";

/// Whether a test is skipped because an emulator lacks what it needs. Says so.
pub(crate) fn lacks(what: &str, test: &str) -> bool {
    let is_emulated = std::env::var_os(EMULATED).is_some();
    if is_emulated {
        eprintln!("SKIPPED {test}: the emulator has no {what}");
    }
    is_emulated
}
