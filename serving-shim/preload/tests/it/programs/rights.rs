//! A program that goes on as another user without any capability.

use super::subject::{Subject, Way, works};
use crate::ground::skip;

/// Says who it is, forks, and ends with a code of its own.
const SCRIPT: &str = "id -u; (exit 4); echo $?; exit 5";

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
    for way in [Way::Recording, Way::Run] {
        subject.make_run_of_nobody(way);
    }
    let arguments = [&rights[..], &["sh", "-c", SCRIPT]].concat();
    let mode = [("SA_PROFILE_MODE", "0660")];
    let ended = subject.assert_the_same(&mode, "setpriv", &arguments);
    assert_eq!((ended.code, ended.stdout.as_str()), (5, "65534\n4\n"));
    let processes = subject.assert_whole(Way::Recording).processes().len();
    assert!(processes >= 3, "{processes} processes recorded");
}
