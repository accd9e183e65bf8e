//! Flows that lead nowhere: with a start and nothing that continues it, or without a start.

use super::records::FlowPhases;
use super::styles::name_and_category;
use crate::store::sorter::Sorted;
use serde::Serialize;
use std::io;

/// Flows of one name and category that viewers draw no arrow for, because some of their events are missing or have another name, category or id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LooseFlows {
    /// Their name.
    pub name: String,
    /// Their category.
    pub category: String,
    /// The number of flows that have a start, but no step and no end.
    pub without_end: u64,
    /// The number of flows that have steps or an end, but no start.
    pub without_start: u64,
}

/// Counts loose flows by style; the style with most of them comes first.
pub(super) fn loose_flows(
    phases: &Sorted<FlowPhases>,
    styles: &[Vec<u8>],
) -> io::Result<Vec<LooseFlows>> {
    let mut counts = vec![LooseFlows::default(); styles.len()];
    let mut count = |flow: FlowPhases| {
        if let Some(counts) = counts.get_mut(flow.style.0 as usize) {
            counts.without_end += u64::from(!flow.has_other);
            counts.without_start += u64::from(!flow.has_start);
        }
    };
    let mut whole: Option<FlowPhases> = None;
    phases.each(|next| {
        match &mut whole {
            Some(flow) if flow.key == next.key => {
                flow.has_start |= next.has_start;
                flow.has_other |= next.has_other;
            }
            _ => whole.replace(next).into_iter().for_each(&mut count),
        }
        Ok(())
    })?;
    whole.into_iter().for_each(&mut count);
    for (counts, members) in counts.iter_mut().zip(styles) {
        (counts.name, counts.category) = name_and_category(members);
    }
    let of = |flows: &LooseFlows| flows.without_end + flows.without_start;
    counts.retain(|flows| of(flows) > 0);
    counts.sort_by(|one, other| {
        let by_count = of(other).cmp(&of(one));
        by_count.then_with(|| (&one.name, &one.category).cmp(&(&other.name, &other.category)))
    });
    Ok(counts)
}
