//! The bytes of a ring file, according to FORMAT.md §3.

use std::path::{Path, PathBuf};

use crate::reader::checked_state;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

const PAGE: usize = 4096;
const SITES_AT: usize = 64;
const SITES_BYTES: usize = 960;
const LANES_AT: usize = 1024;
const LANES: usize = 16;
const DIRECTORY_AT: usize = 3072;
const DIRECTORY_ENTRIES: usize = 16;

/// An open span on a thread.
#[derive(Clone, Debug)]
pub struct Open {
    /// Start time.
    pub start_ns: u64,
    /// Number of the call site; 0 if the entry contains the name.
    pub site: u32,
    /// Name.
    pub name: String,
}

impl Open {
    /// Creates an open span that stores its name in the entry.
    pub fn named(start_ns: u64, name: &str) -> Self {
        Open {
            start_ns,
            site: 0,
            name: name.into(),
        }
    }
}

/// A span on the lane 2²² + `lane`, either open or closed by `closing_slot` at `closes_at`.
#[derive(Clone, Debug)]
pub struct Lane {
    /// Number of the lane.
    pub lane: usize,
    /// The span.
    pub open: Open,
    /// Position after the line that ends the span; 0 if there is none.
    pub closes_at: u64,
    /// Slot that contains that line.
    pub closing_slot: u32,
    /// Lane of the parent span, plus 1.
    pub parent: u32,
}

impl Lane {
    /// Creates a span that is open on its own lane.
    pub fn open(lane: usize, open: Open) -> Lane {
        Lane {
            lane,
            open,
            closes_at: 0,
            closing_slot: 0,
            parent: 0,
        }
    }
}

/// The slot of a thread.
#[derive(Clone, Debug, Default)]
pub struct Slot {
    /// Id of the thread.
    pub tid: u32,
    /// Generation of the slot.
    pub generation: u32,
    /// Position of the first byte of `stream`.
    pub from: u64,
    /// Lines from position `from` on.
    pub stream: Vec<u8>,
    /// Position up to which the fragment contains all lines.
    pub flushed: u64,
    /// Stack of open spans.
    pub open: Vec<Open>,
}

impl Slot {
    /// Creates the slot of a thread whose lines up to `from` are in the fragment.
    pub fn flushed(tid: u32, from: u64) -> Slot {
        Slot {
            tid,
            from,
            flushed: from,
            ..Slot::default()
        }
    }

    /// Returns the position after the last line.
    pub fn head(&self) -> u64 {
        self.from + self.stream.len() as u64
    }

    fn control(&self, number: usize) -> Vec<u8> {
        let mut control = vec![0; PAGE];
        let depth = self.open.len().min(255) as u64;
        let state = checked_state(number, self.generation as usize, self.head(), depth);
        put(&mut control, 0, &state.to_ne_bytes());
        put(&mut control, 8, &self.flushed.to_ne_bytes());
        put(&mut control, 16, &self.tid.to_ne_bytes());
        put(&mut control, 20, &self.generation.to_ne_bytes());
        for (depth, open) in self.open.iter().take(32).enumerate() {
            let at = 64 + 64 * depth;
            put_open(&mut control, at, open, 16, 48);
        }
        control
    }

    fn ring(&self, size: usize) -> Vec<u8> {
        let mut ring = vec![0; size];
        for (position, byte) in (self.from..).zip(&self.stream) {
            ring[usize::try_from(position % size as u64).unwrap()] = *byte;
        }
        ring
    }
}

/// A complete ring file.
#[derive(Clone, Debug)]
pub struct Ring {
    /// Pid of the process.
    pub pid: u32,
    /// Nonce of the recorder.
    pub nonce: u64,
    /// Number of ring bytes per slot, a power of two.
    pub size: usize,
    /// Slots of the threads.
    pub slots: Vec<Slot>,
    /// Used entries of the lane table.
    pub lanes: Vec<Lane>,
    sites: Vec<u8>,
}

