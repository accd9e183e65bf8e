//! Tests `sa-profile run` with real commands: a single process, launchers, orphans and killed processes, and the summaries of their runs.

use crate::program::{self, Ended, Ground, PROGRAM, Started, worker};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

#[test]
fn one_command_is_recorded_and_keeps_its_streams_and_its_code() {
    let ground = Ground::new();
    let ended = ground.record("", "one spans=10 say=hello exit=7");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(7), "hello\n"));
    assert!(ended.stderr.starts_with("sa-profile: recorded "));
    ended.says(&[" events of 1 process in profile_out/", "\n  one "]);
    let (_, trace) = ended.stderr.split_once(" process in ").unwrap();
    let trace = trace.split(' ').next().unwrap();
    assert_eq!(ground.spans(trace, "one"), 10);
    ended.says(&["\nlost: nothing\n", "next: sa-profile open profile_out/"]);
}

#[test]
fn a_shell_script_and_its_children_are_one_run() {
    let ground = Ground::new();
    let script = format!(
        "cd /; '{0}' first spans=3 & '{0}' second spans=4; wait; '{0}' third spans=5; exit 9",
        worker()
    );
    let ended = ground.run(&["run", "-d", "out", "--", "sh", "-c", &script]);
    assert_eq!(ended.code, Some(9));
    let spans = ["first", "second", "third"].map(|name| ground.spans("out/trace.json", name));
    assert_eq!(spans, [3, 4, 5]);
    assert_eq!(ground.runs("out").len(), 1, "{:?}", ground.runs("out"));
}

#[test]
fn a_flight_recorder_keeps_the_end_within_its_disk_space() {
    let ground = Ground::new();
    let words = "one spans=100000 sleep=1500 spans=7";
    let ended = ground.record("-d out --max-mb 4 --last 1s", words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ground.spans("out/trace.json", "one"), 7);
    ended.says(&["lost: ", "shown: the last 1s; "]);
    let files = fs::read_dir(ground.path("out/fragments")).unwrap();
    let bytes = files.map(|file| file.unwrap().metadata().unwrap().len());
    let bytes: u64 = bytes.sum();
    assert!(bytes <= 4 << 20, "{bytes}");
    let status = ground.json(&["status", "--json", "out"]);
    let process = &status["processes"][0];
    let lost = process["lost"]["disk_bound"].as_u64().unwrap();
    let options = trace_merge::Options {
        output: trace_merge::Output::File(ground.path("whole.json")),
        ..trace_merge::Options::new([ground.path("out")])
    };
    let report = trace_merge::merge(&options).unwrap();
    let kept = ground.spans("whole.json", "one") as u64;
    assert_eq!(kept + lost, 100_007);
    assert_eq!(process["events"].as_u64(), Some(report.events.total));
    assert_eq!(process["state"], "ended");
}

