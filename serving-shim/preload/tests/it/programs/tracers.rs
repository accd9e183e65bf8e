//! A recorded program below strace and gdb, which stop each of its threads and see each of its signals.

use super::subject::{Subject, works};
use crate::ground::{end, skip};

const SCRIPT: &str = "for n in 1 2 3 4 5; do (exit $n); echo $?; done; echo done | cat; exit 7";

#[test]
fn below_strace() {
    let test = "below_strace";
    let Some(subject) = Subject::new(test, &["strace", "bash"]) else {
        return;
    };
    if !works("strace", &["-o", "/dev/null"]) {
        return skip(test, "strace traces nothing here");
    }
    let arguments = ["-f", "-o", "/dev/null", "bash", "-c", SCRIPT];
    let ended = subject.assert_the_same("strace", &arguments);
    let said = "1\n2\n3\n4\n5\ndone\n";
    assert_eq!((ended.code, ended.stdout.as_str()), (7, said), "{ended:?}");
}

#[test]
fn below_gdb() {
    let test = "below_gdb";
    let Some(subject) = Subject::new(test, &["gdb", "bash"]) else {
        return;
    };
    let script = subject.ground.path("script");
    std::fs::write(&script, format!("exec > said\n{SCRIPT}")).unwrap();
    let gdb = [
        "-batch",
        "-nx",
        "-iex",
        "set debuginfod enabled off",
        "-ex",
        "run",
        "-ex",
        "quit $_exitcode",
        "--args",
    ];
    if !works("gdb", &gdb) {
        return skip(test, "gdb traces nothing here");
    }
    let arguments = [&gdb[..], &["bash", script.to_str().unwrap()]].concat();
    for way in Subject::WAYS {
        let ended = end(&mut subject.command(way, "gdb", &arguments));
        assert_eq!(ended.code, 7, "{way:?}: {ended:?}");
        let said = std::fs::read_to_string(subject.work(way).join("said")).unwrap();
        assert_eq!(said, "1\n2\n3\n4\n5\ndone\n", "{way:?}: {ended:?}");
        subject.assert_unnoticed(way);
    }
}
