//! Installs the library, and builds and runs programs with the flags from pkg-config.

use crate::stage::{C, PACKAGE};
use c_programs::{Ground, Trace, beside, dynamic_section, end, exported, skip, success};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn install_sh() -> Command {
    Command::new(Path::new(PACKAGE).join("install.sh"))
}

/// Returns the folder of the libraries that cargo built.
fn built() -> PathBuf {
    beside("libsa_profile.so").parent().unwrap().to_owned()
}

/// An installation in a test folder. Its name contains a character that is special to sed.
struct Installed {
    ground: Ground,
    prefix: PathBuf,
}

impl Installed {
    /// Installs the library. Without pkg-config, reports that the test is skipped and returns `None`.
    fn new(test: &str) -> Option<Installed> {
        if Command::new("pkg-config").output().is_err() {
            skip(test, "no pkg-config");
            return None;
        }
        let ground = Ground::default();
        let prefix = ground.path("pre&fix");
        let mut install = install_sh();
        install.env_remove("DESTDIR").env_remove("LIBDIR");
        success(install.arg(&prefix).arg(built()));
        Some(Installed { ground, prefix })
    }

    /// Returns the flags that pkg-config prints for the library.
    fn flags(&self, arguments: &[&str]) -> Vec<String> {
        let mut command = Command::new("pkg-config");
        command.env("PKG_CONFIG_PATH", self.prefix.join("lib/pkgconfig"));
        let flags = success(command.args(arguments).arg("sa_profile"));
        let flags = flags.split_whitespace();
        // pkg-config escapes the flags for a shell, but no shell is used here.
        flags.map(|flag| flag.replace('\\', "")).collect()
    }

    /// Returns the flags to link with the static library.
    fn static_flags(&self) -> Vec<String> {
        let library = self.prefix.join("lib/libsa_profile.a");
        let mut flags = self.flags(&["--cflags"]);
        flags.push(library.display().to_string());
        flags.extend(self.flags(&["--variable=static_libs"]));
        flags
    }

    /// Compiles a C source with these flags after it.
    fn compile(&self, source: &str, flags: &[String]) -> PathBuf {
        let flags = [&C.map(str::to_owned), flags].concat();
        self.ground.program("built", &[source], &flags)
    }

    /// Runs a program and returns its trace.
    fn trace_of(&self, program: &Path) -> Trace {
        let mut command = self.ground.recorded(program);
        success(command.env("LD_LIBRARY_PATH", self.prefix.join("lib")));
        let trace = Trace::merged(&self.ground.run());
        assert_eq!(trace.lost(), 0);
        fs::remove_dir_all(self.ground.run()).unwrap();
        trace
    }
}

/// Returns the trace of a program that opens a library, records 1,000 spans through its function in a thread, and closes it.
fn trace_of_closing(ground: &Ground, library: &Path, function: &str) -> Trace {
    let program = ground.program("closing", &["closing.c"], &C);
    success(ground.recorded(program).arg(library).arg(function));
    let trace = ground.merge_and_clear();
    assert_eq!(trace.with("ph", "X").len(), 1000);
    trace
}

fn check_example(trace: &Trace) {
    let expected = [
        (("engine", "Scheduler.step"), 3),
        (("kernel", "matmul"), 12),
        (("serving", "request"), 3),
        (("worker", "Worker.execute"), 3),
    ];
    assert_eq!(trace.counts(), BTreeMap::from(expected));
    assert_eq!(trace.phases("dispatch"), "sssfff");
    assert_eq!(trace.phases("requests"), "CCCC");
    let steps = trace.named("Scheduler.step");
    let batch: Vec<_> = steps.iter().map(|step| &step["args"]["batch"]).collect();
    assert_eq!(batch, [3, 2, 1]);
    let mut workers = trace.named("Worker.execute").into_iter();
    assert!(workers.all(|worker| worker["pid"] != steps[0]["pid"]));
}

