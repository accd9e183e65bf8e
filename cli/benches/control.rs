//! Benchmarks commands that act on 64 live processes: `cargo bench -p sa-profile --bench control [-- [--quick] [switch] [live]]`.
//!
//! `switch`: recording is switched on in processes at full speed and, when all have reported that, off again. For each switch this measures the time
//! from storing the command's control to the last process's own record of it, including 350 ms of lead, and the time between the first and the last
//! process. They record for at most 3 s, which limits the disk space. Prints `RESULT switch_<on|off> <ms_to_the_last_of_64>
//! <ms_between_first_and_last>`.
//!
//! `live`: processes record while `sa-profile serve` follows them and `/stats` is requested ten times per second: first paced like a busy engine (100
//! spans and a request with four tokens per process every 100 ms), then at full speed. Prints for both, `paced` and `full`: `RESULT live_<which>_read
//! <MB_written> <MB_per_s_read> <most_seconds_behind>`, `RESULT live_<which>_cpu <percent_of_one_core> <ms_per_MB_read>`, `RESULT live_<which>_memory
//! <MB_of_anonymous_memory_at_most>`, `RESULT live_<which>_stats_ms <p50> <p99> <kB_of_the_body>`, and how long it took to catch up after recording
//! stopped: `RESULT live_<which>_caught_up_s <seconds>`.
#![expect(clippy::print_stdout, reason = "the figures are this program's output")]
#![expect(
    clippy::unwrap_used,
    reason = "a measurement that cannot be made is none"
)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use measure::process::{anonymous_bytes, cpu_s};
use measure::quantile::{median, quantile};
use measure::{Child, scratch};
use sa_format::control::{Control, LEAD_NS, Switch};
use sa_recorder::{counter, instant, now_ns, span};
use serde_json::Value;
use trace_merge::line::parse_canonical;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sa-profile");
const PROCESSES: usize = 64;
/// Argument that marks a child process; `paced` or `full` follows.
const CHILD: &str = "--record-in-child";
const PACE: Duration = Duration::from_millis(100);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|given| given == word);
    if has(CHILD) {
        return record(has("paced"));
    }
    let (rounds, paced_s, full_s) = if has("--quick") {
        (1, 5, 1)
    } else {
        (5, 30, 2)
    };
    if has("switch") || !has("live") {
        switch_all(rounds);
    }
    if has("live") || !has("switch") {
        follow("paced", paced_s);
        follow("full", full_s);
    }
}

/// Records until the parent closes stdin.
fn record(is_paced: bool) {
    std::thread::spawn(|| {
        let mut rest = String::new();
        let _ = std::io::stdin().read_line(&mut rest); // only waits for its end
        process::exit(0);
    });
    let pid = process::id();
    for number in 0.. {
        let start = Instant::now();
        for _ in 0..100 {
            let _span = span!("bench", "step", number = number);
        }
        if is_paced {
            answer(&format!("{pid}-{number}"));
            std::thread::sleep(PACE.saturating_sub(start.elapsed()));
        }
    }
}

/// Records a request.
fn answer(id: &str) {
    let mut http = span!("http", "http.completions", request_id = id);
    instant!("serving", "request.queued", request_id = id);
    instant!("serving", "request.scheduled", request_id = id);
    counter!("requests", running = 1, waiting = 0);
    for _ in 0..4 {
        instant!("serving", "request.token", request_id = id);
    }
    http.arg("output_tokens", 4);
    http.arg("reason", "stop");
}

/// The processes that record.
struct Recording(Vec<process::Child>);

impl Recording {
    fn start(directory: &Path, how: &str, is_paused: bool) -> Recording {
        let child = |_| {
            let mut child = Child::new([CHILD, how]).unwrap().recording_in(directory);
            if is_paused {
                child = child.variable("SA_PROFILE_START", "paused");
            }
            let mut command = child.into_command();
            command.stdin(Stdio::piped()).spawn().unwrap()
        };
        Recording((0..PROCESSES).map(child).collect())
    }

    /// Ends all processes, and waits for them.
    fn end(mut self) {
        self.0.iter_mut().for_each(|child| drop(child.stdin.take()));
        for child in &mut self.0 {
            child.wait().unwrap();
        }
    }
}

fn fragments(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.join("fragments"))
        .into_iter()
        .flatten();
    let paths = entries.flatten().map(|entry| entry.path());
    paths
        .filter(|path| path.extension() == Some("jsonl".as_ref()))
        .collect()
}

/// Switches recording on and off, and measures how soon all processes obey.
fn switch_all(rounds: usize) {
    let mut found = [
        ("on", Vec::new(), Vec::new()),
        ("off", Vec::new(), Vec::new()),
    ];
    for _ in 0..rounds {
        let scratch = scratch().unwrap();
        let directory = scratch.path();
        let recording = Recording::start(directory, "full", true);
        while fragments(directory).len() < PROCESSES {
            std::thread::sleep(Duration::from_millis(10));
        }
        let controls =
            [&["start", "--for", "3s"][..], &["stop"]].map(|words| switch(directory, words));
        recording.end();
        let texts: Vec<Vec<u8>> = fragments(directory)
            .iter()
            .map(|path| fs::read(path).unwrap())
            .collect();
        for ((_, last_ms, apart_ms), control) in found.iter_mut().zip(controls) {
            let at_ns = texts.iter().map(|text| obeyed_ns(text, &control.id));
            let at_ns: Vec<u64> = at_ns.collect();
            let (first, last) = (at_ns.iter().min().unwrap(), at_ns.iter().max().unwrap());
            last_ms.push((last - stored_ns(&control)) as f64 / 1e6);
            apart_ms.push((last - first) as f64 / 1e6);
        }
    }
    for (state, last_ms, apart_ms) in found {
        println!(
            "RESULT switch_{state} {:.1} {:.1}",
            median(&last_ms),
            median(&apart_ms)
        );
    }
}

