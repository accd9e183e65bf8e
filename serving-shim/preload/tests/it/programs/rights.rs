//! Programs that change what a process may do before they go on: a namespace of the user's own, and another user without any capability.

use super::subject::{Subject, Way, works};
use crate::ground::skip;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};

/// Says who it is, forks, and ends with a code of its own.
const SCRIPT: &str = "id -u; (exit 4); echo $?; exit 5";

/// The user without rights, and its group.
const NOBODY: u32 = 65534;

#[test]
fn a_user_namespace_is_entered_as_without_the_preload() {
    let test = "a_user_namespace_is_entered_as_without_the_preload";
    let Some(subject) = Subject::new(test, &["unshare", "sh", "id"]) else {
        return;
    };
    let unshare = ["--user", "--map-root-user"];
    if !works("unshare", &unshare) {
        return skip(test, "no user namespace can be made here");
    }
    let ended = subject.assert_the_same("unshare", &[&unshare[..], &["sh", "-c", SCRIPT]].concat());
    assert_eq!((ended.code, ended.stdout.as_str()), (5, "0\n4\n"));
    subject.assert_whole(Way::Recording);
}

#[test]
fn rights_are_given_up_as_without_the_preload() {
    let test = "rights_are_given_up_as_without_the_preload";
    let Some(subject) = Subject::new(test, &["setpriv", "sh", "id"]) else {
        return;
    };
    let rights = "--no-new-privs --bounding-set -all --inh-caps -all --reuid 65534 --regid 65534 --clear-groups";
    let rights: Vec<&str> = rights.split(' ').collect();
    if !works("setpriv", &rights) {
        return skip(test, "rights cannot be given up here: not root");
    }
    // As the documents say: files for a group, and a directory of that group.
    for way in [Way::Recording, Way::Run] {
        let run = subject.run(way);
        fs::create_dir(&run).unwrap();
        chown(&run, None, Some(NOBODY)).unwrap();
        fs::set_permissions(&run, fs::Permissions::from_mode(0o2770)).unwrap();
    }
    let arguments = [&rights[..], &["sh", "-c", SCRIPT]].concat();
    let mode = [("SA_PROFILE_MODE", "0660")];
    let ended = subject.assert_the_same_with(&mode, "setpriv", &arguments);
    assert_eq!((ended.code, ended.stdout.as_str()), (5, "65534\n4\n"));
    let processes = subject.assert_whole(Way::Recording).processes().len();
    assert!(processes >= 3, "{processes} processes recorded");
}
