//! Runs the program under test in its own directory: starts it, sends signals, and reads its traces.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Path of the program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_sa-profile");
/// Maximum time for anything to happen.
const DEADLINE: Duration = Duration::from_secs(60);

/// Returns the path of the program `examples/worker.rs`. Cargo builds it together with the tests.
pub(crate) fn worker() -> String {
    let worker = Path::new(PROGRAM).with_file_name("examples").join("worker");
    assert!(
        worker.exists(),
        "{} is built: cargo build -p sa-profile --examples",
        worker.display()
    );
    worker.display().to_string()
}

/// Returns a shared library that can be loaded into any process.
pub(crate) fn some_library() -> String {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut paths = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5));
    let library = paths.find(|path| path.contains("/libgcc_s"));
    library.expect("this process has the library").to_owned()
}

/// Returns a shared library that needs another one, which does not exist.
pub(crate) fn lacking_library(ground: &Ground) -> String {
    let mut bytes = fs::read(some_library()).unwrap();
    let name = b"libc.so.6\0";
    let mut windows = bytes.windows(name.len());
    let at = windows.position(|window| window == name).unwrap();
    bytes[at..at + name.len()].copy_from_slice(b"libn.so.0\0");
    let library = ground.path("lacking.so");
    fs::write(&library, bytes).unwrap();
    library.display().to_string()
}

/// Sends a signal by its name.
pub(crate) fn signal(name: &str, pid: &str) {
    let status = Command::new("kill").args(["-s", name, pid]).status();
    assert!(status.unwrap().success(), "SIG{name} to {pid}");
}

/// A working directory for one test.
pub(crate) struct Ground {
    root: TempDir,
}

impl Ground {
    /// Creates the directory.
    pub(crate) fn new() -> Ground {
        let root = tempfile::Builder::new().prefix("sa-cli-").tempdir();
        Ground {
            root: root.unwrap(),
        }
    }

    /// Returns a path in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Returns a command that runs in the directory, without our variables or those of a terminal.
    pub(crate) fn plain(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"SA_PROFILE") {
                command.env_remove(name);
            }
        }
        let others = "DISPLAY WAYLAND_DISPLAY BROWSER SSH_CONNECTION LD_PRELOAD VIRTUAL_ENV";
        for name in others.split(' ') {
            command.env_remove(name);
        }
        command.current_dir(self.root.path());
        command
    }

    /// Returns the program with arguments.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.plain(PROGRAM);
        command.args(arguments);
        command
    }

    /// Returns a copy of the program in a folder that contains nothing else.
    pub(crate) fn alone(&self, arguments: &[&str]) -> Command {
        fs::create_dir_all(self.path("bin")).unwrap();
        let copy = self.path("bin/sa-profile");
        fs::copy(PROGRAM, &copy).unwrap();
        let mut command = self.plain(&copy.display().to_string());
        command.args(arguments);
        command
    }

    /// Starts the program.
    pub(crate) fn start(&self, arguments: &[&str]) -> Started {
        Started::spawn(&mut self.command(arguments))
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        self.start(arguments).end()
    }

    /// Runs the program with these arguments, separated by spaces, to its end.
    pub(crate) fn run_words(&self, words: &str) -> Ended {
        self.run(&words.split_whitespace().collect::<Vec<_>>())
    }

    /// Returns the JSON that the program prints. It must succeed without a message.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let ended = self.run(arguments);
        let said = (ended.code, ended.stderr.as_str());
        assert_eq!(said, (Some(0), ""), "{arguments:?}");
        serde_json::from_str(&ended.stdout).unwrap()
    }

    /// Returns `sa-profile run` with these options and a worker with these arguments.
    pub(crate) fn recording(&self, options: &str, words: &str) -> Command {
        let mut command = self.command(&["run"]);
        command.args(options.split_whitespace()).arg("--");
        command.arg(worker()).args(words.split_whitespace());
        command
    }

    /// Records a worker with these arguments, to its end.
    pub(crate) fn record(&self, options: &str, words: &str) -> Ended {
        Started::spawn(&mut self.recording(options, words)).end()
    }

    /// Returns a worker with these arguments that records into `out` by itself.
    pub(crate) fn worker(&self, words: &[&str]) -> Command {
        let mut command = self.plain(&worker());
        command.args(words);
        command.env("SA_PROFILE_DIR", self.path("out"));
        command
    }

    /// Starts a worker that records 1,000 spans, and then one every ms until its stdin is closed. Waits for the first ones.
    pub(crate) fn host(&self, name: &str) -> Started {
        self.host_with(&[name, "spans=1000"], &[])
    }

    /// Starts a worker with these arguments and variables that then records a span every ms until its stdin is closed. Waits for the first ones.
    pub(crate) fn host_with(&self, words: &[&str], variables: &[(&str, &str)]) -> Started {
        let mut command = self.worker(&[words, &["steps"]].concat());
        // With this variable it has the recorder's thread, which checks for switches and flushes.
        command.env("SA_PROFILE_THREADS", "1");
        let host = Started::spawn(command.envs(variables.iter().copied()));
        host.wait_for_line("ready");
        host
    }

    /// Records a worker with too little disk space for its events, and kills it.
    pub(crate) fn lossy_host(&self) {
        let variables = [("SA_PROFILE_MAX_MB", "1"), ("SA_PROFILE_KEEP", "first")];
        drop(self.host_with(&["worker-0", "spans=60000"], &variables));
    }

    /// Writes a program `python3` with this shell script. Returns a `PATH` that contains it.
    pub(crate) fn path_with_python(&self, does: &str) -> String {
        let folder = self.path("python");
        fs::create_dir_all(&folder).unwrap();
        self.write_script("python/python3", does);
        format!("{}:/usr/bin:/bin", folder.display())
    }

    /// Writes an executable shell script.
    pub(crate) fn write_script(&self, name: &str, does: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/sh\n{does}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Counts the spans `work` of the processes with this name in a trace.
    pub(crate) fn spans(&self, trace: &str, process: &str) -> usize {
        let text =
            fs::read_to_string(self.path(trace)).unwrap_or_else(|error| panic!("{trace}: {error}"));
        let trace: Value = serde_json::from_str(&text).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let names = events
            .iter()
            .filter(|event| event["name"] == "process_name");
        let of_process = names.filter(|event| {
            let name = event["args"]["name"].as_str().unwrap();
            name.split(" [").next() == Some(process)
        });
        let pids: Vec<&Value> = of_process.map(|event| &event["pid"]).collect();
        let spans = events
            .iter()
            .filter(|event| event["ph"] == "X" && event["name"] == "work");
        spans.filter(|event| pids.contains(&&event["pid"])).count()
    }

    /// Returns the fragments in a run directory.
    pub(crate) fn fragments(&self, directory: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path(directory).join("fragments")).unwrap();
        let paths = entries.flatten().map(|entry| entry.path());
        let is_fragment = |path: &PathBuf| path.extension().is_some_and(|end| end == "jsonl");
        paths.filter(is_fragment).collect()
    }

    /// Returns the pid in the name of the only fragment in `out`.
    pub(crate) fn only_fragment_pid(&self) -> String {
        let fragments = self.fragments("out");
        assert_eq!(fragments.len(), 1, "{fragments:?}");
        let name = fragments[0].file_name().unwrap().to_str().unwrap();
        name.split('.').nth(1).unwrap().to_owned()
    }

    /// Returns the run ids in the headers of the fragments.
    pub(crate) fn runs(&self, directory: &str) -> BTreeSet<String> {
        let header = |path: &PathBuf| {
            let text = fs::read_to_string(path).unwrap();
            let header: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
            header["args"]["run"].as_str().unwrap().to_owned()
        };
        self.fragments(directory).iter().map(header).collect()
    }
}

