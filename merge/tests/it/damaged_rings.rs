//! Rings: unflushed events of a killed process, its open spans, and rings that cannot be used.

use crate::invocation::{Merged, RunDir};
use format_oracle::writer::line::stream;
use format_oracle::writer::{Fragment, Process, Ring, Slot};

pub(crate) const PID: u32 = 600;

pub(crate) fn span(name: &str) -> String {
    Process::new(PID)
        .main_thread()
        .span(1_000_000, 500, name, "")
}

fn lines(names: &[&str]) -> Vec<u8> {
    stream(&names.iter().map(|name| span(name)).collect::<Vec<_>>())
}

/// Returns a fragment with the spans `flushed` in slot 1, and the position after them.
pub(crate) fn flushed(names: &[&str]) -> (Fragment, u64) {
    let mut fragment = Process::with_ring(PID).fragment();
    let next = fragment.block(1, 0, &lines(names));
    (fragment, next)
}

/// Returns a ring with the spans `names` from position `from` on in slot 1; slot 0 is empty.
pub(crate) fn ring(from: u64, names: &[&str]) -> Ring {
    let mut ring = Ring::new(&Process::with_ring(PID));
    ring.slots = vec![
        Slot::default(),
        Slot {
            tid: PID,
            from,
            flushed: from,
            stream: lines(names),
            ..Slot::default()
        },
    ];
    ring
}

pub(crate) fn merge(fragment: &Fragment, ring: &[u8]) -> Merged {
    let dir = RunDir::with_fragment(fragment);
    std::fs::write(dir.fragments().join("trace.600.ring"), ring).unwrap();
    dir.merge()
}

#[test]
fn an_unusable_ring_costs_only_the_tail() {
    let (fragment, next) = flushed(&["a"]);
    let ring = ring(next, &["b"]);
    let slot = ring.slot_offset(1);
    let state = |head| format_oracle::reader::checked_state(1, 0, head, 0).to_ne_bytes();
    let outside = (1_u64 << 62).to_ne_bytes();
    for (what, at, bytes) in [
        ("magic", 0, &b"x"[..]),
        ("version", 8, &[9]),
        ("nonce", 16, &[1]),
        ("sum", 28, &[1]),
        ("huge directory", 56, &[0xff; 4]),
        ("slot outside the file", 3072 + 16, &outside),
        ("ring size no power of two", 3072 + 25, &[0x0f]),
        ("a bit of a state", slot + 3, &[0x55]),
        ("no head", slot, &state(0)),
        ("a head far away", slot, &state(1 << 40)),
    ] {
        let mut file = ring.bytes();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        if what != "sum" {
            format_oracle::writer::ring::sign(&mut file);
        }
        let merged = merge(&fragment, &file);
        assert_eq!(merged.trace.names(), ["a"], "{what}");
        let damage = merged.report.damage();
        assert_eq!(merged.report.kind("bad_ring"), 1, "{what}: {damage:?}");
    }
}

#[test]
fn damage_inside_a_tail_costs_one_line() {
    let (fragment, next) = flushed(&["a"]);
    let file = ring(next, &["b", "c"]);
    let mut bytes = file.bytes();
    let offset = file.slot_offset(1) as u64 + 4096 + next;
    bytes[usize::try_from(offset).unwrap()] = 0;
    let merged = merge(&fragment, &bytes);
    assert_eq!(merged.trace.names(), ["a", "c"]);
    let damage = ("trace.600.ring".to_owned(), offset, "nul".to_owned());
    assert_eq!(merged.report.damage()[0], damage, "in the ring's file");
}
