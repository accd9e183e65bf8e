//! The footprint of a recording process: memory, threads, descriptors, disk.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Barrier;

use clap::Args;
use measure::process::kib;
use measure::quantile::median;
use measure::{Child, figures, scratch};
use sa_recorder::Recorder;

use crate::peer::{Free, Kind, Peer};
use crate::table::{self, whole};

/// Threads that record, and spans that each of them records before the process is looked at.
const CASES: [(usize, u64); 6] = [
    (0, 0),
    (1, 1),
    (1, 10_000),
    (8, 1),
    (8, 10_000),
    (32, 10_000),
];

const NAMES: [&str; 7] = [
    "resident KiB",
    "proportional KiB",
    "mapped KiB",
    "threads",
    "descriptors",
    "ring KiB",
    "fragment KiB",
];

/// The task of a child: to record, and then to look at itself.
#[derive(Debug, Args)]
pub(crate) struct Task {
    threads: usize,
    spans: u64,
    directory: PathBuf,
}

/// The difference that recording makes in each case, by figure.
#[derive(Debug, Default)]
pub(crate) struct Footprint([[Vec<f64>; NAMES.len()]; CASES.len()]);

impl Footprint {
    /// Gives every case a turn, off and on.
    pub(crate) fn pass(&mut self) -> Result<(), String> {
        for (figures, (threads, spans)) in self.0.iter_mut().zip(CASES) {
            let (off, on) = (run(threads, spans, false)?, run(threads, spans, true)?);
            for ((figures, on), off) in figures.iter_mut().zip(on).zip(off) {
                figures.push(on - off);
            }
        }
        Ok(())
    }

    pub(crate) fn table(&self) -> String {
        let head = [&["threads that record", "spans of each"][..], &NAMES].concat();
        let rows = self.0.iter().zip(CASES).map(|(figures, (threads, spans))| {
            let mut row = vec![threads.to_string(), whole(spans as f64)];
            row.extend(figures.iter().map(|figures| whole(median(figures))));
            row
        });
        table::markdown(0, &head, rows)
    }
}

fn run(threads: usize, spans: u64, is_on: bool) -> Result<[f64; NAMES.len()], String> {
    let scratch = scratch()?;
    let run = scratch.path().join("run");
    let (threads, spans) = (threads.to_string(), spans.to_string());
    let mut child = Child::new(["footprint", &threads, &spans, &run.to_string_lossy()])?;
    if is_on {
        child = child.recording_in(&run);
    }
    figures(&child.lines()?, "FOOTPRINT")
}

/// Records, and prints `FOOTPRINT` and the figures while all threads are there.
pub(crate) fn child(task: &Task) -> Result<(), String> {
    let recorder = Recorder::init();
    let barrier = Barrier::new(task.threads + 1);
    let figures = std::thread::scope(|scope| {
        for _ in 0..task.threads {
            scope.spawn(|| {
                recorder.record(Kind::Span1, 0..task.spans, &mut Free);
                barrier.wait();
                barrier.wait(); // lives until the process has looked at itself
            });
        }
        barrier.wait();
        let figures = own_figures(&task.directory);
        barrier.wait();
        figures
    });
    let figures = figures.map_err(|error| format!("the process's own figures: {error}"))?;
    println!(
        "FOOTPRINT {}",
        figures.map(|figure| figure.to_string()).join(" ")
    );
    Ok(())
}

/// Returns the figures of [`NAMES`] for this process.
fn own_figures(directory: &Path) -> io::Result<[u64; NAMES.len()]> {
    let status = fs::read_to_string("/proc/self/status")?;
    let rollup = fs::read_to_string("/proc/self/smaps_rollup")?;
    let of = |text: &str, name: &str| {
        kib(text, name).ok_or_else(|| io::Error::other(format!("no field {name}")))
    };
    let [ring, other] = files_kib(directory)?;
    Ok([
        of(&status, "VmRSS")?,
        of(&rollup, "Pss")?,
        of(&status, "VmSize")?,
        of(&status, "Threads")?,
        fs::read_dir("/proc/self/fd")?.count() as u64,
        ring,
        other,
    ])
}

/// Returns the KiB that rings and other files of a run take on the disk.
fn files_kib(directory: &Path) -> io::Result<[u64; 2]> {
    let mut sums = [0; 2];
    for folder in [directory, &directory.join("fragments")] {
        let entries = fs::read_dir(folder).into_iter().flatten(); // there is none while recording is off
        for entry in entries {
            let entry = entry?;
            let is_ring = entry.path().extension() == Some("ring".as_ref());
            let blocks = if entry.path().is_dir() {
                0
            } else {
                entry.metadata()?.blocks()
            };
            sums[usize::from(!is_ring)] += blocks / 2;
        }
    }
    Ok(sums)
}
