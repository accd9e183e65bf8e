//! State of a device while edges are read: the cause of each part of its idle time.

use super::idle_intervals::{IdleIntervals, IntervalStore};
use super::long_gaps::CauseTimes;
use super::process_state::{ACTIVITIES, ProcessState, RunState};
use crate::fold::feed::Feed;
use crate::gather::edge::{Edge, EdgeKind};
use crate::table::{Activity, DeviceIdle, HostTime, IdleCause, IdleTime, RankWait, Recorded};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// State of a device while edges are read.
#[derive(Default)]
pub(super) struct DeviceState {
    pub(super) feed: Feed,
    is_open: bool,
    is_idle: bool,
    /// True if the slice that ends the current gap has been launched.
    is_launched: bool,
    /// True if another profiler recorded that launch.
    is_launch_known: bool,
    /// Time up to which the device's time is counted.
    counted_ns: i64,
    /// Idle time up to now whose cause another clock recorded.
    unsure: Option<UnsureTime>,
    /// Maximum error of the engine's clock, and of the other workers' clocks, relative to the worker's clock, in ns.
    engine_clock_ns: i64,
    other_clocks_ns: BTreeMap<usize, i64>,
    waited_for: BTreeMap<usize, i64>,
    host: [(u64, i64, i64); ACTIVITIES],
    pub(super) intervals: IdleIntervals,
}

/// Idle time whose cause was recorded by a process with another clock. It counts for that cause only if it is longer
/// than the clock uncertainty.
#[derive(Debug)]
struct UnsureTime {
    cause: IdleCause,
    start_ns: i64,
    ns: i64,
    uncertainty_ns: i64,
    waited_for: BTreeMap<usize, i64>,
}

/// Adds times by process to `times`.
fn add(times: &mut BTreeMap<usize, i64>, more: BTreeMap<usize, i64>) {
    for (process, ns) in more {
        *times.entry(process).or_default() += ns;
    }
}

impl DeviceState {
    pub(super) fn new(feed: Feed, recorded: &Recorded) -> DeviceState {
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

    /// Applies a change of the device itself.
    pub(super) fn apply(&mut self, edge: &Edge, store: &mut IntervalStore<'_>) {
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

    /// Counts the time up to `now_ns`. Nothing changed in it.
    pub(super) fn count_until(
        &mut self,
        now_ns: i64,
        run: &RunState,
        store: &mut IntervalStore<'_>,
    ) {
        let ns = now_ns.saturating_sub(self.counted_ns);
        self.counted_ns = now_ns;
        if !self.is_open || ns == 0 {
            return;
        }
        let worker = &run.processes[self.feed.worker];
        let engine = self.feed.engine.map(|engine| &run.processes[engine]);
        for activity in Activity::ALL {
            let is_in_engine = || engine.is_some_and(|engine| engine.is_in(activity));
            if worker.is_in(activity) || !activity.is_of_worker() && is_in_engine() {
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

    /// Ends the time whose cause another clock recorded. Its cause is unknown if it is no longer than the uncertainty.
    pub(super) fn settle_unsure(&mut self, store: &mut IntervalStore<'_>) {
        let Some(unsure) = self.unsure.take() else {
            return;
        };
        let is_sure = unsure.ns > unsure.uncertainty_ns;
        let cause = match is_sure {
            true => unsure.cause,
            false => IdleCause::Unknown,
        };
        let time = (unsure.start_ns, unsure.start_ns + unsure.ns);
        self.intervals.add(Some(cause), time, store);
        if is_sure {
            add(&mut self.waited_for, unsure.waited_for);
        }
    }

    /// Returns the other workers of the engine that are in a step, with the uncertainty of their clocks.
    fn others_in_step(&self, run: &RunState) -> impl Iterator<Item = (usize, i64)> {
        let others = self.other_clocks_ns.iter().map(|(other, ns)| (*other, *ns));
        others.filter(|(other, _)| run.processes[*other].is_in(Activity::Step))
    }

    /// Returns the uncertainty between the worker's clock and the clocks that recorded the cause, in ns.
    fn uncertainty_ns(&self, cause: IdleCause, worker: &ProcessState, run: &RunState) -> i64 {
        match cause {
            IdleCause::NotRecorded if worker.losses > 0 => 0,
            IdleCause::Gc if worker.is_in(Activity::Gc) => 0,
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

    /// Returns the cause of the current idle time. It is `None` inside a step after a launch, because the next launch
    /// or the end of the step decides.
    fn cause(
        &self,
        worker: &ProcessState,
        engine: Option<&ProcessState>,
        run: &RunState,
    ) -> Option<IdleCause> {
        let is_own_engine = self.feed.engine == Some(self.feed.worker);
        let either = |is: &dyn Fn(&ProcessState) -> bool| is(worker) || engine.is_some_and(is);
        Some(if either(&|process| process.losses > 0) {
            IdleCause::NotRecorded
        } else if self.is_launched {
            IdleCause::LaunchDelay
        } else if either(&|process| process.is_in(Activity::Gc)) {
            IdleCause::Gc
        } else if worker.is_in(Activity::KvTransfer) {
            IdleCause::KvTransfer
        } else if worker.is_in(Activity::Sample) {
            IdleCause::Sampling
        } else if worker.is_in(Activity::Step) {
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
                Some(engine) if !is_own_engine && worker.has_pending_work(engine) => {
                    IdleCause::Worker
                }
                Some(engine) => self.engine_cause(engine, run),
            }
        })
    }

    /// Returns the cause in the engine while the worker is outside a step.
    fn engine_cause(&self, engine: &ProcessState, run: &RunState) -> IdleCause {
        if engine.is_in(Activity::Schedule) {
            IdleCause::Scheduling
        } else if engine.is_in(Activity::Output) {
            IdleCause::Output
        } else if self.others_in_step(run).next().is_some() {
            IdleCause::OtherRank
        } else if engine.is_in(Activity::Dispatch) {
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

    /// Counts a call of the worker or its engine.
    pub(super) fn count_call(&mut self, process: usize, activity: Activity) {
        let is_engine = Some(process) == self.feed.engine && !activity.is_of_worker();
        if (process == self.feed.worker || is_engine) && self.is_open {
            self.host[activity as usize].0 += 1;
        }
    }

    /// Ends a wait after a launch if `process` is the device's worker. The cause is now known: a launch gap if another
    /// launch follows, or sampling if the step ends.
    pub(super) fn end_wait(
        &mut self,
        process: usize,
        cause: IdleCause,
        store: &mut IntervalStore<'_>,
    ) {
        if process == self.feed.worker {
            self.intervals.end_wait(cause, store);
        }
    }

    pub(super) fn finish(self, causes: CauseTimes) -> DeviceIdle {
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
