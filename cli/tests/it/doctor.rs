//! Tests what `sa-profile doctor` reports for a healthy set-up and for broken ones, word for word if it does not depend on the machine.

use crate::program::{Ended, Ground, PROGRAM, Started, lacking_library, some_library};
use sa_format::{segment_name, stem_and_segment};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;

/// Checks whose results depend on the machine. The test only compares their names.
const VOLATILE: &str = "file system, disk, open files, address space, memory, clock, page size, pid namespace, time namespace, ptrace, \
    other profilers, preload library, NPU runtime, Python package, vLLM plugin, SGLang plugin, torch_npu";

/// Hint about a directory that cannot be used.
const ANOTHER: &str = "name another one in SA_PROFILE_DIR or sa-profile run --dir";

/// Returns the output without the parts that depend on the machine or the time.
fn golden(ended: &Ended) -> String {
    let line = |line: &str| {
        let check = line.get(6..21).unwrap().trim();
        match VOLATILE.split(", ").any(|volatile| volatile == check) {
            true => format!("{check}\n"),
            false => format!("{line}\n"),
        }
    };
    assert_eq!(ended.stderr, "");
    ended.stdout.lines().map(line).collect()
}

/// Returns the lines of one check.
fn lines_of<'a>(ended: &'a Ended, check: &str) -> Vec<&'a str> {
    let lines = ended
        .stdout
        .lines()
        .filter(|line| line.get(6..21).unwrap().trim() == check);
    lines.collect()
}

/// Checks that a check has one line, with this status and text.
fn assert_finds(ended: &Ended, status: &str, check: &str, text: &str) {
    let line = format!("{status:<4}  {check:<15} {text}");
    assert_eq!(lines_of(ended, check), [line]);
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
ok    directory       profile_out does not exist yet and can be created
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
SGLang plugin
torch_npu
"
    );
    assert!(!ground.path("profile_out").exists(), "it writes nothing");
    let clock = lines_of(&ended, "clock")[0];
    let (_, ns) = clock.split_once(" take ").unwrap();
    let ns: u64 = ns.split(' ').next().unwrap().parse().unwrap();
    assert!((1..100_000).contains(&ns), "{clock}");
}

#[test]
fn a_file_in_place_of_the_directory() {
    let ground = Ground::new();
    fs::write(ground.path("out"), "precious").unwrap();
    let found = "out: expected a directory, found a file";
    for directory in ["out", "out/below"] {
        let ended = ground.run(&["doctor", directory]);
        assert_eq!(ended.code, Some(1));
        assert_finds(
            &ended,
            "FAIL",
            "directory",
            &format!("{found} -- {ANOTHER}"),
        );
    }
    assert_eq!(fs::read_to_string(ground.path("out")).unwrap(), "precious");
    let findings = ground.run(&["doctor", "--json", "out"]).stdout;
    let findings: Vec<Value> = serde_json::from_str(&findings).unwrap();
    let mut findings = findings.iter();
    let directory = findings.find(|finding| finding["check"] == "directory");
    let expected = json!({"check": "directory", "status": "fail", "found": found, "hint": ANOTHER});
    assert_eq!(directory, Some(&expected));
}

#[test]
fn a_read_only_directory() {
    const NOBODY: u32 = 65_534;
    let ground = Ground::new();
    let out = ground.path("out");
    fs::create_dir(&out).unwrap();
    let mut command = ground.command(&["doctor", "out"]);
    if fs::metadata(&out).unwrap().uid() == 0 {
        // Root can write everywhere, so the program runs as another user.
        let copy = ground.path("sa-profile");
        fs::copy(PROGRAM, &copy).unwrap();
        chown(&out, Some(NOBODY), Some(NOBODY)).unwrap();
        fs::set_permissions(ground.path(""), fs::Permissions::from_mode(0o755)).unwrap();
        command = ground.plain(&copy.display().to_string());
        command.args(["doctor", "out"]).uid(NOBODY).gid(NOBODY);
    }
    fs::set_permissions(&out, fs::Permissions::from_mode(0o500)).unwrap();
    let ended = Started::spawn(&mut command).end();
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    let found = format!("out: is not writable -- {ANOTHER}");
    assert_finds(&ended, "FAIL", "directory", &found);
}