#[test]
fn the_example_and_the_readmes_first_trace_record_with_the_installed_library() {
    let test = "the_example_and_the_readmes_first_trace_record_with_the_installed_library";
    let Some(installed) = Installed::new(test) else {
        return;
    };
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(installed.flags(&["--modversion"]), [version]);
    let file = format!("lib/libsa_profile.so.{version}");
    assert!(installed.prefix.join(file).is_file());
    let shared = installed.flags(&["--cflags", "--libs"]);
    for (flags, needed) in [(&shared, true), (&installed.static_flags(), false)] {
        let program = installed.compile("../../examples/serving.c", flags);
        check_example(&installed.trace_of(&program));
        let is_needed = dynamic_section(&program).contains("[libsa_profile.so.0]");
        assert_eq!(is_needed, needed);
    }
    let readme = fs::read_to_string(Path::new(PACKAGE).join("README.md")).unwrap();
    let (_, code) = readme.split_once("```c\n").unwrap();
    let (code, _) = code.split_once("```").unwrap();
    let source = installed.ground.text("first.c");
    fs::write(&source, code).unwrap();
    let trace = installed.trace_of(&installed.compile(&source, &shared));
    assert_eq!(trace.only("execute_step")["args"]["tokens"], 8);
    assert_eq!(trace.only("requests")["args"]["waiting"], 1);
}

/// Links a plugin with the static library, but without the flag that keeps it loaded, unless `flags` has it.
fn plugin(installed: &Installed, flags: &[&str]) -> PathBuf {
    let mut all = installed.static_flags();
    let count = all.len();
    all.retain(|flag| !flag.contains("nodelete"));
    assert_eq!(all.len(), count - 1);
    let flags = ["-shared", "-fPIC"].iter().chain(flags);
    all.extend(flags.map(|flag| (*flag).to_owned()));
    installed.compile("plugin.c", &all)
}

#[test]
fn issue_47_a_plugin_exports_only_its_own_functions_and_survives_its_dlclose() {
    let test = "issue_47_a_plugin_exports_only_its_own_functions_and_survives_its_dlclose";
    let Some(installed) = Installed::new(test) else {
        return;
    };
    for flags in [&[][..], &["-Wl,-z,nodelete"]] {
        let plugin = plugin(&installed, flags);
        trace_of_closing(&installed.ground, &plugin, "plugin_step");
        assert!(exported(&plugin).iter().eq(["plugin_step"]));
    }
}

/// A constructor runs under the dynamic linker's lock. The thread that keeps the library loaded needs the same lock.
#[test]
fn measured_issue_47_a_plugin_may_record_while_it_is_loaded() {
    let test = "measured_issue_47_a_plugin_may_record_while_it_is_loaded";
    let Some(installed) = Installed::new(test) else {
        return;
    };
    let plugin = plugin(&installed, &["-DAT_LOAD"]);
    let trace = trace_of_closing(&installed.ground, &plugin, "plugin_step");
    trace.only("first");
    let took_ns = trace.only("loaded")["args"]["took_ns"].as_u64().unwrap();
    // Much less than the timeout for a hanging file system.
    assert!(took_ns < 500_000_000, "{took_ns}");
}

#[test]
fn issue_47_a_rust_library_that_recorded_survives_its_dlclose() {
    let library = beside("libsecond_recorder.so");
    trace_of_closing(&Ground::default(), &library, "second_recorder_record");
}

#[test]
fn install_says_what_is_missing_and_obeys_libdir_and_destdir() {
    let ground = Ground::default();
    let (prefix, build) = (ground.path("prefix"), ground.path("nothing"));
    let refused = end(install_sh().args([&prefix, &build]));
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("libsa_profile.so: cargo build"));
    assert!(!prefix.exists());
    assert_eq!(end(&mut install_sh()).code, 2);
    let mut install = install_sh();
    install
        .env("DESTDIR", ground.path("root"))
        .env("LIBDIR", "/usr/lib64");
    success(install.arg("/usr").arg(built()));
    let root = ground.path("root/usr");
    for file in [
        "lib64/libsa_profile.so",
        "lib64/libsa_profile.a",
        "include/sa_profile.h",
    ] {
        assert!(root.join(file).exists(), "{file}");
    }
    let text = fs::read_to_string(root.join("lib64/pkgconfig/sa_profile.pc")).unwrap();
    let is_right = text.contains("\nlibdir=/usr/lib64\n") && !text.contains(['@']);
    assert!(is_right && !text.contains("root"), "{text}");
}