/// A running program, which is killed when this is dropped.
pub(crate) struct Started {
    child: Child,
    stderr: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<String>>,
}

/// Exit code and output of a program that has ended.
#[derive(Debug, PartialEq)]
pub(crate) struct Ended {
    /// Exit code; `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    /// Its stdout.
    pub(crate) stdout: String,
    /// Its stderr.
    pub(crate) stderr: String,
}

impl Ended {
    /// Returns the result of a command that fails with this reason.
    pub(crate) fn refusal(why: &str) -> Ended {
        Ended {
            code: Some(2),
            stdout: String::new(),
            stderr: format!("sa-profile: {why}\n"),
        }
    }

    /// Returns the result of a command that succeeds without a message.
    pub(crate) fn done(stdout: impl Into<String>) -> Ended {
        Ended {
            code: Some(0),
            stdout: stdout.into(),
            stderr: String::new(),
        }
    }

    /// Checks that stderr contains all of these texts.
    pub(crate) fn says(&self, texts: &[&str]) {
        for text in texts {
            assert!(self.stderr.contains(text), "{text} in {}", self.stderr);
        }
    }
}

impl Started {
    /// Starts a command.
    pub(crate) fn spawn(command: &mut Command) -> Started {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = Arc::new(Mutex::new(String::new()));
        let (mut stdout, said) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let lines = Arc::clone(&stderr);
        let readers = vec![
            thread::spawn(move || {
                let mut text = String::new();
                let _ = stdout.read_to_string(&mut text);
                text
            }),
            thread::spawn(move || {
                for line in BufReader::new(said).lines().map_while(Result::ok) {
                    *lines.lock().unwrap() += &(line + "\n");
                }
                String::new()
            }),
        ];
        Started {
            child,
            stderr,
            readers,
        }
    }

    /// Returns its pid.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        signal(name, &self.child.id().to_string());
    }

    /// Writes to its stdin.
    pub(crate) fn type_in(&self, bytes: &[u8]) {
        self.child.stdin.as_ref().unwrap().write_all(bytes).unwrap();
    }

    /// Returns its stderr so far.
    pub(crate) fn said(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    /// Waits until a condition is true.
    pub(crate) fn wait_until(&self, mut is_so: impl FnMut() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(
                start.elapsed() < DEADLINE,
                "the condition does not become true; stderr: {}",
                self.said()
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until a file has this text.
    pub(crate) fn wait_for_text(&self, notes: &Path, text: &str) {
        self.wait_until(|| fs::read_to_string(notes).is_ok_and(|notes| notes == text));
    }

    /// Waits for a line on stderr that contains `text`.
    pub(crate) fn wait_for_line(&self, text: &str) -> String {
        let mut found = None;
        self.wait_until(|| {
            let said = self.said();
            let mut lines = said.lines().map(str::to_owned);
            found = lines.find(|line| line.contains(text));
            found.is_some()
        });
        found.unwrap()
    }

    /// Closes its stdin, and waits until it ends.
    pub(crate) fn end(mut self) -> Ended {
        drop(self.child.stdin.take());
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(
                start.elapsed() < DEADLINE,
                "it does not end; stderr: {}",
                self.said()
            );
            thread::sleep(Duration::from_millis(5));
        };
        let readers = self.readers.drain(..);
        let texts: Vec<String> = readers.map(|reader| reader.join().unwrap()).collect();
        Ended {
            code: status.code(),
            stdout: texts[0].clone(),
            stderr: self.said(),
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
