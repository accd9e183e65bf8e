//! The requests and flows of one chunk, before they are added to the collector.

use super::args::form::{MAX_FORMS, family, forms};
use super::args::ids::RequestId;
use super::mention::{Mention, RequestBounds};
use super::program::first_spans::FirstSpan;
use super::records::{FlowPhases, ThreadFlow};
use std::collections::hash_map::Entry;
use trace_store::hashed_map::HashedMap;
use xxhash_rust::xxh3::xxh3_64;

/// Maximum number of ids in a batch. A chunk with more ids is added in parts.
const MAX_IDS: usize = 1 << 14;
const MIN_IDS: usize = 1 << 10;
/// Maximum number of ids in the batches of all workers, unless each then has fewer than [`MIN_IDS`].
const MAX_IDS_OF_ALL: usize = 1 << 16;

/// Returns the maximum number of ids in a batch for this number of workers.
pub(super) fn max_batch_ids(workers: usize) -> usize {
    (MAX_IDS_OF_ALL / workers.max(1)).clamp(MIN_IDS, MAX_IDS)
}

/// Requests and flows of a chunk, or of a part of it.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) requests: HashedMap<BatchId>,
    /// Keys of the shorter forms of these ids.
    pub(super) forms: Vec<u64>,
    /// Ids of an engine with the id of the client.
    pub(super) clients: HashedMap<ClientAlias>,
    /// Flows that other processes may continue, by flow and thread.
    pub(super) flows: HashedMap<ThreadFlow>,
    /// All other flows.
    pub(super) phases: HashedMap<FlowPhases>,
    /// First spans of requests in the last chunk.
    pub(super) first_spans: Vec<FirstSpan>,
}

/// An id and the bounds of its events.
pub(super) struct BatchId {
    pub(super) id: IdHashes,
    /// Range of its forms in [`Batch::forms`], best first. Empty if the collector has them already.
    pub(super) forms: (usize, usize),
    pub(super) bounds: RequestBounds,
}

/// Hashes of an id.
#[derive(Clone, Copy)]
pub(super) struct IdHashes {
    pub(super) key: u64,
    /// Hash that all ids of a request share, so that they are kept or dropped together.
    pub(super) family: u64,
}

/// An id of an engine, and the client's id of the same request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClientAlias {
    pub(super) id: u64,
    pub(super) client: u64,
    /// Family of the engine's id.
    pub(super) family: u64,
}

impl ClientAlias {
    /// Returns a hash of the pair.
    pub(super) fn key(&self) -> u64 {
        self.id ^ self.client.rotate_left(32)
    }
}

impl Batch {
    pub(super) fn is_full(&self, max: usize) -> bool {
        self.requests.len() >= max || self.phases.len() >= max || self.flows.len() >= max
    }

    pub(super) fn clear(&mut self) {
        self.requests.clear();
        self.forms.clear();
        self.clients.clear();
        self.flows.clear();
        self.phases.clear();
        self.first_spans.clear();
    }

    /// Adds an event with an id. The same id in different scopes means different requests.
    #[inline(always)]
    pub(super) fn add_event(&mut self, id: &RequestId<'_>, scope: u64, mention: &Mention) {
        let key = id.key ^ scope;
        match self.requests.entry(key) {
            Entry::Occupied(mut found) => found.get_mut().bounds.add_event(mention),
            Entry::Vacant(new) => {
                let text = id.text();
                let start = self.forms.len();
                add_forms(&text, scope, &mut self.forms);
                let family = xxh3_64(family(&text)) ^ scope;
                new.insert(BatchId {
                    id: IdHashes { key, family },
                    forms: (start, self.forms.len()),
                    bounds: RequestBounds::new(*mention),
                });
            }
        }
    }

    /// Returns the hashes of an id that was just added.
    pub(super) fn id_hashes(&self, key: u64) -> IdHashes {
        let found = self.requests.get(&key);
        found.map_or(IdHashes { key, family: key }, |found| found.id)
    }

    /// Adds the events of a list to one of its ids.
    pub(super) fn add_list_events(&mut self, id: IdHashes, bounds: &RequestBounds) {
        let found = self.requests.entry(id.key);
        let found = found.or_insert_with(|| BatchId {
            id,
            forms: (0, 0),
            bounds: RequestBounds::NONE,
        });
        found.bounds.add(bounds);
    }

    /// Records that an id of the engine and one of the client belong to the same request.
    pub(super) fn add_client(&mut self, id: &RequestId<'_>, client: &RequestId<'_>, scope: u64) {
        if id.key == client.key {
            return;
        }
        let mut alias = ClientAlias {
            id: id.key ^ scope,
            client: client.key ^ scope,
            family: 0,
        };
        if let Entry::Vacant(new) = self.clients.entry(alias.key()) {
            alias.family = xxh3_64(family(&id.text())) ^ scope;
            new.insert(alias);
        }
    }
}

/// Appends the keys of the shorter forms of an id. The shortest form comes first, because it is the
/// one that a client or proxy uses.
fn add_forms(id: &[u8], scope: u64, keys: &mut Vec<u64>) {
    let mut found = [(0, 0); MAX_FORMS];
    let mut len = 0;
    forms(id, |form| {
        found[len] = (form.len(), xxh3_64(form) ^ scope);
        len += 1;
    });
    let found = &mut found[..len];
    found.sort_unstable();
    keys.extend(found.iter().map(|(_, key)| key));
}
