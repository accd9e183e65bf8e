//! What the events of one chunk give to the tables.

use super::args::ArgReader;
use super::entry::write_entry;
use super::item::{Act, Item, NO_END, NO_ROW, Sample};
use super::rows::Rows;
use super::texts::{NOT_KEPT, TextPair, Texts};
use memchr::memmem;
use parquet::data_type::ByteArray;
use sa_format::Phase;
use trace_merge::events::{PlacedEvent, TraceThread};
use trace_merge::json::{Members, last_member};
use trace_store::hashed_map::HashedMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The name of slices that have none, as Perfetto gives it to them.
const NO_NAME: &str = "[No name]";
/// Tells the arrows that `bind_id` names from those with an id, a category and a name.
const BOUND: u64 = 1;

/// Bytes of entries, and texts by their hash or args of an event, of which a chunk may leave the memory to the next one.
const MOST_KEPT_BYTES: usize = 4 << 20;
const MOST_KEPT: usize = 16 << 10;

/// What chunks are read with.
pub(crate) struct ChunkContext<'a> {
    pub(crate) threads: &'a [TraceThread],
    pub(crate) rows: &'a Rows,
    /// Categories and names of slices.
    pub(crate) names: &'a Texts,
    /// Keys of args.
    pub(crate) keys: &'a Texts,
    /// Names of counters.
    pub(crate) counters: &'a Texts,
}

/// What was found in a chunk.
#[derive(Default)]
pub(crate) struct ChunkRows {
    pub(crate) items: Vec<Item>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) entries: Vec<u8>,
    names: HashedMap<u32>,
    counters: HashedMap<u32>,
    args: ArgReader,
}

impl ChunkRows {
    /// Without what was found, for the next chunk: new memory costs as much as what is done with it. `None` where there was too much.
    pub(crate) fn emptied(mut self) -> Option<ChunkRows> {
        let held = [self.names.len(), self.counters.len(), self.args.held()];
        let is_much = self.entries.capacity() > MOST_KEPT_BYTES
            || held.into_iter().any(|held| held > MOST_KEPT);
        self.items.clear();
        self.samples.clear();
        self.entries.clear();
        (!is_much).then_some(self)
    }

    /// Takes an event.
    pub(crate) fn take(&mut self, context: &ChunkContext<'_>, event: &PlacedEvent<'_>) {
        let act = match event.phase {
            Phase::Complete => Act::Span,
            Phase::Begin => Act::Begin,
            Phase::End => Act::End,
            Phase::AsyncBegin => Act::AsyncBegin,
            Phase::AsyncInstant => Act::AsyncInstant,
            Phase::AsyncEnd => Act::AsyncEnd,
            Phase::Instant | Phase::LegacyInstant | Phase::Mark => instant(event),
            Phase::FlowStart | Phase::FlowStep | Phase::FlowEnd => {
                return self.arrow(context, event);
            }
            Phase::Counter => return self.samples_of(context, event),
            _ => return,
        };
        match act {
            Act::End | Act::AsyncEnd => self.end(context, event, act),
            _ => self.slice(context, event, act),
        }
    }

    fn slice(&mut self, context: &ChunkContext<'_>, event: &PlacedEvent<'_>, act: Act) {
        let item = Item {
            dur_ns: match act {
                Act::Span => event.dur_ns,
                Act::Begin | Act::AsyncBegin => {
                    let dur_ns = |end_ns: i64| end_ns.saturating_sub(event.ts_ns).max(0);
                    event.other_ns.map_or(NO_END, dur_ns)
                }
                _ => 0,
            },
            ..self.item(context, event, act)
        };
        let [name, category, args] = event.what();
        let hash = hash_of(0, &[category, name]);
        let pair = || {
            let (category, name) = (event.category(), event.name());
            let name = if name.is_empty() { NO_NAME } else { &*name };
            let is_there = !category.is_empty();
            TextPair(
                is_there.then(|| ByteArray::from(&*category)),
                ByteArray::from(name),
            )
        };
        let numbers = self.names.entry(hash);
        let number = *numbers.or_insert_with(|| context.names.number(hash, pair));
        let here = (number == NOT_KEPT).then(pair);
        let id = is_async(act).then(|| async_id(event));
        let entry = write_entry(&mut self.entries, event.cpu_ns(), id, here.as_ref());
        self.args
            .write(args, context.keys, entry, &mut self.entries);
        self.items.push(Item {
            name: number,
            ..item
        });
        self.bound_arrow(&item, event);
    }

