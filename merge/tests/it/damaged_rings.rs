//! Golden set, rings: what a killed process had not flushed, its open spans, and rings that cannot be used.

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

/// A fragment whose slot 1 holds `flushed`, and the position after it.
pub(crate) fn flushed(names: &[&str]) -> (Fragment, u64) {
    let mut fragment = Process::with_ring(PID).fragment();
    let next = fragment.block(1, 0, &lines(names));
    (fragment, next)
}

/// A ring whose slot 1 holds `names` above `from`; slot 0 is empty.
pub(crate) fn ring(from: u64, names: &[&str]) -> Ring {
    let mut ring = Ring::of(&Process::with_ring(PID));
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
    let dir = RunDir::of(fragment);
    std::fs::write(dir.fragments().join("trace.600.ring"), ring).unwrap();
    dir.merge()
}

/// A change to a ring file.
type Spoil = fn(&mut Vec<u8>);

/// Sets a head that is before the flushed position or too far after it.
fn set_head(ring: &mut [u8], head: u64) {
    let at = self::ring(0, &[]).slot_offset(1);
    let state = format_oracle::reader::checked_state(1, 0, head, 0);
    ring[at..at + 8].copy_from_slice(&state.to_ne_bytes());
}

#[test]
fn an_unusable_ring_costs_only_the_tail() {
    let spoils: [(&str, Spoil); 13] = [
        ("empty", |ring| ring.clear()),
        ("half a header", |ring| ring.truncate(40)),
        ("magic", |ring| ring[0] = b'x'),
        ("version", |ring| ring[8] = 9),
        ("nonce", |ring| ring[16] ^= 1),
        ("garbage", |ring| ring.fill(0xa5)),
        ("slot outside the file", |ring| {
            ring[3072 + 16..3072 + 24].copy_from_slice(&(1_u64 << 62).to_ne_bytes());
        }),
        ("ring size no power of two", |ring| {
            ring[3072 + 24..3072 + 28].copy_from_slice(&4095_u32.to_ne_bytes());
        }),
        ("sum", |ring| ring[28] ^= 1),
        ("huge directory", |ring| {
            ring[56..60].copy_from_slice(&u32::MAX.to_ne_bytes());
            format_oracle::writer::ring::sign(ring);
        }),
        ("one bit of a state", |ring| ring[4096 + 8192 + 3] ^= 4),
        ("no head", |ring| set_head(ring, 0)),
        ("a head far away", |ring| set_head(ring, 1 << 40)),
    ];
    for (what, spoil) in spoils {
        let (fragment, next) = flushed(&["a"]);
        let mut bytes = ring(next, &["b"]).bytes();
        spoil(&mut bytes);
        let merged = merge(&fragment, &bytes);
        assert!(merged.trace.names().contains(&"a"), "{what}");
        let (report, kind) = (&merged.report, "bad_ring");
        let count = match what.contains("head") && !what.contains("header") {
            true => report.number("damage_total"),
            false => report.kind(kind),
        };
        assert!(count >= 1, "{what}: {:?}", report.damage());
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
