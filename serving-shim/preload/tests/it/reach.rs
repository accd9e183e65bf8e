//! The trace and the summary of a merge report what is hidden from the library.

use crate::fakes::fakes;
use c_programs::{Ground, NONE, Trace, end, preload, preloads};
use serde_json::{Value, json};
use std::path::Path;

/// Runs the program under these preloaded libraries while recording.
fn below(ground: &Ground, libraries: &[&Path]) -> Trace {
    let mut command = ground.watched(ground.path("reach"));
    command
        .env("LD_PRELOAD", preloads(libraries))
        .env("SA_PROFILE_THREADS", "0");
    let ended = end(command.env("FAKE_QUIET", "1"));
    assert_eq!((ended.code, &*ended.stderr), (42, ""), "{ended:?}");
    assert!(ended.stdout.starts_with("errno 77, "), "{ended:?}");
    if libraries.len() == 1 {
        assert_eq!(ended.stdout, "errno 77, dlerror kept\n");
    }
    ground.trace()
}

/// Returns the reach that the processes have recorded.
fn reach(trace: &Trace) -> Vec<&Value> {
    let said = trace.named("sa_reach").into_iter();
    said.map(|event| &event["args"]).collect()
}

/// Runs the program under these libraries. Asserts the recorded reach, and that the summary of the merge contains all of these words, or no line about it.
fn assert_said(ground: &Ground, libraries: &[&Path], expected: &Value, words: &[&str]) {
    let _ = std::fs::remove_dir_all(ground.run());
    let trace = below(ground, libraries);
    assert_eq!(reach(&trace), [expected], "{libraries:?}");
    let replays = usize::from(expected["by_handle"] == true);
    let seen = trace.count("aclmdlRIExecuteAsync");
    assert_eq!(seen, replays, "{libraries:?}");
    assert_eq!(trace.count("aclrtMemcpyAsync"), 1);
    let text = trace.report.text();
    let said = text.lines().filter(|line| line.starts_with("reach: "));
    let said: Vec<&str> = said.collect();
    assert_eq!(said.len(), usize::from(!words.is_empty()), "{said:?}");
    let all = said.concat();
    assert!(words.iter().all(|words| all.contains(words)), "{said:?}");
}

#[test]
fn what_another_library_hides_is_said_and_nothing_else() {
    let ground = fakes();
    ground.program("reach", &["reach.c"], &["-l:libascendcl.so"]);
    let (ours, all) = (preload(), json!({"by_linking": true, "by_handle": true}));
    assert_said(&ground, &[&ours], &all, &[]);
    for (name, option, by_handle) in [
        ("libhook.so", "-DALONE", false),
        ("libasks.so", "-DNEXT", true),
    ] {
        ground.library(name, "dlsym_hook.c", &[option]);
        let hook = ground.path(name);
        let expected = json!({"by_linking": true, "by_handle": by_handle, "dlsym": hook});
        let words = format!(
            "may not be visible: the program calls the dlsym of {} instead of the one in libsa_profile_preload.so",
            hook.display()
        );
        let words: &[&str] = if by_handle { &[] } else { &[&words] };
        assert_said(&ground, &[&hook, &ours], &expected, words);
    }
    let calls = "some calls of kernels and waits go to ";
    for (name, words) in [
        ("libinterposer.so", "not visible unless it passes them on"),
        ("libmspti.so", "must come before it in LD_PRELOAD"),
    ] {
        ground.library(name, "interposer.c", &NONE);
        let other = ground.path(name);
        assert_said(&ground, &[&ours, &other], &all, &[]);
        let expected = json!({"by_linking": false, "by_handle": true, "interposed": ["kernels", "waits"], "first": other});
        assert_said(&ground, &[&other, &ours], &expected, &[calls, words]);
    }
}
