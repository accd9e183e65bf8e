//! Edges in the order of time → what each device waited for while it was idle.

mod idle_intervals;

use super::feed::{Feed, feeds};
use super::long_gaps::{CauseTimes, LongGaps};
use crate::gather::edge::{Edge, EdgeKind};
use crate::gather::process_ids::ProcessIds;
use crate::rows::RowSink;
use crate::table::{
    Activity, DeviceIdle, HostTime, IdleCause, IdleTime, IdleTogether, LongGap, RankWait, Recorded,
};
use idle_intervals::{IdleIntervals, IdleRecord, IntervalStore};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use trace_store::sorter::{Sorted, Sorter};

const ACTIVITIES: usize = Activity::ALL.len();

/// What a process does at some time.
#[derive(Clone, Debug, Default)]
struct ProcessState {
    /// How many spans of each activity are open.
    open: [u32; ACTIVITIES],
    losses: u32,
    /// As a worker: when its last step began, and when it last began a step or sampling.
    step_ns: Option<i64>,
    sample_ns: Option<i64>,
    /// As an engine: when it last gave a step to its workers, and the sampling after one.
    step_handed_ns: Option<i64>,
    sample_handed_ns: Option<i64>,
    /// True if it has calls that give out steps. If not, a batch is given out when it begins.
    has_calls: bool,
    /// Whether it launched anything since its step began.
    has_launched: bool,
    running: Option<u32>,
    waiting: Option<u32>,
}

impl ProcessState {
    fn is(&self, activity: Activity) -> bool {
        self.open[activity as usize] > 0
    }

    /// Notes when work was given out or begun.
    fn note_hand_over(&mut self, edge: &Edge) {
        let now = Some(edge.ns);
        match edge.kind {
            EdgeKind::Begin(Activity::Step) if self.is(Activity::Step) => {}
            EdgeKind::Begin(Activity::Step) => (self.step_ns, self.sample_ns) = (now, now),
            EdgeKind::SampleBegun => self.sample_ns = now,
            EdgeKind::StepHanded => self.step_handed_ns = now,
            EdgeKind::SampleHanded => self.sample_handed_ns = now,
            EdgeKind::Begin(Activity::Batch) if !self.has_calls => self.step_handed_ns = now,
            _ => {}
        }
    }

    /// Returns true if the engine waits for something that this worker has not begun.
    fn is_behind(&self, engine: &ProcessState) -> bool {
        let is_out = engine.is(Activity::Batch) || engine.is(Activity::Dispatch);
        let is_step_behind = self.step_ns < engine.step_handed_ns;
        is_out && (is_step_behind || self.sample_ns < engine.sample_handed_ns)
    }
}

/// A device while the edges come.
#[derive(Default)]
struct DeviceState {
    feed: Feed,
    is_open: bool,
    is_idle: bool,
    /// True if the slice that ends the gap was launched already.
    is_launched: bool,
    /// True if another profiler recorded that launch.
    is_launch_known: bool,
    /// Up to when its time is counted.
    counted_ns: i64,
    /// Idle time up to now whose cause was seen by another clock.
    unsure: Option<UnsureTime>,
    /// Maximum error of the clocks of its engine and of the other workers against its worker's clock, in ns.
    engine_clock_ns: i64,
    other_clocks_ns: BTreeMap<usize, i64>,
    waited_for: BTreeMap<usize, i64>,
    host: [(u64, i64, i64); ACTIVITIES],
    intervals: IdleIntervals,
}

/// Idle time whose cause was seen in a process with another clock. It counts for that cause only if it is longer than the uncertainty.
#[derive(Debug)]
struct UnsureTime {
    cause: IdleCause,
    start_ns: i64,
    ns: i64,
    uncertainty_ns: i64,
    waited_for: BTreeMap<usize, i64>,
}

/// Time in which at least one device was open, and the part of it in which no open device had anything to do.
#[derive(Default)]
struct Together {
    counted_ns: i64,
    open: usize,
    busy: usize,
    found: IdleTogether,
}

