//! Access to the output of a merge: only users who may read the fragments may read it.

use crate::invocation::{Ended, RunDir, trace_merge};
use crate::output::{names, run};
use crate::runs::{RUNS, three_runs};
use crate::usage::merges;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Modes of the folders, of the fragments in them, and of the trace.
const CASES: [(u32, u32, u32); 7] = [
    (0o700, 0o600, 0o600),
    (0o750, 0o600, 0o600),
    (0o750, 0o640, 0o640),
    (0o750, 0o660, 0o660),
    (0o700, 0o640, 0o600),
    (0o700, 0o666, 0o600),
    (0o755, 0o644, 0o644),
];
const UMASKS: [&str; 3] = ["0000", "0022", "0077"];

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn run_with_modes(folders: u32, files: u32) -> RunDir {
    let dir = run(4_000);
    set_mode(&dir.fragments().join("trace.90.jsonl"), files);
    set_mode(&dir.fragments(), folders);
    set_mode(dir.path(), folders);
    dir
}

/// Runs a merge under a umask.
fn merge_under(umask: &str, arguments: &[&str], input: &Path, output: Option<&Path>) {
    let mut command = Command::new("sh");
    command.args(["-c", r#"umask "$0"; exec "$@""#, umask]);
    command.arg(trace_merge().get_program());
    command.arg("-q").args(arguments).arg(input);
    if let Some(output) = output {
        command.arg("-o").arg(output);
    }
    merges(&mut command);
}

/// Asserts that all files in a folder have a mode, except for the fragments.
fn assert_mode(folder: &Path, count: usize, expected: u32, what: &str) {
    let mut written = names(folder);
    written.retain(|name| name != "fragments");
    assert!(written.len() >= count, "{written:?} {what}");
    for name in written {
        assert_eq!(mode(&folder.join(&name)), expected, "{name} {what}");
    }
}

#[test]
fn issue_19_a_trace_is_readable_for_users_who_may_read_the_fragments() {
    for ((folders, files, expected), umask) in CASES.iter().zip(UMASKS.iter().cycle()) {
        let (dir, folder) = (
            run_with_modes(*folders, *files),
            tempfile::tempdir().unwrap(),
        );
        set_mode(folder.path(), 0o755);
        let what = format!("of {files:o} in {folders:o} under {umask}");
        let (trace, part) = (
            folder.path().join("out.json"),
            folder.path().join("part.json"),
        );
        merge_under(umask, &[], dir.path(), None);
        merge_under(umask, &["-z"], dir.path(), None);
        merge_under(umask, &[], dir.path(), Some(&trace));
        merge_under(umask, &["--split=200KB"], dir.path(), Some(&part));
        assert_mode(dir.path(), 2, *expected, &what);
        assert_mode(folder.path(), 3, *expected, &what);
        // The folders of a snapshot have the modes of the run's folders.
        fs::write(dir.path().join("run"), "{}").unwrap();
        set_mode(&dir.path().join("run"), *files);
        let snapshot = tempfile::tempdir().unwrap();
        let copy = snapshot.path().join("copy");
        trace_merge::snapshot(dir.path(), &copy).unwrap();
        let fragments = copy.join("fragments");
        assert_eq!((mode(&copy), mode(&fragments)), (*folders, *folders));
        for file in [fragments.join("trace.90.jsonl"), copy.join("run")] {
            assert_eq!(mode(&file), *expected, "{what}");
        }
    }
}

#[test]
fn issue_19_a_replaced_trace_gets_no_additional_readers() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.json");
    for (old, files, expected) in [
        (0o600, 0o644, 0o600),
        (0o644, 0o600, 0o600),
        (0o640, 0o644, 0o640),
        (0o666, 0o640, 0o640),
    ] {
        let dir = run_with_modes(0o755, files);
        fs::write(&output, "old").unwrap();
        set_mode(&output, old);
        merge_under("0000", &[], dir.path(), Some(&output));
        assert_eq!(mode(&output), expected, "{files:o} in folder of {old:o}");
        // The trace in the run directory gets its mode from the fragments alone.
        let own = dir.path().join("trace.json");
        fs::write(&own, "old").unwrap();
        set_mode(&own, old);
        merge_under("0000", &[], dir.path(), None);
        assert_eq!(mode(&own), files, "{files:o} in folder of {old:o}");
    }
}

#[test]
fn issue_19_a_foreign_trace_keeps_its_readers_within_the_umask() {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("kineto.json"), dir.path().join("out.json"));
    let event = r#"[{"ph":"X","pid":1,"tid":1,"ts":1,"dur":1,"name":"a","cat":"c"}]"#;
    fs::write(&input, event).unwrap();
    set_mode(dir.path(), 0o755);
    for (umask, mode_of_input, expected) in [
        ("0000", 0o644, 0o644),
        ("0077", 0o644, 0o600),
        ("0000", 0o640, 0o640),
    ] {
        set_mode(&input, mode_of_input);
        let _ = fs::remove_file(&output);
        merge_under(umask, &[], &input, Some(&output));
        assert_eq!(mode(&output), expected, "{mode_of_input:o} under {umask}");
    }
}

