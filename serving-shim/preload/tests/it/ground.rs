//! A directory of a test's own: C programs compiled there, and run with the preload or without.

use crate::trace::Trace;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Nothing takes this long unless it hangs.
const DEADLINE: Duration = Duration::from_secs(60);
/// The parts of the vendor's interface, each with the library that has it.
const PARTS: [(&str, &str); 5] = [
    ("ACL", "libascendcl.so"),
    ("RT", "libruntime.so"),
    ("HCCL", "libhccl.so"),
    ("MSTX", "libms_tools_ext.so"),
    ("PROFILER", "libmsprofiler.so"),
];

/// The library under test, which cargo puts beside the tests.
pub(crate) fn preload() -> PathBuf {
    let library = beside("libsa_profile_preload.so");
    assert!(library.exists(), "{} is built", library.display());
    library
}

/// A file beside the test's own executable.
pub(crate) fn beside(name: &str) -> PathBuf {
    std::env::current_exe().unwrap().with_file_name(name)
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/c")
        .join(name)
}

/// Links a program or a library with the simulated runtime.
pub(crate) const SIMULATED: [&str; 2] = [
    concat!(
        "-I",
        env!("CARGO_MANIFEST_DIR"),
        "/../../ascend-sys/sim/tests/conformance"
    ),
    "-l:libascendcl.so",
];

/// The directory.
pub(crate) struct Ground {
    root: TempDir,
}

/// How a program ended, and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Exit code, or the negative number of the signal.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ground {
    /// Makes it.
    pub(crate) fn new() -> Ground {
        let root = tempfile::Builder::new().prefix("sa-preload-").tempdir();
        Ground {
            root: root.unwrap(),
        }
    }

    /// Makes it, with the simulated runtime in it.
    pub(crate) fn with_simulator() -> Ground {
        let ground = Ground::new();
        let library = ground.path("libascendcl.so");
        std::os::unix::fs::symlink(beside("libascendcl.so"), library).unwrap();
        ground
    }

    /// Makes it, with a fake of each vendor library in it.
    pub(crate) fn with_fakes() -> Ground {
        let ground = Ground::new();
        ground.library("libfake_answer.so", "fake_answer.c", &[] as &[&str]);
        for (part, library) in PARTS {
            let define = format!("-DPART={part}");
            let mut options = vec![define.as_str(), "-Wl,-Bsymbolic", "-lfake_answer"];
            if part == "ACL" {
                options.push("-DWITH_NAMES");
            }
            ground.library(library, "fake_acl.c", &options);
        }
        ground
    }

    /// A path in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// A path in it, as text.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// The run directory.
    pub(crate) fn run(&self) -> PathBuf {
        self.path("run")
    }

    /// The fakes, as options of the linker.
    pub(crate) fn links() -> Vec<String> {
        let links = PARTS.map(|(_, library)| format!("-l:{library}"));
        [vec!["-Wl,--no-as-needed".to_owned()], links.to_vec()].concat()
    }

    /// The paths of the fakes.
    pub(crate) fn fakes(&self) -> Vec<String> {
        PARTS.map(|(_, library)| self.text(library)).to_vec()
    }

    /// Compiles a shared library, its soname being its name.
    pub(crate) fn library(&self, name: &str, file: &str, options: &[impl AsRef<OsStr>]) {
        let soname = format!("-Wl,-soname,{name}");
        let shared = ["-shared", "-fPIC", soname.as_str()].map(OsString::from);
        let all = shared
            .into_iter()
            .chain(options.iter().map(|option| option.as_ref().to_owned()));
        self.compile("cc", name, &[file], &all.collect::<Vec<_>>());
    }

    /// Compiles a program.
    pub(crate) fn program(&self, name: &str, files: &[&str], options: &[impl AsRef<OsStr>]) {
        self.compile("cc", name, files, options);
    }

    /// Compiles with `compiler`; libraries are found in this directory, also at run time.
    pub(crate) fn compile(
        &self,
        compiler: &str,
        name: &str,
        files: &[&str],
        options: &[impl AsRef<OsStr>],
    ) {
        let root = self.root.path();
        let output = Command::new(compiler)
            .args([
                "-O1",
                "-Wall",
                "-Wno-address",
                "-Wno-unused-function",
                "-pthread",
                "-o",
            ])
            .arg(root.join(name))
            .args(files.iter().map(|file| source(file)))
            .arg(format!("-L{}", root.display()))
            .arg(format!("-Wl,-rpath,{}", root.display()))
            .args(options)
            .arg("-ldl")
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && stderr.is_empty(),
            "{name}: {stderr}"
        );
    }

    /// A command that works here and sees no variable of ours.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let is_ours = name.as_encoded_bytes().starts_with(b"SA_PROFILE");
            // cargo's path to the libraries it built leads to the simulated runtime.
            if is_ours || name == "LD_PRELOAD" || name == "LD_LIBRARY_PATH" {
                command.env_remove(name);
            }
        }
        command
            .current_dir(self.root.path())
            .env("FAKE_ANSWER", self.path("libfake_answer.so"));
        command
    }

    /// The same with the preload, not recording.
    pub(crate) fn preloaded(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.command(program);
        command.env("LD_PRELOAD", preload());
        command
    }

    /// The same with the preload, recording every launch into the run directory, on the host alone: a fake has no events.
    pub(crate) fn recorded(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.preloaded(program);
        command
            .env("SA_PROFILE_DIR", self.run())
            .env("SA_PROFILE_DEVICE", "off")
            .env("SA_PROFILE_DEVICE_SAMPLE", "1");
        command
    }

    /// The merged trace of the run directory.
    pub(crate) fn trace(&self) -> Trace {
        Trace::of(&self.run())
    }
}

