//! The program under test, on ground of its own: started, led, and its traces read.
#![allow(dead_code, reason = "each test file uses its own part of it")]

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

/// The program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_sa-profile");
/// Nothing takes this long unless it hangs.
const DEADLINE: Duration = Duration::from_secs(60);

/// The recorded process of `examples/worker.rs`, which cargo builds beside the tests.
pub(crate) fn worker() -> String {
    let worker = Path::new(PROGRAM).with_file_name("examples").join("worker");
    assert!(
        worker.exists(),
        "{} is built: cargo build -p sa-profile --examples",
        worker.display()
    );
    worker.display().to_string()
}

/// A shared library that can be loaded into any process.
pub(crate) fn some_library() -> String {
    some_library_of("/libc.")
}

/// The library of this process with this in its path.
fn some_library_of(part: &str) -> String {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let library = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .find(|path| path.contains(part));
    library.expect("this process has the library").to_owned()
}

/// A shared library that needs one that nobody has.
pub(crate) fn lacking_library(ground: &Ground) -> String {
    let mut bytes = fs::read(some_library_of("/libgcc_s")).unwrap();
    let name = b"libc.so.6\0";
    let at = bytes
        .windows(name.len())
        .position(|window| window == name)
        .unwrap();
    bytes[at..at + name.len()].copy_from_slice(b"libn.so.0\0");
    let library = ground.path("lacking.so");
    fs::write(&library, bytes).unwrap();
    library.display().to_string()
}

/// Sends a signal by its name.
pub(crate) fn signal(name: &str, pid: &str) {
    let status = Command::new("kill")
        .args(["-s", name, pid])
        .status()
        .unwrap();
    assert!(status.success(), "SIG{name} to {pid}");
}

/// The program in a folder of its own, where it has nothing beside it.
pub(crate) fn alone(ground: &Ground) -> Command {
    let folder = ground.path("bin");
    fs::create_dir_all(&folder).unwrap();
    let copy = folder.join("sa-profile");
    fs::copy(PROGRAM, &copy).unwrap();
    ground.plain(&copy.display().to_string())
}

/// The state letter of a process.
pub(crate) fn state(pid: u32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
}

/// A directory of its own to work in.
pub(crate) struct Ground {
    root: TempDir,
}

impl Ground {
    /// Makes it.
    pub(crate) fn new() -> Ground {
        Ground {
            root: tempfile::Builder::new()
                .prefix("sa-cli-")
                .tempdir()
                .unwrap(),
        }
    }

    /// A path in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// A command that works in it and sees no variable of ours, nor a terminal's.
    pub(crate) fn plain(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"SA_PROFILE") {
                command.env_remove(name);
            }
        }
        for name in [
            "DISPLAY",
            "WAYLAND_DISPLAY",
            "BROWSER",
            "SSH_CONNECTION",
            "LD_PRELOAD",
        ] {
            command.env_remove(name);
        }
        command.current_dir(self.root.path());
        command
    }

    /// The program with arguments.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.plain(PROGRAM);
        command.args(arguments);
        command
    }

    /// Starts the program.
    pub(crate) fn start(&self, arguments: &[&str]) -> Started {
        Started::of(&mut self.command(arguments))
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        self.start(arguments).end()
    }

    /// `sa-profile run` with these options and a worker that gets these words.
    pub(crate) fn recording(&self, options: &str, words: &str) -> Command {
        let mut command = self.command(&["run"]);
        command.args(options.split_whitespace()).arg("--");
        command.arg(worker()).args(words.split_whitespace());
        command
    }

    /// A worker that gets these words, and records into `out` by itself.
    pub(crate) fn worker(&self, words: &[&str]) -> Command {
        let mut command = self.plain(&worker());
        command.args(words);
        command.env("SA_PROFILE_DIR", self.path("out"));
        command
    }

    /// Records a worker that gets these words, to its end.
    pub(crate) fn record(&self, options: &str, words: &str) -> Ended {
        Started::of(&mut self.recording(options, words)).end()
    }

    /// Reads a trace.
    pub(crate) fn trace(&self, path: &str) -> Trace {
        let text =
            fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        Trace(serde_json::from_str(&text).unwrap())
    }

    /// Reads the trace in the one default directory.
    pub(crate) fn only_trace(&self) -> Trace {
        let runs: Vec<_> = fs::read_dir(self.path("profile_out"))
            .unwrap()
            .flatten()
            .collect();
        assert_eq!(runs.len(), 1, "{runs:?}");
        self.trace(&format!(
            "profile_out/{}/trace.json",
            runs[0].file_name().display()
        ))
    }

    /// The fragments in a run directory.
    pub(crate) fn fragments(&self, directory: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path(directory).join("fragments"))
            .unwrap()
            .flatten();
        let paths = entries.map(|entry| entry.path());
        paths
            .filter(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "jsonl")
            })
            .collect()
    }

    /// How often a text is in the fragments so far.
    pub(crate) fn written(&self, directory: &str, text: &str) -> usize {
        let fragments = self.fragments(directory);
        let texts = fragments
            .iter()
            .filter_map(|path| fs::read_to_string(path).ok());
        texts.map(|written| written.matches(text).count()).sum()
    }

    /// The pid in the name of the only fragment.
    pub(crate) fn only_fragment_pid(&self, directory: &str) -> String {
        let fragments = self.fragments(directory);
        assert_eq!(fragments.len(), 1, "{fragments:?}");
        let name = fragments[0]
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        name.split('.').nth(1).unwrap().to_owned()
    }

    /// The run ids in the headers of the fragments.
    pub(crate) fn runs(&self, directory: &str) -> BTreeSet<String> {
        let header = |path: &PathBuf| {
            let text = fs::read_to_string(path).unwrap();
            let header: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
            header["args"]["run"].as_str().unwrap().to_owned()
        };
        self.fragments(directory).iter().map(header).collect()
    }
}

