//! Between the passes: ids that stand for one request become one, and of each request it is known where its flow begins and ends.
//!
//! Everything is done by sorting and by reading sorted records side by side, so that no number of requests needs more than a fixed part of memory.

use super::known::KnownKeys;
use super::row::{Alias, Key, Keyed, Link, Member, Reach, Request, Root};
use super::times::Times;
use crate::clock::Map;
use crate::sorter::{Log, Reader, Sorted, Sorter};
use std::io;
use std::path::PathBuf;

/// Most bytes of records of one kind in memory.
const BYTES: usize = 4 << 20;
const LINK_BYTES: usize = 8 << 20;
/// An id leads to its request over at most two to the power of so many others.
const ROUNDS: u32 = 3;

/// What the first pass has found.
pub(super) struct Found<'f> {
    pub(super) requests: Sorted<Request>,
    /// Ids that a flow of their recorder stands for.
    pub(super) linked: Sorted<Key>,
    /// In no order.
    pub(super) aliases: Sorted<Alias>,
    pub(super) known: KnownKeys,
    /// What brings the times of each clock to the trace's.
    pub(super) maps: Vec<Map>,
    pub(super) folders: &'f [PathBuf],
}

/// The links of all requests that have any.
pub(super) struct Resolved {
    /// Those of ids that stand for themselves alone, and the others.
    pub(super) links: [Sorted<Link>; 2],
    /// How many requests are linked.
    pub(super) requests: u64,
    /// When they were.
    pub(super) times: Times,
}

pub(super) fn resolve(mut found: Found<'_>) -> io::Result<Resolved> {
    let mut roots = found.roots()?;
    for _ in 0..ROUNDS {
        if roots.len() == 0 {
            break;
        }
        roots = found.shorter(&roots)?;
    }
    let links = Links {
        single: Log::new(found.folders, LINK_BYTES),
        grouped: Sorter::in_any(found.folders, BYTES),
        requests: 0,
        times: Times::default(),
    };
    match roots.len() {
        0 => found.single_links(links),
        _ => found.links(&roots, links),
    }
}

impl<'f> Found<'f> {
    fn sorter<R: Keyed>(&self) -> Sorter<'f, R> {
        Sorter::in_any(self.folders, BYTES)
    }

    /// For each id that stands for another the one it stands for: of those that there are the best. Forgets the aliases.
    fn roots(&mut self) -> io::Result<Sorted<Root>> {
        let all = std::mem::take(&mut self.aliases);
        let mut aliases = self.sorter();
        all.each(|alias| match self.known.may_have(alias.other) {
            true if alias.id != alias.other => aliases.push(alias),
            _ => Ok(()),
        })?;
        drop(all);
        let mut requests = Cursor::new(&self.requests)?;
        let mut linked = Cursor::new(&self.linked)?;
        let mut roots = self.sorter();
        aliases.finish()?.each(|Alias { other, id, reason }| {
            let is_there = requests.at(other)?.is_some() || linked.at(other)?.is_some();
            let root = other;
            match is_there {
                true => roots.push(Root { id, reason, root }),
                false => Ok(()),
            }
        })?;
        roots.finish()
    }

    /// Where an id leads to another that leads on, lets it lead there.
    fn shorter(&self, roots: &Sorted<Root>) -> io::Result<Sorted<Root>> {
        let mut by_root = self.sorter();
        roots.each(|Root { id, root, .. }| by_root.push(Member { root, id }))?;
        let mut shorter = self.sorter();
        let mut by_id = Cursor::new(roots)?;
        by_root.finish()?.each(|Member { root, id }| {
            let next = by_id.at(root)?.map_or(root, |next| next.root);
            // Two that stand for each other lead nowhere.
            let root = if next == id { root } else { next };
            let reason = 0;
            shorter.push(Root { id, reason, root })
        })?;
        shorter.finish()
    }

    /// Calls `found` with each id of the requests, on one time axis.
    fn each_request(&self, mut found: impl FnMut(Request) -> io::Result<()>) -> io::Result<()> {
        let mut whole: Option<Request> = None;
        self.requests.each(|part| {
            let part = self.placed(part);
            match &mut whole {
                Some(whole) if whole.key == part.key => {
                    whole.add(&part);
                    Ok(())
                }
                _ => whole.replace(part).map_or(Ok(()), &mut found),
            }
        })?;
        whole.map_or(Ok(()), found)
    }

    fn placed(&self, request: Request) -> Request {
        let clock = usize::try_from(request.clock).ok();
        let map = clock.and_then(|clock| self.maps.get(clock));
        Request {
            clock: 0,
            reach: map.map_or(request.reach, |map| request.reach.placed(map)),
            ..request
        }
    }

    /// The links where each id stands for itself alone.
    fn single_links(&self, mut links: Links<'_>) -> io::Result<Resolved> {
        let mut linked = Cursor::new(&self.linked)?;
        self.each_request(|mut request| {
            request.linked |= linked.at(request.key)?.is_some();
            links.add_single(&request)
        })?;
        links.finish()
    }

    /// The links: at once for ids that stand for themselves alone, for the others by the sum of all that stand for the same request.
    fn links(&self, roots: &Sorted<Root>, mut links: Links<'_>) -> io::Result<Resolved> {
        let (mut groups, mut members) = (self.sorter(), self.sorter());
        let heads = self.heads(roots)?;
        let mut leads = Leads::new(roots, &heads)?;
        let mut linked = Cursor::new(&self.linked)?;
        self.each_request(|mut request| {
            request.linked |= linked.at(request.key)?.is_some();
            let Some(root) = leads.of(request.key)? else {
                return links.add_single(&request);
            };
            let (id, key) = (request.key, root);
            members.push(Member { root, id })?;
            groups.push(Request { key, ..request })
        })?;
        // A recorder may link a request by an id that none of the events shows, or only events that need not be known.
        let mut leads = Leads::new(roots, &heads)?;
        self.linked.each(|Key(key)| {
            let group = leads.of(key)?.map(|root| Request {
                key: root,
                clock: 0,
                linked: true,
                reach: Reach::NONE,
            });
            group.map_or(Ok(()), |group| groups.push(group))
        })?;
        let (groups, members) = (groups.finish()?, members.finish()?);
        let mut members = Cursor::new(&members)?;
        groups.each(|group| links.add_group(&group, &mut members))?;
        links.finish()
    }

    /// The ids that others stand for.
    fn heads(&self, roots: &Sorted<Root>) -> io::Result<Sorted<Key>> {
        let mut heads = self.sorter();
        roots.each(|root| heads.push(Key(root.root)))?;
        heads.finish()
    }
}

