//! Between the passes: ids that stand for one request become one, and of each request it is known where its flow begins and ends.
//!
//! Everything is done by sorting and by reading sorted records side by side, so that no number of requests needs more than a fixed part of memory. Ids are
//! shared out by their keys, and each worker reads its share.

use super::bloom::KnownKeys;
use super::buckets::Buckets;
use super::canonical_id::{Leads, Roots};
use super::cursor::Cursor;
use super::number::Numbers;
use super::partition::{Share, shares};
use super::program::flow_threads::flow_thread;
use super::program::flows::ProgramFlows;
use super::program::loose_flows::LooseCounts;
use super::records::{
    Alias, FlowThread, Link, OwnFlow, ProgramFlow, Request, RequestAlias, RequestKey, Root,
};
use super::table::Ordered;
use super::times::Times;
use crate::clock::time_map::TimeMap;
use crate::store::sorter::{Log, Record, Runs, Sorted, Sorter};
use rayon::prelude::*;
use std::io;
use std::path::PathBuf;

/// Most bytes of records of one kind in memory.
const BYTES: usize = 4 << 20;
const LINK_BYTES: usize = 8 << 20;
/// An id leads to its request over at most two to the power of so many others.
const ROUNDS: u32 = 3;

/// What the first pass has found.
pub(super) struct GatheredRequests<'f> {
    pub(super) requests: Runs<Request>,
    /// Flows of the program that may be requests'.
    pub(super) flows: Runs<ProgramFlow>,
    /// In no order.
    pub(super) aliases: Sorted<Alias>,
    pub(super) known: KnownKeys,
    /// What brings the times of each clock to the trace's.
    pub(super) maps: Vec<TimeMap>,
    pub(super) folders: &'f [PathBuf],
}

/// The links of all requests that have any.
#[derive(Default)]
pub(super) struct Resolved {
    /// Those of the ids of each share that stand for themselves alone.
    pub(super) single: Vec<Ordered>,
    /// The others.
    pub(super) grouped: Ordered,
    /// Number of links.
    pub(super) flows: u64,
    /// Number of linked requests without a flow of the program.
    pub(super) requests: u64,
    /// Number of linked requests with events before the program's flow.
    pub(super) leads: u64,
    /// When there are events of the merge's own flows.
    pub(super) times: Times,
    /// The threads of flows that the program draws on several.
    pub(super) threads: Sorted<FlowThread>,
    /// Flows that lead nowhere.
    pub(super) loose: LooseCounts,
}

/// What one share of the ids is.
struct ResolvedPart {
    numbers: Numbers,
    single: Sorted<Link>,
    buckets: Buckets,
    /// Ids that stand for a request with others: which request, and what they know of it.
    members: Sorted<RequestAlias>,
    groups: Sorted<Request>,
    /// Flows that the program draws for one of several ids, by the request.
    group_flows: Sorted<ProgramFlow>,
    threads: Sorted<FlowThread>,
    loose: LooseCounts,
}

pub(super) fn resolve(mut found: GatheredRequests<'_>) -> io::Result<Resolved> {
    let mut roots = found.roots()?;
    for _ in 0..ROUNDS {
        if roots.is_empty() {
            break;
        }
        roots = found.shorter(&roots)?;
    }
    let heads = found.heads(&roots)?;
    let leads = (!roots.is_empty()).then_some((&roots, &heads));
    let shares = shares(rayon::current_num_threads());
    let part = |share: &Share| found.part(*share, shares.len(), leads);
    let parts = shares.par_iter().map(part);
    let parts = parts.collect::<io::Result<Vec<_>>>()?;
    found.join(parts)
}