impl Together {
    /// Counts the time up to the change of a device, and takes the change.
    fn take(&mut self, edge: &Edge) {
        let ns = edge.ns.saturating_sub(self.counted_ns);
        self.counted_ns = edge.ns;
        if self.open > 0 {
            self.found.wall_ns += ns;
            self.found.idle_ns += if self.busy == 0 { ns } else { 0 };
        }
        match edge.kind {
            EdgeKind::DeviceBegin => (self.open, self.busy) = (self.open + 1, self.busy + 1),
            EdgeKind::DeviceEnd => {
                self.open = self.open.saturating_sub(1);
                self.busy = self.busy.saturating_sub(1);
            }
            EdgeKind::GapBegin => self.busy = self.busy.saturating_sub(1),
            EdgeKind::GapEnd => self.busy += 1,
            _ => {}
        }
    }
}

/// The processes and the requests at some time.
#[derive(Default)]
struct RunState {
    processes: Vec<ProcessState>,
    /// Requests that are under way; `None` where the trace names none.
    requests: Option<u64>,
}

/// Who is who among the processes.
pub(crate) struct Roles<'a> {
    /// How many processes there are.
    pub(crate) processes: usize,
    /// Each device and the process that recorded it, by number.
    pub(crate) recorders: Vec<(usize, usize)>,
    pub(crate) ids: &'a ProcessIds,
    /// Whether requests are named.
    pub(crate) has_requests: bool,
    /// Knows what the clocks of two processes may be off.
    pub(crate) recorded: &'a Recorded,
}

/// The idle time of all devices.
pub(crate) struct FoundIdle {
    pub(crate) devices: Vec<DeviceIdle>,
    pub(crate) long_gaps: Vec<LongGap>,
    pub(crate) together: IdleTogether,
}

/// Returns why each device was idle, the longest gaps of all, and how long all were idle at once. Puts the idle intervals into `rows`; `records` has room to sort
/// them.
pub(crate) fn idle_causes(
    edges: &Sorted<Edge>,
    roles: &Roles<'_>,
    records: Sorter<'_, IdleRecord>,
    rows: Option<&mut (dyn RowSink + '_)>,
) -> io::Result<FoundIdle> {
    let (mut engines, mut workers, mut callers) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    edges.each(|edge| {
        match edge.kind {
            EdgeKind::Begin(Activity::Schedule | Activity::Dispatch | Activity::Batch)
            | EdgeKind::Running => engines.insert(edge.of as usize),
            EdgeKind::Begin(Activity::Step) => workers.insert(edge.of as usize),
            EdgeKind::StepHanded => callers.insert(edge.of as usize),
            _ => false,
        };
        Ok(())
    })?;
    let feeds = feeds(&roles.recorders, &engines, &workers, roles.ids);
    let mut sweep = Sweep::new(feeds, roles, IntervalStore::new(records));
    for caller in callers {
        sweep.run.processes[caller].has_calls = true;
    }
    edges.each(|edge| {
        sweep.take(&edge);
        Ok(())
    })?;
    sweep.finish(rows)
}

/// Adds up times by process.
fn add(times: &mut BTreeMap<usize, i64>, more: BTreeMap<usize, i64>) {
    for (process, ns) in more {
        *times.entry(process).or_default() += ns;
    }
}

struct Sweep<'f> {
    run: RunState,
    store: IntervalStore<'f>,
    together: Together,
    devices: Vec<DeviceState>,
    /// The devices by their processes, and those that a process bears on.
    of_device: BTreeMap<usize, usize>,
    touched_by: Vec<Vec<usize>>,
}