/// A trace.
pub(crate) struct Trace(Value);

impl Trace {
    fn events(&self) -> &Vec<Value> {
        self.0["traceEvents"].as_array().unwrap()
    }

    fn named(&self) -> impl Iterator<Item = (&str, &Value)> {
        let names = self
            .events()
            .iter()
            .filter(|event| event["name"] == "process_name");
        names.map(|event| (event["args"]["name"].as_str().unwrap(), &event["pid"]))
    }

    /// The names of the processes.
    pub(crate) fn processes(&self) -> Vec<String> {
        self.named()
            .map(|(name, _)| name.split(" [").next().unwrap().to_owned())
            .collect()
    }

    /// The spans `work` of the processes of this name.
    pub(crate) fn spans(&self, process: &str) -> usize {
        let pids: Vec<&Value> = self
            .named()
            .filter(|(name, _)| name.split(" [").next() == Some(process))
            .map(|(_, pid)| pid)
            .collect();
        let spans = self
            .events()
            .iter()
            .filter(|event| event["ph"] == "X" && event["name"] == "work");
        spans.filter(|event| pids.contains(&&event["pid"])).count()
    }
}

/// The running program; killed when dropped.
pub(crate) struct Started {
    child: Child,
    stderr: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<String>>,
}

/// How the program ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit code; none if a signal ended it.
    pub(crate) code: Option<i32>,
    /// Its data.
    pub(crate) stdout: String,
    /// Its words.
    pub(crate) stderr: String,
}

impl Ended {
    /// Checks that stderr contains all of these texts.
    pub(crate) fn says(&self, texts: &[&str]) {
        for text in texts {
            assert!(self.stderr.contains(text), "{text} in {}", self.stderr);
        }
    }
}

impl Started {
    /// Starts a command.
    pub(crate) fn of(command: &mut Command) -> Started {
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
                    let mut text = lines.lock().unwrap();
                    *text += &line;
                    text.push('\n');
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

    /// Its pid.
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

    /// Waits until something is so.
    pub(crate) fn wait_until(&self, mut is_so: impl FnMut() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(
                start.elapsed() < DEADLINE,
                "it does not come about; stderr: {}",
                self.stderr.lock().unwrap()
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until a file has this text.
    pub(crate) fn wait_for_note(&self, notes: &Path, text: &str) {
        self.wait_until(|| fs::read_to_string(notes).is_ok_and(|notes| notes == text));
    }

    /// Waits for a line on stderr that contains `text`.
    pub(crate) fn wait_for_line(&self, text: &str) -> String {
        let find = || {
            self.stderr
                .lock()
                .unwrap()
                .lines()
                .find(|line| line.contains(text))
                .map(str::to_owned)
        };
        self.wait_until(|| find().is_some());
        find().unwrap()
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(
                start.elapsed() < DEADLINE,
                "it does not end; stderr: {}",
                self.stderr.lock().unwrap()
            );
            thread::sleep(Duration::from_millis(5));
        };
        let texts: Vec<String> = self
            .readers
            .drain(..)
            .map(|reader| reader.join().unwrap())
            .collect();
        let stderr = self.stderr.lock().unwrap().clone();
        Ended {
            code: status.code(),
            stdout: texts[0].clone(),
            stderr,
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
