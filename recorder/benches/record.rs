//! The cost of recording, against the floor of two clock reads: `cargo bench -p sa-recorder --bench record [-- [--quick] [CASE]...]`.
//!
//! A recorder is one per process, so every case runs in fresh child processes of this binary, interleaved over several passes. Each round
//! measures the floor directly before and after the case in the same threads, and the ratio is taken per round: what else the machine does
//! weighs on both. Every event must be in the fragments once. Prints lines `RESULT <case> <ns_per_span> <ratio_to_two_clock_reads>`,
//! medians over the rounds. docs/overhead.md has the tails, and other recorders.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the figures are this program's output"
)]

use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;

use measure::process::load_average;
use measure::rounds::{self, Body, Plan};
use measure::{Child, Rounds, figures, scratch, warm_page_cache};
use sa_recorder::{Args, AsyncSpan, Level, Recorder, async_span, instant, span};

/// Marks a child's command line: `FLAG CASE ROUNDS DIRECTORY`.
const FLAG: &str = "--case-in-child";

/// One case of the table.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    /// Records as many events as it is given.
    record: fn(u64),
    /// True if a directory turns recording on.
    is_on: bool,
    /// True if the events are in the fragments then.
    writes: bool,
    threads: usize,
    /// Events per round and thread.
    events: u64,
    warm_rounds: u32,
    /// Rounds measured in one child, and children per pass.
    rounds: u32,
    children: u32,
}

impl Case {
    const fn new(name: &'static str, record: fn(u64)) -> Self {
        Case {
            name,
            record,
            is_on: true,
            writes: true,
            threads: 1,
            events: 40_000,
            warm_rounds: 3,
            rounds: 9,
            children: 1,
        }
    }

    /// A case that writes nothing.
    const fn silent(name: &'static str, record: fn(u64), is_on: bool) -> Self {
        Case {
            is_on,
            writes: false,
            events: 2_000_000,
            ..Case::new(name, record)
        }
    }

    const fn threads(self, threads: usize) -> Self {
        Case { threads, ..self }
    }

    /// A case of one round in a fresh process.
    const fn single(self, events: u64, children: u32) -> Self {
        Case {
            events,
            warm_rounds: 0,
            rounds: 1,
            children,
            ..self
        }
    }
}