/// The command ends with code 4 and leaves a daemon, which waits for the file `go`. An interrupt ends the waiting.
#[test]
fn a_daemon_is_waited_for_until_an_interrupt_merges_it_live() {
    for (is_interrupted, spans_of_daemon) in [(false, 10), (true, 5)] {
        let ground = Ground::new();
        let words = format!(
            "parent spans=2 daemon={} exit=4",
            ground.path("go").display()
        );
        // The helper flushes the events of a process that has one thread.
        let mut command = ground.recording("-d out", &words);
        let started = Started::spawn(command.env("SA_PROFILE_THREADS", "1"));
        let line = started.wait_for_line(
            "the command has ended; waiting for processes that it left running: pid ",
        );
        let (_, daemon) = line.split_once("pid ").unwrap();
        let (daemon, name) = daemon.split_once(' ').unwrap();
        assert!(name.starts_with("(worker)"), "{line}");
        let ended = if is_interrupted {
            let written = |path: &PathBuf| fs::read_to_string(path).unwrap_or_default();
            started.wait_until(|| {
                let text: String = ground.fragments("out").iter().map(written).collect();
                text.matches(r#""name":"work""#).count() == 7
            });
            started.signal("INT");
            let ended = started.end();
            program::signal("KILL", daemon);
            ended.says(&["1 process still running"]);
            ended
        } else {
            fs::write(ground.path("go"), "").unwrap();
            started.end()
        };
        assert_eq!(ended.code, Some(4));
        let spans = ["parent", "parent-daemon"].map(|name| ground.spans("out/trace.json", name));
        assert_eq!(spans, [2, spans_of_daemon]);
    }
}

#[test]
fn killed_processes_are_recovered_and_the_code_says_the_signal() {
    let ground = Ground::new();
    let ended = ground.record("-d out", "victim spans=1000 kill");
    assert_eq!(ended.code, Some(128 + 9));
    assert_eq!(ground.spans("out/trace.json", "victim"), 1000);
    ended.says(&["killed: victim (pid ", ", by SIGKILL"]);
    // A process that is not the command itself, and whose parent has ended.
    let script = format!("('{}' orphan spans=50 sleep=200 kill &)", worker());
    let ended = ground.run(&["run", "-d", "orphaned", "--", "sh", "-c", &script]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ground.spans("orphaned/trace.json", "orphan"), 50);
}

#[test]
fn issue_19_only_processes_with_open_spans_are_called_killed() {
    let ground = Ground::new();
    let worker = worker();
    let idle = format!("'{worker}' left spans=5 leave & '{worker}' ended spans=5 term & ");
    let script = format!(
        "{} '{worker}' victim spans=5 open kill & wait",
        idle.repeat(3)
    );
    let ended = ground.run(&["run", "-d", "out", "--", "sh", "-c", &script]);
    let said = &ended.stderr;
    ended.says(&["killed: victim (pid ", ", in 1 open span. "]);
    ended.says(&["with no span open (_exit, or a signal between two spans): "]);
    assert!(said.matches(" (pid ").count() >= 7, "{said}");
    // Another merge, after everything is settled, reports the same.
    for _ in 0..2 {
        let options = trace_merge::Options::new([ground.path("out")]);
        let report = trace_merge::merge(&options).unwrap();
        let ends = |end| {
            let processes = report.processes.iter();
            processes.filter(|process| process.end == Some(end)).count()
        };
        let text = report.text();
        assert_eq!((ends("killed"), ends("silent")), (1, 6), "{text}");
        assert!(text.contains("killed: victim (pid "), "{text}");
        assert!(text.contains("two spans): "), "{text}");
    }
}

#[test]
fn signals_are_passed_on_once() {
    let ground = Ground::new();
    let notes = ground.path("notes");
    let words = format!("one spans=1 signals={}", notes.display());
    let started = Started::spawn(&mut ground.recording("", &words));
    let mut expected = "ready\n".to_owned();
    started.wait_for_text(&notes, &expected);
    for signal in ["USR1", "USR2", "WINCH", "HUP", "INT", "QUIT", "TERM"] {
        started.signal(signal);
        expected += &format!("SIG{signal}\n");
        started.wait_for_text(&notes, &expected);
    }
    assert_eq!(started.end().code, Some(3));
    assert_eq!(fs::read_to_string(&notes).unwrap(), expected);
}

#[test]
fn the_command_has_the_signals_that_it_would_have_without() {
    let ground = Ground::new();
    let asked = ["-E", "SigBlk|SigIgn|SigCgt", "/proc/self/status"];
    let without = ground.plain("grep").args(asked).output().unwrap().stdout;
    let ended = ground.run(&[&["run", "--", "grep"][..], &asked].concat());
    assert_eq!(ended.stdout, String::from_utf8(without).unwrap());
    let up = ground.path("up");
    let script = format!("echo up >'{}'; exec sleep 60", up.display());
    let started = ground.start(&["run", "--", "sh", "-c", &script]);
    started.wait_until(|| up.exists());
    started.signal("TERM");
    assert_eq!(started.end().code, Some(128 + 15));
}

#[test]
fn a_signal_from_below_is_not_sent_back() {
    let ground = Ground::new();
    let notes = ground.path("notes");
    let script = format!(
        "'{}' one signals='{notes}' & until [ -s '{notes}' ]; do sleep 0.02; done; kill -USR1 $PPID; kill -HUP $PPID; sleep 0.2; kill -TERM $!; wait $!",
        worker(),
        notes = notes.display()
    );
    let ended = ground.run(&["run", "--", "sh", "-c", &script]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(&notes).unwrap(), "ready\nSIGTERM\n");
}

#[test]
fn an_interrupt_from_the_terminal_reaches_each_process_once() {
    if Command::new("script").arg("--version").output().is_err() {
        println!("SKIPPED an_interrupt_from_the_terminal_reaches_each_process_once: no script");
        return;
    }
    let ground = Ground::new();
    let notes = ground.path("notes");
    // Without `exec`, the shell would be killed by the signal and would end the process group with SIGHUP.
    let line = format!(
        "exec '{}' run -d out -- '{}' one spans=1 signals='{}'",
        PROGRAM,
        worker(),
        notes.display()
    );
    let mut script = ground.plain("script");
    script.env("SHELL", "/bin/sh");
    let started = Started::spawn(script.args(["-qefc", &line, "/dev/null"]));
    started.wait_for_text(&notes, "ready\n");
    started.type_in(b"\x03");
    started.wait_for_text(&notes, "ready\nSIGINT\n");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(fs::read_to_string(&notes).unwrap(), "ready\nSIGINT\n");
    started.type_in(b"\x1c");
    started.wait_for_text(&notes, "ready\nSIGINT\nSIGQUIT\n");
    let pid = ground.only_fragment_pid();
    program::signal("TERM", &pid);
    assert_eq!(started.end().code, Some(3));
}

/// Returns the state letter of a process.
fn state(pid: u32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
}

#[test]
fn ctrl_z_stops_both_and_goes_on() {
    let ground = Ground::new();
    let notes = ground.path("notes");
    let words = format!("one spans=1 signals={}", notes.display());
    let mut command = ground.recording("-d out", &words);
    // It gets its own process group, as from a shell. In an orphaned group no process would be stopped.
    let started = Started::spawn(command.process_group(0));
    started.wait_for_text(&notes, "ready\n");
    let worker: u32 = ground.only_fragment_pid().parse().unwrap();
    started.signal("TSTP");
    let are_stopped = || [started.pid(), worker].map(|pid| state(pid) == 'T');
    started.wait_until(|| are_stopped() == [true, true]);
    started.signal("CONT");
    started.wait_until(|| are_stopped() == [false, false]);
    started.signal("TERM");
    assert_eq!(started.end().code, Some(3));
}

#[test]
fn what_cannot_be_started_has_the_codes_of_a_shell() {
    let ground = Ground::new();
    let ended = ground.run(&["run", "--", "no-such-command-at-all"]);
    let missing = Ended {
        code: Some(127),
        ..Ended::refusal("no-such-command-at-all: No such file or directory (os error 2)")
    };
    assert_eq!(ended, missing);
    fs::write(ground.path("data"), "x").unwrap();
    let ended = ground.run(&["run", "--", "./data"]);
    assert_eq!(ended.code, Some(126), "{}", ended.stderr);
    let directory = ground.path("profile_out");
    assert!(!directory.exists(), "nothing is left behind");
}

#[test]
fn nothing_recorded_is_said_plainly() {
    let ground = Ground::new();
    let ended = ground.run(&["run", "--", "sh", "-c", "exit 5"]);
    assert_eq!(ended.code, Some(5));
    ended.says(&["sa-profile: nothing was recorded. Likely reasons:\n"]);
    let directory = ground.path("profile_out");
    assert!(!directory.exists(), "nothing is left behind");
    let ended = ground.record("", "silent");
    ended.says(&["sa-profile: nothing was recorded."]);
}

#[test]
fn options_reach_the_processes_and_the_merge() {
    let ground = Ground::new();
    let shown = "echo $SA_PROFILE_LEVEL $SA_PROFILE_DIR $SA_PROFILE_OUTPUT $SA_PROFILE_MAIN_PID";
    let script = format!("{shown}; '{}' one spans=3", worker());
    let mut command = ground.command(&["run", "--level", "e2e", "-d", "out"]);
    command.args(["-o", "t.json.gz", "--", "sh", "-c", &script]);
    command.env("SA_PROFILE_OUTPUT", "elsewhere");
    let ended = Started::spawn(command.env("SA_PROFILE_MAIN_PID", "1")).end();
    let directory = fs::canonicalize(ground.path("out")).unwrap();
    assert_eq!(ended.stdout, format!("e2e {}\n", directory.display()));
    let magic = fs::read(ground.path("t.json.gz")).unwrap();
    assert_eq!(magic[..2], [0x1f, 0x8b]);
    assert!(!ground.path("out/trace.json").exists() && !ground.path("elsewhere").exists());

    let ended = ground.record("--no-merge -d raw", "one spans=3");
    assert_eq!(
        ended.stderr,
        "sa-profile: not merged. next: trace-merge raw\n"
    );
    assert!(ground.path("raw/fragments").is_dir() && !ground.path("raw/trace.json").exists());
}

#[test]
fn a_library_is_loaded_before_the_users_own() {
    let ground = Ground::new();
    let script = "echo $LD_PRELOAD";
    let library = program::some_library();
    let mut command = ground.command(&["run", "--preload", &library, "--", "sh", "-c", script]);
    let ended = Started::spawn(command.env("LD_PRELOAD", &library)).end();
    assert_eq!(ended.stdout, format!("{library}:{library}\n"));
    let ended = Started::spawn(&mut ground.alone(&["run", "--preload", "--", "true"])).end();
    assert_eq!(ended.code, Some(125));
    let words = "libsa_profile_preload.so nor a Python package next to it that contains the library: name the library";
    ended.says(&[words]);
    let program = format!("--preload={PROGRAM}");
    let ended = ground.run(&["run", &program, "--", "true"]);
    assert_eq!(ended.code, Some(125));
    ended.says(&["--preload: ", "programs start without it: "]);
}

#[test]
fn a_named_directory_keeps_its_earlier_runs_apart() {
    let ground = Ground::new();
    for name in ["first", "second"] {
        ground.record("-d out", &format!("{name} spans=3"));
    }
    let spans = |trace| ["first", "second"].map(|name| ground.spans(trace, name));
    assert_eq!(spans("out/trace.json"), [0, 3]);
    let two_hosts = |name: &str| {
        let mut command = ground.recording("-d shared", &format!("{name} spans=3"));
        Started::spawn(command.env("SA_PROFILE_RUN", "job-7")).end()
    };
    two_hosts("first");
    two_hosts("second");
    assert_eq!(ground.runs("shared"), ["job-7".to_owned()].into());
    assert_eq!(spans("shared/trace.json"), [3, 3]);
}

/// Creates a package. The module that Python imports at its start only writes its variables to a file.
fn package_that_records_variables(ground: &Ground) -> String {
    let package = ground.path("lib/python3.12/site-packages/sa_profile");
    fs::create_dir_all(package.join("startup")).unwrap();
    fs::write(package.join("_sa_profile.abi3.so"), "").unwrap();
    let module = "import os\nvalues = [os.environ.get('SA_PROFILE_' + name, '-') for name in ('TRACK', 'TASKS', 'HOOKS', 'HOOKS_REPORTED', 'SAMPLE_MS')]\n\
                 open('variables', 'a').write(os.environ['PYTHONPATH'] + ' ' + ' '.join(values) + '\\n')\n";
    fs::write(package.join("startup/sitecustomize.py"), module).unwrap();
    package.display().to_string()
}

#[test]
fn python_gets_the_variables() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("SKIPPED python_gets_the_variables: no python3");
        return;
    }
    let ground = Ground::new();
    let package = package_that_records_variables(&ground);
    let script = ["python3", "-c", "pass"];
    let named = format!("--python={package}");
    let track = ["--track", "a:f", "--track", "b.*:G.*", "--tasks"];
    // An empty variable counts as not set: an empty path in it would mean the working directory.
    for (mut command, path) in [
        (
            ground.command(&[&["run", &named][..], &track, &["--"], &script].concat()),
            "/users/own",
        ),
        (
            ground.alone(&[&["run", "--python", "--"][..], &script].concat()),
            "",
        ),
    ] {
        let ended = Started::spawn(command.env("PYTHONPATH", path)).end();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
    let variables = fs::read_to_string(ground.path("variables")).unwrap();
    let package = fs::canonicalize(package).unwrap();
    let startup = format!("{}/startup", package.display());
    let expected = format!("{startup}:/users/own a:f,b.*:G.* 1 - - -\n{startup} - - - - -\n");
    assert_eq!(variables, expected);
}

