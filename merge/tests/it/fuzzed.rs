//! Random fragments with random damage: the merge shows the same as the naive reader, whatever
//! `--threads`.

use crate::full::cases;
use crate::invocation::{Ended, RunDir, trace_merge};
use crate::oracle;
use crate::random::{Rng, write_foreign, write_own};
use crate::trace::assert_same;

const CASES: u64 = 400;

/// Returns the trace of a fresh run for each number of threads. A merge may change its inputs,
/// because it settles rings.
fn outputs_by_threads(make: &dyn Fn() -> RunDir) -> Vec<Vec<u8>> {
    let output = |threads: &&str| {
        let dir = make();
        let options = ["--threads", threads, "--report", "none", "-o", "-"];
        let ended = Ended::run(trace_merge().args(options).arg(dir.path()));
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        ended.stdout
    };
    ["1", "2", "3", "8"].iter().map(output).collect()
}

/// Returns damage in comparable form: missing data has no offset of its own in a fragment.
fn located(mut damage: Vec<oracle::Damage>) -> Vec<oracle::Damage> {
    for (file, offset, kind) in &mut damage {
        if matches!(kind.as_str(), "gap" | "ring_missing" | "bad_ring") {
            *file = file.replace(".ring", ".jsonl");
            *offset = 0;
        }
    }
    damage.sort();
    damage
}

/// Compares merges of the run that `make` writes with the naive reader. `what` names the case.
pub(crate) fn check(make: &dyn Fn() -> RunDir, what: &str) {
    let dir = make();
    let expected = oracle::read(&dir.fragments());
    if expected.events.is_empty() {
        return;
    }
    let merged = dir.merge();
    let report = &merged.report;
    if !expected.repeated.is_empty() {
        let found = merged.trace.comparable().len();
        let most = expected.events.len() + expected.repeated.iter().sum::<usize>();
        assert!(found <= most && report.kind("bad_block") > 0, "{what}");
        return;
    }
    assert_same(&expected.events, &merged.trace.comparable(), what);
    for event in merged.trace.shown() {
        let is_small = |key: &str| matches!(event[key].as_u64(), Some(1..0x8000_0000));
        assert!(is_small("pid") && is_small("tid"), "{what}: {event}");
        let has_id = "stfbne".contains(event["ph"].as_str().unwrap());
        let is_known = !has_id || event["id2"].is_null();
        assert!(is_known, "{what}: viewers reject {event}");
    }
    assert_eq!(report.0["base_ns"], expected.base_ns, "{what}");
    let gaps = report.kind("gap");
    // A process in which no event has a time has no track for them.
    assert!(merged.trace.gaps().len() as u64 <= gaps, "{what}");
    let numbers = ["lost_events", "unfinished_spans"].map(|key| report.number(key));
    let expected_numbers = [expected.lost_events + gaps, expected.unfinished];
    assert_eq!(numbers, expected_numbers, "{what}");
    let in_broken = |(file, offset, kind): &oracle::Damage| {
        let offset = usize::try_from(*offset).unwrap();
        let mut broken = expected.broken.iter();
        kind != "bad_block" && broken.any(|(name, place)| name == file && place.contains(&offset))
    };
    let mut found = merged.report.damage();
    found.retain(|damage| !in_broken(damage));
    assert_eq!(located(found), located(expected.damage), "{what}");
    let again = dir.merge().trace.comparable();
    assert_same(&expected.events, &again, &format!("{what}, merged again"));
    let outputs = outputs_by_threads(make);
    let is_same = outputs.iter().all(|output| *output == outputs[0]);
    assert!(is_same, "{what}: the output depends on --threads");
}

/// Returns a run of two undamaged fragments of ours and a foreign one.
fn whole_run(seed: u64) -> RunDir {
    let (mut rng, dir) = (Rng::new(seed), RunDir::new());
    write_own(&mut rng, &dir.fragments(), 100, true);
    write_own(&mut rng, &dir.fragments(), 200, true);
    // Lines far from the header are read by the prefix that they share with earlier ones.
    let path = dir.fragments().join("trace.200.jsonl");
    let bytes = std::fs::read(&path).unwrap();
    let (header, rest) = bytes.split_at(memchr::memchr(b'\n', &bytes).unwrap() + 1);
    std::fs::write(&path, [header, &vec![b'\n'; 1 << 20], rest].concat()).unwrap();
    write_foreign(&mut rng, &dir.fragments(), 300, 20, true);
    dir
}

/// Returns a run of one or two fragments of ours and a foreign one, all damaged.
fn damaged_run(seed: u64) -> RunDir {
    let (mut rng, dir) = (Rng::new(seed), RunDir::new());
    for pid in [100, 200].into_iter().take(1 + rng.below(2)) {
        write_own(&mut rng, &dir.fragments(), pid, false);
    }
    let lines = rng.below(40);
    write_foreign(&mut rng, &dir.fragments(), 900, lines, false);
    dir
}

/// Returns a run with fragments of several parts, so that threads share them.
fn large_run() -> RunDir {
    let (mut rng, dir) = (Rng::new(7), RunDir::new());
    write_foreign(&mut rng, &dir.fragments(), 900, 40_000, false);
    write_foreign(&mut rng, &dir.fragments(), 901, 10_000, false);
    write_own(&mut rng, &dir.fragments(), 100, false);
    dir
}

#[test]
fn random_fragments_without_damage_agree_with_the_oracle() {
    for seed in 0..cases(CASES) / 4 {
        check(&|| whole_run(seed), &format!("seed {seed}"));
    }
}

#[test]
fn random_damage_agrees_with_the_oracle() {
    for seed in 1000..1000 + cases(CASES) {
        check(&|| damaged_run(seed), &format!("seed {seed}"));
    }
}

#[test]
fn damage_in_large_fragments_agrees_with_the_oracle() {
    check(&large_run, "large");
}
