//! The ends of flows that lead from process to process, and the arrows from host to host that they make.
//!
//! A flow is an arrow from its start to each step and each end: what it starts is never before it. Two steps say nothing of each other, and a flow with two starts is
//! two flows of one id, of which nobody knows what belongs together.

use trace_store::sorter::Record;

/// Most steps of one flow that are looked at.
const STEPS: usize = 64;

/// What a flow event is to its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// It starts the flow.
    Start,
    /// It is between start and end.
    Step,
    /// It ends the flow.
    End,
    /// One host ended a collective.
    Collective,
    /// By then the collective was over on another host: when it ended there, and the time of its transfer.
    CollectiveOver,
}

impl Role {
    fn is_start(self) -> bool {
        matches!(self, Role::Start | Role::Collective)
    }
}

/// A flow event whose flow may lead to another process, or an end of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    /// The flow's id; for a collective, an id of one direction between two hosts.
    pub flow: u64,
    /// What it is to the flow.
    pub role: Role,
    /// The number of its host in [`Hosts::list`](crate::Hosts::list).
    pub boot: u32,
    /// By the monotonic clock of its host, within what [`super::clamp`] leaves.
    pub at_ns: i64,
}

/// Something that cannot be before something else on another host: each a host and when by its monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrow {
    pub(crate) from: (usize, i64),
    pub(crate) to: (usize, i64),
    /// True if it is one of the two arrows between hosts that ended a collective together.
    pub(crate) is_collective: bool,
}

impl Arrow {
    /// The hosts that it leads from and to.
    pub(crate) fn pair(&self) -> (usize, usize) {
        (self.from.0, self.to.0)
    }
}

/// Calls `found` with each arrow from host to host.
pub(crate) fn each_arrow(ends: &[End], mut found: impl FnMut(Arrow)) {
    for flow in ends.chunk_by(|one, next| one.flow == next.flow) {
        let (starts, rest) = flow.split_at(flow.partition_point(|end| end.role.is_start()));
        let [start] = starts else { continue };
        rest.iter().for_each(|end| put(start, end, &mut found));
        let steps = rest.partition_point(|end| end.role == Role::Step);
        let (steps, ends) = rest.split_at(steps);
        // Of several ends each may belong to another step.
        if let [end] = ends {
            let steps = steps.iter().take(STEPS);
            steps.for_each(|step| put(step, end, &mut found));
        }
    }
}

fn put(from: &End, to: &End, found: &mut impl FnMut(Arrow)) {
    let place = |end: &End| (end.boot as usize, end.at_ns);
    if from.boot != to.boot {
        found(Arrow {
            from: place(from),
            to: place(to),
            is_collective: to.role == Role::CollectiveOver,
        });
    }
}

impl Record for End {}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_store::sorter::Sorter;

    #[test]
    fn a_flow_is_an_arrow_from_its_start_to_all_others() {
        let end = |(flow, role, boot, at_ns)| End {
            flow,
            role,
            boot,
            at_ns,
        };
        let ends = [
            (1, Role::End, 2, 30),
            (1, Role::Start, 0, 10),
            (1, Role::Step, 1, 20),
            (2, Role::End, 1, 50), // has no start
            (3, Role::Start, 0, 60),
            (3, Role::End, 0, 70), // of the same host
            (4, Role::Start, 0, 80),
            (4, Role::Start, 0, 90), // which of both is it?
            (4, Role::End, 2, 95),
            (5, Role::Start, 0, 110),
            (5, Role::Step, 1, 140),
            (5, Role::End, 2, 130), // one of two, so that none is known to be the step's
            (5, Role::End, 1, 150),
        ];
        let mut sorter = Sorter::new(std::path::Path::new("."));
        sorter.extend(ends.map(end)).unwrap();
        let mut found = Vec::new();
        each_arrow(&sorter.finish().unwrap(), |arrow| {
            found.push((arrow.from.1, arrow.to.1));
        });
        let of_ends = [(110, 140), (110, 150), (110, 130)];
        assert_eq!(
            found,
            [&[(10, 20), (10, 30), (20, 30)], &of_ends[..]].concat()
        );
    }
}
