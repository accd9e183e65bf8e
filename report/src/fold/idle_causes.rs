//! Attributes the idle time of each device to causes, from edges in order of time.

mod device_state;
mod idle_intervals;
mod long_gaps;
mod process_state;

use super::feed::{Feed, feeds};
use crate::gather::edge::{Edge, EdgeKind};
use crate::gather::process_ids::ProcessIds;
use crate::rows::{IdleInterval, RowSink};
use crate::serving_clock::ServingClock;
use crate::table::{Activity, DeviceIdle, IdleCause, IdleTogether, LongGap, Recorded};
use device_state::DeviceState;
use idle_intervals::IntervalStore;
use long_gaps::LongGaps;
use process_state::{ProcessState, RunState};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use trace_store::sorter::{Sorted, Sorter};

/// Time in which at least one device was open, and the part of it in which all open devices were idle.
#[derive(Default)]
struct Together {
    counted_ns: i64,
    open: usize,
    busy: usize,
    found: IdleTogether,
}

impl Together {
    /// Counts the time up to the change of a device, then applies the change.
    fn apply(&mut self, edge: &Edge) {
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

/// Roles of the processes of a run.
pub(crate) struct Roles<'a> {
    /// Number of processes.
    pub(crate) processes: usize,
    /// Each device with the process that recorded it, by number.
    pub(crate) recorders: Vec<(usize, usize)>,
    pub(crate) ids: &'a ProcessIds,
    /// True if the trace names requests.
    pub(crate) has_requests: bool,
    /// Source of the clock uncertainties between processes.
    pub(crate) recorded: &'a Recorded,
    /// Clock that maps the trace to the time to report on.
    pub(crate) clock: &'a ServingClock,
}

/// Idle time of all devices.
pub(crate) struct FoundIdle {
    pub(crate) devices: Vec<DeviceIdle>,
    pub(crate) long_gaps: Vec<LongGap>,
    pub(crate) together: IdleTogether,
}

/// Returns the causes of each device's idle time, the longest gaps of the run, and the time in which all devices were
/// idle. The idle intervals are sorted in `intervals` and then passed to `rows`.
pub(crate) fn idle_causes(
    edges: &Sorted<Edge>,
    roles: &Roles<'_>,
    intervals: Sorter<'_, IdleInterval>,
    rows: Option<&mut (dyn RowSink + '_)>,
) -> io::Result<FoundIdle> {
    let [mut engines, mut workers, mut callers, mut with_batches] = [const { BTreeSet::new() }; 4];
    for edge in edges.iter() {
        match edge.kind {
            EdgeKind::Begin(Activity::Schedule | Activity::Dispatch) | EdgeKind::Running => {
                engines.insert(edge.process as usize)
            }
            EdgeKind::Begin(Activity::Batch) => with_batches.insert(edge.process as usize),
            EdgeKind::Begin(Activity::Step) => workers.insert(edge.process as usize),
            EdgeKind::StepHanded => callers.insert(edge.process as usize),
            _ => false,
        };
    }
    // A worker may also record its batches in flight.
    engines.extend(&with_batches - &workers);
    let feeds = feeds(&roles.recorders, &engines, &workers, roles.ids);
    let mut sweep = Sweep::new(feeds, roles, IntervalStore::new(intervals));
    for caller in callers {
        sweep.run.processes[caller].has_calls = true;
    }
    for edge in edges.iter() {
        let ns = roles.clock.serving_ns(edge.ns);
        sweep.apply(&Edge { ns, ..*edge });
    }
    let mut found = sweep.finish(rows)?;
    for gap in &mut found.long_gaps {
        gap.end_ns = roles.clock.trace_ns(gap.start_ns + gap.dur_ns);
        gap.start_ns = roles.clock.trace_ns(gap.start_ns);
    }
    Ok(found)
}

struct Sweep<'f> {
    run: RunState,
    store: IntervalStore<'f>,
    together: Together,
    devices: Vec<DeviceState>,
    /// Index of each device by its process number, and the devices that each process affects.
    device_indexes: BTreeMap<usize, usize>,
    affected_by: Vec<Vec<usize>>,
}

impl<'f> Sweep<'f> {
    fn new(feeds: Vec<Feed>, roles: &Roles<'_>, store: IntervalStore<'f>) -> Sweep<'f> {
        let mut affected_by = vec![Vec::new(); roles.processes];
        for (number, feed) in feeds.iter().enumerate() {
            let feeding = [Some(feed.worker), feed.engine].into_iter().flatten();
            let feeding: BTreeSet<usize> = feeding.chain(feed.others.iter().copied()).collect();
            for process in feeding {
                affected_by[process].push(number);
            }
        }
        Sweep {
            device_indexes: feeds.iter().map(|feed| feed.device).zip(0..).collect(),
            devices: feeds
                .into_iter()
                .map(|feed| DeviceState::new(feed, roles.recorded))
                .collect(),
            affected_by,
            store,
            together: Together::default(),
            run: RunState {
                processes: vec![ProcessState::default(); roles.processes],
                requests: roles.has_requests.then_some(0),
            },
        }
    }

