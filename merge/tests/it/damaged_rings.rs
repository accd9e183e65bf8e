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

/// A fragment whose slot 1 holds `flushed`, and the position after it.
pub(crate) fn flushed(names: &[&str]) -> (Fragment, u64) {
    let mut fragment = Process::with_ring(PID).fragment();
    let lines: Vec<String> = names.iter().map(|name| span(name)).collect();
    let next = fragment.block(1, 0, &stream(&lines));
    (fragment, next)
}

/// A ring whose slot 1 holds `names` above `from`; slot 0 is empty.
pub(crate) fn ring(from: u64, names: &[&str]) -> Ring {
    let lines: Vec<String> = names.iter().map(|name| span(name)).collect();
    let mut ring = Ring::of(&Process::with_ring(PID));
    ring.slots = vec![
        Slot::default(),
        Slot {
            tid: PID,
            from,
            flushed: from,
            stream: stream(&lines),
            ..Slot::default()
        },
    ];
    ring
}

pub(crate) fn merge(fragment: &Fragment, ring: Option<&[u8]>) -> Merged {
    let dir = RunDir::new();
    fragment.write_here(&dir.fragments());
    if let Some(bytes) = ring {
        std::fs::write(dir.fragments().join("trace.600.ring"), bytes).unwrap();
    }
    dir.merge()
}

#[test]
fn the_tail_in_the_ring_is_added() {
    let (fragment, next) = flushed(&["a"]);
    let merged = merge(&fragment, Some(&ring(next, &["b", "c"]).bytes()));
    assert_eq!(merged.trace.names(), ["a", "b", "c"]);
    assert_eq!(
        merged.report.number("damage_total"),
        0,
        "{:?}",
        merged.report.damage()
    );
}

#[test]
fn a_tail_that_wraps_around_the_ring_is_added() {
    let names: Vec<String> = (0..60).map(|number| format!("n{number:02}")).collect();
    let lines: Vec<String> = names.iter().map(|name| span(name)).collect();
    let content = stream(&lines);
    let cut = content.len() - 3000
        + content[content.len() - 3000..]
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap()
        + 1;
    let mut fragment = Process::with_ring(PID).fragment();
    fragment.block(1, 0, &content[..cut]);
    let mut ring = ring(cut as u64, &[]);
    ring.slots[1].stream = content[cut..].to_vec();
    assert!(
        cut % 4096 + (content.len() - cut) > 4096,
        "the tail must wrap"
    );
    let merged = merge(&fragment, Some(&ring.bytes()));
    assert_eq!(merged.trace.names(), names);
    assert_eq!(merged.report.number("damage_total"), 0);
}

#[test]
fn what_fragment_and_ring_both_hold_counts_once() {
    let (fragment, _) = flushed(&["a", "b"]);
    let merged = merge(&fragment, Some(&ring(0, &["a", "b", "c"]).bytes()));
    assert_eq!(merged.trace.names(), ["a", "b", "c"]);
    assert_eq!(merged.report.number("damage_total"), 0);
}

#[test]
fn a_torn_block_that_the_ring_holds_is_no_damage() {
    let (mut fragment, next) = flushed(&["a"]);
    fragment.block(1, next, &stream(&[span("b"), span("c")]));
    fragment.bytes.truncate(fragment.bytes.len() - 20);
    let merged = merge(&fragment, Some(&ring(next, &["b", "c"]).bytes()));
    assert_eq!(merged.trace.names(), ["a", "b", "c"]);
    assert_eq!(
        merged.report.number("damage_total"),
        0,
        "{:?}",
        merged.report.damage()
    );
}

#[test]
fn a_gap_between_fragment_and_ring_is_damage() {
    let (fragment, next) = flushed(&["a"]);
    let merged = merge(&fragment, Some(&ring(next + 700, &["c"]).bytes()));
    assert_eq!(merged.trace.names(), ["a", "c"]);
    assert_eq!(merged.report.kind("gap"), 1, "{:?}", merged.report.damage());
    assert_eq!(merged.report.number("damage_total"), 1);
}

#[test]
fn a_flushed_position_that_no_block_reaches_is_a_gap() {
    let (fragment, next) = flushed(&["a"]);
    let merged = merge(&fragment, Some(&ring(next + 700, &[]).bytes()));
    assert_eq!(merged.report.kind("gap"), 1, "{:?}", merged.report.damage());
}

#[test]
fn only_the_ring_holds_events() {
    let fragment = Process::with_ring(PID).fragment();
    assert_eq!(
        merge(&fragment, Some(&ring(0, &["a"]).bytes()))
            .trace
            .names(),
        ["a"]
    );
}

#[test]
fn a_missing_ring_is_counted() {
    let (fragment, _) = flushed(&["a"]);
    let merged = merge(&fragment, None);
    assert_eq!(merged.trace.names(), ["a"]);
    assert_eq!(
        (
            merged.report.kind("ring_missing"),
            merged.report.number("damage_total")
        ),
        (1, 1)
    );
}

#[test]
fn a_clean_exit_needs_no_ring() {
    let (mut fragment, _) = flushed(&["a"]);
    fragment.block(0, 0, &stream(&[Process::new(PID).end(9)]));
    assert_eq!(merge(&fragment, None).report.number("damage_total"), 0);
}

/// A change to a ring file.
type Spoil = fn(&mut Vec<u8>);

#[test]
fn an_unusable_ring_costs_only_the_tail() {
    let spoils: [(&str, Spoil); 11] = [
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
    ];
    for (what, spoil) in spoils {
        let (fragment, next) = flushed(&["a"]);
        let mut bytes = ring(next, &["b"]).bytes();
        spoil(&mut bytes);
        let merged = merge(&fragment, Some(&bytes));
        assert!(merged.trace.names().contains(&"a"), "{what}");
        assert!(
            merged.report.kind("bad_ring") >= 1,
            "{what}: {:?}",
            merged.report.damage()
        );
    }
}

#[test]
fn a_head_before_flushed_or_too_far_is_not_followed() {
    for head in [0_u64, 1 << 40] {
        let (fragment, next) = flushed(&["a"]);
        let mut file = ring(next, &["b"]);
        let at = file.slot_offset(1);
        file.lanes.clear();
        let mut bytes = file.bytes();
        let state = format_oracle::reader::checked_state(1, 0, head, 0);
        bytes[at..at + 8].copy_from_slice(&state.to_ne_bytes());
        let merged = merge(&fragment, Some(&bytes));
        assert!(merged.trace.names().contains(&"a"), "head {head}");
        assert!(merged.report.number("damage_total") >= 1, "head {head}");
    }
}

#[test]
fn damage_inside_a_tail_costs_one_line() {
    let (fragment, next) = flushed(&["a"]);
    let file = ring(next, &["b", "c"]);
    let mut bytes = file.bytes();
    let ring_at = file.slot_offset(1) + 4096;
    bytes[ring_at + usize::try_from(next).unwrap()] = 0;
    let merged = merge(&fragment, Some(&bytes));
    assert_eq!(merged.trace.names(), ["a", "c"]);
    let offset = ring_at as u64 + next;
    let damage = ("trace.600.ring".to_owned(), offset, "nul".to_owned());
    assert_eq!(merged.report.damage()[0], damage, "in the ring's file");
}
