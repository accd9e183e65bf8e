//! The cost of one event by kind, recorder and number of threads, and its bytes on the disk.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use measure::rounds::{self, Body, Plan};
use measure::{Rounds, figures, scratch, warm_page_cache};
use sa_recorder::Recorder;

use crate::effort::Effort;
use crate::peer::{Free, Kind, Peer};
use crate::subject::{self, Subject};
use crate::table::{self, noisy, number, word};

/// Threads that record at the same time.
const THREADS: [usize; 3] = [1, 2, 8];
const WARM_ROUNDS: u32 = 2;

/// The task of a child: to repeat one kind of event.
#[derive(Debug, Args)]
pub(crate) struct Task {
    subject: Subject,
    kind: Kind,
    threads: usize,
    events: u64,
    rounds: u32,
    directory: PathBuf,
}

/// A recorder and a kind of event.
#[derive(Debug)]
struct Case {
    subject: Subject,
    kind: Kind,
    /// The rounds with each number of threads.
    rounds: [Rounds; THREADS.len()],
    /// Bytes of an event with one thread: the file of our recorder then holds next to nothing else.
    bytes: Vec<f64>,
}

/// The cases of the sections about single events.
#[derive(Debug)]
pub(crate) struct Cost(Vec<Case>);

impl Cost {
    pub(crate) fn new() -> Cost {
        let mut cases = Vec::new();
        for &kind in Kind::value_variants() {
            let subjects = Subject::recorders().iter();
            let can = |subject: &Subject| *subject == Subject::Ours || kind == Kind::Span1;
            cases.extend(subjects.copied().filter(can).map(|subject| Case {
                subject,
                kind,
                rounds: Default::default(),
                bytes: Vec::new(),
            }));
        }
        Cost(cases)
    }

    /// Gives every case a turn.
    pub(crate) fn pass(&mut self, effort: Effort) -> Result<(), String> {
        self.0.iter_mut().try_for_each(|case| case.turn(effort))
    }

    /// Returns the ns of two clock reads, measured next to a span with one argument in one thread.
    pub(crate) fn floor(&self) -> String {
        let mut cases = self.0.iter();
        let case = cases.find(|case| (case.subject, case.kind) == (Subject::Ours, Kind::Span1));
        case.map_or_else(String::new, |case| noisy(&case.rounds[0].floor_ns))
    }

    /// Returns the table of our recorder.
    pub(crate) fn by_kind(&self) -> String {
        let ours = |case: &&Case| case.subject == Subject::Ours;
        let rows = self.0.iter().filter(ours);
        table(
            "event",
            rows.map(|case| (case.kind.label().to_owned(), case)),
        )
    }

    /// Returns the table of all recorders.
    pub(crate) fn by_recorder(&self) -> String {
        let shared = |case: &&Case| case.kind == Kind::Span1;
        let rows = self.0.iter().filter(shared);
        table("recorder", rows.map(|case| (case.subject.label(), case)))
    }
}

fn table<'a>(word: &str, rows: impl Iterator<Item = (String, &'a Case)>) -> String {
    let mut head = vec![word.to_owned()];
    for threads in THREADS {
        let plural = if threads == 1 { "thread" } else { "threads" };
        head.push(format!("{threads} {plural}: ns"));
        head.push("× two clock reads".to_owned());
    }
    head.extend(["1 thread: CPU ns until written", "bytes"].map(str::to_owned));
    let rows = rows.map(|(label, case)| [vec![label], case.cells()].concat());
    table::markdown(1, &head, rows)
}

impl Case {
    fn turn(&mut self, effort: Effort) -> Result<(), String> {
        for (rounds, threads) in self.rounds.iter_mut().zip(THREADS) {
            let events = match (self.subject, self.kind.writes()) {
                (_, false) => effort.select(1_000_000, 200_000, 20_000),
                (Subject::Ours, true) => effort.select(40_000, 20_000, 400),
                _ => effort.select(10_000, 5_000, 100),
            };
            let scratch = scratch()?;
            let words = [
                "cost",
                &word(self.subject),
                &word(self.kind),
                &threads.to_string(),
                &events.to_string(),
                &effort.select(7, 3, 2).to_string(),
                &scratch.path().to_string_lossy(),
            ];
            let subject = match self.kind {
                Kind::Off => Subject::Control, // records nothing
                _ => self.subject,
            };
            let lines = subject.child(&words, scratch.path())?.lines()?;
            rounds.add(&lines)?;
            let [bytes] = figures(&lines, "DISK")?;
            if threads == 1 && self.kind.writes() {
                self.bytes.push(bytes);
            }
        }
        Ok(())
    }

    fn cells(&self) -> Vec<String> {
        let rounds = self.rounds.iter();
        let times = rounds.flat_map(|rounds| [table::median(&rounds.ns), noisy(&rounds.ratio)]);
        let cpu = table::median(&self.rounds[0].cpu_ns);
        let bytes = match self.bytes.is_empty() {
            true => "–".to_owned(),
            false => number(measure::quantile::median(&self.bytes)),
        };
        times.chain([cpu, bytes]).collect()
    }
}

/// Runs the rounds, and prints them and a line `DISK <bytes of an event>`.
pub(crate) fn child(task: &Task) -> Result<(), String> {
    let directory = &task.directory;
    // A child of the tests ends before warm pages could count.
    if task.kind.writes() && task.events > 1_000 {
        warm_page_cache(directory)?;
    }
    if task.subject == Subject::Ours && Recorder::init().is_enabled() != (task.kind != Kind::Off) {
        return Err(format!("{task:?}: recording is on or off, and must not be"));
    }
    task.subject.run(directory, task)
}

impl subject::Task for &Task {
    fn with(self, peer: impl Peer) -> Result<(), String> {
        let plan = Plan {
            threads: self.threads,
            events: self.events,
            warm_rounds: WARM_ROUNDS,
            rounds: self.rounds,
        };
        let body = Body {
            record: &|count| peer.record(self.kind, 0..count, &mut Free),
            settle: &|| peer.settle(),
        };
        rounds::run(plan, body);
        let file = peer.finish().map(std::fs::metadata).transpose();
        let file = file.map_err(|error| format!("{}: {error}", self.directory.display()))?;
        let bytes = file.map_or(0, |file| file.len()) as f64;
        println!("DISK {}", bytes / plan.total_events() as f64);
        Ok(())
    }
}
