//! A second user who may write into the run directory plants links, pipes and files at every name that recorder and merge use.
//!
//! Nothing outside the directory may change, nothing planted may be followed or removed by the recorder, nobody may hang, and the host's
//! output and exit code stay.

use e2e::host_support::stage::{ATTACKER, DEADLINE, PLANTS, Plant, Stage, look, snapshot};
use e2e::host_support::{Host, Live, Outcome, is_root};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

const HOST: &str = env!("CARGO_BIN_EXE_host");

/// Lets a waiting host go, and asserts that it neither followed nor changed what was planted.
fn assert_unharmed(stage: &Stage, mut host: Live, name: &str, what: &str) -> Outcome {
    let outside = snapshot(&stage.outside());
    let planted = look(&stage.dir().join(name));
    host.tell("go");
    let outcome = host.end();
    assert_eq!(outcome.stdout, "spans work 500\n", "{what}: {outcome:?}");
    assert_eq!(outcome.status.code(), Some(7), "{what}: {outcome:?}");
    assert!(outcome.stderr.lines().count() <= 1, "{what}: {outcome:?}");
    assert_eq!(
        snapshot(&stage.outside()),
        outside,
        "{what}: changed outside the directory"
    );
    let left = look(&stage.dir().join(name));
    if planted.mode & libc::S_IFMT == libc::S_IFDIR {
        assert_eq!(
            (left.mode, left.owner),
            (planted.mode, planted.owner),
            "{what}: changed what was planted"
        );
    } else {
        assert_eq!(left, planted, "{what}: changed what was planted");
    }
    outcome
}

/// Asserts that the host recorded everything, or said in one line that it records nothing.
fn assert_recorded_or_refused(stage: &Stage, outcome: &Outcome, what: &str) {
    let recorded = stage.recorded();
    let refused = recorded == 0 && outcome.stderr.lines().count() == 1;
    assert!(
        recorded == 500 || refused,
        "{what}: {recorded} of 500 spans, {outcome:?}"
    );
}

#[test]
fn planted_run_file_and_fragments_folder_are_refused() {
    if !is_root("planted_run_file_and_fragments_folder_are_refused") {
        return;
    }
    for name in ["run", "fragments", "previous"] {
        for plant in PLANTS {
            let what = format!("{plant:?} at {name}");
            let stage = Stage::new(HOST);
            let host = stage.at_the_gate();
            stage.plant(plant, name);
            let outcome = assert_unharmed(&stage, host, name, &what);
            assert_recorded_or_refused(&stage, &outcome, &what);
        }
    }
}

#[test]
fn planted_fragments_and_rings_only_cost_their_name() {
    if !is_root("planted_fragments_and_rings_only_cost_their_name") {
        return;
    }
    for suffix in ["jsonl", "ring"] {
        for plant in PLANTS {
            let what = format!("{plant:?} at .{suffix}");
            let stage = Stage::new(HOST);
            stage.open_folder("fragments");
            let host = stage.at_the_gate();
            let name = format!("fragments/trace.{}.{suffix}", host.pid());
            stage.plant(plant, &name);
            assert_unharmed(&stage, host, &name, &what);
            stage.clear(&name);
            assert_eq!(stage.recorded(), 500, "{what}");
        }
    }
}

#[test]
fn a_link_planted_for_the_folder_of_a_running_host_is_not_followed() {
    let at = e2e::host_support::scratch();
    let (dir, outside) = (at.path().join("run"), at.path().join("outside"));
    fs::create_dir(&outside).expect("a new directory");
    let mut host = Host::new(HOST)
        .arguments(&["script"])
        .recorded_in(&dir)
        .start();
    host.ask("spans before 100");
    host.ask("flush");
    let fragment = format!("fragments/trace.{}.jsonl", host.pid());
    fs::remove_file(dir.join(fragment)).expect("the fragment");
    fs::rename(dir.join("fragments"), dir.join("moved")).expect("the folder");
    std::os::unix::fs::symlink(&outside, dir.join("fragments")).expect("a link");
    host.ask("spans after 100");
    host.ask("flush");
    let outcome = host.end();
    assert_eq!(outcome.status.code(), Some(7), "{outcome:?}");
    assert_eq!(fs::read_dir(&outside).expect("the directory").count(), 0);
}

/// A stage on which a run was killed; gives its id and pid.
fn after_a_crash(stage: &Stage) -> (String, u32) {
    stage.open_folder("fragments");
    let mut host = stage.script();
    host.ask("spans old 100");
    let run = host.who()["run"]
        .as_str()
        .map(str::to_owned)
        .expect("a run id");
    (run, host.kill())
}

#[test]
fn the_cleaning_moves_nothing_through_a_planted_previous() {
    if !is_root("the_cleaning_moves_nothing_through_a_planted_previous") {
        return;
    }
    for plant in PLANTS {
        let what = format!("{plant:?} at previous after a crash");
        let stage = Stage::new(HOST);
        after_a_crash(&stage);
        let host = stage.at_the_gate();
        stage.plant(plant, "previous");
        let outcome = assert_unharmed(&stage, host, "previous", &what);
        assert_recorded_or_refused(&stage, &outcome, &what);
    }
}

