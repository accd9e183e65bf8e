//! Flows that lead nowhere: with a start and nothing that continues it, or without a start.

use super::styles::{Style, name_and_category};
use crate::link::records::FlowPhases;
use serde::Serialize;

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

/// The number of flows of each style that lead nowhere: without end, without start.
#[derive(Debug, Default)]
pub(crate) struct LooseCounts(Vec<[u64; 2]>);

impl LooseCounts {
    /// Counts a flow if it has no start, or nothing but a start.
    #[inline]
    pub(crate) fn add(&mut self, style: Style, has_start: bool, has_rest: bool) {
        if has_start == has_rest {
            return;
        }
        let style = style.0 as usize;
        if self.0.len() <= style {
            self.0.resize(style + 1, [0; 2]);
        }
        self.0[style][usize::from(has_rest)] += 1;
    }

    /// Adds the flows of single processes.
    pub(crate) fn add_local(&mut self, flows: &[FlowPhases]) {
        for flow in flows {
            self.add(flow.style, flow.has_start, flow.has_other);
        }
    }

    /// Returns the counts of each style that has any. The style with most of them comes first.
    pub(crate) fn report(self, styles: &[Vec<u8>]) -> Vec<LooseFlows> {
        let styles = self.0.into_iter().zip(styles);
        let loose = styles.filter(|(counts, _)| *counts != [0; 2]);
        let loose = loose.map(|([without_end, without_start], members)| {
            let (name, category) = name_and_category(members);
            LooseFlows {
                name,
                category,
                without_end,
                without_start,
            }
        });
        let mut loose: Vec<_> = loose.collect();
        let count = |flows: &LooseFlows| flows.without_end + flows.without_start;
        loose.sort_by(|one, other| {
            let by_count = count(other).cmp(&count(one));
            by_count.then_with(|| (&one.name, &one.category).cmp(&(&other.name, &other.category)))
        });
        loose
    }
}
