//! Details of one step: which processes took part in it, for how long, and what the devices waited for.

use super::device_use::device_use;
use crate::fold::steps::InSteps;
use crate::fold::value_sorter::{ValueRecord, ValueSorter};
use crate::gather::detail_events::{NumberedSpan, StepEvents, StepFlow, TimeRange};
use crate::gather::edge::number;
use crate::gather::slice_record::{OpenSpan, thread_of};
use crate::gather::step_record::StepRecord;
use crate::nest::nest;
use crate::rows::IdleInterval;
use crate::serving_clock::ServingClock;
use crate::stack_tree::StackTree;
use crate::statistics::quantiles::Quantiles;
use crate::table::{
    Activity, BatchOfStep, DeviceInStep, OneStep, ProcessInStep, RunReport, SlowStep, TraceRange,
};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use trace_store::sorter::{Sorted, Sorter};

/// Maximum gap between spans of one step. Spans with the same number that are further apart belong to different steps.
const APART_NS: i64 = 10_000_000_000;
/// Number of steps before and after the step that are shown for comparison.
const NEIGHBOURS: u64 = 2;

/// Returns, for each process, the number of the engine that counts its steps. If no engine is known, all workers share
/// one number.
pub(crate) fn step_engines(report: &RunReport) -> Vec<u32> {
    let processes = report.recorded.processes.len();
    let none = number(processes);
    let pairs = || {
        report
            .idle
            .iter()
            .filter_map(|idle| Some((idle.worker, idle.engine?)))
    };
    let only = match pairs().map(|(_, engine)| engine).min() {
        Some(first) if pairs().all(|(_, engine)| engine == first) => number(first),
        _ => none,
    };
    let mut engines = vec![only; processes];
    for (worker, engine) in pairs() {
        engines[worker] = number(engine);
        engines[engine] = number(engine);
    }
    engines
}

/// The spans of one step.
#[derive(Clone, Debug)]
pub(crate) struct StepSpans {
    pub(crate) engine: u32,
    number: u64,
    /// Time range that the spans cover together.
    pub(crate) time: TimeRange,
    spans: Vec<NumberedSpan>,
}

impl StepSpans {
    /// Returns the time from the start of the first span to the last end of a span, in ns.
    fn dur_ns(&self) -> i64 {
        self.time.to_ns - self.time.from_ns
    }

    /// Returns the time range of the step as a start and a duration in ns.
    fn place(&self) -> TraceRange {
        TraceRange {
            from_ns: self.time.from_ns,
            dur_ns: self.dur_ns(),
        }
    }
}

/// A step and the steps that it is compared with.
pub(crate) struct FoundStep {
    pub(crate) step: StepSpans,
    /// Other steps with the same number.
    others: Vec<StepSpans>,
    /// The steps before and after it.
    near: Vec<StepSpans>,
    /// Durations of all steps by engine, followed by the durations of each process's part.
    durations: Vec<Quantiles>,
}

impl FoundStep {
    /// Returns the time range of the step and its neighbours.
    pub(crate) fn time(&self) -> TimeRange {
        let mut time = self.step.time;
        for near in &self.near {
            time.from_ns = time.from_ns.min(near.time.from_ns);
            time.to_ns = time.to_ns.max(near.time.to_ns);
        }
        time
    }
}

/// Finds the step with a number among the numbered spans. If several steps have the number, the longest is returned.
pub(crate) fn find_step(
    spans: &Sorted<NumberedSpan>,
    step: u64,
    values: Sorter<'_, ValueRecord>,
    processes: usize,
) -> io::Result<Result<FoundStep, String>> {
    let mut durations = ValueSorter::new(values);
    let mut kept: Vec<StepSpans> = Vec::new();
    let mut numbers: Option<(u64, u64)> = None;
    let is_next = |open: &StepSpans, span: &NumberedSpan| {
        (open.engine, open.number) == (span.engine, span.number)
            && span.start_ns <= open.time.to_ns.saturating_add(APART_NS)
    };
    let mut end = |step_spans: StepSpans| -> io::Result<()> {
        let (least, most) = numbers.unwrap_or((step_spans.number, step_spans.number));
        numbers = Some((least.min(step_spans.number), most.max(step_spans.number)));
        durations.push(step_spans.engine, step_spans.dur_ns())?;
        for (process, part) in by_process(&step_spans.spans) {
            durations.push(number(processes + 1) + process, part.1 - part.0)?;
        }
        if step_spans.number.abs_diff(step) <= NEIGHBOURS {
            kept.push(step_spans);
        }
        Ok(())
    };
    let mut open: Option<StepSpans> = None;
    for span in spans.iter() {
        match &mut open {
            Some(last) if is_next(last, span) => {
                last.time.to_ns = last.time.to_ns.max(span.end_ns.0);
                last.spans.push(*span);
            }
            _ => {
                let next = StepSpans {
                    engine: span.engine,
                    number: span.number,
                    time: TimeRange {
                        from_ns: span.start_ns,
                        to_ns: span.end_ns.0,
                    },
                    spans: vec![*span],
                };
                open.replace(next).map_or(Ok(()), &mut end)?;
            }
        }
    }
    open.map_or(Ok(()), &mut end)?;
    let (mut others, mut near): (Vec<_>, Vec<_>) =
        kept.into_iter().partition(|found| found.number == step);
    others.sort_by_key(|found| Reverse(found.dur_ns()));
    if others.is_empty() {
        return Ok(Err(no_step(step, numbers)));
    }
    let step = others.remove(0);
    let distance = |found: &StepSpans| found.time.from_ns.abs_diff(step.time.from_ns);
    near.retain(|found| found.engine == step.engine);
    near.sort_by_key(|found| (found.number, distance(found)));
    near.dedup_by_key(|found| found.number);
    near.retain(|found| distance(found) <= APART_NS.unsigned_abs());
    Ok(Ok(FoundStep {
        step,
        others,
        near,
        durations: durations.finish()?,
    }))
}