impl<'f> Sweep<'f> {
    fn new(feeds: Vec<Feed>, roles: &Roles<'_>, store: IntervalStore<'f>) -> Sweep<'f> {
        let mut touched_by = vec![Vec::new(); roles.processes];
        for (number, feed) in feeds.iter().enumerate() {
            let behind = [Some(feed.worker), feed.engine].into_iter().flatten();
            let behind: BTreeSet<usize> = behind.chain(feed.others.iter().copied()).collect();
            for process in behind {
                touched_by[process].push(number);
            }
        }
        Sweep {
            of_device: feeds.iter().map(|feed| feed.device).zip(0..).collect(),
            devices: feeds
                .into_iter()
                .map(|feed| DeviceState::new(feed, roles.recorded))
                .collect(),
            touched_by,
            store,
            together: Together::default(),
            run: RunState {
                processes: vec![ProcessState::default(); roles.processes],
                requests: roles.has_requests.then_some(0),
            },
        }
    }

    /// Returns what was found, and puts the intervals into `rows`.
    fn finish(mut self, mut rows: Option<&mut (dyn RowSink + '_)>) -> io::Result<FoundIdle> {
        for device in &mut self.devices {
            // A step that has no end settles nothing.
            device.end_wait(device.feed.worker, IdleCause::Sampling);
            device.settle_unsure(&mut self.store);
            device.intervals.flush(&mut self.store);
        }
        let (devices, of_device) = (self.devices, self.of_device);
        let mut causes = vec![[0; IdleCause::ALL.len()]; devices.len()];
        let mut gaps = LongGaps::default();
        self.store.finish()?.each(|record| {
            let number = of_device[&record.process()];
            let interval = record.interval(&devices[number].intervals);
            causes[number][interval.cause as usize] += interval.dur_ns;
            gaps.take(&interval);
            rows.as_mut().map_or(Ok(()), |rows| rows.idle(&interval))
        })?;
        let devices = devices.into_iter().zip(causes);
        Ok(FoundIdle {
            devices: devices
                .map(|(device, causes)| device.finish(causes))
                .collect(),
            long_gaps: gaps.finish(),
            together: self.together.found,
        })
    }

    fn take(&mut self, edge: &Edge) {
        let of = edge.of as usize;
        match edge.kind {
            EdgeKind::DeviceBegin
            | EdgeKind::DeviceEnd
            | EdgeKind::GapBegin
            | EdgeKind::GapEnd
            | EdgeKind::Launched => {
                if let Some(number) = self.of_device.get(&of) {
                    self.together.take(edge);
                    let device = &mut self.devices[*number];
                    device.count(edge.ns, &self.run, &mut self.store);
                    device.take(edge, &mut self.store);
                }
            }
            EdgeKind::RequestBegin | EdgeKind::RequestEnd => {
                for device in &mut self.devices {
                    device.count(edge.ns, &self.run, &mut self.store);
                }
                let is_begin = edge.kind == EdgeKind::RequestBegin;
                self.run.requests = self.run.requests.map(|requests| match is_begin {
                    true => requests + 1,
                    false => requests.saturating_sub(1),
                });
            }
            _ => self.take_of_process(edge),
        }
    }

    /// Takes a change of what a process does.
    fn take_of_process(&mut self, edge: &Edge) {
        let process = edge.of as usize;
        let touched = &self.touched_by[process];
        for number in touched {
            self.devices[*number].count(edge.ns, &self.run, &mut self.store);
        }
        let state = &mut self.run.processes[process];
        state.note_hand_over(edge);
        match edge.kind {
            EdgeKind::Begin(activity) => {
                let open = &mut state.open[activity as usize];
                *open += 1;
                if *open == 1 {
                    state.has_launched &= activity != Activity::Step;
                    for number in touched {
                        self.devices[*number].called(process, activity);
                    }
                }
            }
            EdgeKind::End(activity) => {
                let open = &mut state.open[activity as usize];
                *open = open.saturating_sub(1);
                if *open == 0 && activity == Activity::Step {
                    for number in touched {
                        self.devices[*number].end_wait(process, IdleCause::Sampling);
                    }
                }
            }
            EdgeKind::Launch => {
                state.has_launched = true;
                for number in touched {
                    self.devices[*number].end_wait(process, IdleCause::LaunchGap);
                }
            }
            EdgeKind::LossBegin => state.losses += 1,
            EdgeKind::LossEnd => state.losses = state.losses.saturating_sub(1),
            EdgeKind::Running => state.running = Some(edge.value),
            EdgeKind::Waiting => state.waiting = Some(edge.value),
            _ => {}
        }
    }
}

impl DeviceState {
    fn new(feed: Feed, recorded: &Recorded) -> DeviceState {
        let uncertainty_ns = |process: usize| recorded.uncertainty_ns(feed.worker, process);
        let others = feed.others.iter();
        DeviceState {
            engine_clock_ns: feed.engine.map_or(0, uncertainty_ns),
            other_clocks_ns: others
                .map(|other| (*other, uncertainty_ns(*other)))
                .collect(),
            intervals: IdleIntervals::new(feed.device),
            feed,
            ..DeviceState::default()
        }
    }

