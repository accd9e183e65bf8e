//! Whom the preload library sees, and what of it it does not → the report.

use super::Report;
use crate::event::patch::Id;
use crate::identity::plan::Plan;
use crate::pass::summary::ChunkSummary;

/// Says it of each process: once the plan is told, which names the processes.
pub(crate) fn tell_reach(summaries: &[ChunkSummary], plan: &Plan, report: &mut Report) {
    for (recording, summary) in summaries.iter().enumerate() {
        for (pid, reach) in &summary.reach {
            let target = plan.targets[recording].get(&(*pid, *pid));
            let is_target =
                |output_pid: u32| target.is_some_and(|to| to.pid == Id::from(output_pid));
            let mut processes = report.processes.iter_mut();
            if let Some(process) = processes.find(|process| is_target(process.output_pid)) {
                process.seen_by_preload = true;
                process.not_visible = reach.words();
            }
        }
    }
}
