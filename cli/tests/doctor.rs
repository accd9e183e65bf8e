//! `sa-profile doctor` on a healthy set-up and on broken ones: what it says, word for word where that does not depend on the machine.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

mod program;

use program::{Ended, Ground, PROGRAM, Started};
use sa_format::{segment_name, stem_and_segment};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;

/// Checks that depend on the machine: only that they were made is compared.
const VOLATILE: [&str; 16] = [
    "file system",
    "disk",
    "open files",
    "address space",
    "memory",
    "clock",
    "page size",
    "pid namespace",
    "time namespace",
    "ptrace",
    "other profilers",
    "preload library",
    "NPU runtime",
    "Python package",
    "vLLM plugin",
    "torch_npu",
];

/// What it printed, without what depends on the machine or the moment.
fn golden(ended: &Ended) -> String {
    let line = |line: &str| {
        let check = line.get(6..21).unwrap().trim();
        match VOLATILE.contains(&check) {
            true => format!("{check}\n"),
            false => format!("{line}\n"),
        }
    };
    assert_eq!(ended.stderr, "");
    ended.stdout.lines().map(line).collect()
}

/// The lines of one check.
fn of<'a>(ended: &'a Ended, check: &str) -> Vec<&'a str> {
    ended
        .stdout
        .lines()
        .filter(|line| line.get(6..21).unwrap().trim() == check)
        .collect()
}

