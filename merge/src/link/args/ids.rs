//! The request ids in the args of an event, as 64-bit keys that are the same in every process.

mod scanned;

use super::candidates::{Hits, IdOwner};
use super::fast_args::{is_args, key_at, object_start, read_ids};
use crate::event::line::Event;
use std::borrow::Cow;
use xxhash_rust::xxh3::xxh3_64;

/// Maximum number of ids that count in an event, and in all events of a chunk.
const MAX_IDS: usize = 1024;
const MAX_CHUNK_IDS: usize = 1 << 17;

/// A request id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestId<'a> {
    pub(crate) key: u64,
    /// Text in the line, possibly with escapes.
    written: &'a [u8],
}

impl<'a> RequestId<'a> {
    #[inline(always)]
    fn plain(text: &'a [u8]) -> Self {
        RequestId {
            key: xxh3_64(text),
            written: text,
        }
    }

    /// Returns the decoded text.
    pub(crate) fn text(&self) -> Cow<'a, [u8]> {
        if memchr::memchr(b'\\', self.written).is_none() {
            return Cow::Borrowed(self.written);
        }
        let quoted = [b"\"", self.written, b"\""].concat();
        let text = serde_json::from_slice::<String>(&quoted);
        Cow::Owned(text.map(String::into_bytes).unwrap_or_default())
    }
}

/// Request ids of an event.
#[derive(Debug, Default)]
pub(crate) struct RequestIds<'a> {
    engine_ids: Vec<RequestId<'a>>,
    client_ids: Vec<RequestId<'a>>,
    /// Text of the only value that was read.
    value: Option<&'a [u8]>,
    /// Number of the cached list that the event has.
    listed: Option<usize>,
    /// Number of ids that the event may still have.
    left: usize,
    /// Number of ids that the chunk has so far.
    chunk_ids: usize,
    /// Number of events with ids beyond the limits.
    pub(crate) cut: u64,
}

impl<'a> RequestIds<'a> {
    /// Resets the count of the chunk's ids.
    pub(crate) fn begin_chunk(&mut self) {
        self.chunk_ids = 0;
    }

