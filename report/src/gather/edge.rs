//! A change of what the processes or devices of a run do, while all of them are sorted by time.

use crate::table::{Activity, SeriesKind};
use trace_store::sorter::{Record, long_at, word_at};

/// What changes. At one time, ends come before begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EdgeKind {
    /// A process ends an activity, or begins one.
    End(Activity),
    LossEnd,
    RequestEnd,
    GapEnd,
    DeviceEnd,
    /// Its requests in a batch, and those that wait for one.
    Running,
    Waiting,
    /// How much of the room for keys and values is used, in thousandths.
    KvUsed,
    Begin(Activity),
    LossBegin,
    RequestBegin,
    DeviceBegin,
    GapBegin,
    /// The engine gives a step, or the sampling after it, to its workers.
    StepHanded,
    SampleHanded,
    /// A worker begins to sample.
    SampleBegun,
    /// The process launches something.
    Launch,
    /// What ends the gap was launched.
    Launched,
}

/// A change. Activities, launches and counts are of processes, gaps of devices, requests of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) ns: i64,
    pub(crate) kind: EdgeKind,
    /// The process, or the device by the number of its process.
    pub(crate) of: u32,
    /// Of a count.
    pub(crate) value: u32,
}

/// The kinds without an activity, in the order of their codes.
const PLAIN: [EdgeKind; 16] = [
    EdgeKind::LossEnd,
    EdgeKind::RequestEnd,
    EdgeKind::GapEnd,
    EdgeKind::DeviceEnd,
    EdgeKind::Running,
    EdgeKind::Waiting,
    EdgeKind::KvUsed,
    EdgeKind::LossBegin,
    EdgeKind::RequestBegin,
    EdgeKind::DeviceBegin,
    EdgeKind::GapBegin,
    EdgeKind::StepHanded,
    EdgeKind::SampleHanded,
    EdgeKind::SampleBegun,
    EdgeKind::Launch,
    EdgeKind::Launched,
];
/// The first codes of begins, and of the kinds without an activity.
const BEGIN: u8 = 64;
const FIRST_PLAIN: u8 = 128;

impl EdgeKind {
    /// Returns the level of an engine that such an edge sets, if it sets one.
    pub(crate) fn level(self) -> Option<SeriesKind> {
        match self {
            EdgeKind::Running => Some(SeriesKind::Running),
            EdgeKind::Waiting => Some(SeriesKind::Waiting),
            EdgeKind::KvUsed => Some(SeriesKind::KvUsedPercent),
            _ => None,
        }
    }

    fn code(self) -> u8 {
        match self {
            EdgeKind::End(activity) => activity as u8,
            EdgeKind::Begin(activity) => BEGIN + activity as u8,
            plain => {
                let codes = PLAIN.into_iter().zip(FIRST_PLAIN..);
                let mut codes = codes.filter(|(kind, _)| *kind == plain);
                codes.next().map_or(u8::MAX, |(_, code)| code)
            }
        }
    }

    fn of_code(code: u8) -> EdgeKind {
        let activity = |code: u8| Activity::ALL[usize::from(code) % Activity::ALL.len()];
        match code {
            FIRST_PLAIN.. => PLAIN[usize::from(code - FIRST_PLAIN) % PLAIN.len()],
            BEGIN.. => EdgeKind::Begin(activity(code - BEGIN)),
            _ => EdgeKind::End(activity(code)),
        }
    }
}

impl Record for Edge {
    const BYTES: usize = 17;

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.ns.to_le_bytes());
        out.extend_from_slice(&self.of.to_le_bytes());
        out.extend_from_slice(&self.value.to_le_bytes());
        out.push(self.kind.code());
    }

    fn load(bytes: &[u8]) -> Self {
        Edge {
            ns: long_at(bytes, 0).cast_signed(),
            of: word_at(bytes, 8),
            value: word_at(bytes, 12),
            kind: EdgeKind::of_code(bytes[16]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_as_it_was_stored() {
        let plain = [
            EdgeKind::LossEnd,
            EdgeKind::RequestEnd,
            EdgeKind::GapEnd,
            EdgeKind::DeviceEnd,
            EdgeKind::Running,
            EdgeKind::Waiting,
            EdgeKind::KvUsed,
            EdgeKind::LossBegin,
            EdgeKind::RequestBegin,
            EdgeKind::DeviceBegin,
            EdgeKind::GapBegin,
            EdgeKind::Launch,
            EdgeKind::Launched,
            EdgeKind::StepHanded,
            EdgeKind::SampleHanded,
            EdgeKind::SampleBegun,
        ];
        let activities = Activity::ALL
            .into_iter()
            .flat_map(|activity| [EdgeKind::Begin(activity), EdgeKind::End(activity)]);
        for kind in plain.into_iter().chain(activities) {
            let edge = Edge {
                ns: -7,
                kind,
                of: 3,
                value: 9,
            };
            let mut bytes = Vec::new();
            edge.store(&mut bytes);
            assert_eq!((Edge::load(&bytes), bytes.len()), (edge, Edge::BYTES));
        }
    }
}
