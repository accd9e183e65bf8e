//! A whole merge: never a panic, a document that is JSON and loads, and every good line in it once, or told as lost.
#![no_main]

mod options;
mod output;
mod process;
mod recipe;

use libfuzzer_sys::fuzz_target;
use options::Plan;
use output::Shown;
use recipe::Run;
use std::path::PathBuf;
use std::sync::OnceLock;
use trace_merge::{Error, Report, merge};

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

fuzz_target!(
    init: {
        let shared = PathBuf::from("/dev/shm");
        let parent = if shared.is_dir() { shared } else { std::env::temp_dir() };
        let folder = parent.join(format!("trace-merge-fuzz.{}", std::process::id()));
        std::fs::create_dir_all(folder.join("fragments")).expect("a folder");
        // SAFETY: nothing else runs yet.
        unsafe { std::env::set_var("TMPDIR", &folder) };
        FOLDER.set(folder).expect("set once");
    },
    |data: &[u8]| {
        let Some((choice, recipe)) = data.split_first_chunk() else {
            return;
        };
        let folder = FOLDER.get().expect("made before");
        let (plan, run) = (Plan::new(*choice, folder), Run::new(recipe));
        run.write(&folder.join("fragments"));
        match merge(&plan.options) {
            Ok(report) => check(&plan, &run, &report),
            Err(error) => check_error(&plan, &run, &error),
        }
    }
);

/// Where there are good lines, only a window that cannot be placed is refused.
fn check_error(plan: &Plan, run: &Run, error: &Error) {
    let is_refusal = matches!(error, Error::NothingUsable(_) | Error::Usage(_));
    assert!(is_refusal, "{error}");
    let must_work = !run.is_hostile && !run.good.is_empty() && !plan.is_part;
    assert!(!must_work, "{error}");
}

fn check(plan: &Plan, run: &Run, report: &Report) {
    let shown = Shown::take(report, plan);
    if !plan.is_split {
        let told = report.events.total + report.events_added;
        assert_eq!(shown.events, told, "events in the trace and in the report");
    }
    if run.is_hostile {
        return;
    }
    for (serial, times) in &shown.serials {
        assert!(run.good.contains(serial), "nobody wrote {serial}");
        assert!(
            *times == 1 || plan.is_split,
            "{serial} is there {times} times"
        );
    }
    if !plan.is_part {
        let lost = run
            .good
            .iter()
            .find(|serial| !shown.serials.contains_key(serial));
        assert_eq!(lost, None, "a good line was lost");
        assert_eq!(report.losses.events, run.lost, "lost events in the report");
        assert!(
            report.damage.total >= run.least_damage,
            "damage is not told"
        );
    }
    assert!(
        !plan.is_sorted || shown.is_sorted,
        "events are not in order of time"
    );
}