    /// Takes a change of its own.
    fn take(&mut self, edge: &Edge, store: &mut IntervalStore<'_>) {
        match edge.kind {
            EdgeKind::DeviceBegin => self.is_open = true,
            EdgeKind::DeviceEnd => self.is_open = false,
            EdgeKind::GapBegin => {
                (self.is_idle, self.is_launched) = (true, false);
                self.is_launch_known = edge.value > 0;
                self.intervals.begin_gap(edge.ns, store);
            }
            EdgeKind::GapEnd => {
                self.is_idle = false;
                self.settle_unsure(store);
            }
            EdgeKind::Launched => self.is_launched = true,
            _ => {}
        }
    }

    /// Counts the time up to `now_ns`, in which nothing changed.
    fn count(&mut self, now_ns: i64, run: &RunState, store: &mut IntervalStore<'_>) {
        let ns = now_ns.saturating_sub(self.counted_ns);
        self.counted_ns = now_ns;
        if !self.is_open || ns == 0 {
            return;
        }
        let worker = &run.processes[self.feed.worker];
        let engine = self.feed.engine.map(|engine| &run.processes[engine]);
        for activity in Activity::ALL {
            if worker.is(activity) || engine.is_some_and(|engine| engine.is(activity)) {
                let (_, total_ns, exposed_ns) = &mut self.host[activity as usize];
                *total_ns += ns;
                *exposed_ns += if self.is_idle { ns } else { 0 };
            }
        }
        if !self.is_idle {
            return;
        }
        let cause = self.cause(worker, engine, run);
        let uncertainty_ns = cause.map_or(0, |cause| self.uncertainty_ns(cause, worker, run));
        let is_same = |unsure: &UnsureTime| Some(unsure.cause) == cause && uncertainty_ns > 0;
        if !self.unsure.as_ref().is_some_and(is_same) {
            self.settle_unsure(store);
        }
        let mut waited_for = BTreeMap::new();
        if cause == Some(IdleCause::OtherRank) {
            waited_for.extend(self.others_in_step(run).map(|(other, _)| (other, ns)));
        }
        match cause {
            Some(cause) if uncertainty_ns > 0 => {
                let unsure = self.unsure.get_or_insert(UnsureTime {
                    cause,
                    start_ns: now_ns - ns,
                    ns: 0,
                    uncertainty_ns: 0,
                    waited_for: BTreeMap::new(),
                });
                unsure.ns += ns;
                unsure.uncertainty_ns = unsure.uncertainty_ns.max(uncertainty_ns);
                add(&mut unsure.waited_for, waited_for);
            }
            cause => {
                self.intervals.add(cause, (now_ns - ns, now_ns), store);
                add(&mut self.waited_for, waited_for);
            }
        }
    }

    /// Counts the time whose cause was seen by another clock, as unknown if it is no longer than the uncertainty.
    fn settle_unsure(&mut self, store: &mut IntervalStore<'_>) {
        let Some(unsure) = self.unsure.take() else {
            return;
        };
        let is_sure = unsure.ns > unsure.uncertainty_ns;
        let cause = if is_sure {
            unsure.cause
        } else {
            IdleCause::Unknown
        };
        let end_ns = unsure.start_ns + unsure.ns;
        self.intervals
            .add(Some(cause), (unsure.start_ns, end_ns), store);
        if is_sure {
            add(&mut self.waited_for, unsure.waited_for);
        }
    }

    /// Returns the other workers of its engine that are in a step, and what their clocks may be off.
    fn others_in_step(&self, run: &RunState) -> impl Iterator<Item = (usize, i64)> {
        let others = self.other_clocks_ns.iter().map(|(other, ns)| (*other, *ns));
        others.filter(|(other, _)| run.processes[*other].is(Activity::Step))
    }

    /// Returns the uncertainty between its worker's clock and the clocks that a cause was seen by, in ns.
    fn uncertainty_ns(&self, cause: IdleCause, worker: &ProcessState, run: &RunState) -> i64 {
        match cause {
            IdleCause::NotRecorded if worker.losses > 0 => 0,
            IdleCause::Gc if worker.is(Activity::Gc) => 0,
            IdleCause::OtherRank => {
                let greatest = self.others_in_step(run).map(|(_, ns)| ns).max();
                greatest.unwrap_or(0).max(self.engine_clock_ns)
            }
            IdleCause::NotRecorded
            | IdleCause::Gc
            | IdleCause::Worker
            | IdleCause::Scheduling
            | IdleCause::Output
            | IdleCause::Ipc
            | IdleCause::Frontend
            | IdleCause::NotSchedulable => self.engine_clock_ns,
            _ => 0,
        }
    }

