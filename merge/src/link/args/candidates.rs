//! Possible positions of request ids in a chunk.

use crate::event::mend::from_slice;
use crate::event::scan::Part;
use memchr::memmem::Finder;
use serde_json::{Map, Value};
use std::sync::LazyLock;

static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(NEEDLE));

/// Positions where the name of an arg with ids may be. One search of a whole part costs less than
/// one search for each line.
#[derive(Default)]
pub(crate) struct Hits<'a> {
    bytes: &'a [u8],
    parts: &'a [Part],
    start: usize,
    end: usize,
    next: usize,
}

impl<'a> Hits<'a> {
    /// Creates a search in parts of the bytes.
    pub(crate) fn new(bytes: &'a [u8], parts: &'a [Part]) -> Self {
        Hits {
            bytes,
            parts,
            next: usize::MAX,
            ..Hits::default()
        }
    }

    /// Searches one line of the bytes. Returns `None` if it has no candidate.
    pub(crate) fn in_line(bytes: &'a [u8], line: &'a [u8]) -> Option<Self> {
        let start = offset(bytes, line);
        let mut hits = Hits::new(bytes, &[]);
        hits.enter(Part::from_range(start..start + line.len(), false));
        (hits.next != usize::MAX).then_some(hits)
    }

    /// Starts the search at the beginning of a part.
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
            if BEFORE.iter().any(|prefix| rest[..at].ends_with(prefix)) {
                break from + at;
            }
            from += at + 1;
        };
    }

    /// Returns true if a candidate may be before `end`, in lines of the current part.
    #[inline(always)]
    pub(crate) fn before(&self, end: usize) -> bool {
        self.next < end
    }

    /// Returns true if there is a candidate in a line. The lines of a part must be queried in
    /// order.
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

    /// Returns the first candidate in a range of lines.
    #[inline]
    pub(crate) fn first_in(&mut self, start: usize, end: usize) -> Option<usize> {
        if self.next < start {
            self.seek(start);
        }
        Some(self.next).filter(|hit| *hit < end)
    }
}

/// Returns the offset of a line in the bytes that contain it.
#[inline(always)]
pub(crate) fn offset(bytes: &[u8], line: &[u8]) -> usize {
    line.as_ptr().addr() - bytes.as_ptr().addr()
}

/// Party that assigned an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IdOwner {
    /// The processes of the engine.
    Engine,
    /// The client.
    Client,
}

/// Text that every name of an id contains, preceded by one of `BEFORE`.
pub(crate) const NEEDLE: &[u8] = b"_id";
pub(crate) const BEFORE: [&[u8]; 3] = [b"request", b"ternal", b"_req"];

/// Returns the party that assigned the ids in an arg of this name, or `None` if it is not known to
/// contain ids.
pub(crate) fn id_owner(name: &[u8]) -> Option<IdOwner> {
    let one = name.strip_suffix(b"s").unwrap_or(name);
    match one {
        b"request_id" | b"internal_id" | b"internal_request_id" | b"internal_req_id" => {
            Some(IdOwner::Engine)
        }
        b"external_id" | b"external_request_id" | b"external_req_id" => Some(IdOwner::Client),
        _ => None,
    }
}

/// Returns the ids in the args of an event, each with the party that assigned it. An id is a text,
/// or a number as it is written.
pub(crate) fn ids_in(args: &[u8]) -> Vec<(IdOwner, String)> {
    let args: Map<String, Value> = from_slice(args).unwrap_or_default();
    let mut found = Vec::new();
    for (name, value) in args {
        let Some(owner) = id_owner(name.as_bytes()) else {
            continue;
        };
        let values = match value {
            Value::Array(values) => values,
            value => vec![value],
        };
        let id = |value| match value {
            Value::String(id) => Some((owner, id)),
            Value::Number(id) => Some((owner, id.to_string())),
            _ => None,
        };
        found.extend(values.into_iter().filter_map(id));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_searched_for() {
        let names = "request_id internal_id internal_request_id internal_req_id external_id external_request_id external_req_id";
        for name in names.split(' ') {
            let at = name.rfind("_id").unwrap();
            let before = &name.as_bytes()[..at];
            assert!(
                BEFORE.iter().any(|prefix| before.ends_with(prefix)),
                "{name}"
            );
            let (one, list) = (
                id_owner(name.as_bytes()),
                id_owner(format!("{name}s").as_bytes()),
            );
            assert!(one.is_some() && one == list, "{name}");
        }
        for other in ["id", "req_id", "parent_request_id", "request_idss", "s", ""] {
            assert_eq!(id_owner(other.as_bytes()), None, "{other}");
        }
    }
}
