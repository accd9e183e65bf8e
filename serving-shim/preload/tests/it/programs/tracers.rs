//! A recorded program below gdb, which stops each of its threads and sees each of its signals.

use super::subject::{Subject, works};
use crate::ground::{end, skip};

const SCRIPT: &str =
    "exec > said\nfor n in 1 2 3 4 5; do (exit $n); echo $?; done; echo done | cat; exit 7";

#[test]
fn below_gdb() {
    let test = "below_gdb";
    let Some(subject) = Subject::new(test, &["gdb", "bash"]) else {
        return;
    };
    let script = subject.ground.text("script");
    std::fs::write(&script, SCRIPT).unwrap();
    let debuginfod = "set debuginfod enabled off";
    let gdb = ["-batch", "-nx", "-iex", debuginfod, "-ex", "run"];
    let gdb = [&gdb[..], &["-ex", "quit $_exitcode", "--args"]].concat();
    if !works("gdb", &gdb) {
        return skip(test, "gdb traces nothing here");
    }
    let arguments = [&gdb[..], &["bash", &script]].concat();
    for way in Subject::WAYS {
        let ended = end(&mut subject.command(way, "gdb", &arguments));
        assert_eq!(ended.code, 7, "{way:?}: {ended:?}");
        let said = std::fs::read_to_string(subject.work(way).join("said")).unwrap();
        assert_eq!(said, "1\n2\n3\n4\n5\ndone\n", "{way:?}: {ended:?}");
        subject.assert_unnoticed(way);
    }
}