/// Returns the error message for a step that the trace does not contain. `numbers` contains the first and the last step
/// number in the trace, or is `None` if no span has one.
fn no_step(step: u64, numbers: Option<(u64, u64)>) -> String {
    match numbers {
        Some((first, last)) => {
            format!("--step {step}: no such step; the run has steps {first} to {last}")
        }
        None => {
            format!("--step {step}: no span has the number of its step, as the arg step or batch")
        }
    }
}

/// Returns the start of the first span and the last end of a span in ns, for each process.
fn by_process(spans: &[NumberedSpan]) -> BTreeMap<u32, (i64, i64)> {
    let mut parts = BTreeMap::new();
    for span in spans {
        let part = parts
            .entry(span.process)
            .or_insert((span.start_ns, span.end_ns.0));
        *part = (part.0.min(span.start_ns), part.1.max(span.end_ns.0));
    }
    parts
}

/// Returns the details of a step. `threads` lists the process of each thread.
pub(crate) fn one_step(
    report: &RunReport,
    found: FoundStep,
    idle: &[IdleInterval],
    events: StepEvents,
    threads: &[usize],
) -> io::Result<OneStep> {
    let mut spans = found.step.spans.clone();
    spans.extend(linked(report, &found, &events));
    spans.sort_unstable_by_key(|span| (span.start_ns, span.end_ns));
    let from_ns = found.step.time.from_ns;
    let ends = spans.iter().map(|span| span.end_ns.0);
    let time = TimeRange {
        from_ns: spans.first().map_or(from_ns, |span| span.start_ns),
        to_ns: ends.max().unwrap_or(found.step.time.to_ns),
    };
    let processes = processes(report, &found, &spans);
    let is_in = |process: usize| processes.iter().any(|(number, _)| *number == process);
    let devices = device_use(report, idle, time, |device| is_in(device.worker));
    let batch = batch(&events, time, is_in);
    let mut neighbours: Vec<(u64, TraceRange)> = found
        .near
        .iter()
        .map(|near| (near.number, near.place()))
        .collect();
    neighbours.sort_by_key(|(number, _)| *number);
    let name_and_place = |other: &StepSpans| {
        let first = other.spans.first().map_or(0, |span| span.process as usize);
        (report.process_name(first), other.place())
    };
    Ok(OneStep {
        step: found.step.number,
        place: TraceRange {
            from_ns: time.from_ns,
            dur_ns: time.to_ns - time.from_ns,
        },
        median_ns: found.durations[found.step.engine as usize].p50_ns,
        others: found.others.iter().map(name_and_place).collect(),
        batch,
        devices: devices
            .iter()
            .map(|device| DeviceInStep {
                name: report.process_name(device.process),
                busy_ns: device.open_ns - device.idle_ns(),
                idle_ns: device.idle_ns(),
                causes: device.causes(),
            })
            .collect(),
        processes: with_names(processes, &spans, events, threads)?,
        neighbours,
    })
}

