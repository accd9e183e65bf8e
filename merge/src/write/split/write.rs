//! The parts, one after the other, and all their files at the end.

use super::cut::cut;
use super::{Portion, Stretch};
use crate::app::report::Report;
use crate::app::validate::{refuse_changed, refuse_inputs};
use crate::base::access::Access;
use crate::base::folder::Folder;
use crate::write::copy::Job;
use crate::write::output::{Destination, part_places};
use crate::write::sink::Sink;
use crate::{Error, Options, Output};
use rayon::ThreadPool;

/// How much longer the head of a part may be than that of the whole trace.
const HEAD_BYTES: usize = 200;

/// Parts cannot be had everywhere.
pub(crate) fn refuse_split(options: &Options) -> Result<(), Error> {
    let why = match (options.split, &options.output) {
        (None, _) => return Ok(()),
        (_, Output::Stdout) => "parts need names, which the standard output cannot give",
        _ if options.verbatim => "lines as they stand need not have times to be cut by",
        _ => return Ok(()),
    };
    Err(Error::Usage(format!("--split: {why}")))
}

/// Writes the parts of a trace, each of at most `limit` bytes of text if that can be; all of them get their names, or none.
pub(crate) fn write_parts(
    job: &Job<'_>,
    limit: u64,
    (options, default_directory, access): (&Options, Option<&Folder>, Access),
    pool: &ThreadPool,
    report: &mut Report,
) -> Result<(), Error> {
    let frame_bytes = job.head(report).len() + HEAD_BYTES + job.tail().len();
    let (stretches, crossing) = pool.install(|| cut(job, frame_bytes as u64, limit))?;
    let shifts_ns = &job.plan.shifts_ns;
    let portion = |(number, stretch): (usize, &Stretch)| {
        Portion::new(stretch, (number, stretches.len()), shifts_ns, &crossing)
    };
    let portions: Vec<Portion<'_>> = stretches.iter().enumerate().map(portion).collect();
    job.progress.expect_rest(rest(job, &portions));
    let places = part_places(options, default_directory, stretches.len())?;
    let mut destinations = Vec::new();
    for (portion, place) in portions.iter().zip(&places.own) {
        let (destination, target) = Destination::part(place, options.gzip, access)?;
        refuse_inputs(&destination, job.recordings)?;
        let sink = Sink::new(target, destination.is_gzip());
        let part = Job {
            portion: Some(portion),
            ..*job
        };
        let linked = part.run(&sink, pool.current_num_threads(), report);
        report.add_links(linked);
        let length = sink
            .finish()
            .map_err(|source| Error::of_write(place.path(), source))?;
        report.output_bytes += length.bytes;
        report.parts.push(portion.report(place.path(), &length));
        destinations.push(destination);
    }
    report.split_bytes = Some(limit);
    report.other_parts = places.others;
    let first = places.own.first();
    report.output = first.map(|place| place.path().to_owned());
    refuse_changed(job.recordings)?;
    Destination::finish_all(destinations)
}

/// Bytes of the inputs that are read for all parts.
fn rest(job: &Job<'_>, portions: &[Portion<'_>]) -> u64 {
    let of_part = |portion| {
        let part = Job {
            portion: Some(portion),
            ..*job
        };
        let wanted = part.wanted().into_iter();
        wanted.map(|number| job.chunks[number].len()).sum::<u64>()
    };
    portions.iter().map(of_part).sum()
}
