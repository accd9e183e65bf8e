//! Tests what Perfetto's own UI shows of a run with `sa-profile open`, in a real Chromium. The page has the origin of ui.perfetto.dev and counts as a
//! page of the public network. So everything that can block it for a user applies here: CORS, its content security policy, and the browser's question
//! if it may reach this machine.

use crate::program::{Ended, Ground};
use serde_json::Value;
use std::process::{Command, Output};

const UI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/perfetto/ui");
/// Exit code of the UI's script if the UI cannot be set up.
const NOT_HERE: i32 = 3;

/// Records spans, serves their trace on the only port from which Perfetto's page may load, and opens it with these options. Returns the output of the
/// UI and how the command ended. Returns `None`, with a message, if the port is in use or the UI cannot be set up.
fn shown(test: &str, ground: &Ground, options: &[&str]) -> Option<(Output, Ended)> {
    let recorded = ground.record("-d out", "one spans=300");
    assert_eq!(recorded.code, Some(0), "{recorded:?}");
    let started = ground.start(&["open", "out", "--at", "5us", "--for", "10us"]);
    let line = started.wait_for_line("9001");
    if line.contains("is taken") {
        eprintln!("SKIPPED {test}: port 9001 is taken");
        return None;
    }
    let link = line.replace("sa-profile: open ", "");
    let output = Command::new(UI).arg(link).args(options).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(NOT_HERE) {
        eprint!("SKIPPED {test}: {words}");
        return None;
    }
    if !output.status.success() {
        started.signal("INT"); // it was not fetched
    }
    Some((output, started.end()))
}

#[test]
fn alone_perfettos_page_in_chromium_shows_what_was_recorded() {
    let test = "alone_perfettos_page_in_chromium_shows_what_was_recorded";
    let ground = Ground::new();
    let Some((output, ended)) = shown(test, &ground, &[]) else {
        return;
    };
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    let counts: Value = serde_json::from_slice(&output.stdout).unwrap();
    let spans = ground.spans("out/trace.json", "one");
    assert_eq!((spans, &counts["slices"]), (300, &300.into()), "{counts}");
    assert_eq!(counts["problems"], 0, "{counts}");
    assert_eq!(counts["shown_ns"], serde_json::json!([5_000, 15_000]));
    let is_open = |group: &Value| group[1] == true;
    let groups = counts["groups"].as_array().unwrap();
    assert!(groups.len() == 1 && groups.iter().all(is_open), "{counts}");
    assert_eq!(ended.code, Some(0));
    assert!(ended.stderr.ends_with("fetched\n"), "{}", ended.stderr);
}

#[test]
fn alone_a_user_who_lets_the_page_reach_nothing_sees_nothing_of_the_trace() {
    let test = "alone_a_user_who_lets_the_page_reach_nothing_sees_nothing_of_the_trace";
    let Some((output, ended)) = shown(test, &Ground::new(), &["--block"]) else {
        return;
    };
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert!(words.contains("Failed to fetch"), "{words}");
    ended.says(&["allow it"]);
    assert!(!ended.stderr.contains("fetched\n"), "{}", ended.stderr);
}