impl Ring {
    /// Creates a ring without slots for the recorder of `process`.
    pub fn new(process: &super::Process) -> Self {
        Ring {
            pid: process.pid,
            nonce: process.nonce,
            size: 4096,
            slots: Vec::new(),
            lanes: Vec::new(),
            sites: Vec::new(),
        }
    }

    /// Creates a ring with an empty slot 0 and a thread's slot.
    pub fn with_thread(process: &super::Process, slot: Slot) -> Self {
        Ring {
            slots: vec![Slot::default(), slot],
            ..Ring::new(process)
        }
    }

    /// Adds a call site and returns its number.
    pub fn site(&mut self, name: &str, cat: &str) -> u32 {
        let text = format!(r#""name":"{name}","cat":"{cat}""#);
        let number = u32::try_from(self.sites.len() + 1).unwrap();
        self.sites
            .extend(u16::try_from(text.len()).unwrap().to_ne_bytes());
        self.sites.extend(text.as_bytes());
        assert!(self.sites.len() <= SITES_BYTES);
        number
    }

    /// Returns the offset of slot `slot` in the file.
    pub fn slot_offset(&self, slot: usize) -> usize {
        PAGE + slot * (PAGE + self.size)
    }

    /// Returns the contents of the file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut file = vec![0; PAGE];
        let u32s = |file: &mut Vec<u8>, at: usize, value: usize| {
            put(file, at, &u32::try_from(value).unwrap().to_ne_bytes());
        };
        put(&mut file, 0, b"SAPRING1");
        let fields = [
            1,
            PAGE,
            0,
            0,
            self.pid as usize,
            0,
            SITES_AT,
            SITES_BYTES,
            0,
            LANES_AT,
            LANES,
            DIRECTORY_AT,
            DIRECTORY_ENTRIES,
        ];
        for (index, value) in fields.into_iter().enumerate() {
            u32s(&mut file, 8 + 4 * index, value);
        }
        put(&mut file, 16, &self.nonce.to_ne_bytes());
        put(&mut file, SITES_AT, &self.sites);
        for lane in &self.lanes {
            let at = LANES_AT + 64 * lane.lane;
            put_open(&mut file, at, &lane.open, 32, 32);
            put(&mut file, at + 16, &lane.closes_at.to_ne_bytes());
            put(&mut file, at + 24, &lane.closing_slot.to_ne_bytes());
            put(&mut file, at + 28, &lane.parent.to_ne_bytes());
        }
        for slot in 0..self.slots.len() {
            let (at, offset) = (DIRECTORY_AT + 16 * slot, self.slot_offset(slot) as u64);
            put(&mut file, at, &offset.to_ne_bytes());
            u32s(&mut file, at + 8, self.size);
            let sum = xxh3_64_with_seed(&file[at..at + 12], slot as u64);
            put(&mut file, at + 12, &sum.to_le_bytes()[..4]);
        }
        sign(&mut file);
        for (number, slot) in self.slots.iter().enumerate() {
            file.extend(slot.control(number));
            file.extend(slot.ring(self.size));
        }
        file
    }

    /// Writes the ring as `trace.<name>.ring` below `folder` and returns the path.
    pub fn write(&self, folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(format!("trace.{name}.ring"));
        std::fs::write(&path, self.bytes()).unwrap();
        path
    }

    /// Writes the ring under its pid.
    pub fn write_here(&self, folder: &Path) -> PathBuf {
        self.write(folder, &self.pid.to_string())
    }
}

/// Updates the header's checksum.
pub fn sign(file: &mut [u8]) {
    put(file, 28, &[0; 4]);
    let sum = xxh3_64(&file[..60]);
    put(file, 28, &sum.to_le_bytes()[..4]);
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

fn put_open(file: &mut [u8], at: usize, open: &Open, name_at: usize, most: usize) {
    let name = &open.name.as_bytes()[..open.name.len().min(most)];
    put(file, at, &open.start_ns.to_ne_bytes());
    put(file, at + 8, &open.site.to_ne_bytes());
    let len = u32::try_from(name.len()).unwrap();
    put(file, at + 12, &len.to_ne_bytes());
    put(file, at + name_at, name);
}