impl<'f> GatheredRequests<'f> {
    fn sorter<R: Record>(&self) -> Sorter<'f, R> {
        Sorter::in_any(self.folders, BYTES)
    }

    /// For each id that stands for another the one it stands for: of those that there are the best. Forgets the aliases.
    fn roots(&mut self) -> io::Result<Sorted<Root>> {
        let all = std::mem::take(&mut self.aliases);
        let mut requests = Cursor::new(self.requests.read_from(|_| false)?)?;
        let mut flows = Cursor::new(self.flows.read_from(|_| false)?)?;
        let mut roots = self.sorter();
        let aliases = self.of_known(&all)?;
        drop(all);
        let mut aliases = aliases.read_from(|_| false)?;
        while let Some(Alias { other, id, reason }) = aliases.next()? {
            let is_there = requests.at(other)?.is_some() || flows.at(other)?.is_some();
            let root = other;
            if is_there {
                roots.push(Root { id, reason, root })?;
            }
        }
        roots.finish()
    }

    /// The aliases that may lead to an id that is there.
    fn of_known(&self, all: &Sorted<Alias>) -> io::Result<Runs<Alias>> {
        let workers = shares(rayon::current_num_threads()).len();
        let share = |nth: u64| all.len() * nth / workers as u64;
        let known = |nth: u64| {
            let mut known = Sorter::in_any(self.folders, BYTES / workers);
            all.each_in(share(nth)..share(nth + 1), |alias| {
                match self.known.may_have(alias.other) {
                    true if alias.id != alias.other => known.push(alias),
                    _ => Ok(()),
                }
            })?;
            Ok(known.runs())
        };
        let known = (0..workers as u64).into_par_iter().map(known);
        known.collect::<io::Result<Vec<_>>>().map(Runs::of)
    }

    /// Where an id leads to another that leads on, lets it lead there.
    fn shorter(&self, roots: &Sorted<Root>) -> io::Result<Sorted<Root>> {
        let mut by_root = self.sorter();
        roots.each(|Root { id, root, .. }| by_root.push(RequestAlias { root, id }))?;
        let mut shorter = self.sorter();
        let mut by_id = Cursor::new(roots.read_from(|_| false)?)?;
        by_root.finish()?.each(|RequestAlias { root, id }| {
            let next = by_id.at(root)?.map_or(root, |next| next.root);
            // Two that stand for each other lead nowhere.
            let root = if next == id { root } else { next };
            let reason = 0;
            shorter.push(Root { id, reason, root })
        })?;
        shorter.finish()
    }

    /// The ids that others stand for.
    fn heads(&self, roots: &Sorted<Root>) -> io::Result<Sorted<RequestKey>> {
        let mut heads = self.sorter();
        roots.each(|root| heads.push(RequestKey(root.root)))?;
        heads.finish()
    }

    /// Calls `found` with each id of a share of the requests, on one time axis.
    fn each_request(
        &self,
        share: Share,
        mut found: impl FnMut(Request) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut whole: Option<Request> = None;
        let mut requests = self.requests.read_from(|one| one.key < share.first())?;
        while let Some(part) = requests.next()?.filter(|part| share.has(part.key)) {
            let part = self.placed(part);
            match &mut whole {
                Some(whole) if whole.key == part.key => whole.add(&part),
                _ => whole.replace(part).map_or(Ok(()), &mut found)?,
            }
        }
        whole.map_or(Ok(()), found)
    }

    fn map(&self, clock: u32) -> Option<&TimeMap> {
        self.maps.get(usize::try_from(clock).ok()?)
    }

    fn placed(&self, request: Request) -> Request {
        let map = self.map(request.clock);
        Request {
            clock: 0,
            reach: map.map_or(request.reach, |map| request.reach.placed(map)),
            ..request
        }
    }

    /// Looks at one of several shares of the ids.
    fn part(
        &self,
        share: Share,
        shares: usize,
        leads: Option<Roots<'_>>,
    ) -> io::Result<ResolvedPart> {
        let mut numbers = Numbers::default();
        let mut buckets = Buckets::new(self.requests.len() / shares as u64, share.bits());
        let mut single = Log::new(self.folders, LINK_BYTES / shares);
        let mut members = Sorter::in_any(self.folders, BYTES / shares);
        let mut groups = Sorter::in_any(self.folders, BYTES / shares);
        let mut threads = Sorter::in_any(self.folders, BYTES / shares);
        let flows = self.flows.read_from(|one| one.key < share.first())?;
        let mut flows = ProgramFlows::new(flows, share, &self.maps)?;
        let mut lead = Leads::new(leads, share)?;
        self.each_request(share, |request| {
            let Some(root) = lead.of(request.key)? else {
                let own = own_flow(&mut flows, request.key, &mut threads)?;
                let Some(link) = numbers.link(&request, own) else {
                    return Ok(());
                };
                buckets.count(link.key);
                return single.push(link);
            };
            let (id, key) = (request.key, root);
            members.push(RequestAlias { root, id })?;
            groups.push(Request { key, ..request })
        })?;
        let mut group_flows = Sorter::in_any(self.folders, BYTES / shares);
        if leads.is_some() {
            self.group_flows(share, Leads::new(leads, share)?, &mut group_flows)?;
        }
        buckets.finish();
        Ok(ResolvedPart {
            numbers,
            buckets,
            single: single.finish()?,
            members: members.finish()?,
            groups: groups.finish()?,
            group_flows: group_flows.finish()?,
            threads: threads.finish()?,
            loose: flows.finish()?,
        })
    }

    /// Finds the flows that the program draws for one of several ids of a request. Events need not show that id.
    fn group_flows(
        &self,
        share: Share,
        mut leads: Leads<'_>,
        group_flows: &mut Sorter<'_, ProgramFlow>,
    ) -> io::Result<()> {
        let mut flows = self.flows.read_from(|one| one.key < share.first())?;
        while let Some(flow) = flows.next()?.filter(|one| share.has(one.key)) {
            if let Some(root) = leads.of(flow.key)? {
                let flow = self.map(flow.clock).map_or(flow, |map| flow.placed(map));
                group_flows.push(ProgramFlow { key: root, ..flow })?;
            }
        }
        Ok(())
    }

    /// Brings the shares together: those of a request may be in different ones.
    fn join(&self, parts: Vec<ResolvedPart>) -> io::Result<Resolved> {
        let mut resolved = Resolved::default();
        let (mut members, mut groups, mut flows) = (Vec::new(), Vec::new(), Vec::new());
        let mut threads = self.sorter();
        for part in parts {
            resolved.single.push(Ordered {
                links: part.single,
                buckets: part.buckets,
                before: resolved.flows,
            });
            resolved.count(part.numbers);
            resolved.loose.add_all(&part.loose);
            part.threads.each(|thread| threads.push(thread))?;
            members.push(part.members);
            groups.push(part.groups);
            flows.push(part.group_flows);
        }
        let members = Runs::of_sorted(members);
        let mut members = Cursor::new(members.read_from(|_| false)?)?;
        let flows = Runs::of_sorted(flows);
        // Their times are on the axis already.
        let mut flows = ProgramFlows::new(flows.read_from(|_| false)?, Share::ALL, &[])?;
        let (mut links, mut numbers) = (self.sorter(), Numbers::default());
        let groups = Runs::of_sorted(groups);
        let mut groups = groups.read_from(|_| false)?;
        while let Some(group) = groups.next()? {
            let own = own_flow(&mut flows, group.key, &mut threads)?;
            let link = numbers.link(&group, own);
            while let Some(RequestAlias { id, .. }) = members.at(group.key)? {
                members.step()?;
                link.map_or(Ok(()), |link| links.push(Link { key: id, ..link }))?;
            }
        }
        let links = links.finish()?;
        let mut buckets = Buckets::new(links.len(), 0);
        links.each(|link| {
            buckets.count(link.key);
            Ok(())
        })?;
        buckets.finish();
        let before = resolved.flows;
        resolved.grouped = Ordered {
            links,
            buckets,
            before,
        };
        resolved.count(numbers);
        resolved.threads = threads.finish()?;
        Ok(resolved)
    }
}

/// Returns the flow that the program starts first for an id, and stores its threads if it has several. Ids are asked for in order.
fn own_flow(
    flows: &mut ProgramFlows<'_>,
    key: u64,
    threads: &mut Sorter<'_, FlowThread>,
) -> io::Result<Option<OwnFlow>> {
    let Some(drawn) = flows.of(key)? else {
        return Ok(None);
    };
    if drawn.flow.is_elsewhere {
        for thread in drawn.threads {
            threads.push(flow_thread(&drawn.flow, thread))?;
        }
    }
    Ok(Some(drawn.flow))
}

impl Resolved {
    fn count(&mut self, numbers: Numbers) {
        self.flows += numbers.flows;
        self.requests += numbers.requests;
        self.leads += numbers.leads;
        self.times.add_all(numbers.times);
    }
}