#[test]
fn a_file_size_of_nothing() {
    let ground = Ground::new();
    let script = format!("ulimit -f 0; exec '{PROGRAM}' doctor");
    let ended = Started::spawn(ground.plain("sh").args(["-c", &script])).end();
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    for (check, found) in [
        ("file size", "limited to 0 B"),
        ("fallocate", "not tried: the file size is limited"),
    ] {
        let text = format!("{found} -- raise it: ulimit -f unlimited");
        assert_finds(&ended, "FAIL", check, &text);
    }
}

#[test]
fn a_killed_process_and_its_stale_run_file() {
    let ground = Ground::new();
    Started::spawn(&mut ground.worker(&["one", "spans=3", "kill"])).end();
    let pid = ground.only_fragment_pid();
    let run = ground.runs("out").pop_first().unwrap();
    let ended = ground.run(&["doctor", "out"]);
    assert_eq!(ended.code, Some(0));
    assert_eq!(lines_of(&ended, "silent"), [""; 0]);
    assert_finds(&ended, "ok", "directory", "out exists and can be written");
    let over = format!(
        "run {run} is over: its main process {pid} is gone -- nothing to do: the next main process replaces it"
    );
    assert_finds(&ended, "warn", "run file", &over);
    let counts = "1 process: 0 live, 0 ended, 1 died";
    assert_finds(&ended, "ok", "processes", counts);
    let died = format!(
        "1 process ended without closing its recording: {pid} (worker) -- killed, crashed or ended by _exit: trace-merge says which, and shows the spans they died in; what they recorded is kept"
    );
    assert_finds(&ended, "warn", "died", &died);
    let left = "1 ring of dead processes -- trace-merge recovers their events and removes them";
    assert_finds(&ended, "warn", "rings", left);
}

#[test]
fn a_process_that_cannot_be_read_is_named_and_hides_no_other() {
    let ground = Ground::new();
    Started::spawn(&mut ground.worker(&["one", "spans=3"])).end();
    let pid = ground.only_fragment_pid();
    // Its second segment is a folder.
    let name = ground.fragments("out")[0].file_name().unwrap().to_owned();
    let (stem, _) = stem_and_segment(name.to_str().unwrap()).unwrap();
    let run = ground.runs("out").pop_first().unwrap();
    let second = ground.path("out/fragments").join(segment_name(stem, 1));
    let mut victim = ground.worker(&["victim", "spans=3", "open", "kill"]);
    Started::spawn(victim.env("SA_PROFILE_RUN", run)).end();
    fs::create_dir(second).unwrap();
    let ended = ground.run(&["doctor", "out"]);
    let unreadable = lines_of(&ended, "unreadable").join("\n");
    let expected =
        format!("1 process left out of the checks for crashes, losses and reach: {pid} (worker)");
    assert!(unreadable.contains(&expected), "{}", ended.stdout);
    let crash = lines_of(&ended, "crash").join("\n");
    assert!(crash.contains("killed: victim (pid "), "{}", ended.stdout);
}

#[test]
fn a_live_run_and_a_process_that_wrote_nothing() {
    let ground = Ground::new();
    let notes = ground.path("notes");
    let words = ["one", &format!("signals={}", notes.display())];
    let started = Started::spawn(&mut ground.worker(&words));
    started.wait_until(|| notes.exists() && !ground.fragments("out").is_empty());
    let pid = ground.only_fragment_pid();
    let run = ground.runs("out").pop_first().unwrap();
    let ended = ground.run(&["doctor", "out"]);
    let live = format!("run {run} of process {pid} is live");
    assert_finds(&ended, "ok", "run file", &live);
    let counts = "1 process: 1 live, 0 ended, 0 died";
    assert_finds(&ended, "ok", "processes", counts);
    let silent = format!(
        "1 process wrote nothing but a header: {pid} (worker) -- they started to record but had no event: is the level right, and did they get work?"
    );
    assert_finds(&ended, "warn", "silent", &silent);
    started.signal("TERM");
    started.end();
    fs::write(ground.path("out/fragments/trace.1.ring"), "x").unwrap();
    let ended = ground.run(&["doctor", "out"]);
    let lone = "1 ring without a fragment -- their fragments were removed: remove them too";
    assert_finds(&ended, "warn", "rings", lone);
}

