//! What the events of one chunk say.

use super::name_keys::NameKeys;
use super::request_moment::{RequestMoment, moments};
use super::slice_record::SliceRecord;
use crate::options::NamesBy;
use crate::table::row_kind::RowKind;
use std::cmp::Reverse;
use std::collections::HashMap;
use trace_merge::events::{PlacedEvent, TraceEvents};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Rows beside a thread are far fewer.
const ROW_BITS: u32 = 16;
/// Tells the rows of async spans from those of threads.
const ASYNC: u64 = 1 << 63;

/// What was found in a chunk.
#[derive(Default)]
pub(crate) struct ChunkFacts {
    pub(crate) keys: NameKeys,
    /// With the chunk's own numbers of keys.
    pub(crate) slices: Vec<SliceRecord>,
    /// Those on tracks, with their process in the place of the row, and 1 as the key of communication.
    pub(crate) on_tracks: Vec<SliceRecord>,
    /// The keys of spans without an end.
    pub(crate) unfinished: Vec<u32>,
    pub(crate) moments: Vec<RequestMoment>,
    /// The ids of the requests.
    pub(crate) requests: HashMap<u64, String>,
}

impl ChunkFacts {
    /// Takes an event.
    pub(crate) fn take(&mut self, events: &TraceEvents<'_>, event: &PlacedEvent<'_>, by: NamesBy) {
        let is_slice = matches!(event.phase, b'X' | b'B' | b'b');
        if !is_slice && !matches!(event.phase, b'i' | b'I' | b'n' | b'E' | b'e') {
            return;
        }
        let process = events.threads()[event.thread].process;
        let name = event.name();
        let requests = &mut self.requests;
        let moments_found = &mut self.moments;
        moments(event, &name, process, |moment, id| {
            requests.entry(moment.request).or_insert(id);
            moments_found.push(moment);
        });
        if !is_slice {
            return;
        }
        let of = (by == NamesBy::Process).then_some(process);
        let row_kind = if events.processes()[process].report.tracks {
            RowKind::Track
        } else if event.phase == b'b' || events.threads()[event.thread].is_lane {
            RowKind::Async
        } else {
            RowKind::Thread
        };
        let key = self.keys.number(of, row_kind, &event.category(), &name);
        let Some(end_ns) = event.end_ns().filter(|_| !event.is_unfinished()) else {
            self.unfinished.push(key);
            return;
        };
        let slice = SliceRecord {
            row: row(event, process),
            start_ns: event.ts_ns,
            end_ns: Reverse(end_ns.max(event.ts_ns)),
            key,
        };
        self.slices.push(slice);
        if row_kind == RowKind::Track {
            self.on_tracks.push(SliceRecord {
                row: process as u64,
                key: u32::from(self.keys.is_communication(key)),
                ..slice
            });
        }
    }
}

/// The row of a slice: that of its thread, or, of an async one, that of its id.
fn row(event: &PlacedEvent<'_>, process: usize) -> u64 {
    match event.phase {
        b'b' => {
            let seed = event.id().unwrap_or(0) ^ (process as u64).rotate_left(32);
            xxh3_64_with_seed(event.category().as_bytes(), seed) | ASYNC
        }
        _ => (event.thread as u64) << ROW_BITS | event.row as u64,
    }
}
