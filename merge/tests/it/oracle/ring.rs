//! The ring of a dead process, as FORMAT.md §3 lays it out. Anything out of bounds makes the ring unreadable.

use serde_json::{Value, json};

/// What a slot still holds.
pub(super) struct Tail {
    pub(super) slot: u32,
    pub(super) generation: u32,
    pub(super) flushed: u64,
    pub(super) bytes: Vec<u8>,
}

/// What a ring holds.
#[derive(Default)]
pub(super) struct Rescue {
    pub(super) tails: Vec<Tail>,
    pub(super) unfinished: Vec<Value>,
}

struct File<'a>(&'a [u8]);

impl File<'_> {
    fn u32(&self, at: usize) -> Option<u32> {
        Some(u32::from_ne_bytes(
            self.0.get(at..at.checked_add(4)?)?.try_into().ok()?,
        ))
    }

    fn size(&self, at: usize) -> Option<usize> {
        usize::try_from(self.u32(at)?).ok()
    }

    fn u64(&self, at: usize) -> Option<u64> {
        Some(u64::from_ne_bytes(
            self.0.get(at..at.checked_add(8)?)?.try_into().ok()?,
        ))
    }
}

/// Reads a ring that must have been written by `pid` and `nonce`.
pub(super) fn read(bytes: &[u8], pid: u32, nonce: u64) -> Option<Rescue> {
    let file = File(bytes);
    let mine = bytes.get(..8)? == b"SAPRING1"
        && file.u32(8)? == 1
        && file.u64(16)? == nonce
        && file.u32(24)? == pid;
    let (page, slots) = (file.size(12)?.max(4096), file.u32(56)?);
    let mut rescue = Rescue::default();
    let mut heads = Vec::new();
    for slot in 0..if mine { slots } else { return None } {
        let entry = file.size(52)? + 16 * slot as usize;
        let (at, size) = (
            usize::try_from(file.u64(entry)?).ok()?,
            file.u32(entry + 8)?,
        );
        if at == 0 {
            heads.push(0);
            continue;
        }
        let state = file.u64(at)?;
        let (head, flushed) = (state >> 16, file.u64(at + 8)?);
        let ring = bytes.get(at + page..at + page + size as usize)?;
        let byte = |position: u64| ring[usize::try_from(position % u64::from(size)).unwrap()];
        let tail = (flushed..head).map(byte).collect();
        rescue.tails.push(Tail {
            slot,
            generation: file.u32(at + 20)?,
            flushed,
            bytes: tail,
        });
        heads.push(head);
        let depth = usize::try_from(state >> 8 & 255).unwrap().min(32);
        for level in 0..depth {
            let name_at = 16;
            rescue.unfinished.extend(open_span(
                &file,
                at + 64 + 64 * level,
                name_at,
                pid,
                file.u32(at + 16)?,
            ));
        }
    }
    for lane in 0..file.u32(48)? {
        if let Some(at) = open_lane(&file, lane, &heads) {
            let tid = (1 << 22) + row(&file, lane, &heads);
            rescue.unfinished.extend(open_span(&file, at, 32, pid, tid));
        }
    }
    Some(rescue)
}

/// Where the entry of a lane is, if its span is open.
fn open_lane(file: &File, lane: u32, heads: &[u64]) -> Option<usize> {
    let at = (lane < file.u32(48)?).then_some(file.size(44)? + 64 * lane as usize)?;
    let (start_ns, closes_at) = (file.u64(at)?, file.u64(at + 16)?);
    let head = heads.get(file.size(at + 24)?);
    let closed = closes_at != 0 && head.is_some_and(|head| *head >= closes_at);
    (start_ns != 0 && !closed).then_some(at)
}

/// The lane of the outermost open span that a lane's lies in.
fn row(file: &File, lane: u32, heads: &[u64]) -> u32 {
    let outer = || {
        let at = open_lane(file, lane, heads)?;
        let parent = file.u32(at + 28)?.checked_sub(1)?;
        let outer = open_lane(file, parent, heads)?;
        (file.u64(outer)? < file.u64(at)?).then_some(parent)
    };
    outer().map_or(lane, |parent| row(file, parent, heads))
}

fn open_span(file: &File, at: usize, name_at: usize, pid: u32, tid: u32) -> Option<Value> {
    let (start_ns, site, len) = (file.u64(at)?, file.size(at + 8)?, file.size(at + 12)?);
    if start_ns == 0 || tid == 0 {
        return None;
    }
    let (name, cat) = if site == 0 {
        (
            String::from_utf8(file.0.get(at + name_at..at + name_at + len)?.to_vec()).ok()?,
            String::new(),
        )
    } else {
        let entry = file.size(32)? + site - 1;
        let len = usize::from(u16::from_ne_bytes(
            file.0.get(entry..entry + 2)?.try_into().ok()?,
        ));
        let text = std::str::from_utf8(file.0.get(entry + 2..entry + 2 + len)?).ok()?;
        let site: Value = serde_json::from_str(&format!("{{{text}}}")).ok()?;
        (
            site["name"].as_str()?.to_owned(),
            site["cat"].as_str()?.to_owned(),
        )
    };
    #[expect(clippy::cast_precision_loss, reason = "tests keep times below 2^53 ns")]
    let ts = start_ns as f64 / 1000.0;
    Some(
        json!({"ph": "B", "pid": pid, "tid": tid, "ts": ts, "name": name, "cat": cat, "args": {"unfinished": true}}),
    )
}
