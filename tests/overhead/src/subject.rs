//! The recorders that are measured.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use measure::Peer;
use measure::peer::{
    Control, Fastrace, Measureme, MutexSerde, Puffin, TracingChrome, finished_lines,
};

use crate::ours::Ours;

/// The run directory of our recorder in the directory that it is given.
pub(crate) const RUN: &str = "run";

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

/// What is done with a started recorder.
pub(crate) trait Task {
    fn with(self, peer: impl Peer) -> Result<(), String>;
}

impl Subject {
    /// Every recorder, ours first.
    pub(crate) const RECORDERS: [Subject; 6] = [
        Subject::Ours,
        Subject::TracingChrome,
        Subject::Fastrace,
        Subject::Puffin,
        Subject::Measureme,
        Subject::MutexSerde,
    ];

    /// The word for it on a child's command line.
    pub(crate) fn word(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Its name and version on the page.
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

    /// How it is set up, in a sentence.
    pub(crate) fn set_up(self) -> &'static str {
        match self {
            Subject::Control => "reads the clock twice and records nothing",
            Subject::Ours => "`Recorder::init`, `span!`; files in the run directory",
            Subject::TracingChrome => {
                "its layer on tracing's registry, arguments included, locations not, its guard held; its thread writes the file"
            }
            Subject::Fastrace => {
                "a root span for each 1,000 spans, default settings, and a reporter that writes a JSON line per span to a file"
            }
            Subject::Puffin => {
                "a frame for each 1,000 spans, and a sink whose thread packs the frames (lz4) and writes them to a file; arguments are one formatted text"
            }
            Subject::Measureme => {
                "its `Profiler` with a file; arguments are strings of its string table"
            }
            Subject::MutexSerde => {
                "what one writes by hand: a line by serde_json into a buffered file under a mutex"
            }
        }
    }

    /// Starts it with its files in `directory` and does the task.
    pub(crate) fn run(self, directory: &Path, task: impl Task) -> Result<(), String> {
        match self {
            Subject::Control => task.with(Control),
            Subject::Ours => task.with(Ours::start()),
            Subject::TracingChrome => task.with(TracingChrome::start(directory)?),
            Subject::Fastrace => task.with(Fastrace::start(directory)?),
            Subject::Puffin => task.with(Puffin::start(directory)?),
            Subject::Measureme => task.with(Measureme::start(directory)?),
            Subject::MutexSerde => task.with(MutexSerde::start(directory)?),
        }
    }

    /// The steps of the finished spans that its files in `directory` hold; of ours those that the merge finds.
    pub(crate) fn finished(self, directory: &Path) -> Result<Vec<u64>, String> {
        let json = directory.join("peer.json");
        let (path, found) = match self {
            Subject::Control => return Ok(Vec::new()),
            Subject::Ours => {
                let trace = merged(&directory.join(RUN))?;
                let found = finished_lines(&trace, r#""ph":"X""#);
                (trace, found)
            }
            Subject::TracingChrome => (json.clone(), TracingChrome::finished(&json)),
            Subject::Fastrace => (json.clone(), Fastrace::finished(&json)),
            Subject::Puffin => (json.clone(), Puffin::finished(&json)),
            Subject::MutexSerde => (json.clone(), MutexSerde::finished(&json)),
            Subject::Measureme => {
                let path = directory.join("peer.mm_profdata");
                let found = Measureme::finished(&path);
                (path, found)
            }
        };
        found.map_err(|error| format!("{}: {error}", path.display()))
    }
}

fn merged(directory: &Path) -> Result<PathBuf, String> {
    let report = trace_merge::merge(&trace_merge::Options::new([directory.to_owned()]))
        .map_err(|error| error.to_string())?;
    report
        .output
        .path
        .ok_or_else(|| "the merge wrote no file".to_owned())
}

/// A crate with the version that the lock file names.
fn with_version(name: &str) -> String {
    let entry = format!("name = \"{name}\"\nversion = \"");
    let after = include_str!("../../../Cargo.lock").split_once(&entry);
    let version = after.and_then(|(_, after)| after.split('"').next());
    format!("{name} {}", version.unwrap_or("(unknown version)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_lock_file() {
        for subject in Subject::RECORDERS {
            assert!(!subject.label().contains("unknown"), "{subject:?}");
            assert!(!subject.word().is_empty(), "{subject:?}");
        }
        assert!(with_version("no-such-crate").contains("unknown"));
    }
}
