//! The tail of single spans at a steady pace, quiet and while the parent calls fsync all the time.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use measure::clock::wall_ns;
use measure::quantile::{median, rank};
use measure::{figures, scratch};

use crate::effort::Effort;
use crate::peer::{Beat, Kind, Peer};
use crate::subject::{self, Subject};
use crate::table::{self, number, word};

/// 50,000 events a second.
pub(crate) const PERIOD_NS: u64 = 20_000;

/// Events before the measured ones.
const WARM: u64 = 1_000;

/// The shares of the spans below each figure.
const SHARES: [f64; 5] = [0.5, 0.99, 0.999, 0.9999, 1.0];

/// Bytes that are written before each fsync, and the maximum size of the file.
const WRITE_BYTES: usize = 64 << 10;
const FILE_BYTES: u64 = 64 << 20;

/// The task of a child: to time spans.
#[derive(Debug, Args)]
pub(crate) struct Task {
    subject: Subject,
    events: usize,
    directory: PathBuf,
}

#[derive(Debug)]
struct Case {
    is_beside_fsync: bool,
    subject: Subject,
    /// The figures of each run, in ns.
    runs: Vec<[f64; SHARES.len()]>,
}

/// The cases of the section.
#[derive(Debug)]
pub(crate) struct Tails(Vec<Case>);

impl Tails {
    pub(crate) fn new() -> Tails {
        let mut cases = Vec::new();
        for is_beside_fsync in [false, true] {
            let subjects = [Subject::Control].iter().chain(Subject::recorders());
            cases.extend(subjects.map(|&subject| Case {
                is_beside_fsync,
                subject,
                runs: Vec::new(),
            }));
        }
        Tails(cases)
    }

    /// Gives every case a turn.
    pub(crate) fn pass(&mut self, effort: Effort) -> Result<(), String> {
        self.0.iter_mut().try_for_each(|case| case.turn(effort))
    }

    pub(crate) fn table(&self) -> String {
        let head = [
            "beside",
            "recorder",
            "p50 µs",
            "p99 µs",
            "p99.9 µs",
            "p99.99 µs",
            "max µs",
        ];
        let rows = self.0.iter().map(|case| {
            let beside = if case.is_beside_fsync {
                "fsync"
            } else {
                "nothing"
            };
            let mut row = vec![beside.to_owned(), case.subject.label()];
            for (at, share) in SHARES.into_iter().enumerate() {
                let ns: Vec<f64> = case.runs.iter().map(|run| run[at]).collect();
                let ns = match share < 1.0 {
                    true => median(&ns),
                    false => ns.into_iter().fold(0.0, f64::max),
                };
                row.push(number(ns / 1e3));
            }
            row
        });
        table::markdown(2, &head, rows)
    }
}

impl Case {
    fn turn(&mut self, effort: Effort) -> Result<(), String> {
        let scratch = scratch()?;
        let events = effort.select(200_000, 25_000, 500).to_string();
        let directory = scratch.path().to_string_lossy();
        let words = ["tail", &word(self.subject), &events, &directory];
        let child = self.subject.child(&words, scratch.path())?;
        let has_ended = AtomicBool::new(!self.is_beside_fsync);
        let lines = std::thread::scope(|scope| {
            let neighbour = scope.spawn(|| call_fsync(scratch.path(), &has_ended));
            let lines = child.lines();
            has_ended.store(true, Ordering::Relaxed);
            match neighbour.join() {
                Ok(Ok(())) => lines,
                failed => Err(format!("the calls of fsync: {failed:?}")),
            }
        })?;
        self.runs.push(figures(&lines, "TAIL")?);
        Ok(())
    }
}

/// Times the spans and prints `TAIL` and a number of ns for each of [`SHARES`].
pub(crate) fn child(task: &Task) -> Result<(), String> {
    task.subject.run(&task.directory, task)
}

impl subject::Task for &Task {
    fn with(self, peer: impl Peer) -> Result<(), String> {
        let mut paced = Paced::new(self.events);
        peer.record(Kind::Span1, 0..self.events as u64 + WARM, &mut paced);
        let times = paced.sorted();
        let at = |share| times.get(rank(times.len(), share)).copied();
        let texts = SHARES.map(|share| at(share).unwrap_or(0).to_string());
        println!("TAIL {}", texts.join(" "));
        peer.finish();
        Ok(())
    }
}

/// Times each event. The thread spins to its next turn; after a stall it catches up, so the pace holds on average.
struct Paced {
    taken_ns: Vec<u64>,
    turn_ns: u64,
    start_ns: u64,
}

impl Paced {
    /// Makes room for the measured events.
    fn new(events: usize) -> Paced {
        let mut taken_ns = vec![1; events]; // touches the pages
        taken_ns.clear();
        Paced {
            taken_ns,
            turn_ns: wall_ns(),
            start_ns: 0,
        }
    }

    fn sorted(mut self) -> Vec<u64> {
        self.taken_ns.sort_unstable();
        self.taken_ns
    }
}

impl Beat for Paced {
    #[inline(always)]
    fn before(&mut self) {
        wait_for_turn(&mut self.turn_ns, PERIOD_NS);
        self.start_ns = wall_ns();
    }

    #[inline(always)]
    fn after(&mut self, step: u64) {
        let taken_ns = wall_ns() - self.start_ns;
        if step >= WARM {
            self.taken_ns.push(taken_ns);
        }
    }
}

/// Spins until the next turn.
#[inline(always)]
pub(crate) fn wait_for_turn(turn_ns: &mut u64, period_ns: u64) {
    *turn_ns += period_ns;
    while wall_ns() < *turn_ns {
        std::hint::spin_loop();
    }
}

/// Writes and calls fsync, over and over, until `has_ended` is set.
fn call_fsync(directory: &Path, has_ended: &AtomicBool) -> io::Result<()> {
    let mut file = File::create(directory.join("neighbour"))?;
    let chunk = vec![2_u8; WRITE_BYTES];
    while !has_ended.load(Ordering::Relaxed) {
        file.write_all(&chunk)?;
        file.sync_all()?;
        if file.stream_position()? >= FILE_BYTES {
            file.rewind()?;
        }
    }
    Ok(())
}
