//! The request ids in the args of an event, as 64-bit keys that are the same in every process.

mod scanned;

use super::candidates::{Hits, IdKey};
use super::fast_args::{is_args, key_at, object, read};
use crate::event::line::Event;
use std::borrow::Cow;
use xxhash_rust::xxh3::xxh3_64;

/// Maximum number of ids that count in an event, and in all events of a chunk.
const MOST: usize = 1024;
const MOST_OF_CHUNK: usize = 1 << 17;

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
    inside: Vec<RequestId<'a>>,
    outside: Vec<RequestId<'a>>,
    /// Text of the only value that was read.
    value: Option<&'a [u8]>,
    /// Number of the cached list that the event has.
    listed: Option<usize>,
    /// Number of ids that the event may still have.
    left: usize,
    /// Number of ids that the chunk has so far.
    of_chunk: usize,
    /// Number of events with ids beyond the limits.
    pub(crate) cut: u64,
}

impl<'a> RequestIds<'a> {
    /// Resets the count of the chunk's ids.
    pub(crate) fn begin(&mut self) {
        self.of_chunk = 0;
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
            self.of_chunk += list.len;
            return Some(&mut list.known);
        }
        if !is_read || listed.is_some() {
            self.clear();
            self.read_args(event);
        }
        self.count();
        None
    }

    /// Drops ids beyond the limits.
    #[inline(always)]
    fn count(&mut self) {
        let mut len = self.inside.len() + self.outside.len();
        if self.left < len {
            self.cut += 1;
            len = self.left;
            self.inside.truncate(len);
            self.outside.truncate(len - self.inside.len());
        }
        self.of_chunk += len;
    }

    fn clear(&mut self) {
        self.inside.clear();
        self.outside.clear();
        (self.value, self.listed) = (None, None);
        self.left = MOST.min(MOST_OF_CHUNK - self.of_chunk);
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
                Some((known, value)) => self.value(known, line, value, lists)?,
                None => hit + 1,
            };
            match object(line, hit)? {
                0 => self.front()?,
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
    fn front(&self) -> Option<()> {
        let nothing = self.inside.is_empty() && self.outside.is_empty() && self.listed.is_none();
        nothing.then_some(())
    }

    /// Reads a value and returns its end, or `None` if the fast path does not support it.
    #[inline(always)]
    fn value<T>(
        &mut self,
        known: IdKey,
        line: &'a [u8],
        at: usize,
        lists: &Lists<'a, T>,
    ) -> Option<usize> {
        let is_first = self.inside.is_empty() && self.outside.is_empty();
        if line.get(at) == Some(&b'[')
            && known == IdKey::Inside
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
        let end = read(line, at, |text| self.push(known, RequestId::plain(text)))?;
        self.value = is_first.then_some(&line[at..end]);
        Some(end)
    }

    #[inline(always)]
    fn push(&mut self, known: IdKey, id: RequestId<'a>) {
        let ids = match known {
            IdKey::Inside => &mut self.inside,
            IdKey::Outside => &mut self.outside,
        };
        // One id more than the limit shows that there are too many.
        if ids.len() <= self.left {
            ids.push(id);
        }
    }

    /// Returns the ids that identify the event's requests: the engine's ids if there are any,
    /// otherwise the client's.
    pub(crate) fn of_requests(&self) -> &[RequestId<'a>] {
        if self.inside.is_empty() {
            &self.outside
        } else {
            &self.inside
        }
    }

    /// Returns the text of the list with all of the event's ids, and their number, if caching it is
    /// worthwhile.
    pub(crate) fn list(&self) -> Option<(&'a [u8], usize)> {
        let len = self.inside.len();
        let is_whole = len < self.left && self.outside.is_empty();
        let text = self
            .value
            .filter(|text| is_whole && text.starts_with(b"["))?;
        (len >= LEAST).then_some((text, len))
    }

    /// Returns the client's id of the request, if there is exactly one and the engine's ids are
    /// there as well.
    pub(crate) fn client(&self) -> Option<&RequestId<'a>> {
        match self.outside.as_slice() {
            [one] if !self.inside.is_empty() => Some(one),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;

/// Minimum length of a cached list. A shorter list is read as fast as it is found.
pub(crate) const LEAST: usize = 4;

/// A list as written in lines, with data about its ids.
pub(crate) struct List<'a, T> {
    text: &'a [u8],
    /// Number of ids, including repeated ones.
    pub(crate) len: usize,
    pub(crate) known: T,
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
    pub(crate) fn keep(&mut self, text: &'a [u8], len: usize, known: T) -> Option<T> {
        let list = List { text, len, known };
        let forgotten = self.lists[self.older].replace(list);
        self.older ^= 1;
        forgotten.map(|list| list.known)
    }

    /// Removes all lists and returns their data.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = T> {
        let lists = std::mem::take(&mut self.lists);
        lists.into_iter().flatten().map(|list| list.known)
    }
}
