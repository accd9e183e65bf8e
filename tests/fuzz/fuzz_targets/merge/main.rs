//! Merges damaged fragments. There is no panic, and the trace is JSON that loads and has as many events as the report states.
#![no_main]

#[path = "../folder.rs"]
mod folder;
mod options;
mod output;
#[allow(dead_code, reason = "merge's tests share this file")]
#[path = "../../../../merge/tests/it/random.rs"]
mod random;

use folder::folder;
use libfuzzer_sys::fuzz_target;
use options::Plan;
use random::{Rng, write_foreign, write_own};
use std::fs;
use std::io::Write;
use std::path::Path;
use trace_merge::{Error, Report, merge};

fuzz_target!(|data: &[u8]| {
    let Some((choice, recipe)) = data.split_first_chunk() else {
        return;
    };
    let folder = folder();
    let (plan, fragments) = (Plan::new(*choice, folder), folder.join("fragments"));
    fs::remove_dir_all(&fragments).expect("it was there");
    fs::create_dir(&fragments).expect("room");
    write(recipe, &fragments);
    match merge(&plan.options) {
        Ok(report) => check(&plan, &report),
        Err(Error::NothingUsable(_) | Error::Usage(_)) => {}
        Err(error) => panic!("{error}"),
    }
});

/// Writes two processes of our recorder and one of another. The bytes before the first newline are the generator's choices, those after it raw lines.
fn write(recipe: &[u8], folder: &Path) {
    let newline = recipe.iter().position(|byte| *byte == b'\n');
    let (recipe, text) = recipe.split_at(newline.unwrap_or(recipe.len()));
    let mut rng = Rng::with_choices(recipe.to_vec());
    for pid in [100, 200] {
        let is_whole = rng.one_in(2);
        write_own(&mut rng, folder, pid, is_whole);
    }
    let (lines, is_whole) = (rng.below(40), rng.one_in(2));
    write_foreign(&mut rng, folder, 900, lines, is_whole);
    for file in ["trace.100.jsonl", "trace.900.jsonl"] {
        let file = fs::File::options().append(true).open(folder.join(file));
        file.expect("it is there").write_all(text).expect("room");
    }
}

fn check(plan: &Plan, report: &Report) {
    let events = output::check_and_remove(report, plan);
    let reported = report.events.total + report.events_added;
    // The begin and the end of a span of length 0 become one complete span.
    let begins = report.events.by_phase.get(&'B').copied().unwrap_or(0);
    let is_reported = events <= reported && reported - events <= begins;
    assert!(
        is_reported || plan.is_split,
        "{events} events, and {reported} in the report"
    );
}
