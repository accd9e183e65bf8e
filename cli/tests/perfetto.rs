//! What Perfetto shows of a run: its trace processor, and with `sa-profile open` its UI itself, in a real Chromium. The page has the origin of ui.perfetto.dev and counts as one of the public network, so
//! that everything stands in its way that stands in a user's: CORS, its content security policy, the browser's question whether it may reach this machine.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails where it stands, and says where it does not run"
)]

mod program;

use program::{Ground, Started, worker};
use serde_json::Value;
use std::fs;
use std::process::{Command, Output};

const TPQ: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/perfetto/tpq");
const UI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/perfetto/ui");
/// What both exit with where it cannot be set up.
const NOT_HERE: i32 = 3;

/// Records spans and serves their trace on the one port that Perfetto's page may load from; nothing (said loudly) where that is taken.
fn serve(test: &str, ground: &Ground) -> Option<(Started, String)> {
    let recorded = ground.run(&["run", "-d", "out", "--", &worker(), "one", "spans=300"]);
    assert_eq!(recorded.code, Some(0), "{recorded:?}");
    let started = ground.start(&["open", "out", "--at", "5us", "--for", "10us"]);
    let line = started.wait_for_line("9001");
    if line.contains("is taken") {
        eprintln!("SKIPPED {test}: port 9001 is taken");
        return None;
    }
    Some((started, line.replace("sa-profile: open ", "")))
}

/// What `program` (`tpq` or `ui`) says, or nothing (said loudly) where it cannot be set up.
fn ask(test: &str, program: &str, arguments: &[&str]) -> Option<Output> {
    let output = Command::new(program).args(arguments).output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED {test}: {program}: {error}");
            return None;
        }
    };
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
    let Some(output) = ask(test, UI, &[&link]) else {
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
    let Some(output) = ask(test, UI, &[&link, "--block"]) else {
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

/// Records seven spans between a start and a stop, and more before and after them.
fn switched_run(ground: &Ground) {
    let words = [
        "one",
        "spans=5",
        "until=go",
        "spans=7",
        "until=end",
        "spans=9",
    ];
    let worker = worker();
    let arguments = [&["run", "-d", "out", "--", &worker], words.as_slice()].concat();
    let mut command = ground.command(&arguments);
    let started = Started::of(command.env("SA_PROFILE_START", "paused"));
    started.wait_until(|| {
        ground.path("out/fragments").is_dir() && !ground.fragments("out").is_empty()
    });
    started.wait_until(|| ground.written("out", "sa_anchor") > 0);
    assert_eq!(ground.run(&["start", "out"]).code, Some(0));
    fs::write(ground.path("go"), "").unwrap();
    started.wait_until(|| ground.written("out", r#""name":"work""#) >= 7);
    assert_eq!(ground.run(&["stop", "out"]).code, Some(0));
    fs::write(ground.path("end"), "").unwrap();
    assert_eq!(started.end().code, Some(0));
}

#[test]
fn perfetto_shows_where_a_run_was_switched() {
    let test = "perfetto_shows_where_a_run_was_switched";
    let ground = Ground::new();
    switched_run(&ground);
    let trace = ground.path("out/trace.json").display().to_string();
    let causes = "select extract_arg(arg_set_id, 'args.cause') from slice where name = 'sa_switch' order by ts";
    let switches = "select count(*) from slice where name = 'work' and ts between \
        (select min(ts) from slice where extract_arg(arg_set_id, 'args.cause') = 'start') and \
        (select max(ts) from slice where extract_arg(arg_set_id, 'args.cause') = 'stop')";
    let Some(output) = ask(test, TPQ, &[&trace, causes, switches]) else {
        return;
    };
    let words = String::from_utf8_lossy(&output.stderr);
    let rows = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{words}");
    assert_eq!(rows, "[[\"paused\"],[\"start\"],[\"stop\"]]\n[[7]]\n");
    let Some(checked) = ask(test, TPQ, &["--check", &trace, "slices=10"]) else {
        return;
    };
    assert!(checked.status.success(), "{checked:?}");
}
