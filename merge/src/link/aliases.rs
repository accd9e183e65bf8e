//! Finds the engine's ids for requests that the user selects by the client's id.

use super::args::form::{any_form, forms};
use crate::base::progress::Progress;
use crate::event::json::scan_object;
use crate::event::scan::{Part, line_start};

use super::args::candidates::{IdOwner, ids_in};
use crate::pass::chunk::Chunk;
use crate::pass::parallel::{BatchSize, map_chunks};
use crate::pass::source::Source;
use memchr::{memchr, memmem};
use std::collections::{BTreeSet, HashSet};

/// Prefix of the names of all args with a client's id.
const NEEDLE: &[u8] = b"\"external_";
/// Maximum number of searches. An engine's id may be the client's id of another engine.
const MAX_SEARCHES: usize = 8;
/// Maximum number of ids that are found.
const MAX_ALIASES: usize = 10_000;

/// Finds engine ids on events with one of the client ids in `selected`, or with a longer form of one.
/// Repeats the search with the ids it finds.
pub(crate) fn aliases(
    selected: &[String],
    sources: &[Source<'_>],
    chunks: &[Chunk],
    progress: &Progress,
) -> Vec<String> {
    let mut new = BTreeSet::from_iter(selected.iter().cloned());
    let mut all = new.clone();
    for _ in 0..MAX_SEARCHES {
        if new.is_empty() {
            break;
        }
        progress.expect_more(chunks.iter().map(Chunk::len).sum());
        let scan = |number: usize| {
            let chunk = &chunks[number];
            let mut found = NewIds(BTreeSet::new(), &all);
            let bytes = sources[chunk.source].bytes;
            for part in chunk.parts.iter() {
                find(bytes, *part, &new, &mut found);
            }
            progress.add(chunk.len(), 0);
            found.0
        };
        let mut found = BTreeSet::new();
        for mut chunk_ids in map_chunks(0..chunks.len(), BatchSize::Large, scan) {
            found.append(&mut chunk_ids);
            limit(&mut found);
        }
        new = found;
        all.extend(new.iter().cloned());
    }
    all.retain(|id| !selected.contains(id));
    limit(&mut all);
    all.into_iter().collect()
}

/// New ids, and all ids found so far.
struct NewIds<'a>(BTreeSet<String>, &'a BTreeSet<String>);

impl NewIds<'_> {
    fn add(&mut self, id: String) {
        if !self.1.contains(&id) {
            self.0.insert(id);
            limit(&mut self.0);
        }
    }
}

/// Keeps the ids that sort first, so that the result does not depend on how the work is divided.
fn limit(ids: &mut BTreeSet<String>) {
    while ids.len() > MAX_ALIASES {
        ids.pop_last();
    }
}

/// Searches the lines of a part that have a client's id.
fn find(bytes: &[u8], part: Part, wanted: &BTreeSet<String>, found: &mut NewIds<'_>) {
    let bytes = &bytes[part.start..part.end];
    let mut from = 0;
    while let Some(at) = memmem::find(&bytes[from..], NEEDLE) {
        let start = line_start(bytes, from + at, from);
        let end = memchr(b'\n', &bytes[from + at..]).map_or(bytes.len(), |len| from + at + len);
        find_in_line(&bytes[start..end], wanted, found);
        from = end;
    }
}

fn find_in_line(line: &[u8], wanted: &BTreeSet<String>, found: &mut NewIds<'_>) {
    let ids = scan_object(line).map(|fields| ids_in(fields.args.slice(line)));
    let (engine_ids, mut client_ids): (Vec<_>, Vec<_>) =
        (ids.into_iter().flatten()).partition(|(owner, _)| *owner == IdOwner::Engine);
    client_ids.sort_unstable();
    client_ids.dedup();
    // With several client ids, it is unknown which engine id belongs to which.
    if let [(_, client)] = client_ids.as_slice()
        && any_form(client, |form| wanted.contains(form))
    {
        engine_ids.into_iter().for_each(|(_, id)| found.add(id));
    }
}

/// Ids of the requests that the user selected.
#[derive(Debug)]
pub(crate) struct SelectedIds {
    ids: HashSet<String>,
    /// Shorter forms of the ids.
    shorter: HashSet<String>,
}

impl SelectedIds {
    pub(crate) fn new(ids: &[String]) -> SelectedIds {
        let mut shorter = HashSet::new();
        for id in ids {
            forms(id.as_bytes(), |form| {
                shorter.insert(String::from_utf8_lossy(form).into_owned());
            });
        }
        SelectedIds {
            ids: ids.iter().cloned().collect(),
            shorter,
        }
    }

    /// Returns the ids.
    pub(crate) fn ids(&self) -> &HashSet<String> {
        &self.ids
    }

    /// Returns true if `id` is one of these ids or a longer form of one.
    pub(crate) fn matches_longer(&self, id: &str) -> bool {
        any_form(id, |form| self.ids.contains(form))
    }

    /// Returns true if `id` is one of these ids, or a longer or shorter form of one.
    pub(crate) fn matches(&self, id: &str) -> bool {
        self.shorter.contains(id) || self.matches_longer(id)
    }
}
