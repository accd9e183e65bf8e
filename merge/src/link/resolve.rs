//! Between the passes: finds the ids that mean the same request, and makes the link of each request.

use super::program::flow_threads::flow_thread;
use super::program::flows::DrawnFlows;
use super::program::loose_flows::LooseCounts;
use super::records::{DroppedRequest, OwnFlow, ProgramFlow, RequestReach};
use super::requests::RequestMap;
use super::table::LinkTable;
use super::times::Times;
use crate::clock::time_map::TimeMap;
use crate::link::number::Numbers;
use crate::store::sorter::Runs;
use rayon::slice::ParallelSliceMut;
use std::collections::hash_map::Entry;
use std::io;
use trace_store::hashed_map::{HashedMap, HashedSet};

/// The number of rounds in which chains of ids are shortened. Each halves them, so an id leads to its request over at most eight others.
const ROUNDS: u32 = 3;
/// The link of no request.
const NONE: u32 = u32::MAX;

/// What the first pass has found.
pub(super) struct Gathered<'a> {
    pub(super) requests: RequestMap,
    /// Flows of the program that may be requests'.
    pub(super) flows: Runs<ProgramFlow>,
    pub(super) dropped: Runs<DroppedRequest>,
    /// What brings the times of each clock to the trace's.
    pub(super) maps: &'a [TimeMap],
}

/// The links of all requests that have any.
#[derive(Default)]
pub(super) struct Resolved {
    pub(super) links: LinkTable,
    /// Number of linked requests without a flow of the program.
    pub(super) requests: u64,
    /// Number of linked requests with events before the program's flow.
    pub(super) leads: u64,
    /// Number of requests with at least two events that are not linked, because there was no room for them.
    pub(super) dropped: u64,
    /// The times of the events of the merge's own flows.
    pub(super) times: Times,
    /// The keys of the threads of flows that the program draws on several.
    pub(super) threads: HashedSet,
    /// Flows that lead nowhere.
    pub(super) loose: LooseCounts,
}

/// The flows that programs draw for the requests that are kept.
#[derive(Default)]
struct OwnFlows {
    /// The flow that starts first for each request, by the request's key.
    first: HashedMap<OwnFlow>,
    threads: HashedSet,
    loose: LooseCounts,
}

pub(super) fn resolve(found: Gathered<'_>) -> io::Result<Resolved> {
    let Gathered {
        mut requests,
        flows,
        dropped,
        maps,
    } = found;
    requests.place(maps);
    let drawn = flow_keys(&requests, &flows)?;
    let roots = Roots::new(&requests, &drawn);
    drop(drawn);
    let own = OwnFlows::read(DrawnFlows::new(flows.read_from(|_| false)?, maps)?, |key| {
        let root = roots.of(key);
        root.or_else(|| requests.has(key).then_some(key))
    })?;
    let mut resolved = link(requests, &roots, &own.first);
    resolved.dropped = count(&dropped)?;
    (resolved.threads, resolved.loose) = (own.threads, own.loose);
    Ok(resolved)
}

/// Counts the dropped requests between whose events there would be arrows.
fn count(dropped: &Runs<DroppedRequest>) -> io::Result<u64> {
    let (mut dropped, mut count) = (dropped.read_from(|_| false)?, 0);
    while let Some(request) = dropped.next()? {
        count += u64::from(request.is_chain());
    }
    Ok(count)
}

/// Returns the keys of flows that are drawn for a shorter form of an id or for a client's id, if no event has that form or id.
fn flow_keys(requests: &RequestMap, flows: &Runs<ProgramFlow>) -> io::Result<HashedSet> {
    let mut drawn = HashedSet::default();
    if flows.is_empty() {
        return Ok(drawn);
    }
    let slots = requests.keys().map(|(_, slot)| slot);
    let forms = slots.flat_map(|slot| requests.forms(slot));
    let clients = requests.clients().map(|alias| &alias.client);
    let others = forms.chain(clients).copied();
    let mut others: Vec<u64> = others.filter(|key| !requests.has(*key)).collect();
    others.par_sort_unstable();
    let mut flows = flows.read_from(|_| false)?;
    while let Some(flow) = flows.next()? {
        if others.binary_search(&flow.key).is_ok() {
            drawn.insert(flow.key);
        }
    }
    Ok(drawn)
}