    /// What it waits for; `None` in a step behind a launch, where what follows tells.
    fn cause(
        &self,
        worker: &ProcessState,
        engine: Option<&ProcessState>,
        run: &RunState,
    ) -> Option<IdleCause> {
        let of_either = |is: &dyn Fn(&ProcessState) -> bool| is(worker) || engine.is_some_and(is);
        Some(if of_either(&|process| process.losses > 0) {
            IdleCause::NotRecorded
        } else if self.is_launched {
            IdleCause::LaunchDelay
        } else if of_either(&|process| process.is(Activity::Gc)) {
            IdleCause::Gc
        } else if worker.is(Activity::KvTransfer) {
            IdleCause::KvTransfer
        } else if worker.is(Activity::Sample) {
            IdleCause::Sampling
        } else if worker.is(Activity::Step) {
            match worker.has_launched {
                true => return None,
                false => IdleCause::Preparing,
            }
        } else if run.requests == Some(0) {
            IdleCause::NoRequest
        } else {
            match engine {
                None if self.is_launch_known => IdleCause::LaunchGap,
                None => IdleCause::Unknown,
                Some(engine) if self.has_other_engine() && worker.is_behind(engine) => {
                    IdleCause::Worker
                }
                Some(engine) => self.cause_in(engine, run),
            }
        })
    }

    /// Returns true if its engine is another process than its worker.
    fn has_other_engine(&self) -> bool {
        self.feed
            .engine
            .is_some_and(|engine| engine != self.feed.worker)
    }

    /// What it waits for in the engine, while its worker is in no step.
    fn cause_in(&self, engine: &ProcessState, run: &RunState) -> IdleCause {
        if engine.is(Activity::Schedule) {
            IdleCause::Scheduling
        } else if engine.is(Activity::Output) {
            IdleCause::Output
        } else if self.others_in_step(run).next().is_some() {
            IdleCause::OtherRank
        } else if engine.is(Activity::Dispatch) {
            IdleCause::Ipc
        } else {
            match (engine.running, engine.waiting) {
                (Some(0), Some(0)) if run.requests.is_none() => IdleCause::NoRequest,
                (Some(0), Some(0)) => IdleCause::Frontend,
                (Some(0), Some(_)) => IdleCause::NotSchedulable,
                _ => IdleCause::Engine,
            }
        }
    }

    /// A process behind it begins something.
    fn called(&mut self, process: usize, activity: Activity) {
        let is_behind = process == self.feed.worker || Some(process) == self.feed.engine;
        if is_behind && self.is_open {
            self.host[activity as usize].0 += 1;
        }
    }

    /// Ends a wait after a launch, if `process` is its worker. The cause is known now: a launch gap if another launch follows, and sampling if the step ends.
    fn end_wait(&mut self, process: usize, cause: IdleCause) {
        if process == self.feed.worker {
            self.intervals.end_wait(cause);
        }
    }

    fn finish(self, causes: CauseTimes) -> DeviceIdle {
        let causes = IdleCause::ALL.into_iter().zip(causes);
        let mut causes: Vec<IdleTime> = causes
            .filter(|(_, ns)| *ns > 0)
            .map(|(cause, ns)| IdleTime { cause, ns })
            .collect();
        causes.sort_by_key(|time| Reverse(time.ns));
        let waited_for = self.waited_for.into_iter();
        let mut waited_for: Vec<RankWait> = waited_for
            .map(|(process, ns)| RankWait { process, ns })
            .collect();
        waited_for.sort_by_key(|wait| Reverse(wait.ns));
        let host = Activity::ALL.into_iter().zip(self.host);
        DeviceIdle {
            process: self.feed.device,
            worker: self.feed.worker,
            engine: self.feed.engine,
            idle_ns: causes.iter().map(|time| time.ns).sum(),
            causes,
            waited_for,
            host: host
                .filter(|(_, (calls, total_ns, _))| *calls > 0 || *total_ns > 0)
                .map(|(activity, (calls, total_ns, exposed_ns))| HostTime {
                    activity,
                    calls,
                    total_ns,
                    exposed_ns,
                })
                .collect(),
        }
    }
}
