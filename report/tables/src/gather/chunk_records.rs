//! Collects data for the tables from the events of one chunk.

use super::args::ArgReader;
use super::entry::write_entry;
use super::event_record::{EventKind, EventRecord, NO_END, NO_LANE, Sample};
use super::lanes::Lanes;
use super::texts::{TextPair, Texts, UNNUMBERED};
use memchr::memmem;
use parquet::data_type::ByteArray;
use sa_format::Phase;
use trace_merge::events::{PlacedEvent, TraceThread};
use trace_merge::json::{Members, last_member};
use trace_store::hashed_map::HashedMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Name that Perfetto gives to slices without a name.
const NO_NAME: &str = "[No name]";
/// Bit in the key of an arrow. It is set for an arrow with a `bind_id`, and not for one with an id, a category and a name.
const BOUND: u64 = 1;

/// Maximum size of entries for which their memory is reused for the next chunk.
const MAX_REUSED_BYTES: usize = 4 << 20;
/// Maximum number of cached texts, or of args of an event, for which their memory is reused for the next chunk.
const MAX_REUSED: usize = 16 << 10;

/// Data that all chunks share.
pub(crate) struct ChunkContext<'a> {
    pub(crate) threads: &'a [TraceThread],
    pub(crate) lanes: &'a Lanes,
    /// Categories and names of slices.
    pub(crate) names: &'a Texts,
    /// Keys of args.
    pub(crate) keys: &'a Texts,
    /// Names of counters.
    pub(crate) counters: &'a Texts,
}

/// Records of one chunk.
#[derive(Default)]
pub(crate) struct ChunkRecords {
    pub(crate) events: Vec<EventRecord>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) entries: Vec<u8>,
    names: HashedMap<u32>,
    counters: HashedMap<u32>,
    args: ArgReader,
}

impl ChunkRecords {
    /// Removes all records, so that the memory can be reused for the next chunk. Allocating new memory would take as long as filling it. Returns `None` if there
    /// is too much memory to keep.
    pub(crate) fn emptied(mut self) -> Option<ChunkRecords> {
        let sizes = [self.names.len(), self.counters.len(), self.args.capacity()];
        let is_too_large = self.entries.capacity() > MAX_REUSED_BYTES
            || sizes.into_iter().any(|size| size > MAX_REUSED);
        self.events.clear();
        self.samples.clear();
        self.entries.clear();
        (!is_too_large).then_some(self)
    }

    /// Adds the records of an event.
    pub(crate) fn add(&mut self, context: &ChunkContext<'_>, event: &PlacedEvent<'_>) {
        let kind = match event.phase {
            Phase::Complete => EventKind::Span,
            Phase::Begin => EventKind::Begin,
            Phase::End => EventKind::End,
            Phase::AsyncBegin => EventKind::AsyncBegin,
            Phase::AsyncInstant => EventKind::AsyncInstant,
            Phase::AsyncEnd => EventKind::AsyncEnd,
            Phase::Instant | Phase::LegacyInstant | Phase::Mark => instant(event),
            Phase::FlowStart | Phase::FlowStep | Phase::FlowEnd => {
                return self.add_arrow(context, event);
            }
            Phase::Counter => return self.add_samples(context, event),
            _ => return,
        };
        match kind {
            EventKind::End | EventKind::AsyncEnd => self.add_end(context, event, kind),
            _ => self.add_slice(context, event, kind),
        }
    }

    fn add_slice(&mut self, context: &ChunkContext<'_>, event: &PlacedEvent<'_>, kind: EventKind) {
        let record = EventRecord {
            dur_ns: match kind {
                EventKind::Span => event.dur_ns,
                EventKind::Begin | EventKind::AsyncBegin => {
                    let dur_ns = |end_ns: i64| end_ns.saturating_sub(event.ts_ns).max(0);
                    event.other_ns.map_or(NO_END, dur_ns)
                }
                _ => 0,
            },
            ..self.record(context, event, kind)
        };
        let [name, category, args] = event.what();
        let hash = hash_of(0, &[category, name]);
        let pair = || {
            let (category, name) = (event.category(), event.name());
            let name = if name.is_empty() { NO_NAME } else { &*name };
            let has_category = !category.is_empty();
            TextPair(
                has_category.then(|| ByteArray::from(&*category)),
                ByteArray::from(name),
            )
        };
        let numbers = self.names.entry(hash);
        let number = *numbers.or_insert_with(|| context.names.number(hash, pair));
        let inline = (number == UNNUMBERED).then(pair);
        let id = is_async(kind).then(|| async_id(event));
        let entry = write_entry(&mut self.entries, event.cpu_ns(), id, inline.as_ref());
        self.args
            .write(args, context.keys, entry, &mut self.entries);
        self.events.push(EventRecord {
            name: number,
            ..record
        });
        self.add_bound_arrow(&record, event);
    }

    fn add_end(&mut self, context: &ChunkContext<'_>, event: &PlacedEvent<'_>, kind: EventKind) {
        let since = |begin_ns: i64| event.ts_ns.saturating_sub(begin_ns).max(0);
        let record = EventRecord {
            dur_ns: event.other_ns.map_or(NO_END, since),
            ..self.record(context, event, kind)
        };
        let id = is_async(kind).then(|| async_id(event));
        write_entry(&mut self.entries, None, id, None);
        self.events.push(record);
        let args = event.args();
        if record.dur_ns != NO_END && args.len() > 2 {
            let at = self.entries.len() as u64;
            let entry = write_entry(&mut self.entries, None, id, None);
            self.args
                .write(args, context.keys, entry, &mut self.entries);
            self.events.push(EventRecord {
                kind: EventKind::EndArgs,
                ts_ns: record.ts_ns - record.dur_ns,
                at,
                ..record
            });
        }
    }

