//! Recorders, the kinds of events that they record, and the hooks around each event.

pub(crate) mod fastrace;
pub(crate) mod measureme;
pub(crate) mod mutex_serde;
pub(crate) mod ours;
pub(crate) mod puffin;
pub(crate) mod tracing_chrome;

use std::fs::File;
use std::hint::black_box;
use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use measure::clock::wall_ns;

/// Spans under one root of the recorders that report by roots: fastrace takes at most 10,240 of them, puffin hands over one frame.
const SPANS_PER_ROOT: usize = 1_000;

/// A recorder that a child process can measure.
pub(crate) trait Peer: Sync {
    /// Records one event for each step: of this kind if the recorder is ours, else a span with the step as its argument.
    fn record(&self, kind: Kind, steps: Range<u64>, beat: &mut impl Beat);
    /// Waits until what was recorded is written.
    fn settle(&self) {}
    /// Ends the recording as its authors recommend, and returns its file if it has one.
    fn finish(self) -> Option<PathBuf>;
}

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// A span without arguments.
    Span,
    /// A span with one integer argument, the step.
    Span1,
    /// A span with three arguments: the step, a short text and a fraction.
    Span3,
    /// An instant with one integer argument.
    Instant,
    /// A counter of one series.
    Counter,
    /// One event of a flow.
    Flow,
    /// A span on a lane of its own, begun and ended.
    Async,
    /// A span while nothing turns recording on.
    Off,
    /// A span of a level that is not selected.
    Filtered,
}

impl Kind {
    /// Returns true if a recorder writes something for it.
    pub(crate) fn writes(self) -> bool {
        !matches!(self, Kind::Off | Kind::Filtered)
    }

    /// Returns what it is called on the page.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Kind::Span => "span, no arguments",
            Kind::Span1 => "span, 1 argument",
            Kind::Span3 => "span, 3 arguments, one a text",
            Kind::Instant => "instant, 1 argument",
            Kind::Counter => "counter, 1 series",
            Kind::Flow => "flow event",
            Kind::Async => "async span begun and ended, 1 argument",
            Kind::Off => "span, recording off",
            Kind::Filtered => "span, level filtered out",
        }
    }
}

/// Hooks into each step of a recorder's loop.
pub(crate) trait Beat {
    /// Runs directly before the event of a step.
    #[inline(always)]
    fn before(&mut self) {}

    /// Runs directly after the event of `step` is complete.
    #[inline(always)]
    fn after(&mut self, step: u64) {
        let _ = step;
    }
}

/// No hooks: the loop runs as fast as it can.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Free;

impl Beat for Free {}

/// Calls `event` for each step.
#[inline(always)]
pub(crate) fn each(steps: Range<u64>, beat: &mut impl Beat, mut event: impl FnMut(u64)) {
    for step in steps {
        beat.before();
        event(step);
        beat.after(step);
    }
}

/// Splits the steps into ranges, one for each root.
fn roots(steps: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let starts = steps.clone().step_by(SPANS_PER_ROOT);
    starts.map(move |start| start..steps.end.min(start + SPANS_PER_ROOT as u64))
}

fn create(directory: &Path) -> Result<(File, PathBuf), String> {
    let path = directory.join("peer.json");
    let file = File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok((file, path))
}

/// Counts the complete lines that contain `marker`.
pub(crate) fn lines_with(path: &Path, marker: &str) -> io::Result<u64> {
    let mut reader = BufReader::with_capacity(1 << 20, File::open(path)?);
    let (mut line, mut count) = (Vec::new(), 0);
    while reader.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        let is_whole = text.trim_end().trim_end_matches(',').ends_with('}');
        count += u64::from(is_whole && text.contains(marker));
        line.clear();
    }
    Ok(count)
}

/// No recorder: two clock reads, the least that any span with a duration costs.
pub(crate) struct Control;

impl Peer for Control {
    fn record(&self, _: Kind, steps: Range<u64>, beat: &mut impl Beat) {
        each(steps, beat, |_| {
            black_box(wall_ns());
            black_box(wall_ns());
        });
    }

    fn finish(self) -> Option<PathBuf> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::Subject;

    #[test]
    fn roots_cover_every_step() {
        let cut: Vec<_> = roots(5..2_100).collect();
        assert_eq!(cut, [5..1_005, 1_005..2_005, 2_005..2_100]);
        assert_eq!(roots(3..3).count(), 0);
    }

    #[test]
    fn torn_and_other_lines_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace");
        let text = "[\n{\"ph\":\"B\",\"a\":1},\n{\"ph\":\"E\",\"a\":1},\n{\"ph\":\"E\",\"a\":2";
        std::fs::write(&path, text).unwrap();
        assert_eq!(lines_with(&path, r#""ph":"E""#).unwrap(), 1);
    }

    struct Three;

    impl crate::subject::Task for Three {
        fn with(self, peer: impl Peer) -> Result<(), String> {
            peer.record(Kind::Span1, 0..3, &mut Free);
            peer.settle();
            peer.finish().map(|_| ()).ok_or("no file".to_owned())
        }
    }

    #[test]
    fn every_other_recorder_writes_what_is_found() {
        for subject in &Subject::recorders()[1..] {
            let dir = tempfile::tempdir().unwrap();
            subject.run(dir.path(), Three).unwrap();
            assert_eq!(subject.finished(dir.path()), Ok(3), "{subject:?}");
        }
    }
}
