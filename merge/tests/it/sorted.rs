//! `--sort`: the same lines as without it, in the order of their times.

use crate::clashing::{Clashing, Order};
use crate::full::cases;
use crate::invocation::{Merged, RunDir, trace_merge};
use crate::many_spans::many;
use crate::random::{Rng, write_foreign, write_own};
use crate::trace::ns;
use crate::usage::merges;
use format_oracle::writer::line::stream;
use serde_json::Value;

const CASES: u64 = 120;

/// Returns the lines of a trace that are events, without separators.
fn lines(merged: &Merged) -> Vec<&str> {
    let text = std::str::from_utf8(&merged.bytes).unwrap();
    let lines = text.lines().map(|line| line.trim_end_matches(','));
    lines
        .filter(|line| line.starts_with('{') && line.contains(r#""ph":"#))
        .collect()
}

/// Sorts the lines of an unsorted trace. Lines that the merge adds stay at the end.
fn naive(whole: &Merged) -> Vec<&str> {
    let mut lines = lines(whole);
    let added = usize::try_from(whole.report.number("events_added")).unwrap();
    // Flows that link requests come directly after their events.
    let added = added - whole.trace.links().count();
    let recorded = lines.len() - added;
    lines[..recorded].sort_by_cached_key(|line| {
        let event: Value = serde_json::from_str(line).unwrap();
        match event["ph"] == "M" {
            true => i64::MIN,
            false => ns(&event["ts"]),
        }
    });
    lines
}

/// Merges with and without `--sort`, and compares both. Returns the number of lines that moved.
fn check(options: &[&str], dir: &RunDir, what: &str) -> usize {
    let options = [&["--no-settle"], options].concat();
    let whole = Merged::new(&options, &[dir.path()]);
    let sorted = Merged::new(&[&options[..], &["--sort"]].concat(), &[dir.path()]);
    let (expected, found) = (naive(&whole), lines(&sorted));
    let apart = found
        .iter()
        .zip(&expected)
        .find(|(one, other)| one != other);
    assert!(found == expected, "{what}: first at {apart:?}");
    assert_eq!(whole.bytes.len(), sorted.bytes.len(), "{what}");
    let moved = lines(&whole).into_iter().zip(found);
    moved.filter(|(before, after)| before != after).count()
}

#[test]
fn random_runs_are_sorted() {
    let mut moved = 0;
    for seed in 0..cases(CASES) {
        let (mut rng, dir) = (Rng::new(seed), RunDir::new());
        for pid in 100..103 {
            let whole = rng.one_in(2);
            write_own(&mut rng, &dir.fragments(), pid, whole);
        }
        let whole = rng.one_in(2);
        write_foreign(&mut rng, &dir.fragments(), 200, 40, whole);
        let mut thread = Clashing::new(&mut rng, 901, 1 << 20);
        (0..100).for_each(|serial| thread.add_random(serial, 1 << 16));
        dir.put("900", &stream(&thread.lines(Order::None)));
        let last = format!("--last={}us", 1 + rng.below(1_000_000));
        for options in [&[][..], &[last.as_str()], &["--threads=1"]] {
            moved += check(options, &dir, &format!("seed {seed}, {options:?}"));
        }
    }
    assert!(moved as u64 > 167 * cases(CASES), "{moved}");
}

#[test]
fn more_events_than_memory_holds_are_sorted() {
    let (dir, count) = many();
    assert!(check(&[], &dir, "in memory") > count / 2);
    let sorted = |memory: &str| {
        let mut merge = trace_merge();
        merge.args(["--sort", "--memory", memory, "-o", "-"]);
        merges(merge.arg(dir.path())).stdout
    };
    assert!(sorted("64MiB") == sorted("10KiB"));
}