#[test]
fn a_healthy_set_up() {
    let ground = Ground::new();
    let ended = ground.run(&["doctor"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    assert_eq!(
        golden(&ended),
        "\
ok    variables       none set: nothing is recorded by itself; sa-profile run sets them for a command, or set SA_PROFILE_DIR
ok    directory       profile_out is not there yet and can be made
file system
ok    fallocate       disk blocks can be reserved
disk
ok    file size       unlimited
open files
address space
memory
clock
page size
pid namespace
time namespace
ptrace
ok    LD_PRELOAD      empty
other profilers
ok    recorder        version 0.1.0, format 1, part of the programs that use it
preload library
NPU runtime
Python package
vLLM plugin
torch_npu
"
    );
    assert!(!ground.path("profile_out").exists(), "it only looks");
    let clock = of(&ended, "clock")[0];
    let (_, ns) = clock.split_once(" take ").unwrap();
    let ns: u64 = ns.split(' ').next().unwrap().parse().unwrap();
    assert!((1..100_000).contains(&ns), "{clock}");
}

#[test]
fn a_file_in_place_of_the_directory() {
    let ground = Ground::new();
    fs::write(ground.path("out"), "precious").unwrap();
    for directory in ["out", "out/below"] {
        let ended = ground.run(&["doctor", directory]);
        assert_eq!(ended.code, Some(1));
        assert_eq!(
            of(&ended, "directory"),
            [
                "FAIL  directory       out: a file is there, expected a directory -- name another one in SA_PROFILE_DIR or sa-profile run --dir"
            ]
        );
    }
    assert_eq!(fs::read_to_string(ground.path("out")).unwrap(), "precious");
    let findings = ground.run(&["doctor", "--json", "out"]).stdout;
    let findings: serde_json::Value = serde_json::from_str(&findings).unwrap();
    let mut findings = findings.as_array().unwrap().iter();
    let directory = findings
        .find(|finding| finding["check"] == "directory")
        .unwrap();
    assert_eq!(directory["status"], "fail");
    assert_eq!(
        directory["found"],
        "out: a file is there, expected a directory"
    );
    assert!(directory["hint"].is_string());
}

#[test]
fn a_read_only_directory() {
    const NOBODY: u32 = 65_534;
    let ground = Ground::new();
    let out = ground.path("out");
    fs::create_dir(&out).unwrap();
    let mut command = ground.command(&["doctor", "out"]);
    if fs::metadata(&out).unwrap().uid() == 0 {
        // Nothing is read-only to root: another user looks.
        let copy = ground.path("sa-profile");
        fs::copy(PROGRAM, &copy).unwrap();
        chown(&out, Some(NOBODY), Some(NOBODY)).unwrap();
        fs::set_permissions(ground.path(""), fs::Permissions::from_mode(0o755)).unwrap();
        command = ground.plain(&copy.display().to_string());
        command.args(["doctor", "out"]).uid(NOBODY).gid(NOBODY);
    }
    fs::set_permissions(&out, fs::Permissions::from_mode(0o500)).unwrap();
    let ended = Started::of(&mut command).end();
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert_eq!(
        of(&ended, "directory"),
        [
            "FAIL  directory       out: is not writable -- name another one in SA_PROFILE_DIR or sa-profile run --dir"
        ]
    );
}

#[test]
fn a_file_size_of_nothing() {
    let ground = Ground::new();
    let script = format!("ulimit -f 0; exec '{PROGRAM}' doctor");
    let ended = Started::of(ground.plain("sh").args(["-c", &script])).end();
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert_eq!(
        of(&ended, "file size"),
        ["FAIL  file size       limited to 0 B -- raise it: ulimit -f unlimited"]
    );
    assert_eq!(
        of(&ended, "fallocate"),
        [
            "FAIL  fallocate       not tried: the file size is limited -- raise it: ulimit -f unlimited"
        ]
    );
}

#[test]
fn a_killed_process_and_its_stale_run_file() {
    let ground = Ground::new();
    Started::of(&mut ground.worker(&["one", "spans=3", "kill"])).end();
    let pid = ground.only_fragment_pid("out");
    let run = ground.runs("out").pop_first().unwrap();
    let ended = ground.run(&["doctor", "out"]);
    assert_eq!(ended.code, Some(0));
    let told = [
        "directory",
        "run file",
        "processes",
        "silent",
        "died",
        "rings",
    ]
    .map(|check| of(&ended, check).join("\n"));
    let expected = [
        "ok    directory       out is there and can be written".to_owned(),
        format!("warn  run file        run {run} is over: its main process {pid} is gone -- nothing to do: the next main process replaces it"),
        "ok    processes       1 process: 0 live, 0 ended, 1 died".to_owned(),
        String::new(),
        format!("warn  died            1 process ended without closing its recording: {pid} (worker) -- killed or crashed, or ended by _exit: trace-merge tells which, and shows the spans they died in; what they recorded is kept"),
        "warn  rings           1 ring of dead processes left -- trace-merge takes what they hold and removes them".to_owned(),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_process_that_cannot_be_read_is_named_and_hides_no_other() {
    let ground = Ground::new();
    Started::of(&mut ground.worker(&["one", "spans=3"])).end();
    let pid = ground.only_fragment_pid("out");
    // Its second segment is a folder.
    let name = ground.fragments("out")[0].file_name().unwrap().to_owned();
    let (stem, _) = stem_and_segment(name.to_str().unwrap()).unwrap();
    let run = ground.runs("out").pop_first().unwrap();
    let second = ground.path("out/fragments").join(segment_name(stem, 1));
    let mut victim = ground.worker(&["victim", "spans=3", "open", "kill"]);
    Started::of(victim.env("SA_PROFILE_RUN", run)).end();
    fs::create_dir(second).unwrap();
    let ended = ground.run(&["doctor", "out"]);
    let told = of(&ended, "unreadable").join("\n");
    let expected =
        format!("1 process left out of the checks for crashes, losses and reach: {pid} (worker)");
    assert!(told.contains(&expected), "{}", ended.stdout);
    let crash = of(&ended, "crash").join("\n");
    assert!(crash.contains("killed: victim (pid "), "{}", ended.stdout);
}

#[test]
fn a_live_run_and_a_process_that_wrote_nothing() {
    let ground = Ground::new();
    let notes = ground.path("notes");
    let words = ["one", &format!("signals={}", notes.display())];
    let started = Started::of(&mut ground.worker(&words));
    started.wait_until(|| notes.exists() && !ground.fragments("out").is_empty());
    let pid = ground.only_fragment_pid("out");
    let run = ground.runs("out").pop_first().unwrap();
    let ended = ground.run(&["doctor", "out"]);
    assert_eq!(
        of(&ended, "run file"),
        [format!(
            "ok    run file        run {run} of process {pid} is live"
        )]
    );
    assert_eq!(
        of(&ended, "processes"),
        ["ok    processes       1 process: 1 live, 0 ended, 0 died"]
    );
    assert_eq!(
        of(&ended, "silent"),
        [format!(
            "warn  silent          1 process wrote nothing but a header: {pid} (worker) -- they started to record and had no event: is the level right, did they get work?"
        )]
    );
    started.signal("TERM");
    started.end();
    let rings = ground.path("out/fragments/trace.1.ring");
    fs::write(rings, "x").unwrap();
    let ended = ground.run(&["doctor", "out"]);
    assert_eq!(
        of(&ended, "rings"),
        [
            "warn  rings           1 ring without a fragment -- their fragments were removed: remove them too"
        ]
    );
}

#[test]
fn the_preload_library_is_looked_for_beside_the_program() {
    let ground = Ground::new();
    let ended = Started::of(program::alone(&ground).arg("doctor")).end();
    assert_eq!(
        of(&ended, "preload library"),
        ["ok    preload library not installed"]
    );
    let library = ground.path("bin/libsa_profile_preload.so");
    fs::copy(program::some_library(), &library).unwrap();
    let ended = Started::of(program::alone(&ground).arg("doctor")).end();
    let found = format!("ok    preload library {}", library.display());
    assert_eq!(of(&ended, "preload library"), [found]);
    fs::copy(program::lacking_library(&ground), &library).unwrap();
    let ended = Started::of(program::alone(&ground).arg("doctor")).end();
    let lines = of(&ended, "preload library");
    assert!(
        lines[0].starts_with("warn  ") && lines[0].contains("no program starts with it"),
        "{lines:?}"
    );
    assert_eq!(ended.code, Some(0), "the API records all the same");
}

/// What `importlib.metadata` reads of an installed package.
fn install(ground: &Ground, name: &str, version: &str, more: &str) {
    let folder = ground
        .path("site")
        .join(format!("{name}-{version}.dist-info"));
    fs::create_dir_all(&folder).unwrap();
    let metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{more}\n");
    fs::write(folder.join("METADATA"), metadata).unwrap();
}

#[test]
fn torch_npu_is_named_with_what_is_seen_of_it() {
    let ground = Ground::new();
    install(&ground, "torch_npu", "2.9.0", "");
    let pin = "Requires-Dist: torch-npu==2.9.0; platform_system != \"none\"";
    install(&ground, "vllm_ascend", "0.18.0", pin);
    let mut command = ground.command(&["doctor"]);
    let ended = Started::of(command.env("PYTHONPATH", ground.path("site"))).end();
    let [line] = of(&ended, "torch_npu")[..] else {
        panic!("{}", ended.stdout)
    };
    let expected = "ok    torch_npu       2.9.0: finds graph replays, AlltoAll and mstx by dlsym; ";
    assert!(line.starts_with(expected), "{line}");
    assert_eq!(
        of(&ended, "vLLM-Ascend"),
        ["ok    vLLM-Ascend     0.18.0, made for torch-npu==2.9.0"]
    );
}

#[test]
fn what_the_preload_library_did_not_see_is_said_by_doctor_and_status() {
    let ground = Ground::new();
    Started::of(&mut ground.worker(&["one", "spans=3"])).end();
    let (path, pid) = (&ground.fragments("out")[0], ground.only_fragment_pid("out"));
    let text = fs::read_to_string(path).unwrap();
    let reach = r#"{"by_linking":true,"by_handle":false,"dlsym":"/opt/libhook.so"}"#;
    let record = format!(
        "{{\"ph\":\"i\",\"pid\":{pid},\"tid\":{pid},\"ts\":1.000,\"s\":\"p\",\"name\":\"sa_reach\",\"cat\":\"sa_profile\",\"args\":{reach}}}\n"
    );
    fs::write(path, text + &record).unwrap();
    let words = "graph replays and all else that is found by dlsym on a library's handle may not be visible: the dlsym of /opt/libhook.so stands before that of libsa_profile_preload.so";
    let doctor = ground.run(&["doctor", "out"]);
    let [line] = of(&doctor, "reach")[..] else {
        panic!("{}", doctor.stdout)
    };
    let expected = format!("warn  reach           process {pid}: {words}");
    assert!(line.starts_with(&expected), "{line}");
    let status = ground.run(&["status", "out"]);
    assert!(
        status.stdout.contains(&format!("[{pid}]: {words}\n")),
        "{}",
        status.stdout
    );
    let status = ground.run(&["status", "--json", "out"]);
    let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["processes"][0]["not_visible"][0], words);
}
