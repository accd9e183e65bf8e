//! What a recording process holds: memory, threads, descriptors, files.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Barrier;

use clap::Args;
use measure::{Free, Kind, Peer};

use crate::child::{Child, only};
use crate::ours::Ours;
use crate::scene::Scene;
use crate::series::{Series, number, whole};
use crate::subject::RUN;
use crate::table::Table;

/// Threads that record, and spans that each of them records before the process is looked at.
const CASES: [(usize, u64); 6] = [
    (0, 0),
    (1, 1),
    (1, 10_000),
    (8, 1),
    (8, 10_000),
    (32, 10_000),
];

/// The cases between which the growth per thread is taken.
const FEW: (usize, u64) = (1, 10_000);
const MANY: (usize, u64) = (8, 10_000);

/// How many figures a child prints.
const FIGURES: usize = 8;
const NAMES: [&str; FIGURES] = [
    "resident KiB",
    "proportional KiB",
    "mapped KiB",
    "threads",
    "descriptors",
    "files",
    "ring KiB",
    "fragment KiB",
];

/// What a child does before it looks at itself.
#[derive(Debug, Args)]
pub(crate) struct Task {
    threads: usize,
    spans: u64,
    directory: std::path::PathBuf,
}

#[derive(Debug)]
struct Case {
    threads: usize,
    spans: u64,
    /// What recording adds, per figure.
    more: [Series; FIGURES],
}

/// Every case of the section.
#[derive(Debug)]
pub(crate) struct Footprint(Vec<Case>);

impl Footprint {
    pub(crate) fn new() -> Footprint {
        let cases = CASES.map(|(threads, spans)| Case {
            threads,
            spans,
            more: Default::default(),
        });
        Footprint(cases.into())
    }

    /// Gives every case a turn, off and on.
    pub(crate) fn pass(&mut self, scene: &Scene) -> Result<(), String> {
        for case in &mut self.0 {
            let off = case.figures(scene, false)?;
            let on = case.figures(scene, true)?;
            for ((more, on), off) in case.more.iter_mut().zip(on).zip(off) {
                more.push(on - off);
            }
        }
        Ok(())
    }

    pub(crate) fn table(&self) -> String {
        let head = ["threads that record", "spans of each"]
            .into_iter()
            .chain(NAMES);
        let mut table = Table::new(0, head);
        for case in &self.0 {
            let mut row = vec![case.threads.to_string(), whole(case.spans as f64)];
            row.extend(case.more.iter().map(|more| whole(more.median())));
            table.row(row);
        }
        let mut row = vec!["each further one".to_owned(), whole(MANY.1 as f64)];
        row.extend((0..FIGURES).map(|figure| number(self.growth(figure))));
        table.row(row);
        table.markdown()
    }

    /// What each thread beyond those of the smaller case adds.
    fn growth(&self, figure: usize) -> f64 {
        let median = |wanted: (usize, u64)| {
            let case = self
                .0
                .iter()
                .find(|case| (case.threads, case.spans) == wanted);
            case.map_or(0.0, |case| case.more[figure].median())
        };
        (median(MANY) - median(FEW)) / (MANY.0 - FEW.0) as f64
    }
}

impl Case {
    fn figures(&self, scene: &Scene, on: bool) -> Result<[f64; FIGURES], String> {
        let scratch = scene.scratch("footprint")?;
        let run = scratch.path().join(RUN);
        let words = [
            "footprint".to_owned(),
            self.threads.to_string(),
            self.spans.to_string(),
            run.display().to_string(),
        ];
        let mut child = Child::new(&words)?;
        if on {
            child = child.recording_in(&run);
        }
        only(&child.lines()?, "FOOTPRINT")
    }
}

/// Records, and prints `FOOTPRINT` and the figures while all threads are there.
pub(crate) fn child(task: &Task) -> Result<(), String> {
    let recorder = Ours::start();
    let recorded = Barrier::new(task.threads + 1);
    let looked_at = Barrier::new(task.threads + 1);
    let figures = std::thread::scope(|scope| {
        for _ in 0..task.threads {
            scope.spawn(|| {
                recorder.record(Kind::Span1, 0..task.spans, &mut Free);
                recorded.wait();
                looked_at.wait();
            });
        }
        recorded.wait();
        let figures = look(&task.directory);
        looked_at.wait();
        figures
    });
    let figures = figures.map_err(|error| format!("the process's own figures: {error}"))?;
    let texts = figures.map(|figure| figure.to_string());
    println!("FOOTPRINT {}", texts.join(" "));
    Ok(())
}

fn look(directory: &Path) -> io::Result<[f64; FIGURES]> {
    let status = fs::read_to_string("/proc/self/status")?;
    let rollup = fs::read_to_string("/proc/self/smaps_rollup")?;
    let descriptors = fs::read_dir("/proc/self/fd")?.count() as f64;
    let (files, ring, other) = files(directory)?;
    let of = |text: &str, name: &str| {
        field(text, name).ok_or_else(|| io::Error::other(format!("no field {name}")))
    };
    Ok([
        of(&status, "VmRSS")?,
        of(&rollup, "Pss")?,
        of(&status, "VmSize")?,
        of(&status, "Threads")?,
        descriptors,
        files,
        ring,
        other,
    ])
}

/// The number after `name:` in a file of `/proc`.
fn field(text: &str, name: &str) -> Option<f64> {
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.split_whitespace().next()?.parse().ok()
}

/// Counts the files below a directory, and the KiB that they take on the disk: rings, and all others.
fn files(directory: &Path) -> io::Result<(f64, f64, f64)> {
    let (mut count, mut ring, mut other) = (0.0, 0.0, 0.0);
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((0.0, 0.0, 0.0)),
        entries => entries?,
    };
    for entry in entries {
        let (entry, metadata) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
        if metadata.is_dir() {
            let (files, rings, others) = files(&entry)?;
            (count, ring, other) = (count + files, ring + rings, other + others);
            continue;
        }
        let kib = (metadata.blocks() / 2) as f64;
        count += 1.0;
        if entry
            .extension()
            .is_some_and(|extension| extension == "ring")
        {
            ring += kib;
        } else {
            other += kib;
        }
    }
    Ok((count, ring, other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let status = "VmRSSx:\t1 kB\nVmRSS:\t  2048 kB\nThreads:\t3\n";
        assert_eq!(field(status, "VmRSS"), Some(2048.0));
        assert_eq!(field(status, "Threads"), Some(3.0));
        assert_eq!(field(status, "Rss"), None);
    }

    #[test]
    fn rings_count_apart() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("fragments")).unwrap();
        fs::write(dir.path().join("run"), "x").unwrap();
        fs::write(dir.path().join("fragments/trace.1.ring"), [1; 10_000]).unwrap();
        let (count, ring, other) = files(dir.path()).unwrap();
        assert_eq!(count, 2.0);
        assert!(ring >= other, "{ring} {other}");
        assert_eq!(files(&dir.path().join("none")).unwrap().0, 0.0);
    }
}
