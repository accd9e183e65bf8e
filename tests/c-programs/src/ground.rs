//! A directory for one test, in which C programs are compiled and run with or without recording.

use crate::running::end;
use crate::trace::Trace;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// No options for the compiler.
pub const NONE: [&str; 0] = [];
/// Links a program or a library with the simulated runtime.
pub const SIMULATED: [&str; 2] = [
    concat!(
        "-I",
        env!("CARGO_MANIFEST_DIR"),
        "/../../ascend-sys/sim/tests/conformance"
    ),
    "-l:libascendcl.so",
];

/// Returns the path of a file that cargo built next to the test's own executable.
pub fn beside(name: &str) -> PathBuf {
    let file = std::env::current_exe().unwrap().with_file_name(name);
    assert!(file.exists(), "{} is built", file.display());
    file
}

/// Returns the path of the preload library.
pub fn preload() -> PathBuf {
    beside("libsa_profile_preload.so")
}

/// Returns the value of `LD_PRELOAD` for these libraries.
pub fn preloads(libraries: &[&Path]) -> OsString {
    let paths: Vec<&OsStr> = libraries.iter().map(|path| path.as_os_str()).collect();
    paths.join(OsStr::new(":"))
}

/// A test's directory, removed on drop.
#[derive(Debug)]
pub struct Ground {
    root: TempDir,
}

impl Default for Ground {
    fn default() -> Ground {
        let root = tempfile::Builder::new().prefix("sa-c-").tempdir();
        Ground {
            root: root.unwrap(),
        }
    }
}

impl Ground {
    /// Creates the directory with the simulated runtime in it.
    pub fn with_simulator() -> Ground {
        let ground = Ground::default();
        ground.link("libascendcl.so", "libascendcl.so");
        ground
    }

    /// Returns a path in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Returns a path in the directory, as text.
    pub fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Returns the run directory.
    pub fn run(&self) -> PathBuf {
        self.path("run")
    }

    /// Links a file that cargo built into the directory under a name.
    pub fn link(&self, built: &str, name: &str) {
        std::os::unix::fs::symlink(beside(built), self.path(name)).unwrap();
    }

    /// Compiles a shared library whose soname is its name.
    pub fn library(&self, name: &str, file: &str, options: &[impl AsRef<OsStr>]) {
        let soname = format!("-Wl,-soname,{name}");
        let shared = ["-shared", "-fPIC", soname.as_str()].map(OsStr::new);
        let options = options.iter().map(AsRef::as_ref);
        let all: Vec<&OsStr> = shared.into_iter().chain(options).collect();
        self.compile("cc", name, &[file], &all);
    }

    /// Compiles a program.
    pub fn program(&self, name: &str, files: &[&str], options: &[impl AsRef<OsStr>]) -> PathBuf {
        self.compile("cc", name, files, options)
    }

    /// Compiles files of the package's `tests/c` and asserts that there are no warnings. Headers and libraries are found in this directory, libraries also at run time.
    pub fn compile(
        &self,
        compiler: &str,
        name: &str,
        files: &[&str],
        options: &[impl AsRef<OsStr>],
    ) -> PathBuf {
        let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap());
        let (root, built) = (self.root.path().display(), self.path(name));
        let output = Command::new(compiler)
            .args(["-O1", "-Wall", "-pthread", "-o"])
            .arg(&built)
            .args(files.iter().map(|file| package.join("tests/c").join(file)))
            .arg(format!("-I{root}"))
            .arg(format!("-L{root}"))
            .arg(format!("-Wl,-rpath,{root}"))
            .args(options)
            .arg("-ldl")
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        let is_clean = output.status.success() && stderr.is_empty();
        assert!(is_clean, "{name}: {stderr}");
        built
    }

    /// Returns a command in the directory, without this project's variables.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let is_ours = name.as_encoded_bytes().starts_with(b"SA_PROFILE");
            // cargo's path to built libraries would find the simulated runtime.
            if is_ours || name == "LD_PRELOAD" || name == "LD_LIBRARY_PATH" {
                command.env_remove(name);
            }
        }
        command.current_dir(self.root.path());
        command
    }

    /// Returns a command that records.
    pub fn recorded(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.command(program);
        command.env("SA_PROFILE_DIR", self.run());
        command
    }

    /// Returns a command with the preload library that does not record.
    pub fn preloaded(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.command(program);
        command.env("LD_PRELOAD", preload());
        command
    }

    /// Returns a command with the preload library that records all launches, but only on the host, because a fake library has no events.
    pub fn watched(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.recorded(program);
        command
            .env("LD_PRELOAD", preload())
            .env("SA_PROFILE_DEVICE", "off")
            .env("SA_PROFILE_DEVICE_SAMPLE", "1");
        command
    }

    /// Returns a command whose launches are timed on the simulated runtime in the directory.
    pub fn timed(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.watched(program);
        command
            .env("SA_PROFILE_DEVICE", "sim")
            .env("SA_PROFILE_SIM_LIBRARY", self.path("libascendcl.so"));
        command
    }

    /// Runs a program three times: plain, with the preload library, and recording. Asserts exit code 42 and equal output, and returns its stdout.
    pub fn unchanged(&self, program: impl AsRef<OsStr>, arguments: &[impl AsRef<OsStr>]) -> String {
        let run = |mut command: Command| end(command.args(arguments));
        let plain = run(self.command(&program));
        assert_eq!(plain.code, 42, "{plain:?}");
        assert_eq!(run(self.preloaded(&program)), plain, "preloaded");
        assert_eq!(run(self.watched(&program)), plain, "recorded");
        plain.stdout
    }

    /// Returns the merged trace of the run directory, which must not have lost events.
    pub fn trace(&self) -> Trace {
        Trace::merge(&self.run())
    }

    /// Returns the merged trace and removes the run directory.
    pub fn merge_and_clear(&self) -> Trace {
        let trace = self.trace();
        std::fs::remove_dir_all(self.run()).unwrap();
        trace
    }
}
