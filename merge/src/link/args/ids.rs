//! The ids of requests that an event carries in its args, as keys: 64 bits that stand for a text in every process.

mod scanned;

use super::candidates::Hits;
use super::fast_args::{Inside, is_args, key_at, object, read};
use super::list_cache::{LEAST, Lists};
use super::names::IdKey;
use crate::event::json::Span;
use std::borrow::Cow;
use xxhash_rust::xxh3::xxh3_64;

/// Most ids of an event that count, and of all events of a chunk.
const MOST: usize = 1024;
const MOST_OF_CHUNK: usize = 1 << 17;

/// The line of an event that may carry ids.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdLine<'a> {
    pub(crate) text: &'a [u8],
    /// Where it stands in the bytes that were searched.
    pub(crate) start: usize,
    /// Where its args stand, if that is known.
    pub(crate) args: Span,
    /// Whether it is in the order of the format, in which no other object than the args ends with the line.
    pub(crate) canonical: bool,
}

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
#[derive(Debug)]
pub(crate) struct RequestIds<'a> {
    inside: Vec<RequestId<'a>>,
    outside: Vec<RequestId<'a>>,
    /// The only value that was read.
    value: Option<&'a [u8]>,
    /// Which known list that is.
    listed: Option<usize>,
    /// How many more of the event count, and of the chunk.
    left: usize,
    left_of_chunk: usize,
    /// Events of which not all ids count.
    pub(crate) cut: u64,
}

impl Default for RequestIds<'_> {
    fn default() -> Self {
        RequestIds {
            inside: Vec::new(),
            outside: Vec::new(),
            value: None,
            listed: None,
            left: 0,
            left_of_chunk: MOST_OF_CHUNK,
            cut: 0,
        }
    }
}

impl<'a> RequestIds<'a> {
    /// Counts anew those of a chunk.
    pub(crate) fn begin(&mut self) {
        self.left_of_chunk = MOST_OF_CHUNK;
    }

    /// Reads those of an event, which take the place of what was there. If they are one of the known lists, only tells which.
    #[inline]
    pub(crate) fn read<T>(
        &mut self,
        line: IdLine<'a>,
        hits: &mut Hits<'_>,
        lists: &mut Lists<'a, T>,
    ) -> Option<usize> {
        self.clear();
        let read = self.read_hits(line, hits, lists);
        if read.is_none() || self.listed.is_some() {
            return self.otherwise(line, read, lists);
        }
        self.count();
        None
    }

    /// What is a known list, or can only be scanned.
    fn otherwise<T>(
        &mut self,
        line: IdLine<'a>,
        read: Option<()>,
        lists: &mut Lists<'a, T>,
    ) -> Option<usize> {
        if let Some(number) = self.listed.filter(|_| read.is_some())
            && let Some(list) = lists.get(number).filter(|list| list.len <= self.left)
        {
            self.left_of_chunk -= list.len;
            return Some(number);
        }
        self.clear();
        self.read_args(line);
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
        self.left_of_chunk -= len;
    }

    fn clear(&mut self) {
        self.inside.clear();
        self.outside.clear();
        (self.value, self.listed) = (None, None);
        self.left = MOST.min(self.left_of_chunk);
    }

    /// Reads them at the hits, in a line as recorders write it; `None` where it is any other.
    #[inline]
    fn read_hits<T>(
        &mut self,
        line: IdLine<'a>,
        hits: &mut Hits<'_>,
        lists: &Lists<'a, T>,
    ) -> Option<()> {
        let IdLine {
            text, start, args, ..
        } = line;
        let (mut from, mut hit) = (0, hits.first_in(start, start + text.len()));
        let mut last = None;
        while let Some(place) = hit {
            let place = place - start;
            from = match key_at(text, place)? {
                Some((known, value)) => self.value(known, text, value, lists)?,
                None => place + 1,
            };
            hit = hits.first_in(start + from, start + text.len());
            if last.is_none() && hit.is_none() && line.canonical && text[from..] == *b"}}" {
                return Some(());
            }
            match object(text, place)? {
                Inside::Front => self.front()?,
                Inside::Object(at) if !args.is_some() || args.start == at => last = Some(at),
                Inside::Object(_) => return None,
            }
        }
        match last {
            Some(brace) if !args.is_some() => is_args(text, brace, from).then_some(()),
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
