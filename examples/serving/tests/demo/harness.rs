//! Runs the demo and reads its output and its trace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Maximum duration of a run.
const LIMIT: Duration = Duration::from_secs(120);
/// The environment variable that marks the processes of a test.
const MARK: &str = "SERVING_DEMO_TEST";

/// A directory in which the demo runs.
pub(crate) struct Workplace {
    dir: tempfile::TempDir,
}

/// A running demo.
pub(crate) struct Running {
    child: Child,
}

/// The output of a finished demo.
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Workplace {
    pub(crate) fn new() -> Workplace {
        Workplace {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns the command for the demo with these arguments, separated by spaces, and the default run directory.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_serving-demo"));
        command
            .args(arguments.split_whitespace())
            .current_dir(self.dir.path())
            .stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("SA_PROFILE_") {
                command.env_remove(name);
            }
        }
        command
            .env(MARK, self.dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn start(&self, arguments: &str) -> Running {
        Running {
            child: self.command(arguments).spawn().unwrap(),
        }
    }

    pub(crate) fn run(&self, arguments: &str) -> Finished {
        self.start(arguments).finish()
    }

    /// Returns the pids of the living processes of this workplace.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let mark = format!("{MARK}={}", self.dir.path().display());
        let pids = fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter(|pid| has_mark(*pid, &mark)).collect()
    }

    /// Waits for the child process with this role and returns its pid.
    pub(crate) fn child(&self, role: &str) -> i32 {
        let has_role = |pid: &i32| {
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&arguments).contains(role)
        };
        wait_for(role, || self.processes().into_iter().find(has_role))
    }

    /// Waits until a fragment contains a finished worker step.
    pub(crate) fn wait_for_steps(&self) {
        let fragments = self.path("profile_out/fragments");
        wait_for("worker step", || {
            let files = fs::read_dir(&fragments)
                .ok()?
                .filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
            files
                .into_iter()
                .any(|text| text.contains("WorkerProcess.execute_step"))
                .then_some(())
        });
    }

    /// Returns the file name extensions of the fragments in the default directory.
    pub(crate) fn fragments(&self) -> Vec<String> {
        let files = fs::read_dir(self.path("profile_out/fragments")).unwrap();
        let extension = |path: PathBuf| path.extension().unwrap().to_str().unwrap().to_owned();
        files
            .map(|entry| extension(entry.unwrap().path()))
            .collect()
    }

    /// Reads the merged trace in the default directory.
    pub(crate) fn trace(&self) -> Trace {
        Trace::read(&self.path("profile_out/trace.json"))
    }
}

/// Returns true if the process `pid` lives and has this variable in its environment.
fn has_mark(pid: i32, mark: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment
        .split(|byte| *byte == 0)
        .any(|variable| variable == mark.as_bytes())
}

/// Polls until there is a result and returns it. Fails the test if there is none in time.
pub(crate) fn wait_for<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    while start.elapsed() < LIMIT {
        if let Some(result) = poll() {
            return result;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("no {what} within {LIMIT:?}");
}

impl Running {
    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    /// Waits for the end and returns the output. Fails the test if it takes too long.
    pub(crate) fn finish(mut self) -> Finished {
        wait_for("end of the demo", || self.child.try_wait().unwrap());
        let Output {
            status,
            stdout,
            stderr,
        } = self.child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Finished {
            code: status.code(),
            stdout: text(stdout),
            stderr: text(stderr),
        }
    }
}

impl Finished {
    /// Fails the test and shows the output, unless the exit code is this one.
    pub(crate) fn expect(self, code: i32) -> Finished {
        assert_eq!(
            self.code,
            Some(code),
            "stdout:\n{}stderr:\n{}",
            self.stdout,
            self.stderr
        );
        self
    }

    /// Fails the test unless the line that starts with `label` contains this text.
    pub(crate) fn assert_line(&self, label: &str, text: &str) {
        assert!(self.line(label).contains(text), "{text}: {}", self.stdout);
    }

    /// Returns the rest of the line that starts with `label`.
    pub(crate) fn line(&self, label: &str) -> &str {
        let line = self
            .stdout
            .lines()
            .find_map(|line| line.strip_prefix(label));
        line.unwrap_or_else(|| panic!("no {label} in:\n{}", self.stdout))
            .trim()
    }
}

/// A merged trace.
pub(crate) struct Trace {
    pub(crate) events: Vec<Value>,
}

impl Trace {
    pub(crate) fn read(path: &Path) -> Trace {
        let mut trace: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let Value::Array(events) = trace["traceEvents"].take() else {
            panic!("no events in {}", path.display())
        };
        Trace { events }
    }

    /// Returns the events with this name.
    pub(crate) fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events
            .iter()
            .filter(move |event| event["name"] == name)
    }

    /// Returns the pid of the process with this name.
    pub(crate) fn pid(&self, process: &str) -> &Value {
        let named = self
            .named("process_name")
            .find(|event| event["args"]["name"] == process);
        &named.unwrap_or_else(|| panic!("no process {process}"))["pid"]
    }

    /// Returns the events with this name in this process.
    pub(crate) fn named_in<'a>(&'a self, process: &str, name: &'a str) -> Vec<&'a Value> {
        let pid = self.pid(process);
        self.named(name)
            .filter(|event| event["pid"] == *pid)
            .collect()
    }
}
