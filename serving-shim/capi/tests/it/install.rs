//! The installed library: a user's program builds with the flags that pkg-config gives, and records.

use crate::stage::{C, PACKAGE, Stage, Trace, built, has, run};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Installs into a folder of a stage, whose name needs care; `None` where there is no pkg-config, and says that the test is skipped.
fn installed(test: &str) -> Option<(Stage, PathBuf)> {
    if !has("pkg-config", test) {
        return None;
    }
    let stage = Stage::new();
    let prefix = stage.path().join("pre&fix");
    let mut install = install_sh();
    install.env_remove("DESTDIR").env_remove("LIBDIR");
    run(install.arg(&prefix).arg(built()));
    Some((stage, prefix))
}

fn install_sh() -> Command {
    Command::new(Path::new(PACKAGE).join("install.sh"))
}

/// Compiles a C source with these arguments after it, into a file of the stage.
fn compile(stage: &Stage, source: &Path, name: &str, arguments: &[impl AsRef<OsStr>]) -> PathBuf {
    let built = stage.path().join(name);
    let mut cc = Command::new("cc");
    cc.args(C).arg(source).arg("-o").arg(&built);
    run(cc.args(arguments));
    built
}

fn pkg_config(prefix: &Path, arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let flags = run(command.args(arguments).arg("sa_profile"));
    // pkg-config escapes for a shell, which nobody asks here.
    flags
        .split_whitespace()
        .map(|flag| flag.replace('\\', ""))
        .collect()
}

/// Builds the example with these flags after it, and checks what it records.
fn check_example(stage: &Stage, flags: &[String], library_path: &Path) -> PathBuf {
    let source = Path::new(PACKAGE).join("examples/serving.c");
    let program = compile(stage, &source, "serving", flags);
    let mut command = stage.command(&program);
    command
        .env("SA_PROFILE_DIR", stage.run_directory())
        .env("LD_LIBRARY_PATH", library_path);
    let output = run(&mut command);
    check_trace(&Trace::of(&stage.run_directory(), output));
    program
}

fn static_libs(prefix: &Path) -> Vec<String> {
    pkg_config(prefix, &["--variable=static_libs"])
}

/// Links a plugin with the static library and these flags.
fn plugin(stage: &Stage, prefix: &Path, flags: &[String]) -> PathBuf {
    let source = Path::new(PACKAGE).join("tests/c/plugin.c");
    let library = prefix.join("lib/libsa_profile.a").display().to_string();
    let mut all = ["-shared", "-fPIC"].map(str::to_owned).to_vec();
    all.extend(pkg_config(prefix, &["--cflags"]));
    all.push(library);
    all.extend(flags.iter().cloned());
    compile(stage, &source, "libplugin.so", &all)
}

/// Runs a program that opens a library, records through its function in a thread, and closes it.
fn check_closing(stage: &Stage, library: &Path, function: &str, events: usize) -> Trace {
    let source = Path::new(PACKAGE).join("tests/c/closing.c");
    let program = compile(stage, &source, "closing", &["-lpthread", "-ldl"]);
    let mut command = stage.command(&program);
    command
        .env("SA_PROFILE_DIR", stage.run_directory())
        .arg(library)
        .arg(function);
    let trace = Trace::of(&stage.run_directory(), run(&mut command));
    let spans = trace.events.iter().filter(|event| event["ph"] == "X");
    assert_eq!(spans.count(), events);
    trace
}

fn check_trace(trace: &Trace) {
    assert_eq!(trace.report.losses.events, 0);
    let count = |name: &str, phase: &str| {
        let named = trace.named(name).into_iter();
        named.filter(|event| event["ph"] == phase).count()
    };
    assert_eq!((count("request", "X"), count("matmul", "X")), (3, 12));
    assert_eq!((count("dispatch", "s"), count("dispatch", "f")), (3, 3));
    assert_eq!(count("requests", "C"), 4);
    let steps = trace.named("Scheduler.step");
    let batch: Vec<_> = steps.iter().map(|step| &step["args"]["batch"]).collect();
    assert_eq!(batch, [3, 2, 1]);
    let workers = trace.named("Worker.execute");
    assert!(
        workers
            .iter()
            .all(|worker| worker["pid"] != steps[0]["pid"])
    );
}

#[test]
fn the_example_builds_and_records_with_each_installed_library() {
    let test = "the_example_builds_and_records_with_each_installed_library";
    let Some((stage, prefix)) = installed(test) else {
        return;
    };
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(pkg_config(&prefix, &["--modversion"]), [version]);
    let file = prefix.join(format!("lib/libsa_profile.so.{version}"));
    assert!(file.is_file(), "{}", file.display());
    let shared = pkg_config(&prefix, &["--cflags", "--libs"]);
    let program = check_example(&stage, &shared, &prefix.join("lib"));
    let needed = |program: &Path| run(Command::new("readelf").args(["-d", "-W"]).arg(program));
    assert!(needed(&program).contains("[libsa_profile.so.0]"));
    fs::remove_dir_all(stage.run_directory()).unwrap();
    let mut alone = pkg_config(&prefix, &["--cflags"]);
    alone.push(prefix.join("lib/libsa_profile.a").display().to_string());
    alone.extend(static_libs(&prefix));
    let program = check_example(&stage, &alone, Path::new("/nonexistent"));
    assert!(!needed(&program).contains("libsa_profile"));
}

