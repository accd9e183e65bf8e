//! Commands without a RUN take the newest one, also from the folders that `sa-profile run` makes.

use crate::host::Host;
use crate::sql::python_that;
use crate::{Finished, command, said};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Folders as `sa-profile run` names them, in the order of their runs.
const FOLDERS: [&str; 3] = ["20260101-000001", "20260101-000002", "20260101-000003"];

/// A folder with a `profile_out` in which the first and the last run have ended, and one is live. A fourth one is just starting.
struct Runs {
    scratch: TempDir,
    python: TempDir,
    live: Host,
}

impl Runs {
    fn new() -> Runs {
        let scratch = tempfile::tempdir().unwrap();
        let at = |folder| scratch.path().join("profile_out").join(folder);
        Host::start(&at(FOLDERS[0]), "first", false).end();
        let live = Host::start(&at(FOLDERS[1]), "live", false);
        Host::start(&at(FOLDERS[2]), "last", false).end();
        std::fs::create_dir(at("20260101-000004")).unwrap();
        let python = python_that("echo asked");
        Runs {
            scratch,
            python,
            live,
        }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = command(words);
        let path = format!("{}:/usr/bin:/bin", self.python.path().display());
        command.env("PATH", path).current_dir(self.scratch.path());
        command
    }

    fn run(&self, words: &[&str]) -> Finished {
        let output = self.command(words).output().unwrap();
        said(output, Path::new("profile_out"))
    }

    /// The first line on stderr of a command that goes on.
    fn first_line(&self, words: &[&str]) -> String {
        let mut command = self.command(words);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        line
    }
}

#[test]
fn what_reads_a_run_takes_the_newest() {
    let runs = Runs::new();
    let newest = format!("sa-profile: taking DIR/{}, the newest run\n", FOLDERS[2]);
    for words in [
        &["status"][..],
        &["report"],
        &["tables", "--to", "tables"],
        &["sql", "names"],
        &["doctor"],
        // A directory that only holds folders of runs leads to the newest one, too.
        &["status", "profile_out"],
        &["report", "profile_out"],
        &["sql", "profile_out", "names"],
        &["diff", "profile_out/20260101-000001"],
        &["diff", "profile_out/20260101-000001", "profile_out"],
    ] {
        let said = runs.run(words);
        assert_eq!(said.code, Some(0), "{words:?}: {said:?}");
        assert!(said.stderr.starts_with(&newest), "{words:?}: {said:?}");
    }
    let before = runs.run(&["report", "--previous"]);
    let taken = format!("DIR/{}, the run before the newest\n", FOLDERS[1]);
    assert!(before.stderr.ends_with(&taken), "{before:?}");
    let all = runs.run(&["report", "--all-runs", "--json"]).stdout;
    assert!(
        ["first", "live", "last"]
            .iter()
            .all(|name| all.contains(name))
    );
    // A run that was named is not announced.
    let named = format!("profile_out/{}", FOLDERS[0]);
    assert_eq!(runs.run(&["status", &named]).stderr, "");
}

#[test]
fn what_follows_a_run_takes_the_newest_live_one() {
    let runs = Runs::new();
    let live = format!(
        "sa-profile: taking DIR/{}, the newest live run\n",
        FOLDERS[1]
    );
    for words in [
        &["stop"][..],
        &["start"],
        &["level", "e2e"],
        &["snapshot", "aside"],
        &["watch", "--once"],
        &["stop", "profile_out"],
        &["snapshot", "profile_out", "aside-2"],
    ] {
        let said = runs.run(words);
        assert_eq!((said.code, &said.stderr), (Some(0), &live), "{words:?}");
    }
    let serving = runs.first_line(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(serving + "\n", live.replace("DIR", "profile_out"));
    let Runs { scratch, live, .. } = runs;
    live.end();
    let refused = format!(
        "sa-profile: DIR: expected a live run, found none that a process still records; the newest is DIR/{}\n",
        FOLDERS[2]
    );
    for words in [
        &["stop"][..],
        &["watch"],
        &["serve"],
        &["snapshot", "aside-3"],
    ] {
        let output = command(words).current_dir(scratch.path()).output();
        let said = said(output.unwrap(), Path::new("profile_out"));
        assert_eq!((said.code, &said.stderr), (Some(2), &refused), "{words:?}");
    }
}

#[test]
fn without_a_run_it_is_said_how_to_record_one() {
    let scratch = tempfile::tempdir().unwrap();
    for (made, expected) in [
        (false, "DIR: expected a run directory, found nothing"),
        (true, "found none: sa-profile run -- COMMAND records one"),
    ] {
        if made {
            std::fs::create_dir(scratch.path().join("profile_out")).unwrap();
        }
        for words in [
            &["status"][..],
            &["report"],
            &["tables", "--to", "tables"],
            &["sql", "names"],
            &["open"],
            &["start"],
            &["watch"],
            &["serve"],
            &["snapshot", "aside"],
        ] {
            let mut command = command(words);
            let output = command.current_dir(scratch.path()).output().unwrap();
            let said = said(output, Path::new("profile_out"));
            assert_eq!(said.code, Some(2), "{words:?}: {said:?}");
            assert!(said.stderr.contains(expected), "{words:?}: {said:?}");
        }
    }
}

/// Opens a trace without a browser, and returns what is said before the link.
fn said_before_link(mut open: Command) -> Vec<String> {
    open.args(["--no-browser", "--port", "0"]);
    let mut child = open.stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let lines: Vec<String> = lines
        .map(Result::unwrap)
        .take_while(|line| !line.contains("/#!/?url="))
        .collect();
    child.kill().unwrap();
    child.wait().unwrap();
    lines
}

#[test]
fn issue_47_a_trace_of_an_earlier_run_is_not_opened_as_the_newest() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    let open = || {
        let mut open = command(&["open"]);
        open.arg(directory);
        said_before_link(open)
    };
    let merged = format!(
        "sa-profile: merged the run into {}/trace.json",
        directory.display()
    );
    Host::start(directory, "first", false).end();
    assert_eq!(open(), [merged.as_str()]);
    assert_eq!(open(), [""; 0]);
    Host::start(directory, "second", false).end();
    let stale = format!(
        "sa-profile: {0}/trace.json does not show the newest run of {0}",
        directory.display()
    );
    assert_eq!(open(), [stale, merged]);
    let trace = std::fs::read_to_string(directory.join("trace.json")).unwrap();
    assert!(trace.contains("second") && !trace.contains("first"));
    assert_eq!(open(), [""; 0]);
}

#[test]
fn a_run_is_opened_by_its_directory() {
    let runs = Runs::new();
    let open = |words: &[&str]| said_before_link(runs.command(&[&["open"], words].concat()));
    let trace = format!("profile_out/{}/trace.json", FOLDERS[2]);
    let taken = format!(
        "sa-profile: taking profile_out/{}, the newest run",
        FOLDERS[2]
    );
    let merged = format!("sa-profile: merged the run into {trace}");
    assert_eq!(open(&[]), [taken.clone(), merged]);
    assert_eq!(open(&[]), std::slice::from_ref(&taken));
    assert_eq!(open(&["profile_out"]), [taken]);
    assert_eq!(open(&[&trace]), [""; 0]);
    // The trace of a live run is older than the run.
    let live = format!("profile_out/{}", FOLDERS[1]);
    assert!(open(&[&live])[0].starts_with("sa-profile: merged"));
    let goes_on = open(&[&live]);
    assert!(
        goes_on[0].contains("the run has recorded more since"),
        "{goes_on:?}"
    );
}