/// Links while they are made.
struct Links<'f> {
    /// Those of ids that stand for themselves alone, which come in their order.
    single: Log<'f, Link>,
    grouped: Sorter<'f, Link>,
    requests: u64,
    times: Times,
}

impl Links<'_> {
    /// The link of a request if it is shown. Flows are numbered: short ids make short lines.
    ///
    /// An arrow needs two events, and a request that its recorder links has its arrows.
    fn link(&mut self, request: &Request) -> Option<Link> {
        let Reach { first, last } = request.reach;
        if request.linked || !request.reach.is_chain() {
            return None;
        }
        self.requests += 1;
        self.times.add((first.0, last.0));
        Some(Link {
            key: request.key,
            flow: self.requests,
            first: first.1,
            last: last.1,
        })
    }

    fn add_single(&mut self, request: &Request) -> io::Result<()> {
        let link = self.link(request);
        link.map_or(Ok(()), |link| self.single.push(link))
    }

    fn add_group(&mut self, group: &Request, members: &mut Cursor<'_, Member>) -> io::Result<()> {
        let link = self.link(group);
        while let Some(member) = members.at(group.key)? {
            members.step()?;
            if let Some(link) = link {
                let key = member.id;
                self.grouped.push(Link { key, ..link })?;
            }
        }
        Ok(())
    }

    fn finish(self) -> io::Result<Resolved> {
        Ok(Resolved {
            links: [self.single.finish()?, self.grouped.finish()?],
            requests: self.requests,
            times: self.times,
        })
    }
}

/// The request that an id stands for with others, asked for in the order of ids.
struct Leads<'a> {
    by_id: Cursor<'a, Root>,
    heads: Cursor<'a, Key>,
}

impl<'a> Leads<'a> {
    fn new(roots: &'a Sorted<Root>, heads: &'a Sorted<Key>) -> io::Result<Self> {
        let (by_id, heads) = (Cursor::new(roots)?, Cursor::new(heads)?);
        Ok(Leads { by_id, heads })
    }

    fn of(&mut self, key: u64) -> io::Result<Option<u64>> {
        if let Some(root) = self.by_id.at(key)? {
            return Ok(Some(root.root));
        }
        Ok(self.heads.at(key)?.map(|head| head.key()))
    }
}

/// Finds records by their key, asked for in order.
struct Cursor<'a, R> {
    reader: Reader<'a, R>,
    next: Option<R>,
}

impl<'a, R: Keyed> Cursor<'a, R> {
    fn new(records: &'a Sorted<R>) -> io::Result<Self> {
        let mut reader = Reader::new(records);
        let next = reader.next()?;
        Ok(Cursor { reader, next })
    }

    fn at(&mut self, key: u64) -> io::Result<Option<R>> {
        while self.next.is_some_and(|next| next.key() < key) {
            self.step()?;
        }
        Ok(self.next.filter(|next| next.key() == key))
    }

    fn step(&mut self) -> io::Result<()> {
        self.next = self.reader.next()?;
        Ok(())
    }
}