/// Returns the spans of workers that have no step number but are linked by a flow from the engine's call of this step.
fn linked(report: &RunReport, found: &FoundStep, events: &StepEvents) -> Vec<NumberedSpan> {
    let numbered = || {
        let near = found.near.iter().flat_map(|near| &near.spans);
        found.step.spans.iter().chain(near)
    };
    let starts = events.flows.iter().filter(|flow| flow.is_start);
    let leaves_step = |flow: &&StepFlow| {
        let around = numbered().filter(|span| {
            let is_around = span.start_ns <= flow.ts_ns && flow.ts_ns <= span.end_ns.0;
            span.process as usize == flow.process && is_around
        });
        let innermost = around.max_by_key(|span| span.start_ns);
        innermost.is_some_and(|span| span.number == found.step.number)
    };
    let ids: Vec<u64> = starts.filter(leaves_step).map(|flow| flow.id).collect();
    let span = |process: u32, (start_ns, end_ns): (i64, i64), track: u64, is_open| NumberedSpan {
        engine: found.step.engine,
        number: found.step.number,
        start_ns,
        end_ns: Reverse(end_ns),
        process,
        track,
        is_open,
    };
    let ends = events.flows.iter();
    let ends = ends.filter(|flow| !flow.is_start && ids.contains(&flow.id));
    ends.filter_map(|flow| {
        let process = number(flow.process);
        let is_around = |step: &&StepRecord| {
            step.process == process && step.start_ns <= flow.ts_ns && flow.ts_ns <= step.end_ns.0
        };
        let around = events.steps.iter().filter(is_around);
        let innermost = around.max_by_key(|step| step.start_ns);
        let closed =
            innermost.map(|step| span(process, (step.start_ns, step.end_ns.0), step.track, false));
        let is_open_step = |open: &&OpenSpan| {
            open.process == flow.process
                && open.start_ns <= flow.ts_ns
                && Activity::from_name(&open.name) == Some(Activity::Step)
        };
        let open = || {
            let open = events.open.iter().filter(is_open_step);
            let open = open.max_by_key(|open| open.start_ns)?;
            let last_ns = report.recorded.processes[flow.process].last_ns;
            let end_ns = last_ns.unwrap_or(flow.ts_ns).max(flow.ts_ns);
            Some(span(process, (open.start_ns, end_ns), 0, true))
        };
        closed.or_else(open)
    })
    .collect()
}

/// Returns the parts of the processes that took part, with the number of each process. The names inside are still
/// missing.
fn processes(
    report: &RunReport,
    found: &FoundStep,
    spans: &[NumberedSpan],
) -> Vec<(usize, ProcessInStep)> {
    let keys = report.recorded.processes.len() + 1;
    let part = |(process, (start_ns, end_ns)): (u32, (i64, i64))| {
        let own_spans = spans.iter().filter(|span| span.process == process);
        let durations = found.durations.get(keys + process as usize);
        let in_step = ProcessInStep {
            name: report.process_name(process as usize),
            is_worker: process != found.step.engine,
            start_ns,
            dur_ns: end_ns - start_ns,
            is_open: own_spans.clone().any(|span| span.is_open),
            median_ns: durations
                .filter(|figures| figures.n > 0)
                .map(|figures| figures.p50_ns),
            inside: Vec::new(),
        };
        (process as usize, in_step)
    };
    let mut parts: Vec<_> = by_process(spans).into_iter().map(part).collect();
    parts.sort_by_key(|(process, part)| (part.is_worker, part.start_ns, *process));
    parts
}

/// Adds the names with the most self time inside each part, from the thread of the process's first span.
fn with_names(
    processes: Vec<(usize, ProcessInStep)>,
    spans: &[NumberedSpan],
    events: StepEvents,
    threads: &[usize],
) -> io::Result<Vec<ProcessInStep>> {
    let keys = events.keys.into_keys();
    let on_thread = |process: usize| {
        let mut spans = spans.iter();
        spans.find(|span| span.process as usize == process && thread_of(span.track).is_some())
    };
    let records = processes.iter().filter_map(|(process, part)| {
        let times = (part.start_ns, part.start_ns + part.dur_ns);
        let track = on_thread(*process).filter(|_| !keys.is_empty())?.track;
        Some(StepRecord::from_span(number(*process), track, times, 0))
    });
    let mut in_steps = InSteps::new(records.collect());
    let mut stacks = StackTree::new(&keys, threads);
    let mut slices = events.slices;
    slices.sort_unstable();
    let clock = ServingClock::whole();
    nest(&Sorted::Memory(slices), &clock, &mut stacks, |slice| {
        in_steps.add(&slice);
        Ok(())
    })?;
    let mut inside: BTreeMap<usize, SlowStep> = in_steps
        .finish(&keys, &clock)
        .into_iter()
        .map(|step| (step.process, step))
        .collect();
    let part = |(process, mut part): (usize, ProcessInStep)| {
        part.inside = inside
            .remove(&process)
            .map_or(Vec::new(), |step| step.inside);
        part
    };
    Ok(processes.into_iter().map(part).collect())
}

/// Returns the numbers of requests and tokens in the step's batch, `None` where unknown. If no span has token counts,
/// the last value of the engine's counter in `time` is used.
fn batch(events: &StepEvents, time: TimeRange, is_in: impl Fn(usize) -> bool) -> BatchOfStep {
    let mut batch = events.batch;
    let counted = events.tokens.iter().filter(|tokens| {
        let is_within = time.from_ns <= tokens.ts_ns && tokens.ts_ns <= time.to_ns;
        is_within && is_in(tokens.process)
    });
    let last = counted.max_by_key(|tokens| tokens.ts_ns);
    if let (Some(last), None, None) = (last, batch.prefill_tokens, batch.decode_tokens) {
        batch.prefill_tokens = Some(last.prefill);
        batch.decode_tokens = Some(last.decode);
    }
    batch
}