#[test]
fn issue_47_a_plugin_exports_its_own_functions_alone_and_survives_its_dlclose() {
    let test = "issue_47_a_plugin_exports_its_own_functions_alone_and_survives_its_dlclose";
    let Some((stage, prefix)) = installed(test) else {
        return;
    };
    let flags = static_libs(&prefix);
    let nodelete = |flag: &String| flag.contains("nodelete");
    assert_eq!(flags.iter().filter(|flag| nodelete(flag)).count(), 1);
    let without = flags.iter().filter(|flag| !nodelete(flag)).cloned();
    for flags in [without.collect(), flags.clone()] {
        let plugin = plugin(&stage, &prefix, &flags);
        check_closing(&stage, &plugin, "plugin_step", 1000);
        fs::remove_dir_all(stage.run_directory()).unwrap();
        let symbols = run(Command::new("nm")
            .args(["-D", "--defined-only"])
            .arg(plugin));
        let names = symbols
            .lines()
            .filter_map(|line| line.split_whitespace().nth(2));
        assert_eq!(names.collect::<Vec<_>>(), ["plugin_step"]);
    }
}

/// A constructor runs under the dynamic linker's lock, which the thread needs that keeps the library loaded.
#[test]
fn measured_issue_47_a_plugin_may_record_while_it_is_loaded() {
    let test = "measured_issue_47_a_plugin_may_record_while_it_is_loaded";
    let Some((stage, prefix)) = installed(test) else {
        return;
    };
    let flags = static_libs(&prefix).into_iter();
    let flags = flags.filter(|flag| !flag.contains("nodelete"));
    let flags: Vec<String> = flags.chain(["-DAT_LOAD".to_owned()]).collect();
    let plugin = plugin(&stage, &prefix, &flags);
    let trace = check_closing(&stage, &plugin, "plugin_step", 1000);
    trace.one("first");
    let took_ns = trace.one("loaded")["args"]["took_ns"].as_u64().unwrap();
    assert!(
        took_ns < 500_000_000,
        "{took_ns}: as long as for a file system that hangs"
    );
}

#[test]
fn issue_47_a_rust_library_that_recorded_survives_its_dlclose() {
    let library = built().join("libsecond_recorder.so");
    check_closing(&Stage::new(), &library, "second_recorder_record", 1000);
}

#[test]
fn the_readmes_first_trace_is_one() {
    let test = "the_readmes_first_trace_is_one";
    let Some((stage, prefix)) = installed(test) else {
        return;
    };
    let readme = fs::read_to_string(Path::new(PACKAGE).join("README.md")).unwrap();
    let (_, code) = readme.split_once("```c\n").unwrap();
    let (code, _) = code.split_once("```").unwrap();
    let source = stage.path().join("serving.c");
    fs::write(&source, code).unwrap();
    let flags = pkg_config(&prefix, &["--cflags", "--libs"]);
    let program = compile(&stage, &source, "serving", &flags);
    let output = stage.record(&program);
    let trace = Trace::of(&stage.run_directory(), output);
    assert_eq!(trace.one("execute_step")["args"]["tokens"], 8);
    assert_eq!(trace.one("requests")["args"]["waiting"], 1);
}

#[test]
fn install_says_what_is_missing_and_changes_nothing() {
    let stage = Stage::new();
    let (prefix, build) = (stage.path().join("prefix"), stage.path().join("nothing"));
    let install = |arguments: &[&Path]| {
        let output = install_sh().args(arguments).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), words)
    };
    let (code, words) = install(&[&prefix, &build]);
    assert!(
        code == Some(1) && words.contains("libsa_profile.so: cargo build"),
        "{words}"
    );
    assert!(!prefix.exists());
    assert_eq!(install(&[]).0, Some(2));
}

#[test]
fn libdir_and_destdir_are_obeyed() {
    let stage = Stage::new();
    let mut install = install_sh();
    install
        .env("DESTDIR", stage.path().join("root"))
        .env("LIBDIR", "/usr/lib64");
    run(install.arg("/usr").arg(built()));
    let written = |path: &str| fs::metadata(stage.path().join("root/usr").join(path)).is_ok();
    assert!(written("lib64/libsa_profile.so") && written("lib64/libsa_profile.a"));
    assert!(written("include/sa_profile.h"));
    let file = stage.path().join("root/usr/lib64/pkgconfig/sa_profile.pc");
    let text = fs::read_to_string(file).unwrap();
    assert!(
        text.contains("\nlibdir=/usr/lib64\n") && !text.contains("root") && !text.contains('@'),
        "{text}"
    );
}