/// Returns the value of `LD_PRELOAD` for these libraries.
pub(crate) fn preloads(libraries: &[&Path]) -> OsString {
    let paths: Vec<&OsStr> = libraries.iter().map(|path| path.as_os_str()).collect();
    paths.join(OsStr::new(":"))
}

/// Runs a command to its end.
pub(crate) fn end(command: &mut Command) -> Ended {
    Running::of(command).end()
}

/// A command under way; what is left of its process group is killed when it is dropped.
pub(crate) struct Running {
    child: Child,
    readers: [JoinHandle<String>; 2],
}

impl Running {
    /// Starts a command, which leads a process group of its own.
    pub(crate) fn of(command: &mut Command) -> Running {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let readers = [collect(stdout), collect(stderr)];
        Running { child, readers }
    }

    /// Its pid.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until something is there; it must not end before.
    pub(crate) fn wait_for<T>(&mut self, mut found: impl FnMut() -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(found) = found() {
                return found;
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended with {ended:?}");
            assert!(start.elapsed() < DEADLINE, "it does not come about");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < DEADLINE, "it hangs");
            thread::sleep(Duration::from_millis(2));
        };
        let [stdout, stderr] = &mut self.readers;
        let said = |reader: &mut JoinHandle<String>| {
            std::mem::replace(reader, thread::spawn(String::new)).join()
        };
        Ended {
            code: status.code().unwrap_or_else(|| -status.signal().unwrap()),
            stdout: said(stdout).unwrap(),
            stderr: said(stderr).unwrap(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        signal("KILL", &format!("-{}", self.child.id()));
        let _ = self.child.wait();
    }
}

fn collect(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Sends a signal to a process, or with a minus before the number to a group; one that is gone is passed over.
pub(crate) fn signal(name: &str, process: &str) {
    let _ = Command::new("kill")
        .args(["-s", name, "--", process])
        .stderr(Stdio::null())
        .status();
}

/// Says loudly that a test did not run.
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
pub(crate) fn skip(test: &str, why: &str) {
    eprintln!("SKIPPED {test}: {why}");
}
