//! What following a run costs: `cargo bench -p sa-profile --bench live [-- --quick]`.
//!
//! 64 processes record while `sa-profile serve` follows them and `/stats` is asked for ten times a second: first paced, as a busy engine does
//! (100 spans and a request of four tokens per process and 100 ms), then at full speed, for 2 s.
//! Prints for both, `paced` and `full`: `RESULT live_<which>_read <MB_written> <MB_per_s_read> <most_seconds_behind>`,
//! `RESULT live_<which>_cpu <percent_of_one_core> <ms_per_MB_read>`, `RESULT live_<which>_memory <MB_of_anonymous_memory_at_most>`,
//! `RESULT live_<which>_stats_ms <p50> <p99> <kB_of_the_body>`, and how long it took to catch up once nobody recorded any more:
//! `RESULT live_<which>_caught_up_s <seconds>`.
#![expect(clippy::print_stdout, reason = "the figures are this program's output")]
#![expect(
    clippy::unwrap_used,
    reason = "a measurement that cannot be made is none"
)]

use sa_recorder::{counter, instant, span};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_sa-profile");
const PROCESSES: usize = 64;
/// Marks a child's command line; how it records comes behind it.
const CHILD: &str = "--record-in-child";
const PACE: Duration = Duration::from_millis(100);
/// Of `/proc/<pid>/stat`.
const TICKS_PER_S: f64 = 100.0;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|word| word == CHILD) {
        return record(arguments.get(at + 1).is_some_and(|how| how == "paced"));
    }
    let is_quick = arguments.iter().any(|word| word == "--quick");
    measure("paced", if is_quick { 5 } else { 30 });
    measure("full", if is_quick { 1 } else { 2 });
}

/// Records until the parent closes stdin.
fn record(is_paced: bool) {
    std::thread::spawn(|| {
        let mut rest = String::new();
        let _ = std::io::stdin().read_line(&mut rest); // its end is all that counts
        std::process::exit(0);
    });
    let pid = std::process::id();
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

fn measure(which: &str, seconds: u64) {
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut serving = Serving::start(scratch.path());
    let this = std::env::current_exe().unwrap();
    let child = || {
        let mut command = Command::new(&this);
        command
            .args([CHILD, which])
            .env("SA_PROFILE_DIR", scratch.path());
        command.stdin(Stdio::piped()).spawn().unwrap()
    };
    let mut children: Vec<Child> = (0..PROCESSES).map(|_| child()).collect();
    let (start, cpu) = (Instant::now(), serving.cpu_s());
    let mut seen = Seen::default();
    while start.elapsed() < Duration::from_secs(seconds) {
        seen.look(&serving);
        std::thread::sleep(Duration::from_millis(100));
    }
    let (wall_s, cpu_s) = (start.elapsed().as_secs_f64(), serving.cpu_s() - cpu);
    let while_recording = seen.bytes;
    children
        .iter_mut()
        .for_each(|child| drop(child.stdin.take()));
    for child in &mut children {
        child.wait().unwrap();
    }
    let ended = Instant::now();
    while seen.look(&serving)["state"] != "ended" {
        std::thread::sleep(Duration::from_millis(100));
    }
    let caught_up_s = ended.elapsed().as_secs_f64();
    let mb = |bytes: f64| bytes / 1e6;
    let read_mb = mb(while_recording);
    println!(
        "RESULT live_{which}_read {:.0} {:.1} {:.2}",
        mb(written(scratch.path())),
        read_mb / wall_s,
        seen.behind_s
    );
    println!(
        "RESULT live_{which}_cpu {:.1} {:.2}",
        100.0 * cpu_s / wall_s,
        1e3 * (serving.cpu_s() - cpu) / mb(seen.bytes)
    );
    println!("RESULT live_{which}_memory {:.1}", mb(seen.anonymous));
    seen.latencies.sort_unstable();
    let at = |share: usize| {
        let all = &seen.latencies;
        all[(all.len() * share / 100).min(all.len() - 1)].as_secs_f64() * 1e3
    };
    let (p50, p99, kb) = (at(50), at(99), seen.body as f64 / 1e3);
    println!("RESULT live_{which}_stats_ms {p50:.2} {p99:.2} {kb:.0}");
    println!("RESULT live_{which}_caught_up_s {caught_up_s:.1}");
    serving.child.kill().unwrap();
    serving.child.wait().unwrap();
}

fn written(directory: &Path) -> f64 {
    let entries = fs::read_dir(directory.join("fragments")).unwrap().flatten();
    let lengths = entries.filter_map(|entry| {
        let is_fragment = entry.path().extension().is_some_and(|end| end == "jsonl");
        Some(is_fragment.then(|| entry.metadata().ok())??.len())
    });
    lengths.sum::<u64>() as f64
}

/// What was seen of the server.
#[derive(Default)]
struct Seen {
    latencies: Vec<Duration>,
    bytes: f64,
    behind_s: f64,
    anonymous: f64,
    body: usize,
}

impl Seen {
    fn look(&mut self, serving: &Serving) -> Value {
        let start = Instant::now();
        let body = serving.stats();
        self.latencies.push(start.elapsed());
        self.body = body.len();
        let stats: Value = serde_json::from_slice(&body).unwrap_or_default();
        self.bytes = stats["recorded"]["bytes"].as_f64().unwrap_or(0.0);
        let behind_ns = stats["behind"]["behind_ns"].as_f64().unwrap_or(0.0);
        self.behind_s = self.behind_s.max(behind_ns / 1e9);
        self.anonymous = self.anonymous.max(serving.anonymous());
        stats
    }
}

struct Serving {
    child: Child,
    port: u16,
}

impl Serving {
    fn start(directory: &Path) -> Serving {
        let mut child = Command::new(PROGRAM)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .arg(directory)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stderr = child.stderr.take().unwrap();
        BufReader::new(stderr).read_line(&mut line).unwrap();
        let (_, rest) = line.split_once("127.0.0.1:").unwrap();
        let port = rest.split('/').next().unwrap().parse().unwrap();
        Serving { child, port }
    }

    fn stats(&self) -> Vec<u8> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let asked = b"GET /stats HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(asked).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let end = memchr::memmem::find(&bytes, b"\r\n\r\n").unwrap();
        bytes.split_off(end + 4)
    }

    fn cpu_s(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
        (ticks(11) + ticks(12)) / TICKS_PER_S
    }

    fn anonymous(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("RssAnon:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
        1024.0 * kib.unwrap_or(0.0)
    }
}
