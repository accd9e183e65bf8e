//! The time that a process takes to start and to end with recording on.

use std::time::Instant;

use measure::clock::wall_ns;
use measure::{Child, figures, scratch};
use sa_recorder::Recorder;

use crate::peer::{Free, Kind, Peer};
use crate::table::{self, noisy};

/// The ways: true if a directory turns recording on. The process then makes the run, and looks for what to clean.
const WAYS: [(bool, &str); 2] = [
    (false, "recording off"),
    (true, "on, main process of a new run"),
];

/// The figures of each way: µs of `Recorder::init` and of the first span, ms from start to end, and ms more than off.
#[derive(Debug, Default)]
pub(crate) struct Starts([[Vec<f64>; 4]; WAYS.len()]);

impl Starts {
    /// Starts a process in each way.
    pub(crate) fn pass(&mut self) -> Result<(), String> {
        let mut off_ms = None;
        for (figures, (is_on, _)) in self.0.iter_mut().zip(WAYS) {
            let [init_us, first_us, life_ms] = start(is_on)?;
            let more_ms = life_ms - *off_ms.get_or_insert(life_ms);
            for (figures, value) in figures
                .iter_mut()
                .zip([init_us, first_us, life_ms, more_ms])
            {
                figures.push(value);
            }
        }
        Ok(())
    }

    pub(crate) fn table(&self) -> String {
        let head = [
            "process",
            "`Recorder::init` µs",
            "first span µs",
            "start to end ms",
            "more than off ms",
        ];
        let rows = self.0.iter().zip(WAYS).map(|(figures, (is_on, label))| {
            let mut row = vec![label.to_owned()];
            row.extend(figures.iter().map(|figures| noisy(figures)));
            if !is_on {
                row[4] = "–".to_owned();
            }
            row
        });
        table::markdown(1, &head, rows)
    }
}

/// Runs one process, and returns the first three figures.
fn start(is_on: bool) -> Result<[f64; 3], String> {
    let scratch = scratch()?;
    let mut child = Child::new(["start"])?;
    if is_on {
        child = child.recording_in(scratch.path());
    }
    let began = Instant::now();
    let lines = child.lines()?;
    let life_ms = began.elapsed().as_secs_f64() * 1e3;
    let [init_ns, first_ns] = figures(&lines, "START")?;
    Ok([init_ns / 1e3, first_ns / 1e3, life_ms])
}

/// Starts the recorder, records one span, and prints `START <init_ns> <first_span_ns>`.
pub(crate) fn child() -> Result<(), String> {
    let began = wall_ns();
    let recorder = Recorder::init();
    let ready = wall_ns();
    recorder.record(Kind::Span1, 0..1, &mut Free);
    println!("START {} {}", ready - began, wall_ns() - ready);
    Ok(())
}
