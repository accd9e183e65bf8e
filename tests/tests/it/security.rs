//! A second user who may write into the run directory plants links, pipes and files under every name that the recorder and the merge use.
//!
//! Nothing outside the directory may change, the recorder may neither follow nor remove a plant, nothing may hang, and the host's
//! output and exit code must not change.

use crate::{HOST, host, script};
use e2e::host_support::stage::{DEADLINE, GO, Plant, Stage, file_state, plants, snapshot};
use e2e::host_support::{Host, Live, Outcome, is_root, scratch};
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

/// Runs a case for each kind of plant. The usual run only uses some of them.
fn for_each_plant(case: impl Fn(Plant)) {
    if is_root() {
        plants().for_each(case);
    }
}

/// Releases a waiting host, and asserts that nothing outside changed and that the host behaved normally.
fn go(stage: &Stage, mut host: Live, what: &str) -> Outcome {
    let outside = snapshot(&stage.outside());
    host.send(GO);
    let outcome = host.end().unharmed();
    assert_eq!(outcome.stdout, "spans work 500\n", "{what}: {outcome:?}");
    let left = snapshot(&stage.outside());
    assert_eq!(left, outside, "{what}: changed outside");
    outcome
}

/// Releases the host like [`go`], and asserts that it neither followed nor changed the plant.
fn assert_unharmed(stage: &Stage, host: Live, name: &str, what: &str) -> Outcome {
    let planted = file_state(&stage.dir().join(name));
    let outcome = go(stage, host, what);
    let left = file_state(&stage.dir().join(name));
    if planted.mode & libc::S_IFMT == libc::S_IFDIR {
        let is_same = (left.mode, left.owner) == (planted.mode, planted.owner);
        assert!(is_same, "{what}: changed what was planted");
    } else {
        assert_eq!(left, planted, "{what}: changed what was planted");
    }
    outcome
}

/// Leaves a killed run on a stage. Returns its id and pid.
fn crash(stage: &Stage) -> (String, u32) {
    stage.open_folder("fragments");
    let mut host = stage.script();
    host.ask("spans old 100");
    let run = host.who()["run"].as_str().unwrap().to_owned();
    (run, host.kill())
}

/// The host either records everything or reports in one line that it records nothing.
#[test]
fn planted_run_file_and_folders_are_refused() {
    for_each_plant(|plant| {
        for name in [
            "run",
            "fragments",
            "previous",
            "previous/RUN",
            "previous/20200101-000000-00000000",
        ] {
            let what = format!("{} at {name}", plant.kind);
            let stage = Stage::new(HOST);
            let mut run = String::new();
            if name.starts_with("previous") {
                (run, _) = crash(&stage);
            }
            if name.contains('/') {
                stage.open_folder("previous");
            }
            let host = stage.at_the_gate();
            let name = name.replace("RUN", &run);
            stage.plant(plant, &name);
            if name.contains('/') && plant.kind == "folder" {
                // The attacker's own folder may be removed together with old runs, but not what it links to.
                let outside = stage.outside().display().to_string();
                for (target, link) in [("folder", "trace.9.jsonl"), ("folder", "inner")] {
                    stage.attack(&format!("cd {name} && ln -s {outside}/{target} {link}"));
                }
                go(&stage, host, &what);
                continue;
            }
            let outcome = assert_unharmed(&stage, host, &name, &what);
            let (recorded, lines) = (stage.recorded(), outcome.stderr.lines().count());
            let is_right = recorded == 500 || (recorded, lines) == (0, 1);
            assert!(is_right, "{what}: {recorded} of 500 spans, {outcome:?}");
        }
    });
}

/// A file planted under a name that the host would use only makes that name unavailable. The same holds for a dead run's own files.
#[test]
fn planted_fragments_and_rings_only_block_their_name_and_stay_in_place() {
    for_each_plant(|plant| {
        for suffix in ["jsonl", "ring"] {
            for whose in ["own", "somebody's", "dead"] {
                let what = format!("{} at .{suffix}, {whose}", plant.kind);
                let stage = Stage::new(HOST);
                let (_, dead) = crash(&stage);
                let host = stage.at_the_gate();
                let pid = match whose {
                    "own" => host.pid(),
                    "dead" => dead,
                    _ => 1,
                };
                let name = format!("fragments/trace.{pid}.{suffix}");
                stage.attack(&format!("rm -f {name}"));
                stage.plant(plant, &name);
                if whose == "dead" {
                    // No usable data may be left, but the merge must end by itself.
                    assert_ne!(merge(&stage, &what).status.code(), None, "{what}");
                }
                assert_unharmed(&stage, host, &name, &what);
                stage.clear(&name);
                assert_eq!(stage.recorded(), 500, "{what}");
            }
        }
    });
}

