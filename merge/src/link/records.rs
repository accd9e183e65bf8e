//! Records of the first pass about flows and dropped requests. They are sorted, in temporary files
//! if there are many.

use super::mention::{EventPosition, RequestBounds};
use super::program::styles::Style;
use crate::clock::time_map::TimeMap;
use crate::store::sorter::Record;

/// Part of a flow on one thread. The flow may belong to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ThreadFlow {
    /// Key of the id for which the flow is drawn.
    pub(super) key: u64,
    /// Id of the flow in the trace.
    pub(super) id: u64,
    pub(super) style: Style,
    /// Key of the thread.
    pub(super) thread: u64,
    pub(super) clock: u32,
    /// Time of the first start; `i64::MAX` if it does not start here.
    pub(super) start_ns: i64,
    /// Time of the first end; `i64::MAX` if it does not end here.
    pub(super) end_ns: i64,
    /// True if one of our recordings has a start of it here.
    pub(super) has_our_start: bool,
    /// True if one of our recordings has a step or an end of it here.
    pub(super) has_our_rest: bool,
}

impl ThreadFlow {
    /// Returns the identity of the flow, which is the same on all of its threads.
    pub(super) fn flow(&self) -> (u64, u64, Style) {
        (self.key, self.id, self.style)
    }

    /// Returns it with times on the axis of the trace. `maps` contains the map of each clock.
    pub(super) fn on_axis(self, maps: &[TimeMap]) -> ThreadFlow {
        let map = maps.get(self.clock as usize);
        let on_axis = |ns: i64| match map {
            Some(map) if ns < i64::MAX => map.at(ns),
            _ => ns,
        };
        ThreadFlow {
            start_ns: on_axis(self.start_ns),
            end_ns: on_axis(self.end_ns),
            ..self
        }
    }

    /// Adds another part of the flow.
    pub(super) fn add(&mut self, other: &ThreadFlow) {
        self.start_ns = self.start_ns.min(other.start_ns);
        self.end_ns = self.end_ns.min(other.end_ns);
        self.has_our_start |= other.has_our_start;
        self.has_our_rest |= other.has_our_rest;
    }
}

/// Kinds of events that a flow of a single process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FlowPhases {
    /// Id of the flow in the trace, combined with its style.
    pub(super) key: u64,
    pub(super) style: Style,
    pub(super) has_start: bool,
    pub(super) has_other: bool,
}

impl FlowPhases {
    pub(super) fn add(&mut self, other: &FlowPhases) {
        self.has_start |= other.has_start;
        self.has_other |= other.has_other;
    }
}

/// An id of a request for which there was no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DroppedRequest {
    /// Hash that all ids of the request share.
    pub(super) family: u64,
    /// Position of any of its events.
    position: EventPosition,
    /// True if it has more than one event, so that there would be an arrow.
    pub(super) is_chain: bool,
}

impl DroppedRequest {
    pub(super) fn new(family: u64, bounds: &RequestBounds) -> DroppedRequest {
        DroppedRequest {
            family,
            position: bounds.first.position,
            is_chain: bounds.is_chain(),
        }
    }
}

impl Record for ThreadFlow {
    /// Combines the records about a flow on one thread.
    fn join(&mut self, next: &ThreadFlow) -> bool {
        let is_same = (self.flow(), self.thread) == (next.flow(), next.thread);
        if is_same {
            self.add(next);
        }
        is_same
    }
}

impl Record for FlowPhases {
    fn join(&mut self, next: &FlowPhases) -> bool {
        let is_same = self.key == next.key;
        if is_same {
            self.add(next);
        }
        is_same
    }
}

impl Record for DroppedRequest {
    /// Combines the ids of a request.
    fn join(&mut self, next: &DroppedRequest) -> bool {
        let is_same = self.family == next.family;
        if is_same {
            self.is_chain |= next.is_chain || self.position != next.position;
        }
        is_same
    }
}