#[test]
fn the_preload_library_is_found_next_to_the_program() {
    let ground = Ground::new();
    let library = ground.path("bin/libsa_profile_preload.so");
    let doctor = || Started::spawn(&mut ground.alone(&["doctor"])).end();
    assert_finds(&doctor(), "ok", "preload library", "not installed");
    fs::copy(some_library(), &library).unwrap();
    let found = library.display().to_string();
    assert_finds(&doctor(), "ok", "preload library", &found);
    fs::copy(lacking_library(&ground), &library).unwrap();
    let ended = doctor();
    let lines = lines_of(&ended, "preload library");
    assert!(
        lines[0].starts_with("warn  ") && lines[0].contains("no program starts with it"),
        "{lines:?}"
    );
    assert_eq!(ended.code, Some(0), "the API records all the same");
}

/// Writes the metadata of an installed package that `importlib.metadata` reads.
fn install(ground: &Ground, name: &str, version: &str, more: &str) {
    let folder = ground.path(&format!("site/{name}-{version}.dist-info"));
    fs::create_dir_all(&folder).unwrap();
    let metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{more}\n");
    fs::write(folder.join("METADATA"), metadata).unwrap();
}

#[test]
fn torch_npu_is_reported_with_what_is_visible() {
    let ground = Ground::new();
    install(&ground, "torch_npu", "2.9.0", "");
    let pin = "Requires-Dist: torch-npu==2.9.0; platform_system != \"none\"";
    install(&ground, "vllm_ascend", "0.18.0", pin);
    let mut command = ground.command(&["doctor"]);
    let ended = Started::spawn(command.env("PYTHONPATH", ground.path("site"))).end();
    let line = lines_of(&ended, "torch_npu").join("\n");
    let expected = "ok    torch_npu       2.9.0: finds graph replays, AlltoAll and mstx by dlsym; ";
    assert!(line.starts_with(expected), "{line}");
    let found = "0.18.0, made for torch-npu==2.9.0";
    assert_finds(&ended, "ok", "vLLM-Ascend", found);
}

#[test]
fn an_engine_that_would_not_load_the_plugin_is_reported() {
    let ground = Ground::new();
    install(&ground, "sa_profile", "0.1.0", "");
    install(&ground, "sglang", "0.5.23", "");
    let points = ground.path("site/sa_profile-0.1.0.dist-info/entry_points.txt");
    fs::write(
        points,
        "[sglang.srt.plugins]\nsa_profile = sa_profile.sglang:register\n",
    )
    .unwrap();
    let mut command = ground.command(&["doctor"]);
    command.env("PYTHONPATH", ground.path("site"));
    let ended = Started::spawn(&mut command).end();
    assert_finds(&ended, "ok", "SGLang plugin", "loaded by SGLang 0.5.23");
    let ended = Started::spawn(command.env("SGLANG_PLUGINS", "other")).end();
    let found = "SGLang 0.5.23 does not load it: SGLANG_PLUGINS=other leaves it out -- add sa_profile to SGLANG_PLUGINS";
    assert_finds(&ended, "warn", "SGLang plugin", found);
}

#[test]
fn what_the_preload_library_did_not_see_is_said_by_doctor_and_status() {
    let ground = Ground::new();
    Started::spawn(&mut ground.worker(&["one", "spans=3"])).end();
    let (path, pid) = (&ground.fragments("out")[0], ground.only_fragment_pid());
    let text = fs::read_to_string(path).unwrap();
    let reach = r#"{"by_linking":true,"by_handle":false,"dlsym":"/opt/libhook.so"}"#;
    let record = format!(
        "{{\"ph\":\"i\",\"pid\":{pid},\"tid\":{pid},\"ts\":1.000,\"s\":\"p\",\"name\":\"sa_reach\",\"cat\":\"sa_profile\",\"args\":{reach}}}\n"
    );
    fs::write(path, text + &record).unwrap();
    let words = "graph replays and other functions found with dlsym on a library's handle may not be visible: the program calls the dlsym of /opt/libhook.so instead of the one in libsa_profile_preload.so";
    let doctor = ground.run(&["doctor", "out"]);
    let line = lines_of(&doctor, "reach").join("\n");
    let expected = format!("warn  reach           process {pid}: {words}");
    assert!(line.starts_with(&expected), "{line}");
    let status = ground.run(&["status", "out"]).stdout;
    assert!(status.contains(&format!("[{pid}]: {words}\n")), "{status}");
    let status = ground.json(&["status", "--json", "out"]);
    assert_eq!(status["processes"][0]["not_visible"][0], words);
}
