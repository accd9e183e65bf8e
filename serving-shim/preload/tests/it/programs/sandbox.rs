//! bubblewrap: it makes its child past the C library, in a pid namespace of its own.

use super::subject::{Subject, Way, works};
use crate::ground::skip;

const SCRIPT: &str =
    "echo inside $$ >&2; (exit 4); echo $?; for n in 1 2 3; do /bin/true & done; wait; exit 5";

#[test]
fn a_sandbox_of_bubblewrap() {
    let test = "a_sandbox_of_bubblewrap";
    let Some(subject) = Subject::new(test, &["bwrap", "bash"]) else {
        return;
    };
    let sandbox: Vec<&str> = "--bind / / --dev /dev --proc /proc --unshare-pid --unshare-ipc --unshare-uts --die-with-parent --"
        .split(' ')
        .collect();
    if !works("bwrap", &sandbox) {
        return skip(test, "bwrap cannot make a sandbox here");
    }
    let ended = subject.assert_the_same("bwrap", &[&sandbox[..], &["bash", "-c", SCRIPT]].concat());
    assert_eq!((ended.code, ended.stdout.as_str()), (5, "4\n"), "{ended:?}");
    let processes = subject.assert_whole(Way::Recording).processes().len();
    assert!(processes >= 6, "{processes} processes recorded");
}