    /// Returns the idle times and passes the intervals to `rows`.
    fn finish(mut self, mut rows: Option<&mut (dyn RowSink + '_)>) -> io::Result<FoundIdle> {
        for device in &mut self.devices {
            // A step without an end counts as sampling, because no further launch followed.
            device.end_wait(device.feed.worker, IdleCause::Sampling, &mut self.store);
            device.settle_unsure(&mut self.store);
            device.intervals.flush(&mut self.store);
        }
        let (devices, indexes) = (self.devices, self.device_indexes);
        let mut causes = vec![[0; IdleCause::ALL.len()]; devices.len()];
        let mut gaps = LongGaps::default();
        self.store.finish()?.each(|interval| {
            let number = indexes[&interval.process];
            causes[number][interval.cause as usize] += interval.dur_ns;
            gaps.add(&interval);
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

    fn apply(&mut self, edge: &Edge) {
        let process = edge.process as usize;
        match edge.kind {
            EdgeKind::DeviceBegin
            | EdgeKind::DeviceEnd
            | EdgeKind::GapBegin
            | EdgeKind::GapEnd
            | EdgeKind::Launched => {
                if let Some(number) = self.device_indexes.get(&process) {
                    self.together.apply(edge);
                    let device = &mut self.devices[*number];
                    device.count_until(edge.ns, &self.run, &mut self.store);
                    device.apply(edge, &mut self.store);
                }
            }
            EdgeKind::RequestBegin | EdgeKind::RequestEnd => {
                for device in &mut self.devices {
                    device.count_until(edge.ns, &self.run, &mut self.store);
                }
                self.run.requests = self.run.requests.map(|requests| match edge.kind {
                    EdgeKind::RequestBegin => requests + 1,
                    _ => requests.saturating_sub(1),
                });
            }
            _ => self.apply_to_process(edge),
        }
    }

    /// Applies a change of a process's activity.
    fn apply_to_process(&mut self, edge: &Edge) {
        let process = edge.process as usize;
        let affected = &self.affected_by[process];
        for number in affected {
            self.devices[*number].count_until(edge.ns, &self.run, &mut self.store);
        }
        let state = &mut self.run.processes[process];
        state.record_hand_over(edge);
        match edge.kind {
            EdgeKind::Begin(activity) => {
                let open = &mut state.open[activity as usize];
                *open += 1;
                if *open == 1 {
                    state.has_launched &= activity != Activity::Step;
                    for number in affected {
                        self.devices[*number].count_call(process, activity);
                    }
                }
            }
            EdgeKind::End(activity) => {
                let open = &mut state.open[activity as usize];
                *open = open.saturating_sub(1);
                if *open == 0 && activity == Activity::Step {
                    for number in affected {
                        self.devices[*number].end_wait(
                            process,
                            IdleCause::Sampling,
                            &mut self.store,
                        );
                    }
                }
            }
            EdgeKind::Launch => {
                state.has_launched = true;
                for number in affected {
                    self.devices[*number].end_wait(process, IdleCause::LaunchGap, &mut self.store);
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