/// The ids that mean the same request as others.
struct Roots {
    /// The other name of each id.
    of: HashedMap<u64>,
    /// The ids that are other names.
    heads: HashedSet,
}

impl Roots {
    /// Finds the best other name of each id. An event must have that name, or a flow be drawn for it.
    fn new(requests: &RequestMap, drawn: &HashedSet) -> Roots {
        let is_there = |key| requests.has(key) || drawn.contains(&key);
        let mut of: HashedMap<u64> = HashedMap::default();
        // The client's name of a request is better than a form.
        for alias in requests.clients() {
            if alias.id != alias.client && is_there(alias.client) {
                let root = of.entry(alias.id).or_insert(alias.client);
                *root = alias.client.min(*root);
            }
        }
        for (key, slot) in requests.keys() {
            if let Entry::Vacant(new) = of.entry(key) {
                let mut forms = requests.forms(slot).iter();
                let root = forms.find(|form| **form != key && is_there(**form));
                root.map(|root| new.insert(*root));
            }
        }
        for _ in 0..ROUNDS {
            if of.values().any(|root| of.contains_key(root)) {
                of = shorter(&of);
            }
        }
        let heads = of.values().copied().collect();
        Roots { of, heads }
    }

    /// Returns the key of the request of an id, if several ids mean this request.
    fn of(&self, key: u64) -> Option<u64> {
        let root = self.of.get(&key).copied();
        root.or_else(|| self.heads.contains(&key).then_some(key))
    }
}

/// Lets an id that leads to another one lead to what that leads to.
fn shorter(roots: &HashedMap<u64>) -> HashedMap<u64> {
    let shorter = |(id, root): (&u64, &u64)| {
        let next = roots.get(root).unwrap_or(root);
        // Two ids that are names of each other lead nowhere.
        (*id, if next == id { *root } else { *next })
    };
    roots.iter().map(shorter).collect()
}

impl OwnFlows {
    /// Reads all flows. `request` returns the request for which a flow is drawn, by the key of the flow.
    fn read(
        mut flows: DrawnFlows<'_>,
        request: impl Fn(u64) -> Option<u64>,
    ) -> io::Result<OwnFlows> {
        let mut own = OwnFlows::default();
        while let Some(drawn) = flows.next()? {
            own.loose.add(drawn.flow.style, drawn.starts, drawn.ends);
            let request = request(drawn.key);
            let Some(request) = request.filter(|_| drawn.flow.start_ns < i64::MAX) else {
                continue;
            };
            if drawn.flow.is_elsewhere {
                let keys = drawn.threads.iter();
                let keys = keys.map(|thread| flow_thread(&drawn.flow, *thread));
                own.threads.extend(keys);
            }
            let first = own.first.entry(request).or_insert(drawn.flow);
            let order = |flow: &OwnFlow| (flow.start_ns, flow.id, flow.style);
            if order(&drawn.flow) < order(first) {
                *first = drawn.flow;
            }
        }
        Ok(own)
    }
}

/// Makes the links. Requests with a single id are numbered first and those with several ids after them, both in the order of their keys.
fn link(requests: RequestMap, roots: &Roots, own: &HashedMap<OwnFlow>) -> Resolved {
    let keyed = |(key, slot)| {
        let root = roots.of(key);
        (root.is_some(), root.unwrap_or(key), slot)
    };
    let mut ids: Vec<(bool, u64, u32)> = requests.keys().map(keyed).collect();
    ids.par_sort_unstable();
    let (mut numbers, mut links) = (Numbers::default(), Vec::new());
    let mut link_of_slot = vec![NONE; requests.slots()];
    for ids in ids.chunk_by(|one, next| (one.0, one.1) == (next.0, next.1)) {
        let mut reach = RequestReach::NONE;
        ids.iter().for_each(|id| reach.add(requests.reach(id.2)));
        if let Some(link) = numbers.link(&reach, own.get(&ids[0].1).copied()) {
            let number = u32::try_from(links.len()).unwrap_or(NONE);
            ids.iter()
                .for_each(|id| link_of_slot[id.2 as usize] = number);
            links.push(link);
        }
    }
    drop(ids);
    let mut by_key = requests.into_slots();
    by_key.retain(|_, slot| {
        *slot = link_of_slot[*slot as usize];
        *slot != NONE
    });
    Resolved {
        links: LinkTable { by_key, links },
        requests: numbers.requests,
        leads: numbers.leads,
        times: numbers.times,
        ..Resolved::default()
    }
}