#[test]
fn the_cleaning_moves_and_removes_nothing_through_a_planted_run_folder() {
    if !is_root("the_cleaning_moves_and_removes_nothing_through_a_planted_run_folder") {
        return;
    }
    for plant in PLANTS {
        for other in [false, true] {
            let what = format!(
                "{plant:?} at previous/{}",
                if other { "other" } else { "<run>" }
            );
            let stage = Stage::new(HOST);
            let (run, _) = after_a_crash(&stage);
            stage.open_folder("previous");
            let host = stage.at_the_gate();
            let name = if other {
                "previous/20200101-000000-00000000".to_owned()
            } else {
                format!("previous/{run}")
            };
            stage.plant(plant, &name);
            if plant == Plant::Folder {
                // A folder of the attacker's own may go when old runs go; what it links to may not.
                let outside = stage.outside().display().to_string();
                stage.attack(&format!("cd {name} && ln -s {outside}/folder trace.9.jsonl && ln -s {outside}/folder inner"));
                assert_outside_unharmed(&stage, host, &what);
            } else {
                let outcome = assert_unharmed(&stage, host, &name, &what);
                assert_recorded_or_refused(&stage, &outcome, &what);
            }
        }
    }
}

/// Lets a waiting host go, and asserts only that nothing changed outside.
fn assert_outside_unharmed(stage: &Stage, mut host: Live, what: &str) {
    let outside = snapshot(&stage.outside());
    host.tell("go");
    let outcome = host.end();
    assert_eq!(outcome.status.code(), Some(7), "{what}: {outcome:?}");
    assert!(outcome.stderr.lines().count() <= 1, "{what}: {outcome:?}");
    assert_eq!(
        snapshot(&stage.outside()),
        outside,
        "{what}: changed outside the directory"
    );
}

#[test]
fn the_cleaning_leaves_planted_fragments_of_others_where_they_are() {
    if !is_root("the_cleaning_leaves_planted_fragments_of_others_where_they_are") {
        return;
    }
    for plant in PLANTS {
        for name in ["fragments/trace.1.jsonl", "fragments/trace.1.ring"] {
            let what = format!("{plant:?} at {name}");
            let stage = Stage::new(HOST);
            let (_, _) = after_a_crash(&stage);
            let host = stage.at_the_gate();
            stage.plant(plant, name);
            assert_unharmed(&stage, host, name, &what);
            stage.clear(name);
            assert_eq!(stage.recorded(), 500, "{what}");
        }
    }
}

#[test]
fn a_dead_runs_own_files_replaced_by_the_attacker_are_not_followed() {
    if !is_root("a_dead_runs_own_files_replaced_by_the_attacker_are_not_followed") {
        return;
    }
    for plant in PLANTS {
        for suffix in ["jsonl", "ring"] {
            let what = format!("{plant:?} instead of the dead run's .{suffix}");
            let stage = Stage::new(HOST);
            let (_, pid) = after_a_crash(&stage);
            let name = format!("fragments/trace.{pid}.{suffix}");
            let host = stage.at_the_gate();
            stage.attack(&format!("rm -f {name}"));
            stage.plant(plant, &name);
            assert_unharmed(&stage, host, &name, &what);
        }
    }
}

#[test]
fn an_attacker_who_swaps_names_while_hosts_start_gets_nothing() {
    if !is_root("an_attacker_who_swaps_names_while_hosts_start_gets_nothing") {
        return;
    }
    let stage = Stage::new(HOST);
    let outside = stage.outside().display().to_string();
    let swap = |name: &str, target: &str| {
        format!(
            "ln -s {outside}/{target} {name}.link; mv -T {name} {name}.kept; mv -T {name}.link {name}; rm {name}; mv -T {name}.kept {name};"
        )
    };
    let line = format!(
        "while [ ! -e stop ]; do {} {} {} done 2>/dev/null",
        swap("fragments", "folder"),
        swap("run", "secret"),
        swap("previous", "folder")
    );
    let before = snapshot(&stage.outside());
    let mut attacker = Command::new("sh")
        .args(["-c", &line])
        .current_dir(stage.dir())
        .uid(ATTACKER)
        .gid(ATTACKER)
        .spawn()
        .expect("sh starts");
    for round in 0..60 {
        let mode = if round % 2 == 0 { "killed" } else { "spans" };
        let host = Host::new(HOST)
            .arguments(&[mode, "work", "200"])
            .recorded_in(&stage.dir())
            .deadline(DEADLINE);
        let outcome = host.variable("SA_PROFILE_OLD_RUNS", "0").run();
        assert_eq!(
            outcome.status.code(),
            (mode == "spans").then_some(7),
            "{outcome:?}"
        );
        assert!(outcome.stderr.lines().count() <= 1, "{outcome:?}");
    }
    fs::write(stage.dir().join("stop"), "").expect("own directory");
    attacker.wait().expect("the attacker ends");
    assert_eq!(
        snapshot(&stage.outside()),
        before,
        "changed outside the directory"
    );
}

