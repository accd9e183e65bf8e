//! How soon 64 processes at full speed obey: `cargo bench -p sa-profile --bench switch [-- --quick]`.
//!
//! The command switches them on and, when all have told so, off. Per switch: the time from the command's store to the last process's own
//! record of it, and how far the first and the last process are apart. 350 ms of it are the lead that the command gives the instant. They record
//! for 3 s at most, which bounds the disk space.
//! Prints `RESULT switch_<on|off> <ms_to_the_last_of_64> <ms_between_first_and_last>`, and of the spans that a thread began after its process
//! was off `RESULT switch_late_spans <most_of_a_thread>`. What was recorded meanwhile is then shown by `sa-profile status`:
//! `RESULT status <ms> <MB_per_s>`.
#![expect(clippy::print_stdout, reason = "the figures are this program's output")]
#![expect(
    clippy::unwrap_used,
    reason = "a measurement that cannot be made is none"
)]

use sa_format::control::{Control, LEAD_NS, Switch};
use sa_recorder::{now_ns, span};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};
use trace_merge::line::parse_canonical;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sa-profile");
const PROCESSES: usize = 64;
/// Marks a child's command line.
const CHILD: &str = "--record-in-child";

fn main() {
    let has = |word: &str| std::env::args().any(|argument| argument == word);
    if has(CHILD) {
        return record();
    }
    let rounds = if has("--quick") { 1 } else { 5 };
    let rounds: Vec<Round> = (0..rounds).map(|_| Round::run()).collect();
    for (name, pick) in [
        ("on", Round::on as fn(&Round) -> Switched),
        ("off", Round::off),
    ] {
        let median = |of: fn(Switched) -> u64| {
            let mut all: Vec<u64> = rounds.iter().map(|round| of(pick(round))).collect();
            all.sort_unstable();
            all[all.len() / 2] as f64 / 1e6
        };
        let (last, apart) = (median(|one| one.last_ns), median(|one| one.apart_ns));
        println!("RESULT switch_{name} {last:.1} {apart:.1}");
    }
    let status = rounds.iter().max_by_key(|round| round.bytes).unwrap();
    let (ms, mb) = (status.status_ms, status.bytes as f64 / 1e6);
    println!("RESULT status {ms:.0} {:.0}", mb / ms * 1e3);
    let late = rounds.iter().map(|round| round.late_spans).max();
    println!("RESULT switch_late_spans {}", late.unwrap_or(0));
}

/// Records as fast as it goes until the parent closes stdin.
fn record() {
    std::thread::spawn(|| {
        let mut rest = String::new();
        let _ = std::io::stdin().read_line(&mut rest); // its end is all that counts
        std::process::exit(0);
    });
    loop {
        let _span = span!("bench", "switched");
    }
}

/// One switch of all processes.
#[derive(Clone, Copy)]
struct Switched {
    last_ns: u64,
    apart_ns: u64,
}

struct Round {
    on: Switched,
    off: Switched,
    late_spans: u64,
    bytes: u64,
    status_ms: f64,
}

impl Round {
    fn on(&self) -> Switched {
        self.on
    }

    fn off(&self) -> Switched {
        self.off
    }

    fn run() -> Round {
        let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let directory = scratch.path();
        let mut children = start(directory);
        let on = switch(directory, &["start", "--for", "3s"]);
        let off = switch(directory, &["stop"]);
        for child in &mut children {
            drop(child.stdin.take());
        }
        for mut child in children {
            child.wait().unwrap();
        }
        let status_ms = status(directory);
        let fragments: Vec<Vec<u8>> = fragments(directory)
            .iter()
            .map(|path| fs::read(path).unwrap())
            .collect();
        let at = |control: &Control| -> Vec<u64> {
            fragments
                .iter()
                .map(|bytes| told(bytes, &control.id))
                .collect()
        };
        let (ons, offs) = (at(&on), at(&off));
        let late = fragments
            .iter()
            .zip(&offs)
            .map(|(bytes, off)| late_spans(bytes, *off));
        Round {
            on: Switched::of(&on, &ons),
            off: Switched::of(&off, &offs),
            late_spans: late.max().unwrap_or(0),
            bytes: fragments.iter().map(|bytes| bytes.len() as u64).sum(),
            status_ms,
        }
    }
}

impl Switched {
    fn of(control: &Control, at_ns: &[u64]) -> Switched {
        let stored = control.from_realtime_ns - LEAD_NS;
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let since = u64::try_from(wall.as_nanos()).unwrap() - stored;
        let stored = now_ns() - since;
        let (first, last) = (at_ns.iter().min().unwrap(), at_ns.iter().max().unwrap());
        Switched {
            last_ns: last - stored,
            apart_ns: last - first,
        }
    }
}

/// Starts the processes and waits until each has its fragment.
fn start(directory: &Path) -> Vec<Child> {
    let this = std::env::current_exe().unwrap();
    let child = || {
        let mut command = Command::new(&this);
        command
            .arg(CHILD)
            .env("SA_PROFILE_DIR", directory)
            .env("SA_PROFILE_START", "paused");
        command.stdin(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = (0..PROCESSES).map(|_| child()).collect();
    while fragments(directory).len() < PROCESSES {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    children
}

fn fragments(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.join("fragments"))
        .into_iter()
        .flatten()
        .flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect()
}

/// Switches all processes by the command, which waits for them; gives what it stored.
fn switch(directory: &Path, words: &[&str]) -> Control {
    let status = Command::new(PROGRAM)
        .args(words)
        .arg(directory)
        .status()
        .unwrap();
    if !status.success() {
        println!("{words:?}: not all obeyed within 2 s");
    }
    Control::parse(&fs::read(directory.join("control")).unwrap()).unwrap()
}

/// How long a status takes.
fn status(directory: &Path) -> f64 {
    let start = std::time::Instant::now();
    let output = Command::new(PROGRAM)
        .arg("status")
        .arg(directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    start.elapsed().as_secs_f64() * 1e3
}

/// When a process told of obeying a control, in ns of the monotonic clock.
fn told(bytes: &[u8], id: &str) -> u64 {
    let mark = format!(r#""control":"{id}""#);
    let lines = bytes.split(|byte| *byte == b'\n');
    let mut records = lines.filter(|line| {
        memchr::memmem::find(line, Switch::NAME.as_bytes()).is_some()
            && memchr::memmem::find(line, mark.as_bytes()).is_some()
    });
    let event = records.next().and_then(parse_canonical);
    u64::try_from(event.expect("every process tells of the switch").ts_ns).unwrap()
}

/// The most spans that a thread of the process began after it was off.
fn late_spans(bytes: &[u8], off_ns: u64) -> u64 {
    let mut late: BTreeMap<i64, u64> = BTreeMap::new();
    let lines = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| line.starts_with(br#"{"ph":"X""#));
    for event in lines.filter_map(parse_canonical) {
        *late.entry(event.tid).or_default() +=
            u64::from(u64::try_from(event.ts_ns).is_ok_and(|ts| ts > off_ns));
    }
    late.into_values().max().unwrap_or(0)
}
