//! A second user who may write into the run directory plants links, pipes and files at every name that recorder and merge use.
//!
//! Nothing outside the directory may change, nothing planted may be followed or removed by the recorder, nobody may hang, and the host's
//! output and exit code stay.

use crate::{HOST, host, script};
use e2e::host_support::stage::{DEADLINE, Plant, Stage, look, plants, snapshot};
use e2e::host_support::{Host, Live, Outcome, is_root};
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Runs a test for each thing that can be planted, or for some of them in the usual run.
fn for_each_plant(test: &str, case: impl Fn(Plant)) {
    if is_root(test) {
        plants().for_each(case);
    }
}

/// Lets a waiting host go, and asserts that nothing changed outside and that its user notices nothing.
fn go(stage: &Stage, mut host: Live, what: &str) -> Outcome {
    let outside = snapshot(&stage.outside());
    host.tell("go");
    let outcome = host.end().unharmed();
    assert_eq!(outcome.stdout, "spans work 500\n", "{what}: {outcome:?}");
    assert_eq!(
        snapshot(&stage.outside()),
        outside,
        "{what}: changed outside"
    );
    outcome
}

/// The same, and asserts that it neither followed nor changed what was planted.
fn assert_unharmed(stage: &Stage, host: Live, name: &str, what: &str) -> Outcome {
    let planted = look(&stage.dir().join(name));
    let outcome = go(stage, host, what);
    let left = look(&stage.dir().join(name));
    if planted.mode & libc::S_IFMT == libc::S_IFDIR {
        let is_same = (left.mode, left.owner) == (planted.mode, planted.owner);
        assert!(is_same, "{what}: changed what was planted");
    } else {
        assert_eq!(left, planted, "{what}: changed what was planted");
    }
    outcome
}

/// The same, and that the host recorded everything, or said in one line that it records nothing.
fn assert_recorded_or_refused(stage: &Stage, host: Live, name: &str, what: &str) {
    let outcome = assert_unharmed(stage, host, name, what);
    let recorded = stage.recorded();
    let refused = recorded == 0 && outcome.stderr.lines().count() == 1;
    assert!(
        recorded == 500 || refused,
        "{what}: {recorded} of 500 spans, {outcome:?}"
    );
}

/// Leaves a killed run on a stage; gives its id and pid.
fn crash(stage: &Stage) -> (String, u32) {
    stage.open_folder("fragments");
    let mut host = stage.script();
    host.ask("spans old 100");
    let run = host.who()["run"].as_str().unwrap().to_owned();
    (run, host.kill())
}

#[test]
fn planted_run_file_and_folders_are_refused() {
    for_each_plant("planted_run_file_and_folders_are_refused", |plant| {
        for name in ["run", "fragments", "previous"] {
            let what = format!("{} at {name}", plant.kind);
            let stage = Stage::new(HOST);
            if name == "previous" {
                crash(&stage);
            }
            let host = stage.at_the_gate();
            stage.plant(plant, name);
            assert_recorded_or_refused(&stage, host, name, &what);
        }
    });
}

#[test]
fn planted_fragments_and_rings_only_cost_their_name_and_stay_where_they_are() {
    let test = "planted_fragments_and_rings_only_cost_their_name_and_stay_where_they_are";
    for_each_plant(test, |plant| {
        for suffix in ["jsonl", "ring"] {
            for is_own in [true, false] {
                let what = format!("{} at .{suffix}", plant.kind);
                let stage = Stage::new(HOST);
                crash(&stage);
                let host = stage.at_the_gate();
                let pid = if is_own { host.pid() } else { 1 };
                let name = format!("fragments/trace.{pid}.{suffix}");
                stage.plant(plant, &name);
                assert_unharmed(&stage, host, &name, &what);
                stage.clear(&name);
                assert_eq!(stage.recorded(), 500, "{what}");
            }
        }
    });
}

