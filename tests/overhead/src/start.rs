//! The time that a process takes to start and to end with recording on.

use std::time::Instant;

use measure::clock::wall_ns;
use measure::{Child, figures, scratch};
use sa_recorder::Recorder;

use crate::peer::{Free, Kind, Peer};
use crate::table::{self, noisy};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Off,
    /// Recording into a directory of its own: it makes the run, and looks for what to clean.
    Main,
    /// Recording as a child that a launcher gave the run to.
    Joining,
}

const WAYS: [(Way, &str); 3] = [
    (Way::Off, "recording off"),
    (Way::Main, "on, main process of a new run"),
    (Way::Joining, "on, joining a run"),
];

/// The figures of each way: µs of `Recorder::init` and of the first span, ms from start to end, and ms more than off.
#[derive(Debug, Default)]
pub(crate) struct Starts([[Vec<f64>; 4]; WAYS.len()]);

impl Starts {
    /// Starts a process in each way.
    pub(crate) fn pass(&mut self) -> Result<(), String> {
        let mut off_ms = None;
        for (figures, (way, _)) in self.0.iter_mut().zip(WAYS) {
            let [init_us, first_us, life_ms] = start(way)?;
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
        let rows = self.0.iter().zip(WAYS).map(|(figures, (way, label))| {
            let mut row = vec![label.to_owned()];
            row.extend(figures.iter().map(|figures| noisy(figures)));
            if way == Way::Off {
                row[4] = "–".to_owned();
            }
            row
        });
        table::markdown(1, &head, rows)
    }
}

/// Runs one process, and returns the first three figures.
fn start(way: Way) -> Result<[f64; 3], String> {
    let scratch = scratch()?;
    let mut child = Child::new(["start"])?;
    if way != Way::Off {
        child = child.recording_in(scratch.path());
    }
    if way == Way::Joining {
        child = child
            .variable("SA_PROFILE_RUN", sa_recorder::new_run_id())
            .variable("SA_PROFILE_MAIN_PID", std::process::id().to_string());
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
