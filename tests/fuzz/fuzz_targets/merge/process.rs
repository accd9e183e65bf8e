//! One process of ours while its fragment and ring are written, and lines that every reader must take.

use super::recipe::{START_NS, WALL_NS};
use format_oracle::reader::{block_sum, header_line};
use format_oracle::writer::{Fragment, Open, Process, Ring, Slot};
use std::fmt::Write;

/// Slots that blocks are of.
const SLOTS: usize = 8;
/// Bytes that the ring keeps.
const RING_BYTES: usize = 4096;

pub(crate) struct Ours {
    process: Process,
    /// The fragment without its header.
    pub(crate) body: Fragment,
    positions: [u64; SLOTS],
    /// The positions up to which incomplete blocks were meant to reach. They count as bad blocks, and not as gaps.
    claimed: [u64; SLOTS],
    /// What slot 0 still held.
    kept: Vec<u8>,
    open: Vec<Open>,
}

impl Ours {
    pub(crate) fn new(pid: u32) -> Ours {
        Ours {
            process: Process {
                main: pid == 100,
                ..Process::new(pid)
            },
            body: Fragment::foreign(pid),
            positions: [0; SLOTS],
            claimed: [0; SLOTS],
            kept: Vec::new(),
            open: Vec::new(),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid
    }

    fn has_ring(&self) -> bool {
        !self.kept.is_empty() || !self.open.is_empty()
    }

    /// The header, and all that was added; nothing if nothing was.
    pub(crate) fn fragment(&self) -> Vec<u8> {
        if self.body.bytes.is_empty() && !self.has_ring() {
            return Vec::new();
        }
        let process = Process {
            ring: if self.has_ring() { "file" } else { "heap" },
            ..self.process.clone()
        };
        [process.fragment().bytes, self.body.bytes.clone()].concat()
    }

    /// A ring of one slot; nothing if it would be empty.
    pub(crate) fn ring(&self) -> Vec<u8> {
        if !self.has_ring() {
            return Vec::new();
        }
        let mut ring = Ring::of(&self.process);
        ring.size = RING_BYTES;
        ring.slots.push(Slot {
            tid: self.process.pid,
            from: self.positions[0],
            flushed: self.positions[0],
            stream: self.kept.clone(),
            open: self.open.clone(),
            ..Slot::default()
        });
        ring.bytes()
    }

    /// Appends a whole block. What slot 0 keeps in its ring comes behind all its blocks.
    pub(crate) fn block(&mut self, slot: u8, lines: &[u8]) {
        if lines.is_empty() {
            return;
        }
        let at = usize::from(slot) % SLOTS;
        self.positions[at] = self.body.block(at as u32, self.positions[at], lines);
    }

    /// Appends what is left of a block that was not written whole, or is none.
    pub(crate) fn bad_block(&mut self, slot: u8, text: &[u8]) {
        let body = [text, b"\n"].concat();
        let at = usize::from(slot) % SLOTS;
        let (from, mut len) = (self.positions[at], body.len() as u64);
        let mut sum = block_sum(at as u32, 0, from, &body);
        // With all of the text and the newline behind it, it would be whole.
        let cut = usize::from(text.first().copied().unwrap_or(0)) % text.len().max(1);
        match text.len() % 3 {
            0 => sum ^= 1,
            1 => len += u64::from(slot) << 7,
            _ => {}
        }
        self.claimed[at] = self.claimed[at].max(from + len);
        let block = [at as u64, 0, from, len];
        self.body.line(&header_line(self.pid().into(), block, sum));
        self.body.raw(&body[..cut]);
        self.body.raw(b"\n");
    }

    /// Keeps lines for the ring; false if there is no room.
    pub(crate) fn keep_in_ring(&mut self, lines: &[u8]) -> bool {
        let has_room = self.kept.len() + lines.len() <= RING_BYTES;
        if has_room {
            self.kept.extend_from_slice(lines);
        }
        has_room
    }

    /// Tells of lost events and of the positions they had.
    pub(crate) fn loss(&mut self, slot: u8, text: &[u8]) -> u64 {
        let (slot, events) = (usize::from(slot) % SLOTS, 1 + text.len() as u64);
        let from = self.positions[slot];
        let to = from + 100;
        self.positions[slot] = to;
        let place = format!(r#","slot":{slot},"gen":0,"from":{from},"to":{to}"#);
        let on = self.process.main_thread();
        self.own_record(&on.loss(5_000_000_100, "disk_full", events, &place));
        events
    }

    /// Leaves out positions without a record. Returns true if no incomplete block was meant to hold them.
    pub(crate) fn skip(&mut self, slot: u8) -> bool {
        let slot = usize::from(slot) % SLOTS;
        self.positions[slot] += 64;
        self.claimed[slot] < self.positions[slot]
    }

    pub(crate) fn open_span(&mut self, text: &[u8]) {
        if self.open.len() < 4 {
            let after = text.first().copied().unwrap_or(0);
            let start_ns = START_NS.unsigned_abs() + u64::from(after) * 1_000;
            self.open.push(Open::named(start_ns, "open"));
        }
    }

    pub(crate) fn anchor(&mut self, text: &[u8]) {
        let after = i64::from(text.first().copied().unwrap_or(0)) * 100_000;
        let monotonic_ns = START_NS + after;
        let realtime_ns = WALL_NS + monotonic_ns + i64::from(text.get(1).copied().unwrap_or(0));
        let args = format!(
            r#""monotonic_ns":{monotonic_ns},"realtime_ns":{realtime_ns},"uncertainty_ns":41"#
        );
        let on = self.process.main_thread();
        self.own_record(&on.metadata("sa_anchor", &args));
    }

    /// Appends a record of the recorder's own, in a block of slot 0. Outside of blocks, it would be part of an incomplete block before it.
    fn own_record(&mut self, line: &str) {
        self.block(0, format!("{line}\n").as_bytes());
    }
}

/// Appends a line that is an event, whatever the bytes say.
pub(crate) fn line(pid: u32, serial: u64, choice: &[u8], out: &mut Vec<u8>) {
    let n = |at: usize| u64::from(choice.get(at).copied().unwrap_or(0));
    // No end is at the time of a begin: the merge makes one event of such two.
    let after_ns = if n(3) % 12 == 6 { 3 } else { 0 };
    let ts_ns = START_NS.unsigned_abs() + n(0) * 16_000 + n(1) * 7 + after_ns;
    let tid = u64::from(pid) + n(2) % 3;
    let mut text = String::new();
    let extent = match n(3) % 12 {
        0 => r#""ph":"i","s":"t""#.to_owned(),
        1 => r#""ph":"C""#.to_owned(),
        2 => format!(r#""ph":"s","id":{}"#, n(6) % 4),
        3 => format!(r#""ph":"f","bp":"e","id":{}"#, n(6) % 4),
        4 => format!(r#""ph":"t","id2":{{"global":"0x{:x}"}}"#, n(6) % 4),
        5 => r#""ph":"B""#.to_owned(),
        6 => r#""ph":"E""#.to_owned(),
        7 => format!(r#""ph":"b","id2":{{"local":"0x{:x}"}}"#, n(6) % 4),
        8 => format!(r#""ph":"e","id":"0x{:x}""#, n(6) % 4),
        _ => format!(r#""ph":"X","dur":{}.{:03}"#, n(4) * 4, n(5)),
    };
    let request = match n(5) % 3 {
        0 => format!(r#","request_id":"cmpl-{}""#, n(6) % 4),
        1 => format!(
            r#","request_ids":["cmpl-{}","cmpl-{}"]"#,
            n(6) % 4,
            n(6) / 4 % 4
        ),
        _ => String::new(),
    };
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        r#"{{{extent},"pid":{pid},"tid":{tid},"ts":{}.{:03},"name":"name {}","cat":"{}","args":{{"serial":{serial}{request}}}}}"#,
        ts_ns / 1_000,
        ts_ns % 1_000,
        n(6) % 5,
        ["worker", "flow"][usize::from(n(3) % 12 < 5)],
    );
    out.extend_from_slice(text.as_bytes());
}
