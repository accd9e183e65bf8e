//! What Perfetto's UI itself shows of a run with `sa-profile open`, in a real Chromium. The page has the origin of ui.perfetto.dev and counts as one of the public network, so
//! that everything stands in its way that stands in a user's: CORS, its content security policy, the browser's question whether it may reach this machine.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails where it stands, and says where it does not run"
)]

mod program;

use program::{Ground, Started};
use serde_json::Value;
use std::process::{Command, Output};

const UI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/perfetto/ui");
/// Exit code of the UI's script if the UI cannot be set up.
const NOT_HERE: i32 = 3;

/// Records spans and serves their trace on the one port that Perfetto's page may load from; nothing (said loudly) where that is taken.
fn serve(test: &str, ground: &Ground) -> Option<(Started, String)> {
    let recorded = ground.record("-d out", "one spans=300");
    assert_eq!(recorded.code, Some(0), "{recorded:?}");
    let started = ground.start(&["open", "out", "--at", "5us", "--for", "10us"]);
    let line = started.wait_for_line("9001");
    if line.contains("is taken") {
        eprintln!("SKIPPED {test}: port 9001 is taken");
        return None;
    }
    Some((started, line.replace("sa-profile: open ", "")))
}

/// What Perfetto's UI says, or nothing (said loudly) where it cannot be set up.
fn ask(test: &str, arguments: &[&str]) -> Option<Output> {
    let output = Command::new(UI).args(arguments).output().unwrap();
    if output.status.code() == Some(NOT_HERE) {
        eprint!(
            "SKIPPED {test}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        return None;
    }
    Some(output)
}

#[test]
fn alone_perfettos_page_in_chromium_shows_what_was_recorded() {
    let test = "alone_perfettos_page_in_chromium_shows_what_was_recorded";
    let ground = Ground::new();
    let Some((started, link)) = serve(test, &ground) else {
        return;
    };
    let Some(output) = ask(test, &[&link]) else {
        return;
    };
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    let counts: Value = serde_json::from_slice(&output.stdout).unwrap();
    let spans = ground.trace("out/trace.json").spans("one");
    assert_eq!((spans, &counts["slices"]), (300, &300.into()), "{counts}");
    assert_eq!(counts["problems"], 0, "{counts}");
    assert_eq!(counts["shown_ns"], serde_json::json!([5_000, 15_000]));
    let ended = started.end();
    assert_eq!(ended.code, Some(0));
    assert!(ended.stderr.ends_with("fetched\n"), "{}", ended.stderr);
}

#[test]
fn alone_a_user_who_lets_the_page_reach_nothing_sees_nothing_of_the_trace() {
    let test = "alone_a_user_who_lets_the_page_reach_nothing_sees_nothing_of_the_trace";
    let ground = Ground::new();
    let Some((started, link)) = serve(test, &ground) else {
        return;
    };
    let Some(output) = ask(test, &[&link, "--block"]) else {
        return;
    };
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert!(words.contains("Failed to fetch"), "{words}");
    started.signal("INT");
    let ended = started.end();
    assert!(ended.stderr.contains("allow it"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("fetched\n"), "{}", ended.stderr);
}
