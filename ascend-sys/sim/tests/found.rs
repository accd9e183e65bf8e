//! How `ascend-sys` finds the simulated runtime, and that it lacks nothing.
#![expect(unsafe_code, reason = "calls a function of the library")]

use ascend_sys::{Acl, Candidates, Library};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where cargo builds it, beside the tests.
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
fn the_simulated_runtime_lies_beside_the_program() {
    let library = Library::open_simulator().expect("the simulated runtime");
    assert!(library.is_simulator());
    let acl = Acl::load(&library);
    let mut count = 0;
    let call = acl.device.aclrtGetDeviceCount.expect("a function");
    // SAFETY: `count` is writable for the call.
    assert_eq!(unsafe { call(&raw mut count) }, 0);
    assert!(count > 0);
}

#[test]
fn a_path_in_the_environment_is_taken_alone() {
    const CHILD: &str = "ASCEND_SIM_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        let opened = Library::open_simulator().map(|library| library.name());
        println!("opened {opened:?}");
        return;
    }
    let there = folder().join("libascendcl.so");
    for (path, found) in [
        (there.as_path(), true),
        (Path::new("/nowhere/libascendcl.so"), false),
    ] {
        let test = std::env::current_exe().expect("the path of this test");
        let output = Command::new(test)
            .args([
                "--exact",
                "a_path_in_the_environment_is_taken_alone",
                "--nocapture",
            ])
            .env(CHILD, "1")
            .env("SA_PROFILE_SIM_LIBRARY", path)
            .output()
            .expect("a run");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let expected = if found { "opened Ok(" } else { "opened Err(" };
        assert!(
            said.contains(expected) && said.contains(&path.display().to_string()),
            "{said}"
        );
        assert_eq!(
            said.matches("tried:").count(),
            usize::from(!found),
            "no other path: {said}"
        );
    }
}
