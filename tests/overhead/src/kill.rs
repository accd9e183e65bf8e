//! The loss when a process is killed while it records.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use measure::clock::wall_ns;
use measure::scratch;

use crate::acknowledged::Acknowledged;
use crate::effort::Effort;
use crate::peer::{Beat, Kind, Peer};
use crate::subject::{self, Subject};
use crate::table::{self, number, whole, word};
use crate::tails::{PERIOD_NS, wait_for_turn};

/// The longest that a victim may take to its first span.
const PATIENCE: Duration = Duration::from_secs(60);

/// The most that a victim records, some GB: it ends by itself where nobody kills it.
const MOST_SPANS: u64 = 20_000_000;

/// The task of a victim: to record until it is killed.
#[derive(Debug, Args)]
pub(crate) struct Task {
    subject: Subject,
    period_ns: u64,
    directory: PathBuf,
}

#[derive(Debug)]
struct Case {
    subject: Subject,
    /// From the start of one span to the next, 0 at full speed.
    period_ns: u64,
    /// Acknowledged spans of each kill, and how many of them were lost.
    completed: Vec<u64>,
    lost: Vec<u64>,
}

/// The cases of the section.
#[derive(Debug)]
pub(crate) struct Kills(Vec<Case>);

impl Kills {
    pub(crate) fn new() -> Kills {
        let case = |period_ns, subject| Case {
            subject,
            period_ns,
            completed: Vec::new(),
            lost: Vec::new(),
        };
        let paces = [0, PERIOD_NS].into_iter();
        let cases = paces.flat_map(|pace| {
            let subjects = Subject::recorders().iter();
            subjects.map(move |&subject| case(pace, subject))
        });
        Kills(cases.collect())
    }

    /// Kills one process of each case.
    pub(crate) fn pass(&mut self, effort: Effort) -> Result<(), String> {
        self.0.iter_mut().try_for_each(|case| case.turn(effort))
    }

    pub(crate) fn table(&self) -> String {
        let head = ["pace", "recorder", "kills", "spans completed"];
        let head = [&head[..], &["lost", "lost %", "most in one kill"]].concat();
        let rows = self.0.iter().map(|case| {
            let is_paced = case.period_ns > 0;
            let pace = if is_paced {
                "50,000 spans/s"
            } else {
                "full speed"
            };
            let sum = |counts: &[u64]| counts.iter().sum::<u64>() as f64;
            let (completed, lost) = (sum(&case.completed), sum(&case.lost));
            let worst = case.lost.iter().max().copied().unwrap_or(0);
            vec![
                pace.to_owned(),
                case.subject.label(),
                whole(case.lost.len() as f64),
                whole(completed),
                whole(lost),
                number(100.0 * lost / completed),
                whole(worst as f64),
            ]
        });
        table::markdown(2, &head, rows)
    }
}

/// Returns the longest life of a victim after its first span: at full speed, which fills the disk, and at a pace.
pub(crate) fn life_ms(effort: Effort, is_paced: bool) -> u64 {
    match is_paced {
        false => effort.select(500, 60, 10),
        true => effort.select(3_000, 300, 20),
    }
}

impl Case {
    fn turn(&mut self, effort: Effort) -> Result<(), String> {
        let scratch = scratch()?;
        let directory = scratch.path().to_string_lossy();
        let (subject, period_ns) = (word(self.subject), self.period_ns.to_string());
        let words = ["victim", &subject, &period_ns, &directory];
        let acknowledged = Acknowledged::open(scratch.path())?;
        let victim = self.subject.child(&words, scratch.path())?;
        let fail = |error: std::io::Error| format!("{words:?}: {error}");
        let mut victim = victim.into_command().spawn().map_err(fail)?;
        let began = Instant::now();
        while acknowledged.load() == 0 && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        let life_us = 1_000 * life_ms(effort, self.period_ns > 0);
        // The last digits of the clock are as good as chance here.
        std::thread::sleep(Duration::from_micros(wall_ns() % life_us));
        let has_ended = victim.try_wait().map_err(fail)?.is_some();
        victim.kill().and_then(|()| victim.wait()).map_err(fail)?;
        let completed = acknowledged.load();
        if completed == 0 || has_ended {
            return Err(format!("{words:?}: ended by itself, or recorded nothing"));
        }
        // The last span that is found may not be acknowledged yet.
        let lost = completed.saturating_sub(self.subject.finished(scratch.path())?);
        self.completed.push(completed);
        self.lost.push(lost);
        Ok(())
    }
}

/// Records until it is killed, at the latest with its parent: a victim that was left alone would fill the disk.
pub(crate) fn child(task: &Task) -> Result<(), String> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|error| format!("the signal at the parent's death: {error}"))?;
    task.subject.run(&task.directory, task)
}

impl subject::Task for &Task {
    fn with(self, peer: impl Peer) -> Result<(), String> {
        let mut beat = Acknowledging {
            acknowledged: Acknowledged::open(&self.directory)?,
            period_ns: self.period_ns,
            turn_ns: wall_ns(),
        };
        peer.record(Kind::Span1, 0..MOST_SPANS, &mut beat);
        Ok(())
    }
}

/// Keeps the pace and acknowledges each span.
struct Acknowledging {
    acknowledged: Acknowledged,
    period_ns: u64,
    turn_ns: u64,
}

impl Beat for Acknowledging {
    #[inline(always)]
    fn before(&mut self) {
        if self.period_ns > 0 {
            wait_for_turn(&mut self.turn_ns, self.period_ns);
        }
    }

    #[inline(always)]
    fn after(&mut self, step: u64) {
        self.acknowledged.store(step + 1);
    }
}