#[test]
fn a_link_planted_for_the_folder_of_a_running_host_is_not_followed() {
    let at = e2e::host_support::scratch();
    let (dir, outside) = (at.path().join("run"), at.path().join("outside"));
    fs::create_dir(&outside).unwrap();
    let mut host = script(&dir);
    host.ask("spans before 100");
    host.ask("flush");
    let fragment = format!("fragments/trace.{}.jsonl", host.pid());
    fs::remove_file(dir.join(fragment)).unwrap();
    fs::rename(dir.join("fragments"), dir.join("moved")).unwrap();
    std::os::unix::fs::symlink(&outside, dir.join("fragments")).unwrap();
    host.ask("spans after 100");
    host.ask("flush");
    let outcome = host.end();
    assert_eq!(outcome.status.code(), Some(7), "{outcome:?}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn the_cleaning_moves_and_removes_nothing_through_a_planted_run_folder() {
    let test = "the_cleaning_moves_and_removes_nothing_through_a_planted_run_folder";
    for_each_plant(test, |plant| {
        for is_other in [false, true] {
            let stage = Stage::new(HOST);
            let (run, _) = crash(&stage);
            stage.open_folder("previous");
            let host = stage.at_the_gate();
            let run = if is_other {
                "20200101-000000-00000000"
            } else {
                &run
            };
            let name = format!("previous/{run}");
            let what = format!("{} at {name}", plant.kind);
            stage.plant(plant, &name);
            if plant.kind == "folder" {
                // A folder of the attacker's own may go when old runs go; what it links to may not.
                let outside = stage.outside().display().to_string();
                let links = [("folder", "trace.9.jsonl"), ("folder", "inner")];
                for (target, link) in links {
                    stage.attack(&format!("cd {name} && ln -s {outside}/{target} {link}"));
                }
                go(&stage, host, &what);
            } else {
                assert_recorded_or_refused(&stage, host, &name, &what);
            }
        }
    });
}

#[test]
fn a_dead_runs_own_files_replaced_by_the_attacker_are_not_followed() {
    let test = "a_dead_runs_own_files_replaced_by_the_attacker_are_not_followed";
    for_each_plant(test, |plant| {
        for suffix in ["jsonl", "ring"] {
            let what = format!("{} instead of the dead run's .{suffix}", plant.kind);
            let stage = Stage::new(HOST);
            let (_, pid) = crash(&stage);
            let name = format!("fragments/trace.{pid}.{suffix}");
            let host = stage.at_the_gate();
            stage.attack(&format!("rm -f {name}"));
            stage.plant(plant, &name);
            // Nothing usable need be left.
            assert_ne!(merge(&stage, &what).status.code(), None, "{what}");
            assert_unharmed(&stage, host, &name, &what);
        }
    });
}

#[test]
fn a_run_id_cannot_lead_out_of_the_directory() {
    if !is_root("a_run_id_cannot_lead_out_of_the_directory") {
        return;
    }
    for run in ["../../outside/folder", "..", "/tmp", "a\nb", ""] {
        let stage = Stage::new(HOST);
        let before = snapshot(&stage.outside());
        let old = host(&stage.dir(), &["killed", "old", "10"]);
        let _old = old.variable("SA_PROFILE_RUN", run).run().was_killed();
        let outcome = host(&stage.dir(), &["spans", "work", "500"]).run();
        assert_eq!(outcome.status.code(), Some(7), "{run:?}: {outcome:?}");
        assert_eq!(snapshot(&stage.outside()), before, "{run:?}");
        assert_eq!(stage.recorded(), 500, "{run:?}");
        let names = fs::read_dir(stage.root()).unwrap().count();
        assert_eq!(names, 2, "{run:?}: something new beside the run directory");
    }
}

/// Merges the stage's run in a process of its own, which must end and change nothing outside.
fn merge(stage: &Stage, what: &str) -> Outcome {
    let outside = snapshot(&stage.outside());
    let dir = stage.dir().display().to_string();
    let host = Host::new(HOST).arguments(&["merge", &dir]);
    let outcome = host.deadline(DEADLINE).run();
    let left = snapshot(&stage.outside());
    assert_eq!(left, outside, "{what}: the merge changed what is outside");
    outcome
}

#[test]
fn a_merge_follows_nothing_planted_where_it_writes() {
    let test = "a_merge_follows_nothing_planted_where_it_writes";
    for_each_plant(test, |plant| {
        for name in ["trace.json", "trace.json.tmp"] {
            let what = format!("{} at {name}", plant.kind);
            let stage = Stage::new(HOST);
            let mut host = stage.script();
            host.ask("spans work 500");
            let _host = host.end().quiet();
            stage.plant(plant, name);
            let outcome = merge(&stage, &what);
            let trace = fs::symlink_metadata(stage.dir().join("trace.json"));
            let is_own = |trace: fs::Metadata| trace.uid() == 0 && trace.nlink() == 1;
            let written = trace.is_ok_and(|trace| trace.is_file() && is_own(trace));
            let said = outcome.status.code() == Some(0);
            assert_eq!(said, written, "{what}: {outcome:?}");
            // A folder or a link to one cannot be replaced. The merge reports that instead.
            let replaceable = !matches!(plant.kind, "folder" | "link to a folder");
            let is_due = name == "trace.json" && replaceable;
            assert!(written || !is_due, "{what}: {outcome:?}");
        }
    });
}

#[test]
fn a_merge_reads_nothing_through_planted_fragments() {
    let secret = r#"{"ph":"X","pid":77,"tid":77,"ts":1.000,"dur":1.000,"name":"the-secret","cat":"outside"}"#;
    let test = "a_merge_reads_nothing_through_planted_fragments";
    for_each_plant(test, |plant| {
        let what = plant.kind;
        let stage = Stage::new(HOST);
        fs::write(stage.outside().join("secret"), format!("{secret}\n")).unwrap();
        stage.open_folder("fragments");
        let mut host = stage.script();
        host.ask("spans work 500");
        let _host = host.end().quiet();
        stage.plant(plant, "fragments/trace.77.jsonl");
        stage.plant(plant, "fragments/trace.77.ring");
        let outcome = merge(&stage, what);
        assert_eq!(outcome.status.code(), Some(0), "{what}: {outcome:?}");
        let trace = fs::read_to_string(stage.dir().join("trace.json")).unwrap();
        assert_eq!(trace.matches(r#""label":"work""#).count(), 500, "{what}");
        let followed = plant.kind == "link to a file" && trace.contains("the-secret");
        assert!(!followed, "{what}: followed");
    });
}
