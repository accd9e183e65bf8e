//! The tail of single spans, quiet and beside a neighbour that calls fsync all the time.

use std::path::PathBuf;

use clap::Args;
use measure::neighbour::Neighbour;
use measure::tail::{Paced, Tail};
use measure::{Kind, Peer};

use crate::child::Child;
use crate::scene::Scene;
use crate::series::{Series, number};
use crate::subject::{self, RUN, Subject};
use crate::table::Table;

/// What a child times.
#[derive(Debug, Args)]
pub(crate) struct Task {
    subject: Subject,
    events: u64,
    directory: PathBuf,
}

#[derive(Clone, Copy, Debug)]
enum Site {
    Quiet,
    Fsync,
}

#[derive(Debug)]
struct Case {
    site: Site,
    subject: Subject,
    runs: Vec<Tail>,
}

/// Every case of the section.
#[derive(Debug)]
pub(crate) struct Tails(Vec<Case>);

impl Tails {
    pub(crate) fn new() -> Tails {
        let mut cases = Vec::new();
        for site in [Site::Quiet, Site::Fsync] {
            let subjects = [Subject::Control].into_iter().chain(Subject::RECORDERS);
            cases.extend(subjects.map(|subject| Case {
                site,
                subject,
                runs: Vec::new(),
            }));
        }
        Tails(cases)
    }

    /// Gives every case a turn.
    pub(crate) fn pass(&mut self, scene: &Scene) -> Result<(), String> {
        self.0.iter_mut().try_for_each(|case| case.turn(scene))
    }

    pub(crate) fn table(&self) -> String {
        let head = ["p50", "p99", "p99.9", "p99.99", "max"].map(|name| format!("{name} µs"));
        let words = ["beside", "recorder"].map(str::to_owned);
        let mut table = Table::new(2, words.into_iter().chain(head));
        for case in &self.0 {
            let beside = match case.site {
                Site::Quiet => "nothing",
                Site::Fsync => "fsync",
            };
            let of = |field: fn(&Tail) -> f64| -> Series { case.runs.iter().map(field).collect() };
            let us = |field| number(of(field).median() / 1e3);
            table.row([
                beside.to_owned(),
                case.subject.label(),
                us(|tail| tail.p50),
                us(|tail| tail.p99),
                us(|tail| tail.p999),
                us(|tail| tail.p9999),
                number(of(|tail| tail.max).max() / 1e3),
            ]);
        }
        table.markdown()
    }
}

impl Case {
    fn turn(&mut self, scene: &Scene) -> Result<(), String> {
        let scratch = scene.scratch("tail")?;
        let _neighbour = match self.site {
            Site::Quiet => None,
            Site::Fsync => Some(Neighbour::start(scratch.path())?),
        };
        let words = [
            "tail".to_owned(),
            self.subject.word(),
            scene.effort.tail_events.to_string(),
            scratch.path().display().to_string(),
        ];
        let mut child = Child::new(&words)?;
        if self.subject == Subject::Ours {
            child = child.recording_in(&scratch.path().join(RUN));
        }
        let lines = child.lines()?;
        let tail = lines.iter().find_map(|line| Tail::parse(line));
        self.runs
            .push(tail.ok_or_else(|| format!("{words:?}: no tail in {lines:?}"))?);
        Ok(())
    }
}

/// Times the spans and prints their [`Tail`].
pub(crate) fn child(task: &Task) -> Result<(), String> {
    task.subject.run(&task.directory, task)
}

impl subject::Task for &Task {
    fn with(self, peer: impl Peer) -> Result<(), String> {
        let (mut paced, steps) = Paced::new(self.events);
        peer.record(Kind::Span1, 0..steps, &mut paced);
        println!("{}", paced.tail());
        peer.finish();
        Ok(())
    }
}
