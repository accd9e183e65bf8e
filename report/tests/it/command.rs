//! The command `trace-report`.

use crate::reports::{fixture, has_words};
use crate::traces::case;
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trace-report"))
        .args(arguments)
        .output()
        .unwrap()
}

fn serving() -> String {
    fixture("serving.json").to_str().unwrap().to_owned()
}

/// Checks that the command fails, and that its message starts with `message`.
#[track_caller]
fn fails(arguments: &[&str], message: &str) {
    let output = run(arguments);
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(words.starts_with(message), "{words}");
}

#[track_caller]
fn stdout(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_screen_and_tables_are_printed() {
    let path = &serving();
    let screen = include_str!("../fixtures/serving.screen.txt");
    assert_eq!(stdout(&[path]), screen);
    let all = include_str!("../fixtures/serving.all.txt");
    assert_eq!(stdout(&[path, "--all"]), all);
    let json = |more: &[&str]| -> Value {
        let text = stdout(&[&[path, "--json"], more].concat());
        serde_json::from_str(&text).unwrap()
    };
    let all = json(&[]);
    assert_eq!((&all["schema"], requests(&all)), (&json!(3), 4));
    assert_eq!(requests(&json(&["--request", "r1", "--request", "r2"])), 2);
    let first = |table: &[&str]| {
        let csv = stdout(&[&[path, "--csv"], table].concat());
        csv.lines().nth(1).unwrap().to_owned()
    };
    assert_eq!(first(&["request"]).split(',').nth(16), Some("500"));
    let by_process = first(&["names", "--by", "process"]);
    assert!(by_process.starts_with("api,,thread,request,request,4,4,"));
    let names = stdout(&[path, "--names", "--to", "20ms"]);
    has_words(&names, &["names      1 of 1 by tsub"]);
}

/// A single request has its own screen. For tables it is a filter.
#[test]
fn one_request_is_printed() {
    let path = &serving();
    let with = |more: &[&str]| stdout(&[&[path, "--request", "r1"], more].concat());
    let screen = include_str!("../fixtures/serving.request.txt");
    assert_eq!(with(&[]).replace(path, "serving.json"), screen);
    let one: Value = serde_json::from_str(&with(&["--json"])).unwrap();
    assert_eq!(one["request"]["request"]["request_id"], "r1");
    assert_eq!(with(&["--csv", "request"]).lines().count(), 2);
}

fn requests(report: &Value) -> usize {
    report["request"].as_array().unwrap().len()
}

/// Returns the output of the command on a terminal with these variables.
fn on_terminal(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let user = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_trace-report"));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"] {
        command.env_remove(name);
    }
    command.args(arguments).env("TERM", "xterm").stdout(user);
    let variables = variables.iter().copied();
    let mut child = command.envs(variables).spawn().unwrap();
    // The terminal closes when the last process that has it open ends.
    drop(command);
    let (mut output, mut terminal) = (Vec::new(), File::from(terminal));
    let _ = terminal.read_to_end(&mut output); // ends with an error when the terminal closes
    assert!(child.wait().unwrap().success());
    String::from_utf8(output).unwrap()
}

#[test]
fn only_a_terminal_has_colours() {
    let path = &serving();
    let is_styled = |variables: &[(&str, &str)]| {
        let screen = on_terminal(&[path], variables);
        assert!(screen.contains("queue"), "{screen}");
        screen.contains('\u{1b}')
    };
    assert!(is_styled(&[]));
    for variable in [("NO_COLOR", "1"), ("CLICOLOR", "0"), ("TERM", "dumb")] {
        assert!(!is_styled(&[variable]), "{variable:?}");
    }
    assert!(!on_terminal(&[path, "--names"], &[]).contains('\u{1b}'));
}

#[test]
fn a_crash_counts_only_if_the_window_contains_it() {
    let folder = tempfile::TempDir::new().unwrap();
    let paths = case("issue 47: the first finding of a crash").write(folder.path());
    // The worker has been in a span since 4.2 ms, and dies in one that starts at 4.5 ms.
    for (to, rule) in [("4.4ms", "unknown"), ("6ms", "crash")] {
        let text = stdout(&[paths[0].to_str().unwrap(), "--json", "--to", to]);
        let report: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(report["verdict"]["rule"], rule, "{to}");
    }
}

#[test]
fn bad_input_is_reported() {
    let path = &serving();
    for (words, message) in [
        (
            "/no/such/run",
            "trace-report: nothing to merge: /no/such/run: ",
        ),
        ("", "trace-report: no PATH given, "),
        ("x --json --csv request", "error: "),
        ("x --export nat", "error: invalid value 'nat' for "),
        (
            "x --export callgrind=out",
            "error: invalid value 'callgrind=out' for ",
        ),
        ("x --export gprof", "error: invalid value 'gprof' for "),
        (
            "x --step 3 --request r1",
            "error: the argument '--step <N>' cannot be used with",
        ),
        (
            "x --at 1s --html",
            "error: the argument '--at <DURATION>' cannot be used with",
        ),
    ] {
        fails(&words.split_whitespace().collect::<Vec<_>>(), message);
    }
    for (option, message) in [
        (["--request", "r"], "4 ids contain this: r0, r1, r2, r3\n"),
        (
            ["--request", "r10"],
            "none of the 4 request ids contains this; similar ones are r1, ",
        ),
        (
            ["--at", "3s"],
            "expected a time in the trace, which ends at 133.4 ms\n",
        ),
        (
            ["--step", "3"],
            "no span has the number of its step, as the arg step or batch\n",
        ),
    ] {
        let output = run(&[path, option[0], option[1]]);
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}");
        let begin = format!("trace-report: {} ", option[0]);
        assert!(
            words.starts_with(&begin) && words.contains(message),
            "{words}"
        );
    }
    fails(
        &[path, "--page=/none/page.html"],
        "trace-report: /none/page.html: No such file",
    );
    // Clients choose the ids of their requests.
    let folder = tempfile::TempDir::new().unwrap();
    let trace = folder.path().join("trace.json");
    let text = std::fs::read_to_string(path).unwrap();
    std::fs::write(&trace, text.replace("\"r0\"", "\"=HYPERLINK(1)\"")).unwrap();
    let table = stdout(&[trace.to_str().unwrap(), "--csv", "request"]);
    has_words(&table, &["\n'=HYPERLINK(1),"]);
}

