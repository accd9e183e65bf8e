//! The parts, one after the other, and all their files at the end.

use super::bins::PartStretch;
use super::cut::cut;
use super::portion::Portion;
use super::report::PartReport;
use crate::base::access::Access;
use crate::base::folder::Folder;
use crate::link::LinkedEvents;
use crate::write::copy::TraceCopy;
use crate::write::output::{Destination, part_places, refuse_inputs};
use crate::write::sink::Sink;
use crate::{Error, Layout, Options, Output};
use rayon::ThreadPool;
use std::path::PathBuf;

/// How much longer the head of a part may be than that of the whole trace.
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

/// What was written of a trace in parts.
pub(crate) struct SplitTrace {
    pub(crate) parts: Vec<PartReport>,
    /// Names of files beside them that are called like parts.
    pub(crate) others: Vec<String>,
    /// The first part.
    pub(crate) first: Option<PathBuf>,
    /// Flow events that link requests.
    pub(crate) linked: LinkedEvents,
}

/// Where the parts go, and who may read them.
#[derive(Clone, Copy)]
pub(crate) struct PartsTarget<'a> {
    pub(crate) options: &'a Options,
    pub(crate) default_directory: Option<&'a Folder>,
    pub(crate) access: Access,
}

/// Writes the parts of a trace, each of at most `limit` bytes of text if that can be; all of them get their names, or none.
pub(crate) fn write_parts(
    copy: &TraceCopy<'_>,
    limit: u64,
    target: PartsTarget<'_>,
    pool: &ThreadPool,
) -> Result<SplitTrace, Error> {
    let job = &copy.job;
    let frame_bytes = copy.head().len() + HEAD_BYTES + copy.tail().len();
    let (stretches, crossing) = pool.install(|| cut(job, frame_bytes as u64, limit))?;
    let shifts_ns = &job.plan.shifts_ns;
    let portion = |(number, stretch): (usize, &PartStretch)| {
        Portion::new(stretch, number, stretches.len(), shifts_ns, &crossing)
    };
    let portions: Vec<Portion<'_>> = stretches.iter().enumerate().map(portion).collect();
    job.progress.expect_rest(rest(copy, &portions));
    let PartsTarget {
        options, access, ..
    } = target;
    let places = part_places(options, target.default_directory, stretches.len())?;
    let (mut destinations, mut parts, mut linked) =
        (Vec::new(), Vec::new(), LinkedEvents::default());
    for (portion, place) in portions.iter().zip(&places.own) {
        let (destination, file) = Destination::part(place, options.gzip, access)?;
        refuse_inputs(&destination, job.recordings)?;
        let sink = Sink::new(file, destination.is_gzip());
        linked += of_part(copy, portion).run(&sink, pool.current_num_threads());
        let length = sink
            .finish()
            .map_err(|source| Error::of_write(place.path(), source))?;
        parts.push(portion.report(place.path(), &length));
        destinations.push(destination);
    }
    Destination::finish_all(destinations)?;
    let first = places.own.first();
    Ok(SplitTrace {
        parts,
        others: places.others,
        first: first.map(|place| place.path().to_owned()),
        linked,
    })
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
        wanted
            .map(|number| copy.job.chunks[number].len())
            .sum::<u64>()
    };
    portions.iter().map(of_part).sum()
}
