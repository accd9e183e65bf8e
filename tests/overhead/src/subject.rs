//! The recorders that are measured.

use std::path::Path;

use clap::ValueEnum;
use measure::Child;
use sa_recorder::Recorder;

use crate::peer::fastrace::Fastrace;
use crate::peer::measureme::Measureme;
use crate::peer::mutex_serde::MutexSerde;
use crate::peer::puffin::Puffin;
use crate::peer::tracing_chrome::TracingChrome;
use crate::peer::{Control, Peer, fastrace, lines_with, mutex_serde, tracing_chrome};

/// The run directory of our recorder in the directory that it is given.
const RUN: &str = "run";

/// A recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Subject {
    /// None: two clock reads.
    Control,
    Ours,
    TracingChrome,
    Fastrace,
    Puffin,
    Measureme,
    MutexSerde,
}

/// A task for a started recorder.
pub(crate) trait Task {
    fn with(self, peer: impl Peer) -> Result<(), String>;
}

impl Subject {
    /// Returns every recorder, ours first.
    pub(crate) fn recorders() -> &'static [Subject] {
        &Subject::value_variants()[1..]
    }

    /// Returns its name and version on the page.
    pub(crate) fn label(self) -> String {
        match self {
            Subject::Control => "two clock reads, no recorder".to_owned(),
            Subject::Ours => format!("**sa-recorder {}**", env!("CARGO_PKG_VERSION")),
            Subject::TracingChrome => with_version("tracing-chrome"),
            Subject::Fastrace => with_version("fastrace"),
            Subject::Puffin => with_version("puffin"),
            Subject::Measureme => with_version("measureme"),
            Subject::MutexSerde => "mutex + serde_json".to_owned(),
        }
    }

    /// Prepares a child that does this recorder's task in `directory`.
    pub(crate) fn child(self, words: &[&str], directory: &Path) -> Result<Child, String> {
        let child = Child::new(words)?;
        Ok(match self {
            Subject::Ours => child.recording_in(&directory.join(RUN)),
            _ => child,
        })
    }

    /// Starts it with its files in `directory` and does the task.
    pub(crate) fn run(self, directory: &Path, task: impl Task) -> Result<(), String> {
        match self {
            Subject::Control => task.with(Control),
            Subject::Ours => task.with(Recorder::init()),
            Subject::TracingChrome => task.with(TracingChrome::start(directory)?),
            Subject::Fastrace => task.with(Fastrace::start(directory)?),
            Subject::Puffin => task.with(Puffin::start(directory)?),
            Subject::Measureme => task.with(Measureme::start(directory)?),
            Subject::MutexSerde => task.with(MutexSerde::start(directory)?),
        }
    }

    /// Counts the finished spans in its files in `directory`. For our recorder, it counts those in the merged trace.
    pub(crate) fn finished(self, directory: &Path) -> Result<u64, String> {
        let json = directory.join("peer.json");
        let found = match self {
            Subject::Control => return Ok(0),
            Subject::Ours => return merged(&directory.join(RUN)),
            Subject::TracingChrome => lines_with(&json, tracing_chrome::FINISHED),
            Subject::Fastrace => lines_with(&json, fastrace::FINISHED),
            Subject::MutexSerde => lines_with(&json, mutex_serde::FINISHED),
            Subject::Puffin => Puffin::finished(&json),
            Subject::Measureme => Measureme::finished(&Measureme::path(directory)),
        };
        found.map_err(|error| format!("{self:?}: {error}"))
    }
}

/// Merges a run and counts its finished spans.
fn merged(run: &Path) -> Result<u64, String> {
    let options = trace_merge::Options::new([run.to_owned()]);
    let report = trace_merge::merge(&options).map_err(|error| error.to_string())?;
    Ok(report.events.by_phase.get(&'X').copied().unwrap_or(0))
}

/// Returns the name of a crate with the version that the lock file has.
fn with_version(name: &str) -> String {
    let entry = format!("name = \"{name}\"\nversion = \"");
    let after = include_str!("../../../Cargo.lock").split_once(&entry);
    let version = after.and_then(|(_, after)| after.split('"').next());
    format!("{name} {}", version.unwrap_or("(unknown version)"))
}
