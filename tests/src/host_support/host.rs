//! One run of the host program under a deadline.

use super::live::Live;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Exit code of a host that completed its commands.
pub const DONE: i32 = 7;
/// Time that a host may take unless the test sets another one.
const DEADLINE: Duration = Duration::from_secs(60);

/// A host program that is ready to be started, directly or through a wrapper such as `unshare`.
pub struct Host {
    command: Command,
    deadline: Duration,
}

impl Host {
    /// Prepares `program` with no `SA_PROFILE_…` variables except for those added later.
    pub fn new(program: impl AsRef<OsStr>) -> Host {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"SA_PROFILE") {
                command.env_remove(name);
            }
        }
        Host {
            command,
            deadline: DEADLINE,
        }
    }

    /// Prepares `wrapper`, which receives `program` after its own arguments.
    pub fn below(wrapper: &[&str], program: impl AsRef<OsStr>) -> Host {
        let (first, rest) = wrapper.split_first().expect("a wrapper has a name");
        Host::new(first).arguments(rest).arguments(&[program])
    }

    /// Adds arguments.
    #[must_use]
    pub fn arguments(mut self, arguments: &[impl AsRef<OsStr>]) -> Host {
        self.command.args(arguments);
        self
    }

    /// Sets the run directory.
    #[must_use]
    pub fn recorded_in(self, dir: &Path) -> Host {
        self.variable("SA_PROFILE_DIR", dir)
    }

    /// Sets a variable.
    #[must_use]
    pub fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Host {
        self.command.env(name, value);
        self
    }

    /// Runs the program as another user, who must be able to reach it.
    #[must_use]
    pub fn user(mut self, uid: u32) -> Host {
        self.command.uid(uid).gid(uid);
        self
    }

    /// Sets the maximum duration of the run.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Host {
        self.deadline = deadline;
        self
    }

    /// Starts the program and keeps its stdin and stdout connected.
    pub fn start(mut self) -> Live {
        Live::new(self.spawn(), self.deadline)
    }

    /// Runs the program to its end.
    ///
    /// # Panics
    /// If it is still alive at the deadline.
    pub fn run(mut self) -> Outcome {
        let mut child = self.spawn();
        drop(child.stdin.take());
        let stdout = collect(child.stdout.take());
        finish(&mut child, stdout, self.deadline)
    }

    fn spawn(&mut self) -> Child {
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("the host starts")
    }
}

/// Exit status and output of a host.
#[derive(Debug)]
pub struct Outcome {
    /// Pid in the test's namespace.
    pub pid: u32,
    /// Exit status.
    pub status: ExitStatus,
    /// Everything written to stdout.
    pub stdout: String,
    /// Everything written to stderr, including by child processes.
    pub stderr: String,
}

impl Outcome {
    /// Asserts that the host succeeded and that stderr is empty.
    #[must_use]
    pub fn quiet(self) -> Outcome {
        assert_eq!(self.lines(), 0, "{self:?}");
        self
    }

    /// Asserts that the host succeeded, and returns the only line on stderr.
    pub fn one_line(&self) -> &str {
        assert_eq!(self.lines(), 1, "one line of warning: {self:?}");
        self.stderr.trim_end()
    }

    /// Asserts that the host succeeded with at most one line on stderr.
    #[must_use]
    pub fn unharmed(self) -> Outcome {
        assert!(self.lines() <= 1, "{self:?}");
        self
    }

    /// Asserts that the host succeeded, and counts the lines on stderr.
    fn lines(&self) -> usize {
        assert_eq!(self.status.code(), Some(DONE), "{self:?}");
        self.stderr.lines().count()
    }

    /// Asserts that SIGKILL ended it.
    #[must_use]
    pub fn was_killed(self) -> Outcome {
        assert_eq!(self.status.signal(), Some(9), "{self:?}");
        self
    }
}

/// Asserts that recording changed nothing visible, apart from at most one line on stderr.
pub fn assert_undisturbed(recorded: &Outcome, plain: &Outcome) {
    assert_eq!(recorded.status, plain.status, "exit: {recorded:?}");
    assert_eq!(recorded.stdout, plain.stdout, "stdout: {recorded:?}");
    assert!(recorded.stderr.lines().count() <= 1, "stderr: {recorded:?}");
}

/// Runs a program with and without recording, and asserts that a user sees no difference.
pub fn undisturbed(program: &str, dir: &Path, arguments: &[&str]) -> Outcome {
    let host = || Host::new(program).arguments(arguments);
    let (plain, recorded) = (host().run(), host().recorded_in(dir).run());
    assert_undisturbed(&recorded, &plain);
    recorded
}

/// Waits for a child to end and collects its output.
pub(super) fn finish(child: &mut Child, stdout: JoinHandle<String>, deadline: Duration) -> Outcome {
    let stderr = collect(child.stderr.take());
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("the host can be waited for") {
            break status;
        }
        if start.elapsed() > deadline {
            kill_group(child);
            let (stdout, stderr) = (stdout.join(), stderr.join());
            panic!("the host hangs for {deadline:?}; stdout {stdout:?}, stderr {stderr:?}");
        }
        thread::sleep(Duration::from_millis(2));
    };
    Outcome {
        pid: child.id(),
        status,
        stdout: stdout.join().expect("stdout was read"),
        stderr: stderr.join().expect("stderr was read"),
    }
}

/// Reads a pipe to its end on another thread.
pub(super) fn collect(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut bytes).expect("the pipe is readable");
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Kills the host and all processes that it started.
pub(super) fn kill_group(child: &mut Child) {
    let group = format!("-{}", child.id());
    let _gone_already = Command::new("kill")
        .args(["-KILL", "--", &group])
        .stderr(Stdio::null())
        .status();
    let _gone_already = child.kill();
    let _reaped_already = child.wait();
}
