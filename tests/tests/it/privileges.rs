//! Programs with more rights than whoever starts them: what the environment says of recording counts for nothing there.

use crate::{HOST, NOBODY};
use e2e::host_support::{Found, Host, Outcome, assert_undisturbed, is_root, public_copy, skip};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

/// Runs the program as that user, with variables that make files of root's wherever the user likes.
fn ask(program: &Path, arguments: &[&str], place: &Path) -> Outcome {
    host(program, arguments)
        .recorded_in(place)
        .variable("SA_PROFILE_MODE", "0666")
        .variable("SA_PROFILE_RUN", "theirs")
        .variable("SA_PROFILE_LEVEL", "verbose")
        .run()
}

fn host(program: &Path, arguments: &[&str]) -> Host {
    Host::new(program).arguments(arguments).user(NOBODY)
}

#[test]
fn issue_19_a_program_with_raised_privileges_obeys_no_variable() {
    let name = "issue_19_a_program_with_raised_privileges_obeys_no_variable";
    if !is_root(name) {
        return;
    }
    let (place, program) = public_copy(HOST);
    let open = place.path().join("open");
    fs::create_dir(&open).expect("a new directory");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("own directory");
    let arguments = ["rights", "work", "500"];
    let ordinary = ask(&program, &arguments, &open.join("ordinary")).quiet();
    assert_eq!(ordinary.stdout, "rights raised: false\n");
    Found::in_dir(&open.join("ordinary")).assert_accounted(500);
    chown(&program, Some(0), Some(0)).expect("root may");
    for (bits, kind) in [(0o4755, "set-user-id"), (0o2755, "set-group-id")] {
        fs::set_permissions(&program, fs::Permissions::from_mode(bits)).expect("own file");
        let plain = host(&program, &arguments).run().quiet();
        if plain.stdout != "rights raised: true\n" {
            return skip(name, "this file system gives no program more rights");
        }
        let theirs = open.join(kind);
        for arguments in [
            &["rights", "work", "500"][..],
            &["--lazy", "rights", "work", "500"],
        ] {
            let outcome = ask(&program, arguments, &theirs).quiet();
            assert_undisturbed(&outcome, &plain);
            assert!(
                !theirs.exists(),
                "{kind}: {arguments:?} made what its caller asked for"
            );
        }
    }
    assert_eq!(fs::read_dir(&open).expect("the directory").count(), 1);
}
