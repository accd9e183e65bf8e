//! State of the processes of a run at one time.

use crate::gather::edge::{Edge, EdgeKind};
use crate::table::Activity;

pub(super) const ACTIVITIES: usize = Activity::ALL.len();

/// State of a process at one time.
#[derive(Clone, Debug, Default)]
pub(super) struct ProcessState {
    /// Number of open spans of each activity.
    pub(super) open: [u32; ACTIVITIES],
    pub(super) losses: u32,
    /// For a worker: start of its last step, and of its last step or sampling.
    pub(super) step_ns: Option<i64>,
    pub(super) sample_ns: Option<i64>,
    /// For a worker: number of its last step plus 1, or 0 if it has none.
    step: u32,
    /// For an engine: time at which it last handed a step to its workers, and the sampling after one.
    pub(super) step_handed_ns: Option<i64>,
    pub(super) sample_handed_ns: Option<i64>,
    /// True if the engine has calls that hand out steps. Otherwise a step is handed out when its batch starts.
    pub(super) has_calls: bool,
    /// True if the worker has launched anything since its step started.
    pub(super) has_launched: bool,
    pub(super) running: Option<u32>,
    pub(super) waiting: Option<u32>,
}

impl ProcessState {
    pub(super) fn is_in(&self, activity: Activity) -> bool {
        self.open[activity as usize] > 0
    }

    /// Records when work was handed out or started.
    pub(super) fn record_hand_over(&mut self, edge: &Edge) {
        let now = Some(edge.ns);
        match edge.kind {
            EdgeKind::Begin(Activity::Step) if self.is_in(Activity::Step) => {}
            EdgeKind::Begin(Activity::Step) => {
                (self.step_ns, self.sample_ns, self.step) = (now, now, edge.value);
            }
            EdgeKind::SampleBegun => self.sample_ns = now,
            EdgeKind::StepHanded => self.step_handed_ns = now,
            EdgeKind::SampleHanded => self.sample_handed_ns = now,
            EdgeKind::Begin(Activity::Batch) if !self.has_calls => self.step_handed_ns = now,
            _ => {}
        }
    }

    /// Returns true if the engine handed this worker a step, or the sampling after it, and the worker has not started
    /// it. An engine that runs steps itself hands out none: a worker of it is behind if its step has a lower number.
    pub(super) fn has_pending_work(&self, engine: &ProcessState) -> bool {
        if engine.step_ns.is_some() {
            return (1..engine.step).contains(&self.step);
        }
        let is_out = engine.is_in(Activity::Batch) || engine.is_in(Activity::Dispatch);
        let is_step_pending = self.step_ns < engine.step_handed_ns;
        is_out && (is_step_pending || self.sample_ns < engine.sample_handed_ns)
    }
}

/// State of all processes and requests at one time.
#[derive(Default)]
pub(super) struct RunState {
    pub(super) processes: Vec<ProcessState>,
    /// Number of requests in flight, or `None` if the trace names no requests.
    pub(super) requests: Option<u64>,
}
