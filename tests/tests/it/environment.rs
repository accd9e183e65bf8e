//! Settings from the environment: the modes of a recording's files whatever the umask, and the CPU time of spans.

use crate::host;
use e2e::host_support::{make_folder, mode, scratch};
use format_oracle::reader::read_dir;

/// Runs a host that is killed, so that its ring remains. Returns the modes of directory, folder, run file, fragment and ring.
fn modes(umask: &str, asked: &str) -> [u32; 5] {
    let outer = scratch();
    let dir = outer.path().join("run-directory");
    let line = format!("umask {umask}, init, killed work 10");
    let host = host(&dir, &["--lazy", &line]);
    let host = host.variable("SA_PROFILE_MODE", asked);
    let pid = host.run().was_killed().pid;
    let [fragment, ring] = ["jsonl", "ring"].map(|end| format!("fragments/trace.{pid}.{end}"));
    [".", "fragments", "run", &fragment, &ring].map(|name| mode(&dir.join(name)))
}

#[test]
fn files_are_private_unless_a_group_is_let_in() {
    let shared = [0o750, 0o750, 0o640, 0o640, 0o640];
    for (umask, asked, expected) in [
        ("000", "", [0o700, 0o700, 0o600, 0o600, 0o600]),
        ("000", "0640", shared),
        ("077", "0640", shared),
    ] {
        assert_eq!(modes(umask, asked), expected, "{umask} {asked}");
    }
}

#[test]
fn folders_keep_the_group_that_their_parent_shares() {
    let outer = scratch();
    let shared = outer.path().join("shared");
    make_folder(&shared, 0o2775);
    let dir = shared.join("new/run-directory");
    let host = host(&dir, &["--lazy", "umask 077, init, spans work 10"]);
    let _outcome = host.variable("SA_PROFILE_MODE", "0640").run().quiet();
    for folder in [shared.join("new"), dir.clone(), dir.join("fragments")] {
        assert_eq!(mode(&folder), 0o2750, "{}", folder.display());
    }
}

#[test]
fn spans_have_cpu_time_if_asked() {
    for (asked, expected) in [("", 0), ("1", 10)] {
        let dir = scratch();
        let host = host(dir.path(), &["spans", "work", "10"]);
        let _outcome = host.variable("SA_PROFILE_CPU", asked).run().quiet();
        let spans = read_dir(dir.path()).events;
        let timed = |span: &&serde_json::Value| span["tts"].is_number() && span["tdur"].is_number();
        assert_eq!(spans.iter().filter(timed).count(), expected, "{asked}");
    }
}
