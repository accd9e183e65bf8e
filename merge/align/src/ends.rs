//! Ends of flows between processes, and the arrows between hosts that follow from them.
//!
//! A flow has an arrow from its start to each step and each end, because they are never before the start. There is no arrow between two steps. A flow with two
//! starts is two flows with the same id, and it is unknown which of its ends belong together.

use trace_store::sorter::Record;

/// Maximum number of steps of one flow that have an arrow to its end.
const MAX_STEPS: usize = 64;

/// Role of an event in its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Start of the flow.
    Start,
    /// Event between start and end.
    Step,
    /// End of the flow.
    End,
    /// End of a collective on one host.
    Collective,
    /// Time at which a collective is certainly over: its end on another host plus the time of its transfer.
    CollectiveOver,
}

impl Role {
    fn is_start(self) -> bool {
        matches!(self, Role::Start | Role::Collective)
    }
}

/// An event of a flow that may lead to another process, or an end of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    /// Id of the flow, or an id of a collective and one direction between two hosts.
    pub flow: u64,
    /// Role of the event in its flow.
    pub role: Role,
    /// Number of the host in [`Hosts::list`](crate::Hosts::list).
    pub boot: u32,
    /// Time on the monotonic clock of the host, limited by [`super::clamp`].
    pub at_ns: i64,
}

/// A constraint between two hosts: `to` is not before `from`. Each is a host and a time on its monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrow {
    pub(crate) from: (usize, i64),
    pub(crate) to: (usize, i64),
    /// True if this is one of the two arrows between hosts that ended a collective together.
    pub(crate) is_collective: bool,
}

impl Arrow {
    /// Returns the hosts of the start and the end.
    pub(crate) fn pair(&self) -> (usize, usize) {
        (self.from.0, self.to.0)
    }
}

/// Calls `found` with each arrow from host to host.
pub(crate) fn each_arrow(ends: &[End], mut found: impl FnMut(Arrow)) {
    for flow in ends.chunk_by(|one, next| one.flow == next.flow) {
        let (starts, rest) = flow.split_at(flow.partition_point(|end| end.role.is_start()));
        let [start] = starts else { continue };
        rest.iter().for_each(|end| connect(start, end, &mut found));
        let steps = rest.partition_point(|end| end.role == Role::Step);
        let (steps, ends) = rest.split_at(steps);
        // With several ends, each step may belong to any of them.
        if let [end] = ends {
            let steps = steps.iter().take(MAX_STEPS);
            steps.for_each(|step| connect(step, end, &mut found));
        }
    }
}

fn connect(from: &End, to: &End, found: &mut impl FnMut(Arrow)) {
    let host_and_time = |end: &End| (end.boot as usize, end.at_ns);
    if from.boot != to.boot {
        found(Arrow {
            from: host_and_time(from),
            to: host_and_time(to),
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
    fn a_flow_has_arrows_from_its_start_to_all_others() {
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
            (2, Role::End, 1, 50), // no start
            (3, Role::Start, 0, 60),
            (3, Role::End, 0, 70), // same host
            (4, Role::Start, 0, 80),
            (4, Role::Start, 0, 90), // unknown which start belongs to the end
            (4, Role::End, 2, 95),
            (5, Role::Start, 0, 110),
            (5, Role::Step, 1, 140),
            (5, Role::End, 2, 130), // two ends, so it is unknown which one follows the step
            (5, Role::End, 1, 150),
        ];
        let mut sorter = Sorter::new(std::path::Path::new("."));
        sorter.extend(ends.map(end)).unwrap();
        let mut found = Vec::new();
        each_arrow(&sorter.finish().unwrap(), |arrow| {
            found.push((arrow.from.1, arrow.to.1));
        });
        let last_flow = [(110, 140), (110, 150), (110, 130)];
        assert_eq!(
            found,
            [&[(10, 20), (10, 30), (20, 30)], &last_flow[..]].concat()
        );
    }
}