    /// Reads the ids of an event, and drops the previous ones. If they are one of the cached lists,
    /// it does not read them but returns the list's data. `start` is the offset of the event's line
    /// in the bytes that were searched for hits.
    #[inline]
    pub(crate) fn read<'l, T>(
        &mut self,
        event: &Event<'a>,
        start: usize,
        hits: &mut Hits<'_>,
        lists: &'l mut Lists<'a, T>,
    ) -> Option<&'l mut T> {
        self.clear();
        let is_read = self.read_hits(event, start, hits, lists).is_some();
        let listed = self.listed.filter(|_| is_read);
        let list = listed.and_then(|number| lists.get(number));
        if let Some(list) = list.filter(|list| list.len <= self.left) {
            self.chunk_ids += list.len;
            return Some(&mut list.data);
        }
        if !is_read || listed.is_some() {
            self.clear();
            self.read_args(event);
        }
        self.truncate();
        None
    }

    /// Drops ids beyond the limits.
    #[inline(always)]
    fn truncate(&mut self) {
        let mut len = self.engine_ids.len() + self.client_ids.len();
        if self.left < len {
            self.cut += 1;
            len = self.left;
            self.engine_ids.truncate(len);
            self.client_ids.truncate(len - self.engine_ids.len());
        }
        self.chunk_ids += len;
    }

    fn clear(&mut self) {
        self.engine_ids.clear();
        self.client_ids.clear();
        (self.value, self.listed) = (None, None);
        self.left = MAX_IDS.min(MAX_CHUNK_IDS - self.chunk_ids);
    }

    /// Reads the ids at the hits in a line as recorders write it. Returns `None` for any other
    /// line.
    #[inline]
    fn read_hits<T>(
        &mut self,
        event: &Event<'a>,
        start: usize,
        hits: &mut Hits<'_>,
        lists: &Lists<'a, T>,
    ) -> Option<()> {
        let (line, args) = (event.line, event.fields.args);
        let (mut from, mut last) = (0, None);
        while let Some(hit) = hits.first_in(start + from, start + line.len()) {
            let hit = hit - start;
            from = match key_at(line, hit)? {
                Some((owner, value)) => self.read_value(owner, line, value, lists)?,
                None => hit + 1,
            };
            match object_start(line, hit)? {
                0 => self.expect_none_yet()?,
                at if !args.is_some() || args.start == at => last = Some(at),
                _ => return None,
            }
        }
        match last {
            Some(brace) if !args.is_some() => is_args(line, brace, from).then_some(()),
            _ => Some(()),
        }
    }

    /// Returns `None` if ids were read before the args, because only the event's own members are
    /// there.
    fn expect_none_yet(&self) -> Option<()> {
        let nothing =
            self.engine_ids.is_empty() && self.client_ids.is_empty() && self.listed.is_none();
        nothing.then_some(())
    }

    /// Reads a value and returns its end, or `None` if the fast path does not support it.
    #[inline(always)]
    fn read_value<T>(
        &mut self,
        owner: IdOwner,
        line: &'a [u8],
        at: usize,
        lists: &Lists<'a, T>,
    ) -> Option<usize> {
        let is_first = self.engine_ids.is_empty() && self.client_ids.is_empty();
        if line.get(at) == Some(&b'[')
            && owner == IdOwner::Engine
            && is_first
            && let Some((number, len)) = lists.find(&line[at..])
        {
            self.listed = Some(number);
            return Some(at + len);
        }
        // The data of a list does not cover any other ids in the line.
        if self.listed.is_some() {
            return None;
        }
        let end = read_ids(line, at, |text| self.push(owner, RequestId::plain(text)))?;
        self.value = is_first.then_some(&line[at..end]);
        Some(end)
    }

    #[inline(always)]
    fn push(&mut self, owner: IdOwner, id: RequestId<'a>) {
        let ids = match owner {
            IdOwner::Engine => &mut self.engine_ids,
            IdOwner::Client => &mut self.client_ids,
        };
        // One id more than the limit shows that there are too many.
        if ids.len() <= self.left {
            ids.push(id);
        }
    }

    /// Returns the ids that identify the event's requests: the engine's ids if there are any,
    /// otherwise the client's.
    pub(crate) fn request_ids(&self) -> &[RequestId<'a>] {
        if self.engine_ids.is_empty() {
            &self.client_ids
        } else {
            &self.engine_ids
        }
    }

    /// Returns the text of the list with all of the event's ids, and their number, if caching it is
    /// worthwhile.
    pub(crate) fn list(&self) -> Option<(&'a [u8], usize)> {
        let len = self.engine_ids.len();
        let is_whole = len < self.left && self.client_ids.is_empty();
        let text = self
            .value
            .filter(|text| is_whole && text.starts_with(b"["))?;
        (len >= MIN_LIST).then_some((text, len))
    }

    /// Returns the client's id of the request, if there is exactly one and the engine's ids are
    /// there as well.
    pub(crate) fn only_client_id(&self) -> Option<&RequestId<'a>> {
        match self.client_ids.as_slice() {
            [one] if !self.engine_ids.is_empty() => Some(one),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;

/// Minimum length of a cached list. A shorter list is read as fast as it is found.
pub(crate) const MIN_LIST: usize = 4;

/// A list as written in lines, with data about its ids.
pub(crate) struct List<'a, T> {
    text: &'a [u8],
    /// Number of ids, including repeated ones.
    pub(crate) len: usize,
    pub(crate) data: T,
}

/// A cache of the last two lists.
pub(crate) struct Lists<'a, T> {
    lists: [Option<List<'a, T>>; 2],
    /// Index of the older list.
    older: usize,
}

impl<T> Default for Lists<'_, T> {
    fn default() -> Self {
        Lists {
            lists: [None, None],
            older: 0,
        }
    }
}

impl<'a, T> Lists<'a, T> {
    /// Returns the index of the list that the bytes begin with, and the length of its text.
    #[inline(always)]
    pub(crate) fn find(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        let begins = |list: &Option<List<'_, T>>| {
            let text = list.as_ref().map(|list| list.text);
            text.is_some_and(|text| bytes.starts_with(text))
        };
        let number = self.lists.iter().position(begins)?;
        let text = self.lists[number].as_ref().map(|list| list.text)?;
        Some((number, text.len()))
    }

    pub(crate) fn get(&mut self, number: usize) -> Option<&mut List<'a, T>> {
        self.lists.get_mut(number)?.as_mut()
    }

    /// Caches a list, and returns the data of the one that it replaces.
    pub(crate) fn insert(&mut self, text: &'a [u8], len: usize, data: T) -> Option<T> {
        let list = List { text, len, data };
        let replaced = self.lists[self.older].replace(list);
        self.older ^= 1;
        replaced.map(|list| list.data)
    }

    /// Removes all lists and returns their data.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> {
        let lists = std::mem::take(&mut self.lists);
        lists.into_iter().flatten().map(|list| list.data)
    }
}
