//! Fuzzes a whole merge: it does not panic, its document is JSON that loads, and it shows or counts as lost all that the naive reader of merge's tests finds.
#![no_main]

#[path = "../folder.rs"]
mod folder;
mod options;
#[allow(dead_code, reason = "merge's tests share this file")]
#[path = "../../../../merge/tests/it/oracle/mod.rs"]
mod oracle;
mod output;
#[allow(dead_code, reason = "merge's tests share this file")]
#[path = "../../../../merge/tests/it/random.rs"]
mod random;
#[allow(dead_code, reason = "merge's tests share this file")]
#[path = "../../../../merge/tests/it/trace.rs"]
mod trace;

use folder::folder;
use libfuzzer_sys::fuzz_target;
use options::Plan;
use oracle::Expected;
use random::{Rng, write_foreign, write_own};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use trace::{Trace, assert_same, ns};
use trace_merge::{Error, Report, merge};

fuzz_target!(|data: &[u8]| {
    let Some((choice, recipe)) = data.split_first_chunk() else {
        return;
    };
    let folder = folder();
    let (plan, fragments) = (Plan::new(*choice, folder), folder.join("fragments"));
    fs::remove_dir_all(&fragments).expect("it was there");
    fs::create_dir(&fragments).expect("room");
    let is_hostile = write(recipe, &fragments);
    let expected = (!is_hostile).then(|| oracle::read(&fragments));
    match merge(&plan.options) {
        Ok(report) => check(&plan, expected, &report),
        Err(error) => check_error(&plan, expected, &error),
    }
});

/// Writes two processes of ours and one of another recorder. The bytes before the first newline are the generator's choices, those after it raw lines.
/// Returns true if there are raw lines: one may be a record that takes other lines away, or one that only the merge can read.
fn write(recipe: &[u8], folder: &Path) -> bool {
    let newline = recipe.iter().position(|byte| *byte == b'\n');
    let (recipe, text) = recipe.split_at(newline.unwrap_or(recipe.len()));
    let mut rng = Rng::of(recipe.to_vec());
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
    !text.is_empty()
}

/// Checks an error: if there are events, only a window that cannot be placed may be refused.
fn check_error(plan: &Plan, expected: Option<Expected>, error: &Error) {
    let is_refusal = matches!(error, Error::NothingUsable(_) | Error::Usage(_));
    assert!(is_refusal, "{error}");
    let must_work = expected.is_some_and(|expected| !expected.events.is_empty()) && !plan.is_part;
    assert!(!must_work, "{error}");
}

fn serial(event: &Value) -> Option<u64> {
    event["args"]["serial"].as_u64()
}

fn check(plan: &Plan, expected: Option<Expected>, report: &Report) {
    let texts = output::take(report, plan);
    let told = report.events.total + report.events_added;
    let events: u64 = texts.iter().map(|text| output::count(text)).sum();
    // The begin and the end of a span of length 0 become one complete span.
    let begins = report.events.by_phase.get(&'B').copied().unwrap_or(0);
    let is_told = events <= told && told - events <= begins;
    assert!(
        is_told || plan.is_split,
        "{events} events, and {told} in the report"
    );
    let Some(expected) = expected.filter(|expected| expected.repeated.is_empty()) else {
        return;
    };
    let events = expected.events.iter();
    let written = events.map(|event| serde_json::from_str(&event.content).expect("it is JSON"));
    let written: BTreeSet<u64> = written.filter_map(|event| serial(&event)).collect();
    for text in &texts {
        let trace = Trace::parse(text);
        let mut serials = trace.shown().filter_map(serial);
        assert!(
            serials.all(|serial| written.contains(&serial)),
            "nobody wrote it"
        );
        let times = trace.shown().filter(|event| event["ts"].is_number());
        let is_sorted = times.map(|event| ns(&event["ts"])).is_sorted();
        assert!(
            !plan.is_sorted || is_sorted,
            "events are not in order of time"
        );
    }
    if !plan.is_part && !plan.is_split && !plan.is_verbatim {
        let trace = Trace::parse(&texts[0]);
        assert_same(&expected.events, &trace.comparable(), "the trace");
        let report = serde_json::to_value(report).expect("memory");
        let gaps = report["damage_by_kind"]["gap"].as_u64().unwrap_or(0);
        assert_eq!(report["lost_events"], expected.lost_events + gaps);
        assert_eq!(report["unfinished_spans"], expected.unfinished);
    }
}
