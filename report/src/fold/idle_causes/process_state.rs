//! The processes of a run at some time.

use crate::gather::edge::{Edge, EdgeKind};
use crate::table::Activity;

pub(super) const ACTIVITIES: usize = Activity::ALL.len();

/// The state of a process at some time.
#[derive(Clone, Debug, Default)]
pub(super) struct ProcessState {
    /// Number of open spans of each activity.
    pub(super) open: [u32; ACTIVITIES],
    pub(super) losses: u32,
    /// As a worker: when its last step began, and when it last began a step or sampling.
    pub(super) step_ns: Option<i64>,
    pub(super) sample_ns: Option<i64>,
    /// As an engine: when it last gave a step to its workers, and the sampling after one.
    pub(super) step_handed_ns: Option<i64>,
    pub(super) sample_handed_ns: Option<i64>,
    /// True if it has calls that give out steps. If not, a batch is given out when it begins.
    pub(super) has_calls: bool,
    /// True if it launched anything after its step began.
    pub(super) has_launched: bool,
    pub(super) running: Option<u32>,
    pub(super) waiting: Option<u32>,
}

impl ProcessState {
    pub(super) fn is(&self, activity: Activity) -> bool {
        self.open[activity as usize] > 0
    }

    /// Notes when work was given out or begun.
    pub(super) fn note_hand_over(&mut self, edge: &Edge) {
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

    /// Returns true if the engine gave this worker a step, or the sampling after it, and the worker did not begin.
    pub(super) fn is_behind(&self, engine: &ProcessState) -> bool {
        let is_out = engine.is(Activity::Batch) || engine.is(Activity::Dispatch);
        let is_step_behind = self.step_ns < engine.step_handed_ns;
        is_out && (is_step_behind || self.sample_ns < engine.sample_handed_ns)
    }
}

/// The processes and the requests at some time.
#[derive(Default)]
pub(super) struct RunState {
    pub(super) processes: Vec<ProcessState>,
    /// Requests that are under way; `None` where the trace names none.
    pub(super) requests: Option<u64>,
}