    /// Creates the record of an event whose entry will be the next one in the log.
    fn record(
        &self,
        context: &ChunkContext<'_>,
        event: &PlacedEvent<'_>,
        kind: EventKind,
    ) -> EventRecord {
        let process = context.threads[event.thread].process;
        EventRecord {
            process: u32::try_from(process).unwrap_or(u32::MAX),
            kind,
            is_bound: false,
            lane: match is_async(kind) {
                true => NO_LANE,
                false => context.lanes.number(event.thread, event.track),
            },
            name: UNNUMBERED,
            ts_ns: event.ts_ns,
            dur_ns: 0,
            at: self.entries.len() as u64,
        }
    }

    fn add_arrow(&mut self, context: &ChunkContext<'_>, event: &PlacedEvent<'_>) {
        let Some(id) = event.id() else { return };
        let kind = match event.phase {
            Phase::FlowStart => EventKind::FlowOut,
            Phase::FlowStep => EventKind::FlowStep,
            _ if has_member(event, "bp", br#""e""#) => EventKind::FlowIn,
            _ => EventKind::FlowInNext,
        };
        let (category, name) = (event.category(), event.name());
        let key = hash_of(id, &[category.as_bytes(), name.as_bytes()]);
        let record = self.record(context, event, kind);
        write_entry(&mut self.entries, None, Some(key & !BOUND), None);
        self.events.push(record);
    }

    /// Adds the arrow of a slice with a `bind_id`.
    fn add_bound_arrow(&mut self, slice: &EventRecord, event: &PlacedEvent<'_>) {
        let Some(id) = event.bind_id().filter(|_| slice.lane != NO_LANE) else {
            return;
        };
        let kind = match (
            has_member(event, "flow_in", b"true"),
            has_member(event, "flow_out", b"true"),
        ) {
            (false, false) => return,
            (false, true) => EventKind::FlowOut,
            (true, _) => EventKind::FlowStep,
        };
        let at = self.entries.len() as u64;
        let key = hash_of(id, &[]) | BOUND;
        write_entry(&mut self.entries, None, Some(key), None);
        self.events.push(EventRecord {
            kind,
            is_bound: slice.kind == EventKind::Span,
            at,
            ..*slice
        });
    }

    fn add_samples(&mut self, context: &ChunkContext<'_>, event: &PlacedEvent<'_>) {
        let (args, name) = (event.args(), event.name());
        let id = counter_id(event.line());
        let record = self.record(context, event, EventKind::Instant);
        for (key, value) in Members::new(args) {
            let value = std::str::from_utf8(unquoted(value)).map(str::parse::<f64>);
            let Ok(Ok(value)) = value else { continue };
            if !value.is_finite() {
                continue;
            }
            let hash = hash_of(1, &[name.as_bytes(), id, key]);
            let counters = &mut self.counters;
            let pair = || {
                let series = super::args::unescaped(key);
                let series = String::from_utf8_lossy(&series);
                let text = match id {
                    [] => format!("{name} {series}"),
                    id => format!("{name} id: {} {series}", String::from_utf8_lossy(id)),
                };
                TextPair(None, ByteArray::from(text.into_bytes()))
            };
            let number = counters.entry(hash);
            let counter = *number.or_insert_with(|| context.counters.number(hash, pair));
            let inline = (counter == UNNUMBERED).then(pair);
            self.samples.push(Sample {
                process: record.process,
                counter,
                ts_ns: event.ts_ns,
                at: self.entries.len() as u64,
                bits: value.to_bits(),
            });
            // Each sample has an entry, because its offset makes samples of the same time distinct.
            write_entry(&mut self.entries, None, None, inline.as_ref());
        }
    }
}

/// Returns true if the event is on an async track of its process.
pub(crate) fn is_async(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::AsyncBegin | EventKind::AsyncInstant | EventKind::AsyncEnd
    )
}

fn hash_of(seed: u64, texts: &[&[u8]]) -> u64 {
    let mix = |seed: u64, text: &&[u8]| xxh3_64_with_seed(text, seed ^ text.len() as u64);
    texts.iter().fold(seed, mix)
}

/// Returns a hash of the category and id, which determine the track of an async event.
fn async_id(event: &PlacedEvent<'_>) -> u64 {
    hash_of(event.id().unwrap_or(0), &[event.category().as_bytes()])
}

/// Returns the kind of an instant by its scope: its thread, its process or the whole trace.
fn instant(event: &PlacedEvent<'_>) -> EventKind {
    if has_member(event, "s", br#""p""#) {
        EventKind::ProcessInstant
    } else if has_member(event, "s", br#""g""#) {
        EventKind::GlobalInstant
    } else {
        EventKind::Instant
    }
}

/// Returns true if the member of this name has this value. Most lines do not contain the value at all, and searching for it takes less time than parsing.
fn has_member(event: &PlacedEvent<'_>, key: &str, value: &[u8]) -> bool {
    let line = event.line();
    memmem::find(line, value).is_some() && last_member(line, key.as_bytes()) == Some(value)
}

/// Returns the id of a counter, which distinguishes counters of the same name.
fn counter_id(line: &[u8]) -> &[u8] {
    let has_id = memmem::find(line, br#""id""#).is_some();
    let id = has_id.then(|| last_member(line, b"id")).flatten();
    id.map_or(&[], unquoted)
}

fn unquoted(value: &[u8]) -> &[u8] {
    let text = value.strip_prefix(b"\"");
    let text = text.and_then(|text| text.strip_suffix(b"\""));
    text.unwrap_or(value)
}
