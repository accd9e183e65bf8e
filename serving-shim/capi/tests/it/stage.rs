//! A folder for one test: programs are compiled into it against the library that cargo built, run there, and their trace is read back.

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;
use trace_merge::{Options, Report};

/// The package's folder.
pub(crate) const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");
/// What every C program here is compiled with.
pub(crate) const C: [&str; 6] = [
    "-std=c11",
    "-D_DEFAULT_SOURCE",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Werror",
];

/// Says that a test did not run.
pub(crate) fn skip(test: &str, why: &str) {
    eprintln!("SKIPPED {test}: {why}");
}

/// Whether a tool is there; else says that the test is skipped.
pub(crate) fn has(tool: &str, test: &str) -> bool {
    let found = Command::new(tool)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        skip(test, &format!("no {tool}"));
    }
    found
}

/// Where cargo put the libraries: beside the test.
pub(crate) fn built() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().to_owned()
}

/// The output of a command that must end well.
pub(crate) fn run(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (stdout, stderr) = (
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr),
    );
    assert!(status.success(), "{command:?}: {status}\n{stdout}{stderr}");
    assert_eq!(stderr, "", "{command:?}");
    stdout.into_owned()
}

/// One test's folder.
pub(crate) struct Stage {
    dir: TempDir,
}

impl Stage {
    /// A folder with the shared library under the names that the linker and the loader look for.
    pub(crate) fn new() -> Stage {
        let dir = tempfile::tempdir().unwrap();
        for name in ["libsa_profile.so", "libsa_profile.so.0"] {
            std::os::unix::fs::symlink(built().join("libsa_profile.so"), dir.path().join(name))
                .unwrap();
        }
        Stage { dir }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The run directory of what is recorded here.
    pub(crate) fn run_directory(&self) -> PathBuf {
        self.path().join("run")
    }

    /// Compiles sources of `tests/c` with a compiler and flags, without linking; the object files.
    pub(crate) fn objects(&self, compiler: &str, flags: &[&str], sources: &[&str]) -> Vec<PathBuf> {
        let compile = |source: &&str| {
            let object = self.path().join(format!("{source}.o"));
            let mut command = Command::new(compiler);
            command
                .args(flags)
                .arg("-c")
                .arg("-I")
                .arg(Path::new(PACKAGE).join("include"));
            run(command
                .arg(Path::new(PACKAGE).join("tests/c").join(source))
                .arg("-o")
                .arg(&object));
            object
        };
        sources.iter().map(compile).collect()
    }

    /// Links objects against the shared library.
    pub(crate) fn link(&self, compiler: &str, objects: &[PathBuf]) -> PathBuf {
        let program = self.path().join("program");
        let mut command = Command::new(compiler);
        command
            .args(objects)
            .arg("-L")
            .arg(self.path())
            .args(["-lsa_profile", "-lpthread", "-o"]);
        run(command.arg(&program));
        program
    }

    /// Compiles and links one C program.
    pub(crate) fn program(&self, source: &str) -> PathBuf {
        self.link("cc", &self.objects("cc", &C, &[source]))
    }

    /// A program of this folder, to be run without any recording.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("SA_PROFILE_") {
                command.env_remove(name);
            }
        }
        command
            .env("LD_LIBRARY_PATH", self.path())
            .current_dir(self.path());
        command
    }

    /// Runs a program recorded; it must end well and write nothing to stderr.
    pub(crate) fn record(&self, program: &Path) -> String {
        run(self
            .command(program)
            .env("SA_PROFILE_DIR", self.run_directory()))
    }

    /// Compiles a program, runs it recorded, and merges.
    pub(crate) fn recorded(source: &str) -> Trace {
        let stage = Stage::new();
        let program = stage.program(source);
        let output = stage.record(&program);
        Trace::of(&stage.run_directory(), output)
    }
}

/// What a program recorded.
pub(crate) struct Trace {
    pub(crate) events: Vec<Value>,
    pub(crate) report: Report,
    /// What the program printed.
    pub(crate) output: String,
}

impl Trace {
    /// Merges a run directory; there must be no damage and nothing lost.
    pub(crate) fn of(directory: &Path, output: String) -> Trace {
        let report = trace_merge::merge(&Options::new([directory.to_owned()])).unwrap();
        assert_eq!(report.damage.total, 0, "{:?}", report.damage.list);
        let text = fs::read(directory.join("trace.json")).unwrap();
        let mut trace: Value = serde_json::from_slice(&text).unwrap();
        let Value::Array(events) = trace["traceEvents"].take() else {
            panic!("no traceEvents");
        };
        Trace {
            events,
            report,
            output,
        }
    }

    /// The events of a name.
    pub(crate) fn named(&self, name: &str) -> Vec<&Value> {
        self.events
            .iter()
            .filter(|event| event["name"] == name)
            .collect()
    }

    /// The one event of a name.
    #[track_caller]
    pub(crate) fn one(&self, name: &str) -> &Value {
        let all = self.named(name);
        assert_eq!(all.len(), 1, "{name}: {all:?}");
        all[0]
    }

    /// Asserts that these fields of the one event of each name are these.
    #[track_caller]
    pub(crate) fn assert_fields(&self, expected: &[(&str, &[&str], Value)]) {
        for (name, fields, expected) in expected {
            let event = self.one(name);
            let fields: Vec<&Value> = fields.iter().map(|field| &event[field]).collect();
            assert_eq!(json!(fields), *expected, "{name}");
        }
    }
}
