//! The ids of requests that an event carries in its args, as keys: 64 bits that stand for a text in every process.

mod scanned;

use super::candidates::{Hits, IdKey};
use super::fast_args::{is_args, key_at, object, read};
use crate::event::line::Event;
use std::borrow::Cow;
use xxhash_rust::xxh3::xxh3_64;

/// Most ids of an event that count, and of all events of a chunk.
const MOST: usize = 1024;
const MOST_OF_CHUNK: usize = 1 << 17;

/// One id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestId<'a> {
    pub(crate) key: u64,
    /// As it stands in the line.
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

    /// What the line means.
    pub(crate) fn text(&self) -> Cow<'a, [u8]> {
        if memchr::memchr(b'\\', self.written).is_none() {
            return Cow::Borrowed(self.written);
        }
        let quoted = [b"\"", self.written, b"\""].concat();
        let text = serde_json::from_slice::<String>(&quoted);
        Cow::Owned(text.map(String::into_bytes).unwrap_or_default())
    }
}

/// The ids of an event.
#[derive(Debug, Default)]
pub(crate) struct RequestIds<'a> {
    inside: Vec<RequestId<'a>>,
    outside: Vec<RequestId<'a>>,
    /// The only value that was read.
    value: Option<&'a [u8]>,
    /// Which known list that is.
    listed: Option<usize>,
    /// Number of ids that the event may still have.
    left: usize,
    /// Number of ids that the chunk has so far.
    of_chunk: usize,
    /// Events of which not all ids count.
    pub(crate) cut: u64,
}

impl<'a> RequestIds<'a> {
    /// Counts anew those of a chunk.
    pub(crate) fn begin(&mut self) {
        self.of_chunk = 0;
    }

    /// Reads the ids of an event in place of the previous ones. If they are one of the known lists, it does not read them and returns what is known of that list.
    /// `start` is the offset of the event's line in the bytes that were searched for hits.
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

    /// Leaves no more of them than count.
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

    /// Reads the ids at the hits in a line as recorders write it. Returns `None` for any other line.
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

    /// Whether nothing was read before the args, where only names are.
    fn front(&self) -> Option<()> {
        let nothing = self.inside.is_empty() && self.outside.is_empty() && self.listed.is_none();
        nothing.then_some(())
    }

    /// Reads a value, and tells where it ends; `None` if that is not of a quick kind.
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
        // Of what else the line has, the list says nothing.
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
        // One more than counts tells that there are more.
        if ids.len() <= self.left {
            ids.push(id);
        }
    }

    /// The ids that say which requests the event belongs to: those that the engine's processes know, where there are any.
    pub(crate) fn of_requests(&self) -> &[RequestId<'a>] {
        if self.inside.is_empty() {
            &self.outside
        } else {
            &self.inside
        }
    }

    /// The text of the list that is all there is, and how many ids it has, if it is worth to be known again.
    pub(crate) fn list(&self) -> Option<(&'a [u8], usize)> {
        let len = self.inside.len();
        let is_whole = len < self.left && self.outside.is_empty();
        let text = self
            .value
            .filter(|text| is_whole && text.starts_with(b"["))?;
        (len >= LEAST).then_some((text, len))
    }

    /// The one id by which the client knows the request, beside those that the engine knows.
    pub(crate) fn client(&self) -> Option<&RequestId<'a>> {
        match self.outside.as_slice() {
            [one] if !self.inside.is_empty() => Some(one),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;

/// A list of fewer ids is read as fast as it is found again.
pub(crate) const LEAST: usize = 4;

/// List as written in lines, with data about its ids.
pub(crate) struct List<'a, T> {
    text: &'a [u8],
    /// Number of ids, including repeated ones.
    pub(crate) len: usize,
    pub(crate) known: T,
}

/// The last two lists.
pub(crate) struct Lists<'a, T> {
    lists: [Option<List<'a, T>>; 2],
    /// Which of the two is the older one.
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
    /// Which one of them the bytes begin with, and how long its text is.
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

    /// Keeps a list, and gives the one that is forgotten for it.
    pub(crate) fn keep(&mut self, text: &'a [u8], len: usize, known: T) -> Option<T> {
        let list = List { text, len, known };
        let forgotten = self.lists[self.older].replace(list);
        self.older ^= 1;
        forgotten.map(|list| list.known)
    }

    /// Forgets them all.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = T> {
        let lists = std::mem::take(&mut self.lists);
        lists.into_iter().flatten().map(|list| list.known)
    }
}
