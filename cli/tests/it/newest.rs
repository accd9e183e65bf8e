//! Commands without RUN use the newest run, which may also be in a folder that `sa-profile run` created.

use crate::program::{Ended, Ground, Started};
use std::fs;

/// Folders with names as `sa-profile run` creates them, in the order of their runs.
const FOLDERS: [&str; 3] = [
    "profile_out/20260101-000001",
    "profile_out/20260101-000002",
    "profile_out/20260101-000003",
];

/// A folder with a `profile_out` that contains four runs: the first and third have ended, one is live, and the fourth is just starting.
struct Runs {
    ground: Ground,
    path: String,
    live: Started,
}

/// Starts a process that records into this directory.
fn host(ground: &Ground, directory: &str, name: &str) -> Started {
    let directory = ground.path(directory).display().to_string();
    ground.host_with(&[name, "spans=1000"], &[("SA_PROFILE_DIR", &directory)])
}

impl Runs {
    fn new() -> Runs {
        let ground = Ground::new();
        host(&ground, FOLDERS[0], "first").end();
        let live = host(&ground, FOLDERS[1], "live");
        host(&ground, FOLDERS[2], "last").end();
        fs::create_dir(ground.path("profile_out/20260101-000004")).unwrap();
        let path = ground.path_with_python("echo asked");
        Runs { ground, path, live }
    }

    fn start(&self, words: &str) -> Started {
        let words: Vec<&str> = words.split(' ').collect();
        Started::spawn(self.ground.command(&words).env("PATH", &self.path))
    }

    fn run(&self, words: &str) -> Ended {
        self.start(words).end()
    }
}

#[test]
fn what_reads_a_run_takes_the_newest() {
    let runs = Runs::new();
    let newest = format!("sa-profile: taking {}, the newest run\n", FOLDERS[2]);
    for words in [
        "status",
        "report",
        "tables --to tables",
        "sql names",
        "doctor",
        // A directory that only contains folders of runs leads to the newest one, too.
        "status profile_out",
        "report profile_out",
        "sql profile_out names",
        "diff profile_out/20260101-000001",
        "diff profile_out/20260101-000001 profile_out",
    ] {
        let said = runs.run(words);
        assert_eq!(said.code, Some(0), "{words:?}: {said:?}");
        assert!(said.stderr.starts_with(&newest), "{words:?}: {said:?}");
    }
    let before = runs.run("report --previous");
    let notice = format!("{}, the run before the newest\n", FOLDERS[1]);
    assert!(before.stderr.ends_with(&notice), "{before:?}");
    let all = runs.run("report --all-runs --json").stdout;
    let mut names = ["first", "live", "last"].into_iter();
    assert!(names.all(|name| all.contains(name)));
    // There is no notice about a run that was named.
    assert_eq!(runs.run(&format!("status {}", FOLDERS[0])).stderr, "");
}

#[test]
fn commands_that_follow_a_run_use_the_newest_live_one() {
    let runs = Runs::new();
    let live = format!("sa-profile: taking {}, the newest live run\n", FOLDERS[1]);
    for words in [
        "stop",
        "start",
        "level e2e",
        "snapshot aside",
        "watch --once",
        "stop profile_out",
        "snapshot profile_out aside-2",
    ] {
        let said = runs.run(words);
        assert_eq!((said.code, &said.stderr), (Some(0), &live), "{words:?}");
    }
    let serving = runs.start("serve --listen 127.0.0.1:0");
    assert_eq!(serving.wait_for_line("") + "\n", live);
    let Runs { ground, live, .. } = runs;
    live.end();
    let refused = Ended::refusal(&format!(
        "profile_out: expected a live run, found none that a process still records; the newest is {}",
        FOLDERS[2]
    ));
    for words in ["stop", "watch", "serve", "snapshot aside-3"] {
        assert_eq!(ground.run_words(words), refused, "{words:?}");
    }
}

#[test]
fn without_a_run_it_is_said_how_to_record_one() {
    let ground = Ground::new();
    for (made, expected) in [
        (
            false,
            "profile_out: expected a run directory, found nothing",
        ),
        (true, "found none: sa-profile run -- COMMAND records one"),
    ] {
        if made {
            fs::create_dir(ground.path("profile_out")).unwrap();
        }
        let commands =
            "status,report,tables --to tables,sql names,open,start,watch,serve,snapshot aside";
        for words in commands.split(',') {
            let ended = ground.run_words(words);
            assert_eq!(ended.code, Some(2), "{words:?}: {ended:?}");
            ended.says(&[expected]);
        }
    }
}

/// Opens a trace without a browser, and returns the messages before the link.
fn said_before_link(ground: &Ground, words: &[&str]) -> Vec<String> {
    let options = ["open", "--no-browser", "--port", "0"];
    let open = ground.start(&[&options, words].concat());
    open.wait_for_line("/#!/?url=");
    let said = open.said();
    let lines = said.lines().take_while(|line| !line.contains("/#!/?url="));
    lines.map(str::to_owned).collect()
}

#[test]
fn issue_47_a_trace_of_an_earlier_run_is_not_opened_as_the_newest() {
    let ground = Ground::new();
    let open = || said_before_link(&ground, &["out"]);
    let merged = "sa-profile: merged the run into out/trace.json";
    ground.host("first").end();
    assert_eq!(open(), [merged]);
    assert_eq!(open(), [""; 0]);
    ground.host("second").end();
    let stale = "sa-profile: out/trace.json does not show the newest run of out";
    assert_eq!(open(), [stale, merged]);
    let trace = fs::read_to_string(ground.path("out/trace.json")).unwrap();
    assert!(trace.contains("second") && !trace.contains("first"));
    assert_eq!(open(), [""; 0]);
}

#[test]
fn a_run_is_opened_by_its_directory() {
    let runs = Runs::new();
    let open = |words: &[&str]| said_before_link(&runs.ground, words);
    let trace = format!("{}/trace.json", FOLDERS[2]);
    let notice = format!("sa-profile: taking {}, the newest run", FOLDERS[2]);
    let merged = format!("sa-profile: merged the run into {trace}");
    assert_eq!(open(&[]), [notice.as_str(), &merged]);
    assert_eq!(open(&[]), [notice.as_str()]);
    assert_eq!(open(&["profile_out"]), [notice]);
    assert_eq!(open(&[&trace]), [""; 0]);
    // The trace of a live run is older than the run.
    assert!(open(&[FOLDERS[1]])[0].starts_with("sa-profile: merged"));
    let notices = open(&[FOLDERS[1]]);
    let words = "the run has recorded more since";
    assert!(notices[0].contains(words), "{notices:?}");
}
