//! Between the passes: finds the ids that mean the same request, and creates the link of each
//! request.

use super::mention::RequestBounds;
use super::program::styles::LooseCounts;
use super::records::ThreadFlow;
use super::requests::RequestMap;
use super::table::{LinkTable, ProgramFlow};
use crate::clock::time_map::TimeMap;
use rayon::slice::ParallelSliceMut;
use std::collections::hash_map::Entry;
use trace_store::hashed_map::{HashedMap, HashedSet};

/// Number of rounds in which chains of ids are shortened. Each round halves them, so an id finds
/// its request across at most eight others.
const MAX_SHORTENINGS: u32 = 3;
/// Link number that means no link.
const NONE: u32 = u32::MAX;

/// Order in which requests are numbered: requests with a single id first, then requests with
/// several ids, both by their keys.
type Order = (bool, u64);

/// Flows that programs draw for the requests that are kept.
#[derive(Default)]
struct ProgramFlows {
    /// The flow that starts first for each request that has any. A request has several entries if
    /// several of its ids have flows.
    by_request: Vec<(Order, ProgramFlow)>,
    /// Keys of the threads of flows that are drawn on several threads.
    threads: HashedSet,
}

/// Creates the links of all requests, and counts the flows of the program that lead nowhere. `maps`
/// bring the times of each clock to the trace's.
pub(super) fn resolve(
    mut requests: RequestMap,
    flows: &[ThreadFlow],
    maps: &[TimeMap],
    loose: &mut LooseCounts,
) -> LinkTable {
    requests.move_to_axis(maps);
    let requests_by_id = requests_by_id(&requests, &flow_keys(&requests, flows));
    let ids = ordered_ids(&requests, &requests_by_id);
    let mut single = ids.iter().map(|id| id.0).peekable();
    let mut program_flows = ProgramFlows::default();
    for parts in flows.chunk_by(|one, next| one.flow() == next.flow()) {
        let flow = merge_parts(parts, maps);
        loose.add(flow.style, flow.has_our_start, flow.has_our_rest);
        let request = requests_by_id.get(&flow.key).map(|key| (true, *key));
        let request = request.or_else(|| {
            // Flows are sorted by their keys, like the ids.
            let request = (false, flow.key);
            while single.next_if(|id| *id < request).is_some() {}
            single.peek().filter(|id| **id == request).copied()
        });
        if let Some(request) = request {
            program_flows.add(request, &flow, parts);
        }
    }
    build_table(requests, &ids, program_flows)
}

/// Returns the keys of flows that are drawn for a shorter form of an id or for a client's id, if no
/// event has that form or id.
fn flow_keys(requests: &RequestMap, flows: &[ThreadFlow]) -> HashedSet {
    if flows.is_empty() {
        return HashedSet::default();
    }
    let slots = requests.keys().map(|(_, slot)| slot);
    let forms = slots.flat_map(|slot| requests.forms(slot));
    let clients = requests.clients().map(|alias| &alias.client);
    let others = forms.chain(clients).copied();
    let mut others: Vec<u64> = others.filter(|key| !requests.has(*key)).collect();
    if others.is_empty() {
        return HashedSet::default();
    }
    others.par_sort_unstable();
    let keys = flows.iter().map(|flow| flow.key);
    keys.filter(|key| others.binary_search(key).is_ok())
        .collect()
}

/// Returns the request key of each id, for requests with several ids. The key is the best name of
/// the request that an event has or that a flow is drawn for.
fn requests_by_id(requests: &RequestMap, drawn: &HashedSet) -> HashedMap<u64> {
    let exists = |key| requests.has(key) || drawn.contains(&key);
    let mut requests_by_id: HashedMap<u64> = HashedMap::default();
    // The client's id of a request is better than a shorter form.
    for alias in requests.clients() {
        if alias.id != alias.client && exists(alias.client) {
            let request = requests_by_id.entry(alias.id).or_insert(alias.client);
            *request = alias.client.min(*request);
        }
    }
    for (key, slot) in requests.keys() {
        if let Entry::Vacant(new) = requests_by_id.entry(key) {
            let mut forms = requests.forms(slot).iter();
            let request = forms.find(|form| **form != key && exists(**form));
            request.map(|request| new.insert(*request));
        }
    }
    for _ in 0..MAX_SHORTENINGS {
        if requests_by_id
            .values()
            .any(|request| requests_by_id.contains_key(request))
        {
            requests_by_id = shorten_chains(&requests_by_id);
        }
    }
    let names: Vec<u64> = requests_by_id.values().copied().collect();
    for name in names {
        requests_by_id.entry(name).or_insert(name);
    }
    requests_by_id
}

