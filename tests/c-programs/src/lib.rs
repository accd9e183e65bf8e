//! Shared support for the tests of the preload library and of the C library: it compiles and runs C programs, and reads their recordings from the merged trace.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::os::unix::fs::MetadataExt;

mod ground;
mod running;
mod trace;

pub use ground::{Ground, NONE, SIMULATED, beside, preload, preloads};
pub use running::{Ended, Running, dynamic_section, end, exported, signal, success, wait_for};
pub use trace::Trace;

/// Defines a test for each case. The test calls the function with its own name and each list of arguments.
#[macro_export]
macro_rules! cases {
    ($check:path; $($(#[$doc:meta])* $test:ident: $(($($argument:expr),*))*;)*) => {
        $($(#[$doc])*
        #[test]
        fn $test() {
            $($check(stringify!($test), $($argument),*);)*
        })*
    };
}

/// Returns true if this process runs as root, and reports the test as skipped otherwise.
pub fn is_root(test: &str) -> bool {
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    if !is_root {
        skip(test, "not root");
    }
    is_root
}

/// Prints that a test is skipped and why.
#[expect(clippy::print_stderr, reason = "a skipped test must be noticed")]
pub fn skip(test: &str, why: &str) {
    eprintln!("SKIPPED {test}: {why}");
}