#[test]
fn a_run_id_cannot_lead_out_of_the_directory() {
    if !is_root("a_run_id_cannot_lead_out_of_the_directory") {
        return;
    }
    for run in ["../../outside/folder", "..", ".", "/tmp", "a/b", "a\nb", ""] {
        let stage = Stage::new(HOST);
        let before = snapshot(&stage.outside());
        let host = || Host::new(HOST).recorded_in(&stage.dir()).deadline(DEADLINE);
        let _old = host()
            .arguments(&["killed", "old", "10"])
            .variable("SA_PROFILE_RUN", run)
            .run()
            .was_killed();
        let outcome = host().arguments(&["spans", "work", "500"]).run();
        assert_eq!(outcome.status.code(), Some(7), "{run:?}: {outcome:?}");
        assert_eq!(snapshot(&stage.outside()), before, "{run:?}");
        assert_eq!(stage.recorded(), 500, "{run:?}");
        let names = fs::read_dir(stage.root()).expect("the stage").count();
        assert_eq!(names, 2, "{run:?}: something new beside the run directory");
    }
}

/// Merges the stage's run in a process of its own, which must end.
fn merge(stage: &Stage) -> Outcome {
    let dir = stage.dir().display().to_string();
    Host::new(HOST)
        .arguments(&["merge", &dir])
        .deadline(DEADLINE)
        .run()
}

#[test]
fn a_merge_follows_nothing_planted_where_it_writes() {
    if !is_root("a_merge_follows_nothing_planted_where_it_writes") {
        return;
    }
    for name in ["trace.json", "trace.json.tmp"] {
        for plant in PLANTS {
            let what = format!("{plant:?} at {name}");
            let stage = Stage::new(HOST);
            let mut host = stage.script();
            host.ask("spans work 500");
            let _host = host.end().quiet();
            stage.plant(plant, name);
            let outside = snapshot(&stage.outside());
            let outcome = merge(&stage);
            assert_eq!(
                snapshot(&stage.outside()),
                outside,
                "{what}: changed outside the directory"
            );
            let trace = fs::symlink_metadata(stage.dir().join("trace.json"));
            let written =
                trace.is_ok_and(|trace| trace.is_file() && trace.uid() == 0 && trace.nlink() == 1);
            assert_eq!(
                outcome.status.code() == Some(0),
                written,
                "{what}: {outcome:?}"
            );
            // What is a folder, or looks like one, cannot be replaced: that is said instead.
            let replaceable = !matches!(plant, Plant::Folder | Plant::LinkToFolder);
            assert!(
                written || !(name == "trace.json" && replaceable),
                "{what}: {outcome:?}"
            );
        }
    }
}

#[test]
fn a_merge_reads_nothing_through_planted_fragments() {
    if !is_root("a_merge_reads_nothing_through_planted_fragments") {
        return;
    }
    let secret = r#"{"ph":"X","pid":77,"tid":77,"ts":1.000,"dur":1.000,"name":"the-secret","cat":"outside"}"#;
    for plant in PLANTS {
        for name in ["fragments/trace.77.jsonl", "fragments/trace.77.ring"] {
            let what = format!("{plant:?} at {name}");
            let stage = Stage::new(HOST);
            fs::write(stage.outside().join("secret"), format!("{secret}\n")).expect("own file");
            stage.open_folder("fragments");
            let mut host = stage.script();
            host.ask("spans work 500");
            let _host = host.end().quiet();
            stage.plant(plant, name);
            let outside = snapshot(&stage.outside());
            let outcome = merge(&stage);
            assert_eq!(
                snapshot(&stage.outside()),
                outside,
                "{what}: changed outside the directory"
            );
            assert_eq!(outcome.status.code(), Some(0), "{what}: {outcome:?}");
            let trace = fs::read_to_string(stage.dir().join("trace.json")).expect("the trace");
            assert_eq!(trace.matches(r#""label":"work""#).count(), 500, "{what}");
            let followed = matches!(plant, Plant::LinkToFile) && trace.contains("the-secret");
            assert!(!followed, "{what}: followed");
        }
    }
}

#[test]
fn a_planted_dead_fragment_is_not_settled_through_a_link() {
    if !is_root("a_planted_dead_fragment_is_not_settled_through_a_link") {
        return;
    }
    for suffix in ["jsonl", "ring"] {
        for plant in [
            Plant::LinkToFile,
            Plant::HardLink,
            Plant::Pipe,
            Plant::ReadOnlyFile,
        ] {
            let what = format!("{plant:?} instead of the dead .{suffix}");
            let stage = Stage::new(HOST);
            let (_, pid) = after_a_crash(&stage);
            let name = format!("fragments/trace.{pid}.{suffix}");
            stage.attack(&format!("rm -f {name}"));
            stage.plant(plant, &name);
            let outside = snapshot(&stage.outside());
            // Whether anything usable is left is not the question; that it ends and writes nothing outside is.
            let outcome = merge(&stage);
            assert_ne!(outcome.status.code(), None, "{what}: {outcome:?}");
            assert_eq!(
                snapshot(&stage.outside()),
                outside,
                "{what}: changed outside the directory"
            );
        }
    }
}
