//! Running programs. They must end within a minute, and none of their processes is left.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Deadline for all programs. Only a hang takes this long.
const DEADLINE: Duration = Duration::from_secs(60);

/// Exit code and output of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Exit code, or the negative number of the signal.
    pub code: i32,
    /// Everything written to stdout.
    pub stdout: String,
    /// Everything written to stderr.
    pub stderr: String,
}

/// Runs a command to its end.
pub fn end(command: &mut Command) -> Ended {
    Running::start(command).end()
}

/// Runs a command that must succeed without output on stderr, and returns its stdout.
pub fn success(command: &mut Command) -> String {
    let ended = end(command);
    let outcome = (ended.code, ended.stderr.as_str());
    assert_eq!(outcome, (0, ""), "{command:?}: {}", ended.stdout);
    ended.stdout
}

/// Returns the names that a library exports.
pub fn exported(library: &Path) -> BTreeSet<String> {
    let symbols = success(
        Command::new("nm")
            .args(["-D", "--defined-only"])
            .arg(library),
    );
    let names = symbols.lines().filter_map(|line| line.rsplit(' ').next());
    names.map(str::to_owned).collect()
}

/// Returns the dynamic section of a library or a program as text.
pub fn dynamic_section(file: &Path) -> String {
    success(Command::new("readelf").args(["-d", "-W"]).arg(file))
}

/// Waits until `found` returns a value.
pub fn wait_for<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(
            start.elapsed() < DEADLINE,
            "the expected event does not happen"
        );
        thread::sleep(Duration::from_millis(2));
    }
}

/// A running command. Dropping it kills its process group.
#[derive(Debug)]
pub struct Running {
    group: Group,
    stdout: JoinHandle<String>,
    stderr: JoinHandle<String>,
}

impl Running {
    /// Starts a command in a new process group.
    pub fn start(command: &mut Command) -> Running {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Running {
            stdout: collect(child.stdout.take().unwrap()),
            stderr: collect(child.stderr.take().unwrap()),
            group: Group(child),
        }
    }

    /// Waits until `found` returns a value. The command must still be running.
    pub fn wait_for<T>(&mut self, mut found: impl FnMut() -> Option<T>) -> T {
        wait_for(|| {
            let ended = self.group.0.try_wait().unwrap();
            assert!(ended.is_none(), "the command ended with {ended:?}");
            found()
        })
    }

    /// Waits until the command has ended.
    pub fn end(mut self) -> Ended {
        let status = wait_for(|| self.group.0.try_wait().unwrap());
        Ended {
            code: status.code().unwrap_or_else(|| -status.signal().unwrap()),
            stdout: self.stdout.join().unwrap(),
            stderr: self.stderr.join().unwrap(),
        }
    }
}

/// Leader of a process group, which is killed on drop.
#[derive(Debug)]
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        signal("KILL", &format!("-{}", self.0.id()));
        let _ = self.0.wait();
    }
}

fn collect(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Sends a signal to a process, or to a process group if the number has a minus. Does nothing if it is gone.
pub fn signal(name: &str, process: &str) {
    let _ = Command::new("kill")
        .args(["-s", name, "--", process])
        .stderr(Stdio::null())
        .status();
}
