//! Losses that only the ring reports, in its loss table and count table, as `sa_loss` lines (FORMAT.md §3).

use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::mapping::Mapping;
use super::ring::{Slot, low_half};

/// Causes by number, from 1 on.
const CAUSES: [&str; 17] = [
    "disk_full",
    "file_size_limit",
    "write_error",
    "busy",
    "fragment_removed",
    "disk_bound",
    "signal",
    "threads",
    "clamped",
    "too_large",
    "too_many_open",
    "children_refused",
    "out_of_memory",
    "open_spans",
    "cut",
    "bad_value",
    "bad_series",
];
const ENTRY_BYTES: usize = 64;

/// Returns the entries of a ring's tables as lines. `slots` are the copies of the ring's slots.
pub(super) fn lines(map: &Mapping, pid: usize, slots: &[Slot]) -> Vec<Vec<u8>> {
    let values = tables(map).map_or_else(Vec::new, |(losses, count, counts, causes)| {
        let head = slots.iter().find(|slot| slot.number == 0);
        let head = head.map_or(0, |slot| slot.head);
        let slot_entry = |number| {
            let copy = slots.iter().find(|slot| slot.number == number);
            slot_loss(map, losses + ENTRY_BYTES * number, (number, copy), head)
        };
        let cause_entry = |cause| cause_loss(map, counts + ENTRY_BYTES * cause, cause, head);
        let slots = (0..count).filter_map(slot_entry);
        slots.chain((1..causes).filter_map(cause_entry)).collect()
    });
    let line = |(tid, ts, args): (usize, f64, Value)| {
        let tid = if tid == 0 { pid } else { tid };
        let front = format!(r#"{{"ph":"i","pid":{pid},"tid":{tid},"ts":{ts},"s":"p""#);
        format!(r#"{front},"name":"sa_loss","cat":"sa_profile","args":{args}}}"#).into_bytes()
    };
    values.into_iter().map(line).collect()
}

/// Returns the offset and length of each table, or `None` if the ring has no valid tables.
fn tables(map: &Mapping) -> Option<(usize, usize, usize, usize)> {
    let sum = low_half(xxh3_64(&map.copy(64, 16)?));
    let [losses, count, counts, causes] = [64, 68, 72, 76].map(|at| map.u32_at(at).unwrap_or(0));
    (map.u32_at(80)? == sum).then_some((losses, count, counts, causes))
}

/// Returns true if a published record of slot 0 already reports this entry.
fn is_reported(map: &Mapping, at: usize, head: u64) -> Option<bool> {
    let reported_at = map.u64_at(at + 48)?;
    Some(reported_at != 0 && reported_at <= head)
}

fn slot_loss(
    map: &Mapping,
    at: usize,
    (number, copy): (usize, Option<&Slot>),
    head: u64,
) -> Option<(usize, f64, Value)> {
    let cause = CAUSES.get(map.u32_at(at + 56)?.checked_sub(1)?)?;
    if is_reported(map, at, head)? {
        return None;
    }
    let (from, to) = (map.u64_at(at + 16)?, map.u64_at(at + 24)?);
    let flushed = copy.map_or(u64::MAX, |slot| slot.from);
    let events = map.u64_at(if to <= flushed { at + 8 } else { at })?;
    let generation = copy.map_or(0, |slot| slot.generation);
    let to = to.min(flushed);
    (from < to).then_some(())?;
    let args = json!({"cause": cause, "events": events, "slot": number, "gen": generation, "from": from, "to": to});
    Some((map.u32_at(at + 60)?, time(map, at)?, args))
}

fn cause_loss(map: &Mapping, at: usize, cause: usize, head: u64) -> Option<(usize, f64, Value)> {
    let name = CAUSES.get(cause - 1)?;
    let reported_at = if is_reported(map, at, head)? { 16 } else { 8 };
    let count = map.u64_at(at)?.checked_sub(map.u64_at(at + reported_at)?)?;
    (count > 0).then_some(())?;
    let args = match *name {
        "children_refused" => {
            json!({"cause": name, "events": 0, "processes": count, "errno": map.u32_at(at + 56)?})
        }
        _ => json!({"cause": name, "events": count}),
    };
    Some((0, time(map, at)?, args))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "ns since boot stay far below 2^53"
)]
fn time(map: &Mapping, at: usize) -> Option<f64> {
    Some(map.u64_at(at + 32)? as f64 / 1000.0)
}
