//! Edges in the order of time → what each device waited for while it was idle.

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
    /// Clock that maps the trace to the time to report on.
    pub(crate) clock: &'a ServingClock,
}

/// The idle time of all devices.
pub(crate) struct FoundIdle {
    pub(crate) devices: Vec<DeviceIdle>,
    pub(crate) long_gaps: Vec<LongGap>,
    pub(crate) together: IdleTogether,
}

/// Returns why each device was idle, the longest gaps of all, and how long all were idle at once. Puts the idle intervals into `rows`; `intervals` has room to
/// sort them.
pub(crate) fn idle_causes(
    edges: &Sorted<Edge>,
    roles: &Roles<'_>,
    intervals: Sorter<'_, IdleInterval>,
    rows: Option<&mut (dyn RowSink + '_)>,
) -> io::Result<FoundIdle> {
    let [mut engines, mut workers, mut callers] = [const { BTreeSet::new() }; 3];
    for edge in edges.iter() {
        match edge.kind {
            EdgeKind::Begin(Activity::Schedule | Activity::Dispatch | Activity::Batch)
            | EdgeKind::Running => engines.insert(edge.of as usize),
            EdgeKind::Begin(Activity::Step) => workers.insert(edge.of as usize),
            EdgeKind::StepHanded => callers.insert(edge.of as usize),
            _ => false,
        };
    }
    let feeds = feeds(&roles.recorders, &engines, &workers, roles.ids);
    let mut sweep = Sweep::new(feeds, roles, IntervalStore::new(intervals));
    for caller in callers {
        sweep.run.processes[caller].has_calls = true;
    }
    for edge in edges.iter() {
        let ns = roles.clock.serving_ns(edge.ns);
        sweep.take(&Edge { ns, ..*edge });
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
            device.end_wait(device.feed.worker, IdleCause::Sampling, &mut self.store);
            device.settle_unsure(&mut self.store);
            device.intervals.flush(&mut self.store);
        }
        let (devices, of_device) = (self.devices, self.of_device);
        let mut causes = vec![[0; IdleCause::ALL.len()]; devices.len()];
        let mut gaps = LongGaps::default();
        self.store.finish()?.each(|interval| {
            let number = of_device[&interval.process];
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
                self.run.requests = self.run.requests.map(|requests| match edge.kind {
                    EdgeKind::RequestBegin => requests + 1,
                    _ => requests.saturating_sub(1),
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
                for number in touched {
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