/// Maps each id to the request of its request, which halves chains of ids.
fn shorten_chains(requests_by_id: &HashedMap<u64>) -> HashedMap<u64> {
    let shorter = |(id, request): (&u64, &u64)| {
        let next = requests_by_id.get(request).unwrap_or(request);
        // Two ids that are names of each other stay as they are.
        (*id, if next == id { *request } else { *next })
    };
    requests_by_id.iter().map(shorter).collect()
}

/// Combines the parts of a flow of the program. The result has the thread of its first start, and
/// times on the trace's axis.
fn merge_parts(parts: &[ThreadFlow], maps: &[TimeMap]) -> ThreadFlow {
    let mut whole = parts[0].on_axis(maps);
    for part in &parts[1..] {
        let part = part.on_axis(maps);
        if part.start_ns < whole.start_ns {
            whole.thread = part.thread;
        }
        whole.add(&part);
    }
    whole
}

impl ProgramFlows {
    /// Adds a flow that is drawn for a request, if it has a start. `parts` contains its threads.
    fn add(&mut self, request: Order, whole: &ThreadFlow, parts: &[ThreadFlow]) {
        if whole.start_ns == i64::MAX {
            return;
        }
        let flow = ProgramFlow {
            id: whole.id,
            style: whole.style,
            start_ns: whole.start_ns,
            end_ns: whole.end_ns,
            thread: whole.thread,
            has_prior_events: false,
            is_on_other_threads: parts.len() > 1,
        };
        if flow.is_on_other_threads {
            let keys = parts.iter().map(|part| flow.thread_key(part.thread));
            self.threads.extend(keys);
        }
        match self.by_request.last_mut() {
            Some((last, first)) if *last == request => {
                if flow.order() < first.order() {
                    *first = flow;
                }
            }
            _ => self.by_request.push((request, flow)),
        }
    }
}

/// Returns the ids in the order in which their requests are numbered, with their slots.
fn ordered_ids(requests: &RequestMap, requests_by_id: &HashedMap<u64>) -> Vec<(Order, u32)> {
    let ordered = |(key, slot)| match requests_by_id.get(&key) {
        Some(request) => ((true, *request), slot),
        None => ((false, key), slot),
    };
    let mut ids: Vec<_> = requests.keys().map(ordered).collect();
    ids.par_sort_unstable();
    ids
}

/// Creates the links.
fn build_table(
    requests: RequestMap,
    ids: &[(Order, u32)],
    program_flows: ProgramFlows,
) -> LinkTable {
    let mut flows = program_flows.by_request;
    flows.par_sort_unstable_by_key(|(request, flow)| (*request, flow.order()));
    let mut flows = flows.into_iter().peekable();
    let mut table = LinkTable {
        threads: program_flows.threads,
        link_of_slot: vec![NONE; requests.slots()],
        ..LinkTable::default()
    };
    for ids in ids.chunk_by(|one, next| one.0 == next.0) {
        let request = ids[0].0;
        while flows.next_if(|flow| flow.0 < request).is_some() {}
        let first = flows.next_if(|flow| flow.0 == request);
        let mut bounds = RequestBounds::NONE;
        ids.iter().for_each(|id| bounds.add(requests.bounds(id.1)));
        let number = u32::try_from(table.links.len()).unwrap_or(NONE);
        if table.add(&bounds, first.map(|(_, flow)| flow)) {
            ids.iter()
                .for_each(|id| table.link_of_slot[id.1 as usize] = number);
        }
    }
    table.slots = requests.into_slots();
    table
}
