//! The flows that the program draws, put together from what each thread draws of them.

use super::loose_flows::LooseCounts;
use crate::clock::time_map::TimeMap;
use crate::link::partition::Share;
use crate::link::records::{OwnFlow, ProgramFlow};
use crate::store::sorter::Ascending;
use std::io;

/// A flow of the program.
pub(crate) struct DrawnFlow {
    key: u64,
    pub(crate) flow: OwnFlow,
    /// Keys of the threads on which the program draws it.
    pub(crate) threads: Vec<u64>,
    starts: bool,
    ends: bool,
}

/// Finds the flows of requests, whose keys are asked for in ascending order.
pub(crate) struct ProgramFlows<'a> {
    parts: Ascending<'a, ProgramFlow>,
    /// The first part of the flow after `next`.
    part: Option<ProgramFlow>,
    share: Share,
    /// What brings the times of each clock to the trace's.
    maps: &'a [TimeMap],
    next: Option<DrawnFlow>,
    loose: LooseCounts,
}

impl<'a> ProgramFlows<'a> {
    /// Reads the flows of a share of the keys; `parts` starts there.
    pub(crate) fn new(
        parts: Ascending<'a, ProgramFlow>,
        share: Share,
        maps: &'a [TimeMap],
    ) -> io::Result<ProgramFlows<'a>> {
        let mut flows = ProgramFlows {
            parts,
            part: None,
            share,
            maps,
            next: None,
            loose: LooseCounts::default(),
        };
        flows.part = flows.read()?;
        flows.step()?;
        Ok(flows)
    }

    /// Returns the flow that starts first of those with this key, if the program starts any.
    pub(crate) fn of(&mut self, key: u64) -> io::Result<Option<DrawnFlow>> {
        let mut first: Option<DrawnFlow> = None;
        while self.next.as_ref().is_some_and(|next| next.key <= key) {
            let flow = self.step()?;
            let flow = flow.filter(|flow| flow.key == key && flow.flow.start_ns < i64::MAX);
            first = match (first, flow) {
                (Some(first), Some(flow)) => Some(first.earlier(flow)),
                (first, flow) => first.or(flow),
            };
        }
        Ok(first)
    }

    /// Reads all that is left, and returns how many flows lead nowhere.
    pub(crate) fn finish(mut self) -> io::Result<LooseCounts> {
        while self.step()?.is_some() {}
        Ok(self.loose)
    }

    /// Returns the next flow, and reads the one after it.
    fn step(&mut self) -> io::Result<Option<DrawnFlow>> {
        let after = match self.part.take() {
            Some(part) => Some(self.whole(part)?),
            None => None,
        };
        let next = std::mem::replace(&mut self.next, after);
        if let Some(flow) = &next {
            self.loose.add(flow.flow.style, flow.starts, flow.ends);
        }
        Ok(next)
    }

    /// Reads the other parts of a flow.
    fn whole(&mut self, part: ProgramFlow) -> io::Result<DrawnFlow> {
        let mut flow = DrawnFlow::of(&part);
        self.part = loop {
            match self.read()? {
                Some(next) if next.is_same_flow(&part) => flow.add(&next),
                other => break other,
            }
        };
        flow.flow.is_elsewhere = flow.threads.len() > 1;
        Ok(flow)
    }

    /// Returns the next part, with its times on the trace's axis.
    fn read(&mut self) -> io::Result<Option<ProgramFlow>> {
        let part = self.parts.next()?.filter(|part| self.share.has(part.key));
        Ok(part.map(|part| {
            let clock = usize::try_from(part.clock).unwrap_or(usize::MAX);
            match self.maps.get(clock) {
                Some(map) => part.placed(map),
                None => part,
            }
        }))
    }
}

impl DrawnFlow {
    fn of(part: &ProgramFlow) -> DrawnFlow {
        let mut flow = DrawnFlow {
            key: part.key,
            flow: OwnFlow {
                id: part.id,
                style: part.style,
                start_ns: i64::MAX,
                end_ns: i64::MAX,
                thread: part.thread,
                has_lead: false,
                is_elsewhere: false,
            },
            threads: Vec::new(),
            starts: false,
            ends: false,
        };
        flow.add(part);
        flow
    }

    fn add(&mut self, part: &ProgramFlow) {
        let flow = &mut self.flow;
        if part.start_ns < flow.start_ns {
            (flow.start_ns, flow.thread) = (part.start_ns, part.thread);
        }
        flow.end_ns = flow.end_ns.min(part.end_ns);
        self.threads.push(part.thread);
        self.starts |= part.has_our_start;
        self.ends |= part.has_our_rest;
    }

    fn earlier(self, other: DrawnFlow) -> DrawnFlow {
        match other.flow.start_ns < self.flow.start_ns {
            true => other,
            false => self,
        }
    }
}
