//! One run of the host program under a deadline.

use super::live::Live;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The host's exit code when it did what it was asked to.
pub const DONE: i32 = 7;
/// How long a host may take when the test says nothing else.
const DEADLINE: Duration = Duration::from_secs(60);

/// A host program about to be started, by itself or below a wrapper such as `unshare`.
pub struct Host {
    command: Command,
    deadline: Duration,
}

impl Host {
    /// Prepares `program`; it sees no `SA_PROFILE_…` variable but those given here.
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

    /// Prepares `wrapper`, which is given `program` after its own arguments.
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

    /// Runs it as another user; that user must be able to reach the program.
    #[must_use]
    pub fn user(mut self, uid: u32) -> Host {
        self.command.uid(uid).gid(uid);
        self
    }

    /// Sets how long it may take.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Host {
        self.deadline = deadline;
        self
    }

    /// Starts it and stays in contact.
    pub fn start(mut self) -> Live {
        Live::new(self.spawn(), self.deadline)
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When it is still alive at the deadline.
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

/// How a host ended and what it said.
#[derive(Debug)]
pub struct Outcome {
    /// Its pid in the test's namespace.
    pub pid: u32,
    /// How it ended.
    pub status: ExitStatus,
    /// All of its stdout.
    pub stdout: String,
    /// All of its stderr, of its children too.
    pub stderr: String,
}

impl Outcome {
    /// Asserts that it ended with the code of success and that nothing of ours is on stderr.
    #[must_use]
    pub fn quiet(self) -> Outcome {
        assert_eq!(self.lines(), 0, "{self:?}");
        self
    }

    /// Asserts that it ended with the code of success and gives the one line on stderr.
    pub fn one_line(&self) -> &str {
        assert_eq!(self.lines(), 1, "one line of warning: {self:?}");
        self.stderr.trim_end()
    }

    /// Asserts that it ended with the code of success and that at most one line of ours is on stderr.
    #[must_use]
    pub fn unharmed(self) -> Outcome {
        assert!(self.lines() <= 1, "{self:?}");
        self
    }

    /// Counts the lines on stderr of a host that ended with the code of success.
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

/// Asserts that recording changed nothing that the host's user could see but at most one line on stderr.
pub fn assert_undisturbed(recorded: &Outcome, plain: &Outcome) {
    assert_eq!(recorded.status, plain.status, "exit: {recorded:?}");
    assert_eq!(recorded.stdout, plain.stdout, "stdout: {recorded:?}");
    assert!(recorded.stderr.lines().count() <= 1, "stderr: {recorded:?}");
}

/// Runs a program recorded and plain, and asserts that a user sees no difference.
pub fn undisturbed(program: &str, dir: &Path, arguments: &[&str]) -> Outcome {
    let host = || Host::new(program).arguments(arguments);
    let (plain, recorded) = (host().run(), host().recorded_in(dir).run());
    assert_undisturbed(&recorded, &plain);
    recorded
}

/// Waits for a child's end, then takes what it said.
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

/// Reads all of a pipe on a thread of its own.
pub(super) fn collect(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut bytes).expect("the pipe is readable");
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Kills the host and everything it started.
pub(super) fn kill_group(child: &mut Child) {
    let group = format!("-{}", child.id());
    let _gone_already = Command::new("kill")
        .args(["-KILL", "--", &group])
        .stderr(Stdio::null())
        .status();
    let _gone_already = child.kill();
    let _reaped_already = child.wait();
}
