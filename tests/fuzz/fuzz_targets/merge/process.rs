//! One process of ours while its fragment and ring are written, and lines that every reader must take.

use super::recipe::{START_NS, WALL_NS};
use super::ring::ring;
use sa_format::{BlockHeader, block_sum};
use std::fmt::Write;

/// Slots that blocks are of.
const SLOTS: usize = 8;
/// Bytes that the ring keeps.
pub(crate) const RING_BYTES: usize = 4096;

pub(crate) struct Ours {
    pub(crate) pid: u32,
    pub(crate) bytes: Vec<u8>,
    positions: [u64; SLOTS],
    /// The positions up to which incomplete blocks were meant to reach. They count as bad blocks, and not as gaps.
    claimed: [u64; SLOTS],
    /// What slot 0 still held.
    kept: Vec<u8>,
    open: Vec<u64>,
}

impl Ours {
    pub(crate) fn new(pid: u32) -> Ours {
        Ours {
            pid,
            bytes: Vec::new(),
            positions: [0; SLOTS],
            claimed: [0; SLOTS],
            kept: Vec::new(),
            open: Vec::new(),
        }
    }

    fn nonce(&self) -> u64 {
        0x9f86_d081_0000_0000 + u64::from(self.pid)
    }

    fn has_ring(&self) -> bool {
        !self.kept.is_empty() || !self.open.is_empty()
    }

    /// The header, and all that was added; nothing if nothing was.
    pub(crate) fn fragment(&self) -> Vec<u8> {
        if self.bytes.is_empty() && !self.has_ring() {
            return Vec::new();
        }
        let (pid, nonce, main) = (self.pid, self.nonce(), self.pid == 100);
        let ring = if self.has_ring() { "file" } else { "heap" };
        let header = format!(
            r#"{{"ph":"M","pid":{pid},"tid":{pid},"name":"sa_fragment","args":{{"version":1,"nonce":"{nonce:016x}","segment":0,"run":"run-a","main":{main},"host":"node-3","boot_id":"0b1f7a3e-6c1d-4c55-9a37-1f7f4f9d2c11","pid_ns":4026,"time_ns":4027,"monotonic_offset_ns":0,"pid":{pid},"start_time":{pid}0,"exe":"python3.11","script":"serve.py","ring":"{ring}","page_bytes":4096}}}}"#
        );
        [header.as_bytes(), b"\n", &self.bytes].concat()
    }

    pub(crate) fn ring(&self) -> Vec<u8> {
        match self.has_ring() {
            true => ring(
                self.pid,
                self.nonce(),
                (self.positions[0], &self.kept),
                &self.open,
            ),
            false => Vec::new(),
        }
    }

    /// Appends a whole block. What slot 0 keeps in its ring comes behind all its blocks.
    pub(crate) fn block(&mut self, slot: u8, lines: &[u8]) {
        let slot = usize::from(slot) % SLOTS;
        if lines.is_empty() {
            return;
        }
        let header = self.header(slot, lines);
        header.write(self.pid, &mut self.bytes);
        self.bytes.extend_from_slice(lines);
        self.positions[slot] += lines.len() as u64;
    }

    fn header(&self, slot: usize, lines: &[u8]) -> BlockHeader {
        let (number, from) = (u32::try_from(slot).expect("few"), self.positions[slot]);
        BlockHeader {
            slot: number,
            generation: 0,
            from,
            len: lines.len() as u64,
            sum: block_sum(number, 0, from, lines),
        }
    }

    /// Appends what is left of a block that was not written whole, or is none.
    pub(crate) fn bad_block(&mut self, slot: u8, text: &[u8]) {
        let body = [text, b"\n"].concat();
        let number = usize::from(slot) % SLOTS;
        let mut header = self.header(number, &body);
        // With all of the text and the newline behind it, it would be whole.
        let cut = usize::from(text.first().copied().unwrap_or(0)) % text.len().max(1);
        match text.len() % 3 {
            0 => header.sum ^= 1,
            1 => header.len += u64::from(slot) << 7,
            _ => {}
        }
        self.claimed[number] = self.claimed[number].max(header.from + header.len);
        header.write(self.pid, &mut self.bytes);
        self.bytes.extend_from_slice(&body[..cut]);
        self.bytes.push(b'\n');
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
        self.own_record(&format!(
            r#"{{"ph":"i","pid":{0},"tid":{0},"ts":5000000.100,"s":"p","name":"sa_loss","cat":"sa_profile","args":{{"cause":"disk_full","events":{events},"slot":{slot},"gen":0,"from":{from},"to":{to}}}}}"#,
            self.pid
        ));
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
            self.open
                .push(START_NS.unsigned_abs() + u64::from(after) * 1_000);
        }
    }

    pub(crate) fn anchor(&mut self, text: &[u8]) {
        let after = i64::from(text.first().copied().unwrap_or(0)) * 100_000;
        let (monotonic_ns, pid) = (START_NS + after, self.pid);
        let realtime_ns = WALL_NS + monotonic_ns + i64::from(text.get(1).copied().unwrap_or(0));
        self.own_record(&format!(
            r#"{{"ph":"M","pid":{pid},"tid":{pid},"name":"sa_anchor","args":{{"monotonic_ns":{monotonic_ns},"realtime_ns":{realtime_ns},"uncertainty_ns":41}}}}"#
        ));
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
