//! Slices, nested once → the time of each name and of each stack, and what lies in the longest steps.

use super::name_times::NameTimes;
use super::steps::in_steps::InSteps;
use crate::gather::name_keys::NameKey;
use crate::gather::slice_record::SliceRecord;
use crate::gather::step_record::StepRecord;
use crate::nest::nest;
use crate::stack_tree::StackTree;
use crate::table::{NameTime, SlowStep, StackTime};
use std::io;
use trace_store::sorter::Sorted;

/// What slices are looked up in.
pub(crate) struct SliceContext<'a> {
    pub(crate) keys: &'a [NameKey],
    /// The process of each thread.
    pub(crate) processes: &'a [usize],
    pub(crate) slow_steps: Vec<StepRecord>,
}

/// What all slices say.
pub(crate) struct SliceTables {
    pub(crate) names: Vec<NameTime>,
    pub(crate) stacks: Vec<StackTime>,
    pub(crate) slow_steps: Vec<SlowStep>,
}

/// What all slices say.
pub(crate) fn slice_tables(
    slices: &Sorted<SliceRecord>,
    mut names: NameTimes<'_>,
    context: SliceContext<'_>,
) -> io::Result<SliceTables> {
    let mut stacks = StackTree::new(context.keys, context.processes);
    let mut in_steps = InSteps::new(context.slow_steps);
    nest(slices, &mut stacks, |slice| {
        in_steps.take(&slice);
        names.take(&slice)
    })?;
    Ok(SliceTables {
        names: names.finish()?,
        stacks: stacks.finish(),
        slow_steps: in_steps.finish(context.keys),
    })
}