/// A user other than root.
const NOBODY: u32 = 65_534;

/// Returns true if this process may give files to another user. Otherwise it prints that the test
/// is skipped.
fn may_give_away(folder: &Path, test: &str) -> bool {
    let file = folder.join("given-away");
    fs::write(&file, "").unwrap();
    let given = chown(&file, Some(NOBODY), Some(NOBODY));
    fs::remove_file(&file).unwrap();
    if let Err(why) = &given {
        eprintln!("SKIPPED {test}: files cannot be given to another user ({why})");
    }
    given.is_ok()
}

/// A trace that root merges from a user's fragments belongs to the user, like everything else in
/// the run. A file of root stays root's.
#[test]
fn issue_19_a_trace_of_root_belongs_to_the_owner_of_the_fragments() {
    let (dir, folder) = (run_with_modes(0o700, 0o600), tempfile::tempdir().unwrap());
    let test = "issue_19_a_trace_of_root_belongs_to_the_owner_of_the_fragments";
    if !may_give_away(folder.path(), test) {
        return;
    }
    let (old, copy) = (folder.path().join("old.json"), folder.path().join("copy"));
    fs::write(&old, "root's").unwrap();
    let fragment = dir.fragments().join("trace.90.jsonl");
    for path in [dir.path(), &dir.fragments(), &fragment] {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    merge_under("0022", &[], dir.path(), None);
    let part = folder.path().join("part.json");
    merge_under("0022", &["--split=200KB"], dir.path(), Some(&part));
    merge_under("0022", &[], dir.path(), Some(&old));
    trace_merge::snapshot(dir.path(), &copy).unwrap();
    let owner = |path: &Path| fs::metadata(path).unwrap().uid();
    for path in [dir.path().join("trace.json"), copy.join("fragments"), copy] {
        assert_eq!(owner(&path), NOBODY, "{}", path.display());
    }
    let parts = names(folder.path());
    let mut parts = parts.iter().filter(|name| name.starts_with("part"));
    assert!(parts.all(|name| owner(&folder.path().join(name)) == NOBODY));
    assert_eq!(owner(&old), 0, "root's file is root's still");
}

/// Files that the user cannot read count as damage. A fragment that is named can be merged from a
/// folder that cannot be listed.
#[test]
fn issue_19_files_that_a_user_cannot_read_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    if !may_give_away(
        folder.path(),
        "issue_19_files_that_a_user_cannot_read_are_reported",
    ) {
        return;
    }
    chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let program = folder.path().join("trace-merge");
    fs::copy(trace_merge().get_program(), &program).unwrap();
    let merge = |path: &Path, options: &[&str]| {
        let mut command = Command::new(&program);
        command.uid(NOBODY).gid(NOBODY).args(options);
        command.args(["--strict", "--report", "json", "-o"]);
        let ended = Ended::run(command.arg(folder.path().join("out.json")).arg(path));
        let report = ended.report();
        let events = report.number("events_total");
        (ended.code, events, report.damage())
    };
    let unreadable = |name: &str| vec![(name.to_owned(), 0, "unreadable".to_owned())];
    let unlisted = run_with_modes(0o711, 0o644);
    let fragment = unlisted.fragments().join("trace.90.jsonl");
    assert_eq!(merge(&fragment, &[]), (0, 4_000, vec![]));
    let hidden = run_with_modes(0o755, 0o644);
    set_mode(&hidden.put("96", b"{}\n"), 0o000);
    let expected = (1, 4_000, unreadable("trace.96.jsonl"));
    assert_eq!(merge(hidden.path(), &[]), expected);
    let runs = three_runs();
    set_mode(runs.path(), 0o755);
    set_mode(&runs.path().join("previous").join(RUNS[0]), 0o700);
    let expected = (1, 2, unreadable(RUNS[0]));
    assert_eq!(merge(runs.path(), &["--all-runs"]), expected);
}
