//! The flows that the program draws, put together from what each thread draws of them.

use crate::clock::time_map::TimeMap;
use crate::link::records::{OwnFlow, ProgramFlow};
use crate::store::sorter::Ascending;
use std::io;

/// A flow of the program.
pub(crate) struct DrawnFlow {
    /// The key of its request's id.
    pub(crate) key: u64,
    pub(crate) flow: OwnFlow,
    /// Keys of the threads on which the program draws it.
    pub(crate) threads: Vec<u64>,
    /// True if one of our recordings has its start.
    pub(crate) starts: bool,
    /// True if one of our recordings has a step or an end of it.
    pub(crate) ends: bool,
}

/// Reads the flows of the program in the order of their keys.
pub(crate) struct DrawnFlows<'a> {
    parts: Ascending<'a, ProgramFlow>,
    /// The first part of the next flow.
    part: Option<ProgramFlow>,
    /// What brings the times of each clock to the trace's.
    maps: &'a [TimeMap],
}

impl<'a> DrawnFlows<'a> {
    pub(crate) fn new(
        parts: Ascending<'a, ProgramFlow>,
        maps: &'a [TimeMap],
    ) -> io::Result<DrawnFlows<'a>> {
        let part = None;
        let mut flows = DrawnFlows { parts, part, maps };
        flows.part = flows.read()?;
        Ok(flows)
    }

    /// Returns the next flow.
    pub(crate) fn next(&mut self) -> io::Result<Option<DrawnFlow>> {
        let Some(part) = self.part.take() else {
            return Ok(None);
        };
        let mut flow = DrawnFlow::of(&part);
        self.part = loop {
            match self.read()? {
                Some(next) if next.is_same_flow(&part) => flow.add(&next),
                other => break other,
            }
        };
        flow.flow.is_elsewhere = flow.threads.len() > 1;
        Ok(Some(flow))
    }

    /// Returns the next part, with its times on the trace's axis.
    fn read(&mut self) -> io::Result<Option<ProgramFlow>> {
        let part = self.parts.next()?;
        Ok(part.map(|part| match self.maps.get(part.clock as usize) {
            Some(map) => part.placed(map),
            None => part,
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
}
