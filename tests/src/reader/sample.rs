//! A fragment and its ring made by hand from FORMAT.md, for the reader's own tests.

use std::fs;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::ring::checked_state;

const PAGE: usize = 4096;
const SITES: usize = PAGE;
const LANES: usize = 2 * PAGE;
const DIRECTORY: usize = 3 * PAGE;
const SLOT: usize = 4 * PAGE;
const RING_BYTES: usize = 256;

/// One thread's spans: some in a block of the fragment, all in the ring.
pub(super) struct Sample {
    lines: Vec<String>,
    block_lines: usize,
    /// Lines that the ring says are flushed.
    pub(super) flushed_lines: usize,
    /// Spoils the block's checksum.
    pub(super) sum_xor: u64,
}

impl Sample {
    /// Spans with these names, of which the first `block_lines` are in the fragment.
    pub(super) fn new(names: &[&str], block_lines: usize) -> Sample {
        let line = |name: &&str| {
            format!(
                r#"{{"ph":"X","pid":1,"tid":2,"ts":1.000,"dur":0.500,"name":"{name}","cat":"x"}}"#
            ) + "\n"
        };
        Sample {
            lines: names.iter().map(line).collect(),
            block_lines,
            flushed_lines: block_lines,
            sum_xor: 0,
        }
    }

    /// Writes both files; their pid belongs to no process of this boot.
    pub(super) fn write(&self, dir: &Path) -> (PathBuf, PathBuf) {
        let (fragment, ring) = (dir.join("trace.1.jsonl"), dir.join("trace.1.ring"));
        fs::write(&fragment, self.fragment()).unwrap();
        fs::write(&ring, self.ring()).unwrap();
        (fragment, ring)
    }

    fn fragment(&self) -> String {
        let header = r#"{"ph":"M","pid":1,"tid":1,"name":"sa_fragment","args":{"version":1,"nonce":"00000000000000ff","segment":0,"run":"run-a","main":true,"host":"node-3","boot_id":"0b1f7a3e-6c1d-4c55-9a37-1f7f4f9d2c11","pid_ns":1,"time_ns":1,"monotonic_offset_ns":0,"pid":1,"start_time":1,"exe":"sample","ring":"file","page_bytes":4096}}"#;
        let body = self.lines[..self.block_lines].concat();
        let seed = 1_u64 << 48;
        let sum = xxh3_64_with_seed(body.as_bytes(), seed) ^ self.sum_xor;
        let len = body.len();
        let block = format!(
            r#"{{"ph":"M","name":"sa_block","pid":1,"tid":1,"args":{{"slot":1,"gen":0,"from":0,"len":{len},"sum":"{sum:016x}"}}}}"#
        );
        format!("{header}\n{block}\n{body}")
    }

    fn ring(&self) -> Vec<u8> {
        let mut ring = vec![0; SLOT + 2 * (PAGE + RING_BYTES)];
        let mut put = |at: usize, bytes: &[u8]| ring[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"SAPRING1");
        let site = br#""name":"open","cat":"x""#;
        let offset = |at: usize| u32::try_from(at).unwrap();
        let numbers = [
            (8, 1),
            (12, offset(PAGE)),
            (24, 1),
            (32, offset(SITES)),
            (36, 4096),
        ];
        let tables = [
            (44, offset(LANES)),
            (48, 1),
            (52, offset(DIRECTORY)),
            (56, 8),
        ];
        for (at, number) in numbers.into_iter().chain(tables) {
            put(at, &number.to_ne_bytes());
        }
        put(16, &0xff_u64.to_ne_bytes());
        put(SITES, &u16::try_from(site.len()).unwrap().to_ne_bytes());
        put(SITES + 2, site);
        for slot in 0..2 {
            let at = u64::try_from(SLOT + slot * (PAGE + RING_BYTES)).unwrap();
            put(DIRECTORY + 16 * slot, &at.to_ne_bytes());
            put(DIRECTORY + 16 * slot + 8, &offset(RING_BYTES).to_ne_bytes());
        }
        for slot in 0..2 {
            let at = DIRECTORY + 16 * slot;
            let sum = xxh3_64_with_seed(&ring[at..at + 12], u64::try_from(slot).unwrap());
            ring[at + 12..at + 16].copy_from_slice(&sum.to_le_bytes()[..4]);
        }
        let sum = xxh3_64(&ring[..60]);
        ring[28..32].copy_from_slice(&sum.to_le_bytes()[..4]);
        ring[SLOT..SLOT + 8].copy_from_slice(&checked_state(0, 0, 0, 0).to_ne_bytes());
        self.slot(&mut ring[SLOT + PAGE + RING_BYTES..]);
        ring
    }

    /// Slot 1: one span open, the lines wrapped around the ring's end where they are longer than it.
    fn slot(&self, slot: &mut [u8]) {
        let position = |lines: usize| u64::try_from(self.lines[..lines].concat().len()).unwrap();
        let (head, flushed) = (position(self.lines.len()), position(self.flushed_lines));
        slot[0..8].copy_from_slice(&checked_state(1, 0, head, 1).to_ne_bytes());
        slot[8..16].copy_from_slice(&flushed.to_ne_bytes());
        slot[16..20].copy_from_slice(&2_u32.to_ne_bytes());
        slot[64..72].copy_from_slice(&1_234_567_u64.to_ne_bytes());
        slot[72..76].copy_from_slice(&1_u32.to_ne_bytes());
        for (at, byte) in self.lines.concat().bytes().enumerate() {
            slot[PAGE + at % RING_BYTES] = byte;
        }
    }
}
