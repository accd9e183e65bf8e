//! A trace in parts, cut in time: where the cuts are, and the parts' files.
//!
//! Every part is what a window between two cuts shows, with the ids and times that it has in the whole trace. So a span that crosses a cut is whole
//! in each part that it reaches into, and marked; every other event is in exactly one.

mod bins;
pub(crate) mod portion;
pub(crate) mod report;

mod crossing;
mod cut;

use crate::link::LinkedEvents;
use crate::select::window::of_recordings;
use crate::write::copy::TraceCopy;
use crate::write::output::{Destination, OutputTarget, part_places};
use crate::{Error, Layout, Options, Output};
use bins::PartStretch;
use cut::cut;
use portion::Portion;
use rayon::ThreadPool;
use report::OutputReport;

/// Maximum number of bytes by which the head of a part is longer than the head of the whole trace.
const HEAD_BYTES: usize = 200;

/// Refuses to write parts to the standard output.
pub(crate) fn refuse_split(options: &Options) -> Result<(), Error> {
    match (options.events().layout, &options.output) {
        (Layout::Parts { .. }, Output::Stdout) => Err(Error::Usage(
            "--split: parts need names, which the standard output cannot give".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Writes the parts of a trace, each of at most `limit` bytes of text if that can be; all of them get their names, or none. Also returns the number
/// of flow events that link requests.
pub(crate) fn write_parts(
    copy: &TraceCopy<'_>,
    limit: u64,
    target: OutputTarget<'_>,
    pool: &ThreadPool,
) -> Result<(OutputReport, LinkedEvents), Error> {
    let job = &copy.job;
    let frame_bytes = copy.head().len() + HEAD_BYTES + copy.tail().len();
    let (stretches, crossing) = pool.install(|| cut(job, frame_bytes as u64, limit))?;
    let shifts_ns = &job.plan.shifts_ns;
    let portion = |(number, stretch): (usize, &PartStretch)| Portion {
        number,
        of: stretches.len(),
        stretch: *stretch,
        of_recordings: of_recordings(stretch.edges, shifts_ns),
        crossing: &crossing,
    };
    let portions: Vec<Portion<'_>> = stretches.iter().enumerate().map(portion).collect();
    job.progress.expect_rest(rest(copy, &portions));
    let options = target.options;
    let places = part_places(options, target.default_directory, stretches.len())?;
    let (mut destinations, mut parts, mut linked) =
        (Vec::new(), Vec::new(), LinkedEvents::default());
    for (portion, place) in portions.iter().zip(&places.own) {
        let (destination, file) = Destination::part(place, options.gzip, target.access)?;
        let (length, events) = of_part(copy, portion).write(&destination, file, pool)?;
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

fn of_part<'a>(copy: &TraceCopy<'a>, portion: &'a Portion<'a>) -> TraceCopy<'a> {
    TraceCopy {
        portion: Some(portion),
        ..*copy
    }
}

/// Bytes of the inputs that are read for all parts.
fn rest(copy: &TraceCopy<'_>, portions: &[Portion<'_>]) -> u64 {
    let of_part = |portion| {
        let wanted = of_part(copy, portion).wanted().into_iter();
        wanted.map(|number| copy.job.chunks[number].len())
    };
    portions.iter().flat_map(of_part).sum()
}