const CASES: [Case; 10] = [
    Case::new("span_1arg_1t", spans),
    Case::new("span_1arg_2t", spans).threads(2),
    Case::new("span_1arg_8t", spans).threads(8),
    Case::new("span_sustained_1gb", spans).single(8_300_000, 5),
    Case::new("span_cold", spans).single(40_000, 7),
    Case::new("instant", instants),
    Case::new("async_span", async_spans),
    Case::new("async_child", async_children),
    Case::silent("disabled", spans, false),
    Case::silent("filtered", verbose_spans, true),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words = words.iter().map(String::as_str);
    let words: Vec<&str> = words.filter(|word| *word != "--bench").collect();
    let done = match words.as_slice() {
        [FLAG, name, rounds, directory] => in_child(name, rounds, Path::new(directory)),
        words => measure_all(words),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("record: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures the cases named on the command line, or all.
fn measure_all(words: &[&str]) -> Result<(), String> {
    let is_quick = words.contains(&"--quick");
    let mut named = words.iter().filter(|word| **word != "--quick");
    if let Some(word) = named.find(|word| CASES.iter().all(|case| case.name != **word)) {
        let names = CASES.map(|case| case.name).join(" ");
        return Err(format!("no case {word}; there are: --quick {names}"));
    }
    let all = words.iter().all(|word| *word == "--quick");
    let cases = CASES
        .iter()
        .filter(|case| all || words.contains(&case.name));
    let mut measured: Vec<(&Case, Rounds)> = cases.map(|case| (case, Rounds::default())).collect();
    println!("load average before: {}", load_average());
    let passes = if is_quick { 1 } else { 3 };
    for pass in 0..passes {
        for (case, rounds) in &mut measured {
            eprintln!("pass {}/{passes} {}", pass + 1, case.name);
            let children = if is_quick { 1 } else { case.children };
            (0..children).try_for_each(|_| one_child(case, is_quick, rounds))?;
        }
    }
    println!("load average after:  {}", load_average());
    for (case, rounds) in &measured {
        println!("{}", rounds.result(case.name));
    }
    Ok(())
}

fn one_child(case: &Case, is_quick: bool, rounds: &mut Rounds) -> Result<(), String> {
    let scratch = scratch()?;
    let count = if is_quick {
        case.rounds.min(3)
    } else {
        case.rounds
    };
    let directory = scratch.path().to_string_lossy();
    let mut child = Child::new([FLAG, case.name, &count.to_string(), &directory])?;
    if case.is_on {
        child = child.recording_in(scratch.path());
    }
    let lines = child.lines()?;
    rounds.add(&lines)?;
    let [expected] = figures(&lines, "EXPECTED")?;
    let found = events_in(&scratch.path().join("fragments")) as f64;
    match expected == found {
        true => Ok(()),
        false => Err(format!(
            "{}: {expected} events, {found} in the fragments",
            case.name
        )),
    }
}

/// Runs a case, and prints its rounds and a line `EXPECTED <events in the fragments>`.
fn in_child(name: &str, rounds: &str, directory: &Path) -> Result<(), String> {
    let case = CASES.iter().find(|case| case.name == name);
    let case = case.ok_or_else(|| format!("no case {name}"))?;
    let plan = Plan {
        threads: case.threads,
        events: case.events,
        warm_rounds: case.warm_rounds,
        rounds: rounds
            .parse()
            .map_err(|error| format!("{rounds}: {error}"))?,
    };
    if case.warm_rounds > 0 {
        warm_page_cache(directory)?;
    }
    let recorder = Recorder::init();
    if recorder.is_enabled() != case.is_on {
        return Err(format!("{name}: recording is on: {}", !case.is_on));
    }
    let body = Body {
        record: &case.record,
        settle: &|| recorder.flush(),
    };
    rounds::run(plan, body);
    recorder.finish();
    let expected = if case.writes { plan.total_events() } else { 0 };
    println!("EXPECTED {expected}");
    Ok(())
}

/// Counts the spans and instants of the benchmark in all segments.
fn events_in(fragments: &Path) -> usize {
    let entries = std::fs::read_dir(fragments).into_iter().flatten().flatten();
    let texts = entries.filter_map(|entry| std::fs::read(entry.path()).ok());
    let count = |text: Vec<u8>| {
        let lines = text.split(|byte| *byte == b'\n');
        let events = lines.filter(|line| {
            (line.starts_with(br#"{"ph":"X""#) || line.starts_with(br#"{"ph":"i""#))
                && memchr::memmem::find(line, br#""cat":"bench""#).is_some()
        });
        events.count()
    };
    texts.map(count).sum()
}

fn spans(count: u64) {
    for step in 0..count {
        black_box(&span!("bench", "decode", step = step));
    }
}

fn verbose_spans(count: u64) {
    for step in 0..count {
        black_box(&span!(verbose, "bench", "decode", step = step));
    }
}

fn instants(count: u64) {
    for step in 0..count {
        instant!("bench", "token", step = black_box(step));
    }
}

/// Records spans on lanes of their own.
fn async_spans(count: u64) {
    for step in 0..count {
        black_box(&async_span!("bench", "decode", step = step));
    }
}

/// Records spans within one on a lane, named at run time.
fn async_children(count: u64) {
    let task = async_span!("task", "task");
    let (category, name) = (black_box("bench"), black_box("decode"));
    for step in 0..count {
        let args = Args::new().with("step", step);
        let parent = Some(&task);
        black_box(&AsyncSpan::open_at(
            Level::E2e,
            category,
            name,
            parent,
            None,
            &args,
        ));
    }
}
