//! What one event costs, by kind, recorder and number of threads, and what it leaves on the disk.

mod rows;

use std::path::PathBuf;

use clap::Args;
use measure::rounds::{self, Body, Plan};
use measure::{Free, Kind, Peer, warm_page_cache};

use crate::child::{Child, figures};
use crate::ours::Ours;
use crate::scene::Scene;
use crate::series::Series;
use crate::subject::{self, RUN, Subject};

/// Threads that record at the same time.
const THREADS: [usize; 3] = [1, 2, 8];
const WARM_ROUNDS: u32 = 2;

/// What a child repeats.
#[derive(Debug, Args)]
pub(crate) struct Task {
    subject: Subject,
    #[arg(value_parser = |word: &str| Kind::find(word).ok_or("no such kind"))]
    kind: Kind,
    threads: usize,
    events: u64,
    rounds: u32,
    warm: u8,
    directory: PathBuf,
}

/// One case and what its rounds gave.
#[derive(Debug)]
struct Case {
    subject: Subject,
    kind: Kind,
    threads: usize,
    /// ns per event and thread.
    ns: Series,
    /// The same in pairs of clock reads, round by round.
    ratio: Series,
    floor_ns: Series,
    /// CPU time of all threads per event, until everything is written.
    cpu_ns: Series,
    /// Events recorded, and the bytes of the file after a clean end.
    events: f64,
    bytes: f64,
    /// Events that the file has, where they can be counted.
    found: Option<f64>,
}

/// Every case of the section.
#[derive(Debug)]
pub(crate) struct Cost(Vec<Case>);

impl Cost {
    /// Every case, with nothing measured yet.
    pub(crate) fn new() -> Cost {
        let mut cases = Vec::new();
        for subject in Subject::RECORDERS {
            let kinds = match subject {
                Subject::Ours => &Kind::ALL[..],
                _ => &Kind::SPANS[..],
            };
            for (&kind, threads) in kinds.iter().flat_map(|kind| THREADS.map(|n| (kind, n))) {
                cases.push(Case {
                    subject,
                    kind,
                    threads,
                    ns: Series::default(),
                    ratio: Series::default(),
                    floor_ns: Series::default(),
                    cpu_ns: Series::default(),
                    events: 0.0,
                    bytes: 0.0,
                    found: None,
                });
            }
        }
        Cost(cases)
    }

    /// Gives every case a turn.
    pub(crate) fn pass(&mut self, scene: &Scene) -> Result<(), String> {
        self.0.iter_mut().try_for_each(|case| case.turn(scene))
    }
}

impl Case {
    fn turn(&mut self, scene: &Scene) -> Result<(), String> {
        let effort = &scene.effort;
        let scratch = scene.scratch("cost")?;
        let events = match (self.subject, self.kind.writes()) {
            (_, false) => effort.off_events,
            (Subject::Ours, true) => effort.events,
            _ => effort.events.div_ceil(4),
        };
        let words = [
            "cost".to_owned(),
            self.subject.word(),
            self.kind.word().to_owned(),
            self.threads.to_string(),
            events.to_string(),
            effort.rounds.to_string(),
            u8::from(effort.warm).to_string(),
            scratch.path().display().to_string(),
        ];
        let mut child = Child::new(&words)?;
        if self.subject == Subject::Ours && self.kind != Kind::Off {
            child = child.recording_in(&scratch.path().join(RUN));
        }
        for line in child.lines()? {
            self.take(&line)
                .ok_or_else(|| format!("{words:?}: unexpected line {line}"))?;
        }
        if (self.kind, self.threads) == (Kind::Span1, 1) {
            let found = self.subject.finished(scratch.path())?.len();
            self.found = Some(self.found.unwrap_or(0.0) + found as f64);
        }
        Ok(())
    }

    fn take(&mut self, line: &str) -> Option<()> {
        if let Some([ns, floor_ns, cpu_ns]) = figures(line, "ROUND") {
            self.cpu_ns.push(cpu_ns);
            self.ns.push(ns);
            self.floor_ns.push(floor_ns);
            self.ratio.push(ns / floor_ns);
        } else {
            let [events, bytes] = figures(line, "DISK")?;
            self.events += events;
            self.bytes += bytes;
        }
        Some(())
    }
}

/// Runs the rounds and prints lines `ROUND <ns> <floor_ns> <cpu_ns>` and one `DISK <events> <bytes>`.
pub(crate) fn child(task: &Task) -> Result<(), String> {
    let directory = &task.directory;
    if task.warm != 0 && task.kind.writes() {
        warm_page_cache(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    if task.subject == Subject::Ours {
        let recorder = Ours::start();
        let expected = task.kind != Kind::Off;
        if recorder.is_enabled() != expected {
            return Err(format!("{task:?}: recording is on: {}", !expected));
        }
    }
    task.subject.run(directory, task)
}

impl subject::Task for &Task {
    fn with(self, peer: impl Peer) -> Result<(), String> {
        let plan = Plan {
            threads: self.threads,
            spans: self.events,
            warm_rounds: WARM_ROUNDS,
            rounds: self.rounds,
        };
        let body = Body {
            record: &|count| peer.record(self.kind, 0..count, &mut Free),
            settle: &|| peer.settle(),
        };
        for round in rounds::run(plan, body) {
            let (ns, floor_ns, cpu_ns) = (round.span_ns, round.floor_ns, round.total_cpu_ns);
            println!("ROUND {ns} {floor_ns} {cpu_ns}");
        }
        let events = if self.kind.writes() { plan.events() } else { 0 };
        let bytes = peer.finish().map(std::fs::metadata).transpose();
        let bytes = bytes.map_err(|error| format!("{}: {error}", self.directory.display()))?;
        println!("DISK {events} {}", bytes.map_or(0, |file| file.len()));
        Ok(())
    }
}
