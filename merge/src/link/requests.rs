//! A map of bounded size from request ids to the bounds of their events.
//!
//! If there are too many ids, the map drops requests whose hash is above a threshold, and halves
//! the threshold until the others fit. So the requests that remain do not depend on the order in
//! which chunks are read. The ids of a request share a hash
//! ([`family`](super::args::form::family)), so they are kept or dropped together.

use super::batch::{Batch, ClientAlias, IdHashes};
use super::mention::RequestBounds;
use super::records::DroppedRequest;
use crate::clock::time_map::TimeMap;
use std::collections::hash_map::Entry;
use std::mem::take;
use std::ops::Range;
use trace_store::hashed_map::HashedMap;

/// Memory in bytes for each id on each clock, for each shorter form of an id, and for each pair of
/// an engine's and a client's id, including the memory to resolve them. Flows that programs draw
/// are not in the map, so they are not counted: they use about 90 bytes more for each request.
/// Capacities are not counted either, because they depend on the order of insertion.
const ID_BYTES: usize = 224;
const FORM_BYTES: usize = 12;
const CLIENT_BYTES: usize = 64;

/// Slot number that means no slot.
const NONE: u32 = u32::MAX;

/// Ids of requests, by key.
#[derive(Default)]
pub(super) struct RequestMap {
    slots: HashedMap<u32>,
    ids: Vec<IdEntry>,
    forms: Vec<u64>,
    clients: HashedMap<ClientAlias>,
    bound_bytes: usize,
    /// Number of times the threshold was halved. A request is kept if at least this many leading
    /// bits of its hash are zero.
    halvings: u32,
}

/// An id in the events of one clock.
struct IdEntry {
    id: IdHashes,
    bounds: RequestBounds,
    clock: u32,
    /// False if an earlier slot has the same id on another clock.
    is_first: bool,
    /// Slot of the same id on another clock.
    next: u32,
    /// Range of its shorter forms, best first. Only the first slot of an id has them.
    forms: (u32, u32),
}

impl RequestMap {
    pub(super) fn new(bound_bytes: usize) -> RequestMap {
        RequestMap {
            bound_bytes,
            ..RequestMap::default()
        }
    }

    /// Adds the requests of a batch, whose times are of one clock. Calls `drop` with each id for
    /// which there is no room.
    pub(super) fn add(&mut self, found: &Batch, clock: u32, mut drop: impl FnMut(DroppedRequest)) {
        for request in found.requests.values() {
            let (start, end) = request.forms;
            if !self.keeps(request.id.family) {
                drop(DroppedRequest::new(request.id.family, &request.bounds));
                continue;
            }
            let forms = &found.forms[start..end];
            self.insert(request.id, clock, &request.bounds, forms);
            self.make_room(&mut drop);
        }
        for alias in found.clients.values() {
            if self.keeps(alias.family) {
                self.clients.insert(alias.key(), *alias);
                self.make_room(&mut drop);
            }
        }
    }

    fn keeps(&self, family: u64) -> bool {
        family.leading_zeros() >= self.halvings
    }

    fn insert(&mut self, id: IdHashes, clock: u32, bounds: &RequestBounds, forms: &[u64]) {
        let new = index(self.ids.len());
        let mut entry = IdEntry {
            id,
            bounds: *bounds,
            clock,
            is_first: true,
            next: NONE,
            forms: (0, 0),
        };
        match self.slots.entry(id.key) {
            Entry::Vacant(slot) => {
                slot.insert(new);
                let start = index(self.forms.len());
                self.forms.extend_from_slice(forms);
                entry.forms = (start, index(self.forms.len()));
            }
            Entry::Occupied(slot) => {
                let mut at = *slot.get() as usize;
                while self.ids[at].clock != clock && self.ids[at].next != NONE {
                    at = self.ids[at].next as usize;
                }
                if self.ids[at].clock == clock {
                    return self.ids[at].bounds.add(bounds);
                }
                self.ids[at].next = new;
                entry.is_first = false;
            }
        }
        self.ids.push(entry);
    }

    fn bytes(&self) -> usize {
        self.ids.len() * ID_BYTES
            + self.forms.len() * FORM_BYTES
            + self.clients.len() * CLIENT_BYTES
    }

    /// Halves the threshold until the ids below it fit.
    fn make_room(&mut self, drop: &mut impl FnMut(DroppedRequest)) {
        while self.bytes() > self.bound_bytes && self.halvings < u64::BITS {
            self.halvings += 1;
            let (ids, forms) = (take(&mut self.ids), take(&mut self.forms));
            self.slots.clear();
            for entry in ids {
                if self.keeps(entry.id.family) {
                    let forms = &forms[range(entry.forms)];
                    self.insert(entry.id, entry.clock, &entry.bounds, forms);
                } else {
                    drop(DroppedRequest::new(entry.id.family, &entry.bounds));
                }
            }
            let halvings = self.halvings;
            self.clients
                .retain(|_, alias| alias.family.leading_zeros() >= halvings);
        }
    }

    /// Moves all times to the axis of the trace. `maps` contains the map of each clock.
    pub(super) fn move_to_axis(&mut self, maps: &[TimeMap]) {
        // The next slot of an id is always a later one.
        for at in (0..self.ids.len()).rev() {
            let entry = &self.ids[at];
            let map = maps.get(entry.clock as usize);
            let mut bounds = map.map_or(entry.bounds, |map| entry.bounds.on_axis(map));
            if let Some(next) = self.ids.get(entry.next as usize) {
                bounds.add(&next.bounds);
            }
            self.ids[at].bounds = bounds;
        }
    }

    /// Returns the key and the first slot of each id, in the order of the slots, so that the
    /// processor prefetches memory.
    pub(super) fn keys(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let first = (0..).zip(&self.ids).filter(|(_, entry)| entry.is_first);
        first.map(|(slot, entry)| (entry.id.key, slot))
    }

    pub(super) fn has(&self, key: u64) -> bool {
        self.slots.contains_key(&key)
    }

    /// Returns the bounds of the id in a slot. They include all clocks once the times are on the
    /// axis.
    pub(super) fn bounds(&self, slot: u32) -> &RequestBounds {
        &self.ids[slot as usize].bounds
    }

    /// Returns the keys of the shorter forms of the id in a slot, best first.
    pub(super) fn forms(&self, slot: u32) -> &[u64] {
        &self.forms[range(self.ids[slot as usize].forms)]
    }

    pub(super) fn clients(&self) -> impl Iterator<Item = &ClientAlias> {
        self.clients.values()
    }

    /// Returns the number of slots, which begin at 0.
    pub(super) fn slots(&self) -> usize {
        self.ids.len()
    }

    /// Returns the slot of each id, and drops everything else.
    pub(super) fn into_slots(self) -> HashedMap<u32> {
        self.slots
    }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(NONE)
}

fn range((start, end): (u32, u32)) -> Range<usize> {
    start as usize..end as usize
}