    fn end(&mut self, context: &ChunkContext<'_>, event: &PlacedEvent<'_>, act: Act) {
        let of_begin = |begin_ns: i64| event.ts_ns.saturating_sub(begin_ns).max(0);
        let item = Item {
            dur_ns: event.other_ns.map_or(NO_END, of_begin),
            ..self.item(context, event, act)
        };
        let id = is_async(act).then(|| async_id(event));
        write_entry(&mut self.entries, None, id, None);
        self.items.push(item);
        let args = event.args();
        if item.dur_ns != NO_END && args.len() > 2 {
            let at = self.entries.len() as u64;
            let entry = write_entry(&mut self.entries, None, id, None);
            self.args
                .write(args, context.keys, entry, &mut self.entries);
            self.items.push(Item {
                act: Act::EndArgs,
                ts_ns: item.ts_ns - item.dur_ns,
                at,
                ..item
            });
        }
    }

    /// An event at its place. It is the next thing in the log of entries.
    fn item(&self, context: &ChunkContext<'_>, event: &PlacedEvent<'_>, act: Act) -> Item {
        let process = context.threads[event.thread].process;
        Item {
            process: u32::try_from(process).unwrap_or(u32::MAX),
            act,
            is_bound: false,
            row: match is_async(act) {
                true => NO_ROW,
                false => context.rows.number(event.thread, event.row),
            },
            name: NOT_KEPT,
            ts_ns: event.ts_ns,
            dur_ns: 0,
            at: self.entries.len() as u64,
        }
    }

    fn arrow(&mut self, context: &ChunkContext<'_>, event: &PlacedEvent<'_>) {
        let Some(id) = event.id() else { return };
        let act = match event.phase {
            Phase::FlowStart => Act::FlowOut,
            Phase::FlowStep => Act::FlowStep,
            _ if member(event, "bp", br#""e""#) => Act::FlowIn,
            _ => Act::FlowInNext,
        };
        let words = [event.category(), event.name()];
        let key = hash_of(id, &[words[0].as_bytes(), words[1].as_bytes()]);
        let item = self.item(context, event, act);
        write_entry(&mut self.entries, None, Some(key & !BOUND), None);
        self.items.push(item);
    }

    /// The arrow that a slice brings with it.
    fn bound_arrow(&mut self, slice: &Item, event: &PlacedEvent<'_>) {
        let Some(id) = event.bind_id().filter(|_| slice.row != NO_ROW) else {
            return;
        };
        let act = match (
            member(event, "flow_in", b"true"),
            member(event, "flow_out", b"true"),
        ) {
            (false, false) => return,
            (false, true) => Act::FlowOut,
            (true, _) => Act::FlowStep,
        };
        let at = self.entries.len() as u64;
        let key = hash_of(id, &[]) | BOUND;
        write_entry(&mut self.entries, None, Some(key), None);
        self.items.push(Item {
            act,
            is_bound: slice.act == Act::Span,
            at,
            ..*slice
        });
    }

    fn samples_of(&mut self, context: &ChunkContext<'_>, event: &PlacedEvent<'_>) {
        let (args, name) = (event.args(), event.name());
        let id = counter_id(event.line());
        let item = self.item(context, event, Act::Instant);
        for (key, value) in Members::of(args) {
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
            let here = (counter == NOT_KEPT).then(pair);
            self.samples.push(Sample {
                process: item.process,
                counter,
                ts_ns: event.ts_ns,
                at: self.entries.len() as u64,
                bits: value.to_bits(),
            });
            // Samples are told apart by their place, too.
            write_entry(&mut self.entries, None, None, here.as_ref());
        }
    }
}

/// Whether it lies on a track of its process.
pub(crate) fn is_async(act: Act) -> bool {
    matches!(act, Act::AsyncBegin | Act::AsyncInstant | Act::AsyncEnd)
}

fn hash_of(seed: u64, words: &[&[u8]]) -> u64 {
    let mix = |seed: u64, word: &&[u8]| xxh3_64_with_seed(word, seed ^ word.len() as u64);
    words.iter().fold(seed, mix)
}

/// What puts async events on one track: category and id.
fn async_id(event: &PlacedEvent<'_>) -> u64 {
    hash_of(event.id().unwrap_or(0), &[event.category().as_bytes()])
}

/// Whether an instant is one of its thread, its process, or the whole trace.
fn instant(event: &PlacedEvent<'_>) -> Act {
    if member(event, "s", br#""p""#) {
        Act::ProcessInstant
    } else if member(event, "s", br#""g""#) {
        Act::GlobalInstant
    } else {
        Act::Instant
    }
}

/// Whether a member of the event has this value. Most lines do not hold it anywhere, and a search costs less than a walk.
fn member(event: &PlacedEvent<'_>, key: &str, value: &[u8]) -> bool {
    let line = event.line();
    memmem::find(line, value).is_some() && last_member(line, key.as_bytes()) == Some(value)
}

/// The id of a counter, which tells counters of one name apart.
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
