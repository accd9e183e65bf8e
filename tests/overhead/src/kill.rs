//! What is lost when a process is killed in the middle of recording.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use measure::clock::wall_ns;
use measure::tail::PERIOD_NS;
use measure::{Beat, Kind, Peer};

use crate::acknowledged::Acknowledged;
use crate::child::Child;
use crate::scene::Scene;
use crate::series::{number, whole};
use crate::subject::{self, RUN, Subject};
use crate::table::Table;

/// The longest that a victim may take to its first span.
const PATIENCE: Duration = Duration::from_secs(60);

/// The most that a victim records, some GB: it ends by itself where nobody kills it.
const MOST_SPANS: u64 = 20_000_000;

/// What a victim does until it is killed.
#[derive(Debug, Args)]
pub(crate) struct Task {
    subject: Subject,
    period_ns: u64,
    directory: PathBuf,
}

/// What kills have shown so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Toll {
    kills: f64,
    completed: f64,
    lost: f64,
    worst: f64,
    doubled: f64,
}

#[derive(Debug)]
struct Case {
    subject: Subject,
    /// From the start of one span to the next, 0 at full speed.
    period_ns: u64,
    toll: Toll,
}

/// Every case of the section.
#[derive(Debug)]
pub(crate) struct Kills(Vec<Case>);

impl Kills {
    pub(crate) fn new() -> Kills {
        let cases = [0, PERIOD_NS].into_iter().flat_map(|period_ns| {
            Subject::RECORDERS.map(|subject| Case {
                subject,
                period_ns,
                toll: Toll::default(),
            })
        });
        Kills(cases.collect())
    }

    /// Kills one process of each case.
    pub(crate) fn pass(&mut self, scene: &Scene) -> Result<(), String> {
        self.0.iter_mut().try_for_each(|case| case.turn(scene))
    }

    /// The table, with the Python recorders' rows after ours.
    pub(crate) fn table(&self, python: Vec<Vec<String>>) -> String {
        let head = [
            "pace",
            "recorder",
            "kills",
            "spans completed",
            "lost",
            "lost %",
            "most in one kill",
            "doubled",
        ];
        let mut table = Table::new(2, head);
        for case in &self.0 {
            let pace = if case.period_ns == 0 {
                "full speed"
            } else {
                "50,000 spans/s"
            };
            let mut row = vec![pace.to_owned(), case.subject.label()];
            row.extend(case.toll.cells());
            table.row(row);
        }
        for row in python {
            table.row(row);
        }
        table.markdown()
    }
}

impl Toll {
    /// Adds one kill: the spans acknowledged, and the steps that were found.
    pub(crate) fn add(&mut self, acknowledged: u64, mut found: Vec<u64>) {
        found.retain(|&step| step < acknowledged);
        let all = found.len();
        found.sort_unstable();
        found.dedup();
        let lost = acknowledged as f64 - found.len() as f64;
        self.kills += 1.0;
        self.completed += acknowledged as f64;
        self.lost += lost;
        self.worst = self.worst.max(lost);
        self.doubled += (all - found.len()) as f64;
    }

    pub(crate) fn cells(&self) -> [String; 6] {
        [
            whole(self.kills),
            whole(self.completed),
            whole(self.lost),
            number(100.0 * self.lost / self.completed.max(1.0)),
            whole(self.worst),
            whole(self.doubled),
        ]
    }
}

impl Case {
    fn turn(&mut self, scene: &Scene) -> Result<(), String> {
        let scratch = scene.scratch("kill")?;
        let words = [
            "victim".to_owned(),
            self.subject.word(),
            self.period_ns.to_string(),
            scratch.path().display().to_string(),
        ];
        let mut child = Child::new(&words)?;
        if self.subject == Subject::Ours {
            child = child.recording_in(&scratch.path().join(RUN));
        }
        let life_ms = match self.period_ns {
            0 => scene.effort.life_ms,
            _ => scene.effort.paced_life_ms,
        };
        let acknowledged = kill(child.into_command(), scratch.path(), life_ms)?;
        let found = self.subject.finished(scratch.path())?;
        self.toll.add(acknowledged, found);
        Ok(())
    }
}

/// Starts a victim, kills it at a random instant after its first span, and returns how many it acknowledged.
pub(crate) fn kill(mut victim: Command, directory: &Path, life_ms: u64) -> Result<u64, String> {
    let acknowledged = Acknowledged::open(&count_file(directory))?;
    victim.stdout(Stdio::null());
    let mut process = victim
        .spawn()
        .map_err(|error| format!("{victim:?}: {error}"))?;
    let began = Instant::now();
    let mut ended = None;
    while acknowledged.load() == 0 && ended.is_none() && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
        ended = process.try_wait().map_err(|error| error.to_string())?;
    }
    if ended.is_none() {
        std::thread::sleep(Duration::from_micros(chance() % (life_ms * 1_000)));
        process.kill().map_err(|error| error.to_string())?;
        process.wait().map_err(|error| error.to_string())?;
    }
    match (acknowledged.load(), ended) {
        (0, _) | (_, Some(_)) => Err(format!("{victim:?}: ended or recorded nothing: {ended:?}")),
        (spans, None) => Ok(spans),
    }
}

/// Where a victim acknowledges its spans.
pub(crate) fn count_file(directory: &Path) -> PathBuf {
    directory.join("acknowledged")
}

/// A number that nobody chose: the clock, scrambled (SplitMix64).
fn chance() -> u64 {
    let mut mixed = wall_ns().wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Records until it is killed, at the latest with its parent: a victim that was left alone would fill the disk.
pub(crate) fn child(task: &Task) -> Result<(), String> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|error| format!("the signal at the parent's death: {error}"))?;
    task.subject.run(&task.directory, task)
}

impl subject::Task for &Task {
    fn with(self, peer: impl Peer) -> Result<(), String> {
        let mut told = Told {
            acknowledged: Acknowledged::open(&count_file(&self.directory))?,
            period_ns: self.period_ns,
            turn_ns: wall_ns(),
        };
        peer.record(Kind::Span1, 0..MOST_SPANS, &mut told);
        Ok(())
    }
}

/// Keeps the pace and acknowledges each span.
struct Told {
    acknowledged: Acknowledged,
    period_ns: u64,
    turn_ns: u64,
}

impl Beat for Told {
    #[inline(always)]
    fn before(&mut self, _: u64) {
        if self.period_ns > 0 {
            self.turn_ns += self.period_ns;
            while wall_ns() < self.turn_ns {
                std::hint::spin_loop();
            }
        }
    }

    #[inline(always)]
    fn after(&mut self, step: u64) {
        self.acknowledged.store(step + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_acknowledged_spans_count_and_doubles_are_told() {
        let mut toll = Toll::default();
        toll.add(5, vec![0, 1, 1, 3, 7]);
        toll.add(10, (0..11).collect());
        assert_eq!(toll.cells(), ["2", "15", "2", "13.3", "2", "1"]);
    }
}