#[test]
fn python_gets_a_file_of_hooks_that_was_checked() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("SKIPPED python_gets_a_file_of_hooks_that_was_checked: no python3");
        return;
    }
    let ground = Ground::new();
    let package = package_that_records_variables(&ground);
    let python = format!("--python={package}");
    let list = "- symbol: a:b\n  handler: x:y\n";
    fs::write(ground.path("hooks.yaml"), list).unwrap();
    let run = |words: &[&str], interval: Option<&str>| {
        let words = [
            &["run", "--hooks", "hooks.yaml"],
            words,
            &["--", "python3", "-c", "pass"],
        ];
        let mut command = ground.alone(&words.concat());
        if let Some(interval) = interval {
            command.env("SA_PROFILE_SAMPLE_MS", interval);
        }
        let ended = Started::spawn(&mut command).end();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.says(&["sa-profile: hooks.yaml: ignored: handler (line 2)"]);
    };
    run(&[], None);
    run(&[], Some("5"));
    run(&[&python], None);
    let variables = fs::read_to_string(ground.path("variables")).unwrap();
    let file = fs::canonicalize(ground.path("hooks.yaml")).unwrap();
    let given = format!("- - {0} {0}", file.display());
    let lines = variables
        .lines()
        .map(|line| line.split_once(' ').unwrap().1);
    let expected = ["0", "5", "-"].map(|interval| format!("{given} {interval}"));
    assert_eq!(lines.collect::<Vec<_>>(), expected);
}

