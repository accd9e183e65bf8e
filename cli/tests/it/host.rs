//! A process that records: this test binary again, started for one test that does nothing else.

use sa_recorder::{Recorder, now_ns, span};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Names the process in the child.
const NAME: &str = "CLI_TEST_HOST";
/// How many spans each has recorded when it says that it is ready, unless [`COUNT`] says so.
pub(crate) const SPANS: u64 = 1000;
/// Variable of another number.
const COUNT: &str = "CLI_TEST_SPANS";

/// Variable that has a span open until the end, so that a kill comes in the middle of one.
pub(crate) const OPEN: &str = "CLI_TEST_OPEN";

/// Records spans at once, then one every ms until stdin ends. Does nothing as a test of its own.
#[test]
fn child() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let Ok(name) = std::env::var(NAME) else {
        return;
    };
    Recorder::init().set_process_name(&name);
    std::thread::spawn(|| {
        let mut rest = Vec::new();
        let _ = std::io::stdin().read_to_end(&mut rest); // its end is all that counts
        STOP.store(true, Ordering::Relaxed);
    });
    let count = std::env::var(COUNT).map_or(SPANS, |count| count.parse().unwrap());
    for number in 0..count {
        let _span = span!("test", "early", number = number);
    }
    Recorder::get().flush();
    let _open = std::env::var_os(OPEN).map(|_| span!("engine", "run"));
    fs::write(std::env::var("CLI_TEST_READY").unwrap(), "").unwrap();
    while !STOP.load(Ordering::Relaxed) {
        let _step = span!("engine", "step", at = now_ns());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A process that records until it is let go.
pub(crate) struct Host(Child);

impl Host {
    /// Starts a process of this name and waits until it has recorded its first spans.
    pub(crate) fn start(directory: &Path, name: &str, paused: bool) -> Host {
        let start = if paused { "paused" } else { "" };
        Host::start_with(directory, name, &[("SA_PROFILE_START", start)])
    }

    /// Starts one with these variables.
    pub(crate) fn start_with(directory: &Path, name: &str, variables: &[(&str, &str)]) -> Host {
        let scratch = tempfile::tempdir().unwrap();
        let ready = scratch.path().join("ready");
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "host::child", "--test-threads", "1"])
            .env_clear()
            .envs([("CLI_TEST_READY", &ready)])
            .env(NAME, name)
            .env("SA_PROFILE_DIR", directory)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let start = Instant::now();
        while !ready.exists() {
            assert!(start.elapsed() < Duration::from_secs(60), "{name} records");
            std::thread::sleep(Duration::from_millis(5));
        }
        Host(child)
    }

    /// One whose room on disk is too small for what it records, killed then.
    pub(crate) fn lossy(directory: &Path) {
        let bound = [
            (COUNT, "60000"),
            ("SA_PROFILE_MAX_MB", "1"),
            ("SA_PROFILE_KEEP", "first"),
        ];
        Host::start_with(directory, "worker-0", &bound).kill();
    }

    /// Its pid.
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Sends it a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args([format!("-{name}"), self.pid().to_string()])
            .status();
        assert!(status.unwrap().success());
    }

    /// Lets it end.
    pub(crate) fn end(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().unwrap().success());
    }

    /// Kills it.
    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.0.kill(); // it may have ended
        let _ = self.0.wait();
    }
}
