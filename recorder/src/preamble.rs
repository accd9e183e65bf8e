//! The first lines of a segment: with them it can be read when all older ones are gone.

use crate::bound::Removed;
use crate::clock;
use crate::format::{
    ANCHOR_RECORD, BlockAnchor, FRAGMENT_RECORD, FragmentHeader, REMOVED_RECORD, RemovedStreams,
};
use crate::loss::removed_line;
use crate::slot::GENERATION;

/// A metadata record, as [`Metadata`](crate::format::Metadata) without text of its own.
#[derive(serde::Serialize)]
struct Record<'a, A> {
    ph: &'a str,
    pid: u32,
    tid: u32,
    name: &'a str,
    args: A,
}

/// The args of a record that gives a name.
#[derive(serde::Serialize)]
pub(crate) struct Name<'a> {
    pub(crate) name: &'a str,
}

/// Makes a metadata line; an empty one where there is no memory for it.
pub(crate) fn metadata_line<A: serde::Serialize>(pid: u32, name: &str, args: A) -> Vec<u8> {
    metadata_line_of(pid, pid, name, args)
}

/// Makes a metadata line about a thread or a row.
pub(crate) fn metadata_line_of<A: serde::Serialize>(
    pid: u32,
    tid: u32,
    name: &str,
    args: A,
) -> Vec<u8> {
    let record = Record {
        ph: "M",
        pid,
        tid,
        name,
        args,
    };
    json_line(&record)
}

/// A value as a line of JSON; an empty one where there is no memory for it.
pub(crate) fn json_line<T: serde::Serialize>(value: &T) -> Vec<u8> {
    let mut line = Growing::default();
    let written = serde_json::to_writer(&mut line, value);
    line.add(b"\n");
    match written {
        Ok(()) => line.into_text().unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}

/// Text that remembers when there was no memory for more. It never answers with an error: that would be one more thing on the heap.
#[derive(Default)]
pub(crate) struct Growing {
    text: Vec<u8>,
    is_cut: bool,
}

impl Growing {
    pub(crate) fn add(&mut self, more: &[u8]) {
        self.is_cut = self.is_cut || self.text.try_reserve(more.len()).is_err();
        if !self.is_cut {
            self.text.extend_from_slice(more);
        }
    }

    /// The text; `None` if some of it is missing.
    pub(crate) fn into_text(self) -> Option<Vec<u8>> {
        (!self.is_cut).then_some(self.text)
    }
}

impl std::io::Write for Growing {
    fn write(&mut self, more: &[u8]) -> std::io::Result<usize> {
        self.add(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Makes an anchor line of now.
pub(crate) fn anchor_line(pid: u32) -> Vec<u8> {
    metadata_line(pid, ANCHOR_RECORD, clock::anchor())
}

/// Makes an anchor line of now for a block; `open_ns` is the least start of what may be open.
pub(crate) fn block_anchor_line(pid: u32, open_ns: u64, late_ns: u64) -> (Vec<u8>, u64) {
    let anchor = clock::anchor();
    let record = BlockAnchor {
        anchor,
        open_ns: Some(open_ns.min(anchor.monotonic_ns)),
        late_ns: Some(late_ns),
    };
    (
        metadata_line(pid, ANCHOR_RECORD, record),
        anchor.monotonic_ns,
    )
}

/// The first lines of segment `number`: header, anchor, the names in force, and what went with removed segments. Its last line declares
/// these removed, and they are removed after it: whenever a kill comes, a segment counts or is told as lost.
pub(crate) fn preamble(
    header: &FragmentHeader,
    number: u32,
    removed: &Removed,
    names: &[u8],
) -> Vec<u8> {
    let (pid, mut header) = (header.pid, header.clone());
    header.segment = number;
    let mut text = metadata_line(pid, FRAGMENT_RECORD, header);
    text.extend(anchor_line(pid));
    if removed.first > 0 {
        text.extend(metadata_line(pid, REMOVED_RECORD, streams(removed)));
    }
    text.extend_from_slice(names);
    if removed.first > 0 {
        let contents = &removed.contents;
        let (began_ns, ended_ns) = (contents.began_ns, contents.ended_ns);
        let line = removed_line(pid, began_ns, ended_ns, contents.events, removed.first);
        text.extend_from_slice(line.as_bytes());
    }
    text
}

fn streams(removed: &Removed) -> RemovedStreams {
    let reached = removed.contents.reached.iter().zip(0..);
    let streams = reached.filter(|(reached, _)| **reached > 0);
    RemovedStreams {
        first: removed.first,
        events: removed.contents.events,
        streams: streams
            .map(|(reached, slot)| (slot, GENERATION, *reached))
            .collect(),
    }
}