#[test]
fn exported_files_are_written_to_a_folder() {
    let path = &serving();
    let folder = tempfile::TempDir::new().unwrap();
    let names = [
        "all_requests_profiler_traces.json",
        "inference_optimization.json",
        "standardized_data_all.csv",
    ];
    let out = folder.path().join("new").join("nat");
    let export = format!("nat={}", out.display());
    let output = run(&[path, "--export", &export]);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && output.stdout.is_empty(),
        "{words}"
    );
    let begin = format!("trace-report: {}: ", out.display());
    assert!(words.starts_with(&begin), "{words}");
    let files = std::fs::read_dir(&out).unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    assert_eq!(
        files.collect::<BTreeSet<_>>(),
        names.map(str::to_owned).into()
    );
    // The same files may exist already.
    stdout(&[path, "--export", &export]);
    // Files of another profiler or another run must not be replaced.
    let other = out.join(names[0]);
    std::fs::write(&other, "another profiler's").unwrap();
    let other_path = other.display();
    let message = format!("trace-report: {other_path}: expected a folder without");
    fails(&[path, "--export", &export], &message);
    assert_eq!(std::fs::read(&other).unwrap(), b"another profiler's");
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), names.len());
}

#[test]
fn an_export_that_fails_leaves_what_was_there() {
    let path = &serving();
    let folder = tempfile::TempDir::new().unwrap();
    let out = folder.path().join("out");
    let export = format!("nat={}", out.display());
    // The folder is checked before the run is read.
    std::fs::write(&out, "").unwrap();
    let words = String::from_utf8(run(&["/no/such/run", "--export", &export]).stderr).unwrap();
    has_words(&words, &[out.to_str().unwrap()]);
    std::fs::remove_file(&out).unwrap();
    assert!(!run(&["/no/such/run", "--export", &export]).status.success());
    assert!(!out.exists());
    // One of the later files cannot be renamed into place.
    std::fs::create_dir_all(out.join("inference_optimization.json")).unwrap();
    std::fs::write(out.join("standardized_data_all.csv"), "old").unwrap();
    assert!(!run(&[path, "--export", &export]).status.success());
    let table = std::fs::read_to_string(out.join("standardized_data_all.csv"));
    assert_eq!(table.unwrap(), "old");
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 2);
}

/// Neither its input nor any other file of the user is replaced, whatever its name.
#[test]
fn a_page_replaces_only_a_page() {
    let folder = tempfile::TempDir::new().unwrap();
    let trace = folder.path().join("trace.json");
    std::fs::copy(fixture("serving.json"), &trace).unwrap();
    let (link, hard) = (folder.path().join("link"), folder.path().join("hard"));
    std::os::unix::fs::symlink(&trace, &link).unwrap();
    std::fs::hard_link(&trace, &hard).unwrap();
    let notes = folder.path().join("notes.html");
    std::fs::write(&notes, "<!doctype html>\n<html>mine</html>").unwrap();
    let files = [&trace, &link, &hard, &notes];
    let before = files.map(|file| std::fs::read(file).unwrap());
    let path = trace.to_str().unwrap();
    for file in files {
        let file = file.display();
        let message = format!("trace-report: {file}: expected a new name");
        fails(&[path, &format!("--html={file}")], &message);
    }
    assert!(files.map(|file| std::fs::read(file).unwrap()) == before);
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4);
    let page = folder.path().join("report.html");
    for _ in 0..2 {
        let done = run(&[path, &format!("--page={}", page.display())]);
        let words = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{words}");
        has_words(&words, &["report.html ("]);
        assert!(words.ends_with("open it in a browser\n"), "{words}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 5);
}

/// Pages and exports have the same file mode as fragments.
#[test]
fn written_files_have_the_mode_of_the_fragments() {
    use std::os::unix::fs::PermissionsExt;
    let path = fixture("serving.json");
    for (mode, files, folders) in [("", 0o600, 0o700), ("0640", 0o640, 0o750)] {
        let folder = tempfile::TempDir::new().unwrap();
        let page = folder.path().join("report.html");
        let out = folder.path().join("out");
        for option in [
            format!("--html={}", page.display()),
            format!("--export=nat={}", out.display()),
        ] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_trace-report"));
            command.arg(&path).arg(option).env("SA_PROFILE_MODE", mode);
            assert!(command.output().unwrap().status.success());
        }
        let bits = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let exported = out.join("standardized_data_all.csv");
        assert_eq!((bits(&page), bits(&exported)), (files, files), "{mode}");
        assert_eq!(bits(&out), folders, "{mode}");
    }
}