/// Switches all processes with the command, which waits for them. Returns the control that it stored.
fn switch(directory: &Path, words: &[&str]) -> Control {
    let status = Command::new(PROGRAM).args(words).arg(directory).status();
    if !status.unwrap().success() {
        println!("{words:?}: not all obeyed within 2 s");
    }
    Control::parse(&fs::read(directory.join("control")).unwrap()).unwrap()
}

/// Returns when the command stored a control, in ns of the monotonic clock.
fn stored_ns(control: &Control) -> u64 {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let since_ns = u64::try_from(wall.as_nanos()).unwrap() - (control.from_realtime_ns - LEAD_NS);
    now_ns() - since_ns
}

/// Returns when a process recorded that it obeys a control, in ns of the monotonic clock.
fn obeyed_ns(text: &[u8], id: &str) -> u64 {
    let id = format!(r#""control":"{id}""#);
    let has = |line: &[u8], words: &str| memchr::memmem::find(line, words.as_bytes()).is_some();
    let mut lines = text.split(|byte| *byte == b'\n');
    let line = lines.find(|line| has(line, Switch::NAME) && has(line, &id));
    let event = line.and_then(parse_canonical);
    u64::try_from(event.expect("every process records the switch").ts_ns).unwrap()
}

/// Follows processes that record for a number of seconds.
fn follow(which: &str, seconds: u64) {
    let scratch = scratch().unwrap();
    let mut serving = Serving::start(scratch.path());
    let recording = Recording::start(scratch.path(), which, false);
    let (start, cpu_before_s) = (Instant::now(), serving.cpu_s());
    while start.elapsed() < Duration::from_secs(seconds) {
        serving.ask();
        std::thread::sleep(Duration::from_millis(100));
    }
    let (wall_s, recording_cpu_s) = (
        start.elapsed().as_secs_f64(),
        serving.cpu_s() - cpu_before_s,
    );
    let read_while_recording = serving.bytes;
    recording.end();
    let ended = Instant::now();
    while serving.ask()["state"] != "ended" {
        std::thread::sleep(Duration::from_millis(100));
    }
    let caught_up_s = ended.elapsed().as_secs_f64();
    let fragments = fragments(scratch.path()).into_iter();
    let written: u64 = fragments.map(|path| path.metadata().unwrap().len()).sum();
    println!(
        "RESULT live_{which}_read {:.0} {:.1} {:.2}",
        written as f64 / 1e6,
        read_while_recording / 1e6 / wall_s,
        serving.behind_s
    );
    let cpu_ms = 1e3 * (serving.cpu_s() - cpu_before_s);
    println!(
        "RESULT live_{which}_cpu {:.1} {:.2}",
        100.0 * recording_cpu_s / wall_s,
        cpu_ms / (serving.bytes / 1e6)
    );
    println!(
        "RESULT live_{which}_memory {:.1}",
        serving.anonymous_bytes as f64 / 1e6
    );
    let [p50, p99] = [0.5, 0.99].map(|share| quantile(&serving.latencies_ms, share));
    let kb = serving.body_bytes as f64 / 1e3;
    println!("RESULT live_{which}_stats_ms {p50:.2} {p99:.2} {kb:.0}");
    println!("RESULT live_{which}_caught_up_s {caught_up_s:.1}");
    serving.child.kill().unwrap();
    serving.child.wait().unwrap();
}

/// `sa-profile serve`, and its `/stats` so far.
struct Serving {
    child: process::Child,
    port: u16,
    latencies_ms: Vec<f64>,
    bytes: f64,
    behind_s: f64,
    anonymous_bytes: u64,
    body_bytes: usize,
}

impl Serving {
    fn start(directory: &Path) -> Serving {
        let mut command = Command::new(PROGRAM);
        command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .arg(directory);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let stderr = child.stderr.take().unwrap();
        BufReader::new(stderr).read_line(&mut line).unwrap();
        let (_, rest) = line.split_once("127.0.0.1:").unwrap();
        Serving {
            port: rest.split('/').next().unwrap().parse().unwrap(),
            child,
            latencies_ms: Vec::new(),
            bytes: 0.0,
            behind_s: 0.0,
            anonymous_bytes: 0,
            body_bytes: 0,
        }
    }

    /// Requests `/stats` once.
    fn ask(&mut self) -> Value {
        let start = Instant::now();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let asked = b"GET /stats HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(asked).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        self.latencies_ms.push(start.elapsed().as_secs_f64() * 1e3);
        let end = memchr::memmem::find(&answer, b"\r\n\r\n").unwrap();
        let body = &answer[end + 4..];
        let stats: Value = serde_json::from_slice(body).unwrap_or_default();
        self.body_bytes = body.len();
        self.bytes = stats["recorded"]["bytes"].as_f64().unwrap_or(0.0);
        let behind_s = stats["behind"]["behind_ns"].as_f64().unwrap_or(0.0) / 1e9;
        self.behind_s = self.behind_s.max(behind_s);
        let anonymous_bytes = anonymous_bytes(self.child.id()).unwrap_or(0);
        self.anonymous_bytes = self.anonymous_bytes.max(anonymous_bytes);
        stats
    }

    fn cpu_s(&self) -> f64 {
        cpu_s(self.child.id()).unwrap()
    }
}
