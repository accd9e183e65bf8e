//! The simulated runtime against its rules: the programs in conformance/, built with the C compiler against our own declarations, one process for each case;
//! and what it says really happened, against what the program saw and what was asked for.

use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

/// Returns the path of the simulated runtime. Cargo builds it next to the tests, because they depend on its package.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    test.with_file_name("libascendcl.so")
}

/// The program. Tests run in processes of their own: the first one builds it, the others find it as long as no source has changed.
fn program() -> PathBuf {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let files = std::fs::read_dir(home).expect("sources");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("a source").path()).collect();
    files.sort();
    let mut hasher = DefaultHasher::new();
    library().hash(&mut hasher);
    for file in &files {
        std::fs::read(file).expect("a source").hash(&mut hasher);
    }
    files.retain(|file| file.extension().is_some_and(|ending| ending == "c"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let built = folder.join(format!("conformance-{:016x}", hasher.finish()));
    if !built.exists() {
        let unfinished = folder.join(format!("conformance-{}", std::process::id()));
        compile(&files, &unfinished);
        std::fs::rename(&unfinished, &built).expect("a rename");
    }
    built
}

fn compile(sources: &[PathBuf], built: &Path) {
    let libraries = library();
    let libraries = libraries.parent().expect("a folder").display().to_string();
    let output = Command::new("cc")
        .args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror"])
        .args(["-rdynamic", "-pthread", "-o"])
        .arg(built)
        .args(sources)
        .arg(format!("-L{libraries}"))
        // Before LD_LIBRARY_PATH: a test runner may put a folder there with a library that an older build has left.
        .arg(format!("-Wl,--disable-new-dtags,-rpath,{libraries}"))
        .args(["-l:libascendcl.so", "-lm", "-ldl"])
        .output();
    let output = output.expect("cc, the C compiler");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// Runs one case with these settings.
fn output(case: &str, settings: &[(&str, &str)]) -> Output {
    static BUILT: LazyLock<PathBuf> = LazyLock::new(program);
    let mut command = Command::new(&*BUILT);
    command.arg(case).envs(settings.iter().copied());
    command.output().expect("a run")
}

/// Runs a case that must hold; what it prints.
fn run(case: &str, settings: &[(&str, &str)]) -> String {
    let output = output(case, settings);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{case}: {}\n{said}", output.status);
    assert_eq!(said, "", "{case}");
    String::from_utf8(output.stdout).expect("text")
}

/// A test for each case: its name, the case, its settings.
macro_rules! cases {
    ($($test:ident: $case:literal $([$name:literal = $value:literal])*;)*) => {
        $(#[test]
        fn $test() {
            run($case, &[$(($name, $value)),*]);
        })*
    };
}

cases! {
    calls_need_a_context_and_streams_of_it: "context";
    devices_are_those_that_are_visible: "devices" ["ASCEND_RT_VISIBLE_DEVICES" = "5,2"];
    streams_run_in_order_beside_the_host: "streams" ["ASCEND_SIM_KERNELS" = "slow=150000"];
    events_answer_as_the_vendors_do: "events" ["ASCEND_SIM_KERNELS" = "slow=150000"];
    a_stream_waits_for_another: "stream_waits" ["ASCEND_SIM_KERNELS" = "slow=150000"];
    nobody_waits_for_a_stream_that_is_gone: "stream_dropped";
    every_launch_does_its_work_once: "launches";
    a_capture_ignores_timed_events: "capture";
    looking_at_a_captured_stream_breaks_the_capture: "capture_broken";
    a_capture_spreads_over_events: "capture_streams";
    a_graph_runs_with_one_call: "replay" ["ASCEND_SIM_KERNELS" = "k=20000"];
    a_group_of_kernels_can_be_updated: "task_group" ["ASCEND_SIM_KERNELS" = "long=30000"] ["ASCEND_SIM_KERNEL_US" = "0"];
    the_last_error_is_the_threads_and_stays: "last_error";
    the_last_task_is_the_threads_and_counts_in_its_stream: "last_task" ["ASCEND_SIM_SOC" = "910b"];
    the_last_task_of_a_newer_chip_counts_in_the_process: "last_task" ["ASCEND_SIM_SOC" = "950"];
    a_failed_kernel_leaves_its_error: "fault_of_a_kernel" ["ASCEND_SIM_FAULTS" = "kernel:2=507015"];
    a_lost_device_hangs_nobody: "fault_of_a_device" ["ASCEND_SIM_FAULTS" = "device_lost:3=507010"] ["ASCEND_SIM_KERNELS" = "k=20000"];
    launches_of_an_old_cann_cross_to_the_rt_level: "through_rt_when_old" ["ASCEND_SIM_OLD" = "1"];
}

#[test]
fn what_must_not_pass_ends_the_program() {
    let wrong = ("ASCEND_SIM_FAULTS", "lunch:1=2");
    for (case, settings, why) in [
        ("devices", &[wrong][..], "ASCEND_SIM_FAULTS: expected"),
        ("mspti_called_late", &[], "MSPTI was called after"),
        ("mspti_without_a_buffer", &[], "had no buffer"),
    ] {
        let output = output(case, settings);
        assert!(!output.status.success(), "{case}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.starts_with("ascend-sim: "), "{case}: {said}");
        assert!(said.contains(why), "{case}: {said}");
    }
}

fn tool(name: &str, option: &str, path: &Path) -> String {
    let output = Command::new(name).arg(option).arg(path).output();
    let output = output.expect("a tool of binutils");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_library_is_linked_as_the_vendors_are() {
    let said = tool("readelf", "-d", &library());
    for expected in ["Library soname: [libascendcl.so]", "SYMBOLIC", "NODELETE"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn functions_can_be_taken_away() {
    let folder = tempfile::tempdir().expect("a folder");
    let older = folder.path().join("libascendcl.so");
    let (gone, stays) = ("aclrtGetFunctionName", "aclrtLaunchKernel");
    ascendcl::hide::hide(&library(), &older, &[gone]).expect("a copy");
    let symbols = tool("nm", "-D", &older);
    assert!(symbols.contains(&format!("U {gone}\n")), "{symbols}");
    assert!(symbols.contains(&format!("T {stays}\n")), "{symbols}");
    let error = ascendcl::hide::hide(&library(), &older, &["aclrtNoSuch"]).unwrap_err();
    assert!(error.to_string().contains("aclrtNoSuch"));
}

/// The lines that a run of this case wrote, and what it printed.
fn truth_of(case: &str, settings: &[(&str, &str)]) -> (Vec<Value>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder
        .path()
        .join("truth.{pid}.jsonl")
        .display()
        .to_string();
    let settings = [settings, &[("ASCEND_SIM_TRUTH", name.as_str())]].concat();
    let printed = run(case, &settings);
    let mut files = std::fs::read_dir(folder.path()).expect("a folder");
    let path = files.next().expect("a file").expect("a file").path();
    assert!(files.next().is_none(), "one process");
    assert!(!path.display().to_string().contains("{pid}"));
    let text = std::fs::read_to_string(path).expect("the truth");
    let parsed = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"));
    (parsed.collect(), printed)
}

fn number(line: &Value, key: &str) -> u64 {
    line[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} of {line}"))
}

#[test]
fn every_task_is_told_in_order_with_its_times() {
    let settings = [
        ("ASCEND_SIM_KERNELS", "k=3000"),
        ("ASCEND_SIM_CLOCK_OFFSET_S", "100"),
    ];
    let (lines, printed) = truth_of("work", &settings);
    let kinds: Vec<(&str, u64)> = lines
        .iter()
        .map(|line| (line["kind"].as_str().expect("a kind"), number(line, "seq")))
        .collect();
    let expected = [
        ("kernel", 1),
        ("kernel", 2),
        ("kernel", 3),
        ("event_record", 4),
        ("memcpy", 5),
        ("kernel", 6),
        ("kernel", 6),
        ("replay", 6),
    ];
    assert_eq!(kinds, expected);
    let mut last_ns = 0;
    for line in &lines[..7] {
        let [launch, start, end] = ["launch_ns", "start_ns", "end_ns"].map(|key| number(line, key));
        assert!(
            launch <= start && last_ns <= start && start <= end,
            "{line}"
        );
        for (ticks, ns) in [("start_ticks", start), ("end_ticks", end)] {
            assert_eq!(number(line, ticks), (ns + 100_000_000_000) / 20, "{line}");
        }
        if line["kind"] == "kernel" {
            assert!(end - start >= 3_000_000, "{line}");
            assert_eq!(line["name"], "k");
        }
        last_ns = end;
    }
    let replay = &lines[7];
    assert!(number(replay, "start_ns") <= number(&lines[5], "start_ns"));
    assert!(last_ns <= number(replay, "end_ns"));
    assert_eq!(
        (number(&lines[5], "graph"), lines[0].get("graph")),
        (1, None)
    );
    let us: u64 = printed.trim().parse().expect("the event's timestamp");
    assert_eq!(us, number(&lines[3], "end_ticks") / 50, "truncated");
}

#[test]
fn a_forked_child_ends_and_writes_nothing() {
    let (lines, _) = truth_of("forked", &[("ASCEND_SIM_KERNELS", "zero=0")]);
    for (stream, tasks) in [(0, 4), (1, 20_000)] {
        let own = lines.iter().filter(|line| line["stream"] == stream);
        let seqs: Vec<u64> = own.map(|line| number(line, "seq")).collect();
        let expected: Vec<u64> = (1..=tasks).collect();
        assert!(seqs == expected, "{} of stream {stream}", seqs.len());
    }
}