#[test]
fn a_link_planted_for_the_folder_of_a_running_host_is_not_followed() {
    let at = scratch();
    let (dir, outside) = (at.path().join("run"), at.path().join("outside"));
    fs::create_dir(&outside).unwrap();
    let mut host = script(&dir);
    host.ask("spans before 100, flush");
    let fragment = format!("fragments/trace.{}.jsonl", host.pid());
    fs::remove_file(dir.join(fragment)).unwrap();
    fs::rename(dir.join("fragments"), dir.join("moved")).unwrap();
    symlink(&outside, dir.join("fragments")).unwrap();
    host.ask("spans after 100, flush");
    let outcome = host.end();
    assert_eq!(outcome.status.code(), Some(7), "{outcome:?}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_run_id_cannot_escape_the_directory() {
    if !is_root() {
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
        assert_eq!(names, 2, "{run:?}: something new next to the run directory");
    }
}

/// Merges the stage's run in a separate process, which must end and change nothing outside.
fn merge(stage: &Stage, what: &str) -> Outcome {
    let outside = snapshot(&stage.outside());
    let dir = stage.dir().display().to_string();
    let host = Host::new(HOST).arguments(&["merge", &dir]);
    let outcome = host.deadline(DEADLINE).run();
    let left = snapshot(&stage.outside());
    assert_eq!(left, outside, "{what}: the merge changed something outside");
    outcome
}

/// Records a run on a stage with a folder of fragments that anybody may write into.
fn recorded() -> Stage {
    let stage = Stage::new(HOST);
    stage.open_folder("fragments");
    let mut host = stage.script();
    host.ask("spans work 500");
    let _host = host.end().quiet();
    stage
}

#[test]
fn a_merge_follows_nothing_planted_where_it_writes() {
    for_each_plant(|plant| {
        for name in ["trace.json", "trace.json.tmp"] {
            let what = format!("{} at {name}", plant.kind);
            let stage = recorded();
            stage.plant(plant, name);
            let outcome = merge(&stage, &what);
            let trace = fs::symlink_metadata(stage.dir().join("trace.json"));
            let is_own = |trace: fs::Metadata| trace.uid() == 0 && trace.nlink() == 1;
            let written = trace.is_ok_and(|trace| trace.is_file() && is_own(trace));
            let succeeded = outcome.status.code() == Some(7);
            assert_eq!(succeeded, written, "{what}: {outcome:?}");
            // A folder, or a link to one, cannot be replaced, so the merge reports that.
            let replaceable = !matches!(plant.kind, "folder" | "link to a folder");
            let is_due = name == "trace.json" && replaceable;
            assert!(written || !is_due, "{what}: {outcome:?}");
        }
    });
}

#[test]
fn a_merge_reads_nothing_through_planted_fragments() {
    let secret = r#"{"ph":"X","pid":77,"tid":77,"ts":1.000,"dur":1.000,"name":"the-secret","cat":"outside"}"#;
    for_each_plant(|plant| {
        let what = plant.kind;
        let stage = recorded();
        fs::write(stage.outside().join("secret"), format!("{secret}\n")).unwrap();
        stage.plant(plant, "fragments/trace.77.jsonl");
        stage.plant(plant, "fragments/trace.77.ring");
        let outcome = merge(&stage, what);
        assert_eq!(outcome.status.code(), Some(7), "{what}: {outcome:?}");
        let trace = fs::read_to_string(stage.dir().join("trace.json")).unwrap();
        assert_eq!(trace.matches(r#""label":"work""#).count(), 500, "{what}");
        let followed = plant.kind == "link to a file" && trace.contains("the-secret");
        assert!(!followed, "{what}: followed");
    });
}