#[test]
fn a_broken_file_of_hooks_is_refused_before_the_command_runs() {
    let ground = Ground::new();
    fs::write(
        ground.path("hooks.yaml"),
        "hooks:\n- symbol: a:b\n  nme: c\n",
    )
    .unwrap();
    for (file, problem) in [
        ("none.yaml", "--hooks: none.yaml: No such file"),
        (
            "hooks.yaml",
            "--hooks: hooks.yaml:3: expected symbol, name, ",
        ),
    ] {
        let ended = ground.run(&["run", "--hooks", file, "--", "echo", "ran"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(125), ""));
        ended.says(&[problem]);
    }
    // Only an installed package can start the hooks.
    fs::write(ground.path("hooks.yaml"), "hooks: []").unwrap();
    let ended =
        Started::spawn(&mut ground.alone(&["run", "--hooks", "hooks.yaml", "--", "true"])).end();
    assert_eq!(ended.code, Some(125));
    ended.says(&["--hooks: ", " is not part of an installed Python package"]);
}

#[test]
fn a_python_package_that_is_not_there_is_refused_before_the_command_runs() {
    let ground = Ground::new();
    let mut command = ground.alone(&["run", "--python", "--", "echo", "ran"]);
    let ended = Started::spawn(&mut command).end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(125), ""));
    ended.says(&[" is not part of an installed Python package: install the package"]);
}
