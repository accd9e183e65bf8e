//! Programs with more rights than their caller ignore the variables of recording.

use crate::{HOST, NOBODY};
use e2e::host_support::{
    Host, HostRecording, Outcome, assert_undisturbed, is_root, make_folder, public_copy, set_mode,
    skip,
};
use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;

/// Runs the program as an ordinary user, with variables that would create root's files wherever that user likes.
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
    if !is_root() {
        return;
    }
    let (place, program) = public_copy(HOST);
    let open = place.path().join("open");
    make_folder(&open, 0o777);
    let arguments = ["spans", "work", "500,", "rights"];
    let ordinary = ask(&program, &arguments, &open.join("ordinary")).quiet();
    assert_eq!(ordinary.stdout, "rights raised: false\n");
    HostRecording::in_dir(&open.join("ordinary")).assert_accounted(500);
    chown(&program, Some(0), Some(0)).expect("root may");
    for (bits, kind) in [(0o4755, "set-user-id"), (0o2755, "set-group-id")] {
        set_mode(&program, bits);
        let plain = host(&program, &arguments).run().quiet();
        if plain.stdout != "rights raised: true\n" {
            return skip("this file system ignores set-user-id bits");
        }
        let requested = open.join(kind);
        for arguments in [arguments.to_vec(), [&["--lazy"], &arguments[..]].concat()] {
            let outcome = ask(&program, &arguments, &requested).quiet();
            assert_undisturbed(&outcome, &plain);
            assert!(
                !requested.exists(),
                "{kind}: created what its caller asked for"
            );
        }
    }
    assert_eq!(fs::read_dir(&open).expect("the directory").count(), 1);
}
