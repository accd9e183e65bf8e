//! Where ids of requests may stand in a chunk.

use super::names::{BEFORE, NEEDLE};
use crate::event::scan::Part;
use memchr::memmem::Finder;
use std::sync::LazyLock;

static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(NEEDLE));

/// The places where the name of an arg with ids may be. One search of a whole part costs less than one of each line.
#[derive(Default)]
pub(crate) struct Hits<'a> {
    bytes: &'a [u8],
    parts: &'a [Part],
    start: usize,
    end: usize,
    next: usize,
}

impl<'a> Hits<'a> {
    /// Looks at parts of the bytes.
    pub(crate) fn new(bytes: &'a [u8], parts: &'a [Part]) -> Self {
        Hits {
            bytes,
            parts,
            next: usize::MAX,
            ..Hits::default()
        }
    }

    /// Looks at one line of the bytes; `None` if none stands in it.
    pub(crate) fn of_line(bytes: &'a [u8], line: &'a [u8]) -> Option<Self> {
        let start = offset(bytes, line);
        let mut hits = Hits::new(bytes, &[]);
        hits.enter(Part::of(start..start + line.len(), false));
        (hits.next != usize::MAX).then_some(hits)
    }

    /// Begins at a part of the bytes.
    pub(crate) fn enter(&mut self, part: Part) {
        (self.start, self.end) = (part.start, part.end);
        self.seek(part.start);
    }

    fn seek(&mut self, mut from: usize) {
        self.next = loop {
            let rest = &self.bytes[from.min(self.end)..self.end];
            let Some(at) = FINDER.find(rest) else {
                break usize::MAX;
            };
            if BEFORE.iter().any(|word| rest[..at].ends_with(word)) {
                break from + at;
            }
            from += at + 1;
        };
    }

    /// Whether one may stand before `end`, in lines of the part that was entered.
    #[inline(always)]
    pub(crate) fn before(&self, end: usize) -> bool {
        self.next < end
    }

    /// Whether one stands in a line. The lines of a part come in order.
    #[inline(always)]
    pub(crate) fn any_in(&mut self, start: usize, end: usize) -> bool {
        if start.wrapping_sub(self.start) >= self.end - self.start {
            self.enter_at(start);
        }
        self.before(end) && self.first_in(start, end).is_some()
    }

    fn enter_at(&mut self, start: usize) {
        let holds = |part: &&Part| (part.start..part.end).contains(&start);
        if let Some(part) = self.parts.iter().find(holds) {
            self.enter(*part);
        }
    }

    /// The first one in a stretch of lines.
    #[inline]
    pub(crate) fn first_in(&mut self, start: usize, end: usize) -> Option<usize> {
        if self.next < start {
            self.seek(start);
        }
        Some(self.next).filter(|hit| *hit < end)
    }
}

/// Where a line stands in the bytes that it is part of.
#[inline(always)]
pub(crate) fn offset(bytes: &[u8], line: &[u8]) -> usize {
    line.as_ptr().addr() - bytes.as_ptr().addr()
}
