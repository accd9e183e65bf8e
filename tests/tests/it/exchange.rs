//! A second user keeps exchanging names in the run directory, or the directory itself, with links while hosts start, clean up and end. Nothing outside may change, and no host may hang or
//! behave differently.

use crate::{HOST, host};
use e2e::chance::rounds;
use e2e::host_support::stage::{ATTACKER, DEADLINE, Stage, snapshot};
use e2e::host_support::{HostRecording, is_root, make_folder, public_copy, set_mode};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Lets the attacker exchange pairs of names continuously while hosts start, end and are killed.
fn race(stage: &Stage, at: &Path, pairs: &[(&str, &str)]) {
    let (_copy, program) = public_copy(HOST);
    let stop = stage.root().join("stop").display().to_string();
    let start = |(one, other): &(&str, &str)| {
        let mut attacker = Command::new(&program);
        let attacker = attacker.args(["exchange", one, other, &stop]);
        let attacker = attacker.current_dir(at).stdout(Stdio::null());
        attacker.uid(ATTACKER).gid(ATTACKER).spawn().unwrap()
    };
    let attackers: Vec<Child> = pairs.iter().map(start).collect();
    let before = snapshot(&stage.outside());
    let mut recorded = 0;
    for round in 0..rounds(40, 120) {
        let mode = if round % 2 == 0 { "killed" } else { "spans" };
        let host = host(&stage.dir(), &[mode, "work", "200"]).deadline(DEADLINE);
        let outcome = host.variable("SA_PROFILE_OLD_RUNS", "0").run();
        let code = (mode == "spans").then_some(7);
        assert_eq!(outcome.status.code(), code, "{outcome:?}");
        assert!(outcome.stderr.lines().count() <= 1, "{outcome:?}");
        recorded += usize::from(outcome.stderr.is_empty());
    }
    fs::write(&stop, "").unwrap();
    for mut attacker in attackers {
        attacker.wait().unwrap();
    }
    let after = snapshot(&stage.outside());
    assert_eq!(after, before, "changed outside the directory");
    assert!(recorded > 0, "no host recorded");
}

#[test]
fn issue_19_an_attacker_who_exchanges_the_directory_or_names_in_it_gains_nothing() {
    if !is_root() {
        return;
    }
    let stage = Stage::new(HOST);
    let outside = stage.outside().display().to_string();
    let pairs = [
        ("fragments", "fragments.link"),
        ("previous", "previous.link"),
        ("run", "run.link"),
    ];
    for ((_, link), target) in pairs.iter().zip(["folder", "folder", "secret"]) {
        stage.attack(&format!("ln -s {outside}/{target} {link}"));
    }
    stage.open_folder("fragments");
    stage.open_folder("previous");
    race(&stage, &stage.dir(), &pairs);

    let stage = Stage::new(HOST);
    set_mode(stage.root(), 0o777);
    let outside = stage.outside().display().to_string();
    stage.attack(&format!("ln -s {outside}/folder ../link"));
    race(&stage, stage.root(), &[("run-directory", "link")]);
}

#[test]
fn issue_19_a_link_of_another_user_in_the_place_of_the_directory_is_refused() {
    if !is_root() {
        return;
    }
    let stage = Stage::new(HOST);
    let outside = stage.outside().display().to_string();
    let before = snapshot(&stage.outside());
    stage.attack(&format!("ln -s {outside}/folder link"));
    // A link of the user's own that points to that link is refused as well. One that points to a folder is followed.
    symlink("link", stage.dir().join("own-to-link")).unwrap();
    symlink("own", stage.dir().join("own-link")).unwrap();
    make_folder(&stage.dir().join("own"), 0o755);
    for (name, is_followed) in [("link", false), ("own-to-link", false), ("own-link", true)] {
        let outcome = host(&stage.dir().join(name), &["spans", "work", "100"]).run();
        assert_eq!(outcome.status.code(), Some(7), "{name}: {outcome:?}");
        let refused = outcome.stderr.contains("belongs to another user");
        assert_eq!(refused, !is_followed, "{name}: {outcome:?}");
    }
    assert_eq!(snapshot(&stage.outside()), before);
    assert_eq!(
        HostRecording::in_dir(&stage.dir().join("own")).recorded(),
        100
    );
}
