//! Checks how `ascend-sys` finds the simulated runtime.
#![expect(unsafe_code, reason = "calls a function of the library")]

use ascend_sys::{Acl, Candidates, Library};
use std::path::PathBuf;

/// Returns the folder of the tests, in which cargo builds the simulated runtime.
fn folder() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    test.parent().expect("a folder").to_owned()
}

#[test]
fn a_search_for_the_runtime_refuses_the_simulated_one() {
    let candidates = Candidates::new(&["libascendcl.so"], &[&folder()]);
    let error = Library::open(&candidates).unwrap_err();
    let last = error.attempts.last().expect("attempts");
    assert_eq!(
        last.tried,
        folder().join("libascendcl.so").display().to_string()
    );
    assert_eq!(last.cause, "it is a simulated runtime");
}

#[test]
fn the_simulated_runtime_is_found_next_to_the_program() {
    let library = Library::open_simulator().expect("the simulated runtime");
    assert!(library.is_simulator());
    let acl = Acl::load(&library);
    let mut count = 0;
    let call = acl.device.aclrtGetDeviceCount.expect("a function");
    // SAFETY: `count` is writable for the call.
    assert_eq!(unsafe { call(&raw mut count) }, 0);
    assert!(count > 0);
}
