//! Reads a run and reports on one request, step or moment. After the report itself, further passes read the events of
//! that time.

use crate::fold::detail::one_moment::one_moment;
use crate::fold::detail::one_request::{one_request, request_number};
use crate::fold::detail::one_step::{find_step, one_step, step_engines};
use crate::fold::gathered::{ROW_BYTES, VALUE_BYTES};
use crate::fold::recorded::ends;
use crate::gather::chunk_records::ChunkContext;
use crate::gather::detail_events::{
    MomentEvents, NumberedSpan, OutputsOfRequest, RequestEvents, RequestPass, StepEvents, StepPass,
    TimeRange,
};
use crate::gather::edge::number;
use crate::gather::event_times::RunParts;
use crate::gather::request_output::output_key;
use crate::options::{NamesBy, ReportOptions};
use crate::read::{Streams, fold, runs};
use crate::rows::{IdleInterval, RowSink, StepRow};
use crate::table::{Detail, DetailTarget, OneMoment, OneRequest, OneStep, Recorded, RunReport};
use std::io;
use std::path::PathBuf;
use trace_merge::events::{self, TraceEvents};
use trace_merge::{Error, Options, Progress};
use trace_store::sorter::{Sorted, Sorter};

/// Reads a run and reports on one request, step or moment.
///
/// # Errors
/// Returns the errors of [`read`](crate::read()), and an error if there is no such request, step or moment.
pub fn read_detail(
    options: &Options,
    report_options: &ReportOptions,
    progress: &Progress,
    target: &DetailTarget,
) -> Result<Detail, Error> {
    let options = Options {
        settle: false,
        ..options.clone()
    };
    let folders = [std::env::temp_dir()];
    let (detail, _) = events::read(&options, progress, |events| {
        let mut intervals = Intervals(Sorter::in_any(&folders, ROW_BYTES));
        let streams = Streams {
            rows: Some(&mut intervals),
            ..Streams::default()
        };
        let report = fold(events, report_options, streams)?;
        let idle = intervals
            .0
            .finish()
            .map_err(|error| failed(&folders, error))?;
        let pass = DetailPass {
            events,
            report: &report,
            runs: &runs(events),
            idle: &idle,
            folders: &folders,
        };
        Ok(match target {
            DetailTarget::Request(id) => Detail::Request(Box::new(pass.request(id)?)),
            DetailTarget::Step(step) => Detail::Step(Box::new(pass.step(*step)?)),
            DetailTarget::Time(at_ns) => Detail::Moment(Box::new(pass.moment(*at_ns)?)),
        })
    })?;
    Ok(detail)
}

fn failed(folders: &[PathBuf], source: io::Error) -> Error {
    Error::Temporary {
        folder: folders[0].clone(),
        source,
    }
}

/// A sink that collects the idle intervals of a report.
struct Intervals<'f>(Sorter<'f, IdleInterval>);

impl RowSink for Intervals<'_> {
    fn begin(&mut self, _: &Recorded) -> io::Result<()> {
        Ok(())
    }

    fn step(&mut self, _: &StepRow) -> io::Result<()> {
        Ok(())
    }

    fn idle(&mut self, interval: &IdleInterval) -> io::Result<()> {
        self.0.push(*interval)
    }
}

/// A run and its report, with what further passes need.
struct DetailPass<'a> {
    events: &'a TraceEvents<'a>,
    report: &'a RunReport,
    runs: &'a [u64],
    idle: &'a Sorted<IdleInterval>,
    folders: &'a [PathBuf],
}

impl DetailPass<'_> {
    fn context(&self) -> ChunkContext<'_> {
        ChunkContext {
            threads: self.events.threads(),
            names_by: NamesBy::Run,
            devices: self.events.devices(),
            runs: self.runs,
            parts: RunParts::new(0, self.end_ns()),
        }
    }

    fn end_ns(&self) -> i64 {
        ends(self.events).map_or(0, |(_, end_ns)| end_ns)
    }

    fn request(&self, text: &str) -> Result<OneRequest, Error> {
        let requests = &self.report.request;
        let nth = request_number(requests, text).map_err(Error::Usage)?;
        let request = &requests[nth];
        let from_ns = request.begin_ns().unwrap_or_default();
        let pass = RequestPass {
            context: self.context(),
            id: &request.request_id,
            time: TimeRange {
                from_ns,
                to_ns: request.finished_ns.unwrap_or(self.end_ns()).max(from_ns),
            },
        };
        let mut found = RequestEvents::default();
        self.events.fold(
            RequestEvents::default,
            |chunk: &mut RequestEvents, event| chunk.add(&pass, event),
            |chunk| {
                found.merge(chunk);
                Ok(())
            },
        )?;
        let mut outputs = OutputsOfRequest::default();
        if let Some((process, request)) = found.number {
            let key = output_key(number(process), request);
            self.events.fold(
                OutputsOfRequest::default,
                |chunk: &mut OutputsOfRequest, event| chunk.add(&pass.context, key, event),
                |chunk| {
                    outputs.merge(chunk);
                    Ok(())
                },
            )?;
        }
        let end_ns = self.end_ns();
        let events = (found, &outputs);
        Ok(one_request(self.report, nth, end_ns, self.idle, events))
    }

    fn step(&self, step: u64) -> Result<OneStep, Error> {
        let temporary_error = |error| failed(self.folders, error);
        let (context, engines) = (self.context(), step_engines(self.report));
        let last_ns = |process: usize| self.report.recorded.processes[process].last_ns;
        let mut spans = Sorter::in_any(self.folders, VALUE_BYTES);
        self.events.fold(
            Vec::new,
            |chunk: &mut Vec<NumberedSpan>, event| {
                chunk.extend(NumberedSpan::from_event(event, &context, &engines, last_ns));
            },
            |chunk| spans.extend(chunk).map_err(temporary_error),
        )?;
        let spans = spans.finish().map_err(temporary_error)?;
        let values = Sorter::in_any(self.folders, VALUE_BYTES);
        let found = find_step(&spans, step, values, engines.len()).map_err(temporary_error)?;
        let found = found.map_err(Error::Usage)?;
        let pass = StepPass {
            context,
            step,
            engines: &engines,
            engine: found.step.engine,
            time: found.time(),
        };
        let mut events = StepEvents::default();
        self.events.fold(
            StepEvents::default,
            |chunk: &mut StepEvents, event| chunk.add(&pass, event),
            |chunk| {
                events.merge(chunk);
                Ok(())
            },
        )?;
        let threads = self.events.threads().iter();
        let threads: Vec<usize> = threads.map(|thread| thread.process).collect();
        one_step(self.report, found, self.idle, events, &threads).map_err(temporary_error)
    }

    fn moment(&self, at_ns: i64) -> Result<OneMoment, Error> {
        let end_ns = self.end_ns();
        if at_ns > end_ns {
            let ms = |ns: i64| format!("{} ms", ns as f64 / 1e6);
            let (at, end) = (ms(at_ns), ms(end_ns));
            let why = format!("--at {at}: expected a time in the trace, which ends at {end}");
            return Err(Error::Usage(why));
        }
        let (context, mut found) = (self.context(), MomentEvents::default());
        self.events.fold(
            MomentEvents::default,
            |chunk: &mut MomentEvents, event| chunk.add(&context, at_ns, event),
            |chunk| {
                found.merge(chunk);
                Ok(())
            },
        )?;
        let times = (at_ns, end_ns);
        let threads = self.events.threads();
        Ok(one_moment(self.report, times, self.idle, &found, threads))
    }
}
