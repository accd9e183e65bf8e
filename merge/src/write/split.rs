//! A trace in several parts: finds the cuts between them and writes their files.
//!
//! Every part shows a window between two cuts, with the ids and times of the whole trace. A span
//! that crosses a cut is complete in each part that it overlaps, and marked. Every other event is
//! in exactly one part.

mod bins;
pub(crate) mod portion;

mod crossing;
mod cut;

use crate::base::plural::plural;
use crate::event::damage::{path_text, path_text_if_some};
use crate::link::LinkedEvents;
use crate::select::window::edges_per_recording;
use crate::write::copy::TraceCopy;
use crate::write::output::{Destination, OutputTarget, part_places};
use crate::{Error, Layout, Options, Output};
use bins::PartRange;
use cut::cut;
use portion::Portion;
use rayon::ThreadPool;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum number of bytes by which the head of a part is longer than the head of the whole trace.
const HEAD_BYTES: usize = 200;

/// Returns an error if parts would go to the standard output.
pub(crate) fn reject_split(options: &Options) -> Result<(), Error> {
    match (options.events().layout, &options.output) {
        (Layout::Parts { .. }, Output::Stdout) => Err(Error::Usage(
            "--split: parts cannot go to the standard output; name a file with -o".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Writes the parts of a trace, each of at most `limit` bytes of text if possible. Either all of
/// them get their names, or none. Also returns the number of flow events that link requests.
pub(crate) fn write_parts(
    copy: &TraceCopy<'_>,
    limit: u64,
    target: OutputTarget<'_>,
    pool: &ThreadPool,
) -> Result<(OutputReport, LinkedEvents), Error> {
    let job = &copy.job;
    let frame_bytes = copy.head().len() + HEAD_BYTES + copy.tail().len();
    let (part_ranges, crossing) = pool.install(|| cut(job, frame_bytes as u64, limit))?;
    let shifts_ns = &job.plan.shifts_ns;
    let portion = |(number, range): (usize, &PartRange)| Portion {
        number,
        count: part_ranges.len(),
        range: *range,
        recording_edges: edges_per_recording(range.edges, shifts_ns),
        crossing: &crossing,
    };
    let portions: Vec<Portion<'_>> = part_ranges.iter().enumerate().map(portion).collect();
    job.progress.expect_rest(input_bytes(copy, &portions));
    let options = target.options;
    let places = part_places(options, target.default_directory, part_ranges.len())?;
    let (mut destinations, mut parts, mut linked) =
        (Vec::new(), Vec::new(), LinkedEvents::default());
    for (portion, place) in portions.iter().zip(&places.own) {
        let (destination, file) = Destination::part(place, options.gzip, target.access)?;
        let (length, events) = part_copy(copy, portion).write(&destination, file, pool)?;
        linked += events;
        parts.push(portion.report(place.path(), &length));
        destinations.push(destination);
    }
    Destination::finish_all(destinations)?;
    let report = OutputReport {
        path: places.own.first().map(|place| place.path().to_owned()),
        bytes: parts.iter().map(|part| part.bytes).sum(),
        parts,
        split_bytes: Some(limit),
        other_parts: places.others,
    };
    Ok((report, linked))
}

fn part_copy<'a>(copy: &TraceCopy<'a>, portion: &'a Portion<'a>) -> TraceCopy<'a> {
    TraceCopy {
        portion: Some(portion),
        ..*copy
    }
}

/// Returns the number of input bytes that are read for all parts.
fn input_bytes(copy: &TraceCopy<'_>, portions: &[Portion<'_>]) -> u64 {
    let chunk_lengths = |portion| {
        let wanted = part_copy(copy, portion).wanted_chunks().into_iter();
        wanted.map(|number| copy.job.chunks[number].len())
    };
    portions.iter().flat_map(chunk_lengths).sum()
}

/// Files of a trace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OutputReport {
    /// Path of the trace, or of its first part; absent for the standard output.
    #[serde(rename = "output", serialize_with = "path_text_if_some")]
    pub path: Option<PathBuf>,
    /// Length in bytes, of all parts together.
    #[serde(rename = "output_bytes")]
    pub bytes: u64,
    /// Parts, if the trace was split.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartReport>,
    /// Maximum bytes of text that each part should have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_bytes: Option<u64>,
    /// Names of files next to the parts that are named like parts and do not belong to this trace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_parts: Vec<String>,
}

/// One part of a trace that was split.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PartReport {
    /// Path of the file.
    #[serde(serialize_with = "path_text")]
    pub path: PathBuf,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Length of its text in bytes; more than the file's length if that is compressed.
    pub text_bytes: u64,
    /// Number of events in it, including recorded metadata. An event that crosses an edge is in
    /// other parts too.
    pub events: u64,
    /// Start of the part, in ns from the base.
    pub from_ns: i64,
    /// End of the part, in ns from the base; absent for the last one.
    pub to_ns: Option<i64>,
}

impl PartReport {
    /// Formats the line for the summary. `limit` is the requested length of text.
    pub(crate) fn text(&self, limit: u64) -> String {
        let seconds = |ns: i64| Duration::from_nanos(ns.unsigned_abs()).as_secs_f64();
        let until = match self.to_ns {
            Some(to_ns) => format!("to {:.6}s", seconds(to_ns)),
            None => "to the end".to_owned(),
        };
        let too_large = match self.text_bytes > limit {
            true => ", more than requested, because it cannot be cut any further",
            false => "",
        };
        format!(
            "{}: {:.6}s {until}, {}, {:.1} MB of text{too_large}",
            file_name(&self.path),
            seconds(self.from_ns),
            plural(self.events, "event"),
            self.text_bytes as f64 / 1e6
        )
    }
}

/// Returns the last component of a path, as text.
pub(crate) fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
