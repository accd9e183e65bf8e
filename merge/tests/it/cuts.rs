//! Fragments and rings cut or harmed at every byte: no panic, and only what the byte belongs to is lost.

use crate::full::is_full;
use crate::invocation::{Ended, Merged, RunDir, trace_merge};
use format_oracle::writer::line::stream;
use format_oracle::writer::{Fragment, Open, Process, Ring, Slot};
use std::collections::{BTreeMap, BTreeSet};

/// The first pid; all have five digits, so that the same byte is at the same offset in every fragment.
const FIRST_PID: u32 = 10_000;

/// A small fragment of every kind of piece; the names of its events are `<pid>/<number>`.
fn small(pid: u32) -> Fragment {
    let process = Process::new(pid);
    let on = process.main_thread();
    let span = |number: u32| {
        on.span(
            1_000_000 + u64::from(number),
            5,
            &format!("{pid}/{number}"),
            "",
        )
    };
    let mut fragment = process.fragment();
    fragment.block(0, 0, &stream(&[process.anchor(1_000_000)]));
    let next = fragment.block(1, 0, &stream(&[span(0), span(1)]));
    fragment.line(&span(2));
    fragment.block(1, next, &stream(&[span(3)]));
    fragment
}

/// Where each event's line ends (without its newline), and every offset at which a cut is no damage.
fn ends_and_clean_cuts(fragment: &Fragment) -> (Vec<usize>, BTreeSet<usize>) {
    let mut ends = Vec::new();
    let mut clean = BTreeSet::from([0]);
    let (mut at, mut block_end) = (0, 0);
    for line in fragment.bytes.split_inclusive(|byte| *byte == b'\n') {
        let text = std::str::from_utf8(line).unwrap();
        let end = at + line.len();
        if let Some(len) = text
            .split_once("sa_block")
            .and_then(|(_, rest)| rest.split_once("\"len\":"))
        {
            block_end = end + len.1.split(',').next().unwrap().parse::<usize>().unwrap();
        } else {
            ends.extend(text.contains("\"ph\":\"X\"").then_some(end - 1));
            if end > block_end {
                clean.extend([end - 1, end]);
            } else if end == block_end {
                clean.insert(end);
            }
        }
        at = end;
    }
    (ends, clean)
}

/// Whether a cut leaves a block header without its newline: a whole line, and a block that is not there. Both may be said.
fn is_header_without_newline(fragment: &Fragment, cut: usize) -> bool {
    let start = fragment.bytes[..cut]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    fragment.bytes.get(cut) == Some(&b'\n')
        && fragment.bytes[start..cut].starts_with(b"{\"ph\":\"M\",\"name\":\"sa_block\"")
}

/// The numbers of the events that each pid still has, and the files that damage was found in.
fn survivors(merged: &Merged) -> (BTreeMap<u32, BTreeSet<String>>, BTreeSet<String>) {
    let mut found: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    for name in merged.trace.names() {
        let (pid, number) = name.split_once('/').unwrap();
        assert!(
            found
                .entry(pid.parse().unwrap())
                .or_default()
                .insert(number.into()),
            "{name} twice"
        );
    }
    (
        found,
        merged
            .report
            .damage()
            .into_iter()
            .map(|damage| damage.0)
            .collect(),
    )
}

#[test]
fn a_fragment_cut_at_every_byte_loses_only_its_last_line() {
    let len = u32::try_from(small(FIRST_PID).bytes.len()).unwrap();
    let (ends, clean) = ends_and_clean_cuts(&small(FIRST_PID));
    let cuts: Vec<u32> = (0..=len).collect();
    for batch in cuts.chunks(200) {
        let dir = RunDir::new();
        for cut in batch {
            let mut fragment = small(FIRST_PID + cut);
            fragment.bytes.truncate(*cut as usize);
            fragment.write_here(&dir.fragments());
        }
        small(99_999).write_here(&dir.fragments());
        let (found, damaged) = survivors(&dir.merge());
        for cut in batch {
            let (pid, at) = (FIRST_PID + cut, *cut as usize);
            let kept = ends
                .iter()
                .filter(|end| **end < at || (**end == at && clean.contains(&at)))
                .count();
            let numbers = found.get(&pid).cloned().unwrap_or_default();
            let least: BTreeSet<String> = (0..kept).map(|number| number.to_string()).collect();
            assert!(
                numbers.is_superset(&least) && numbers.len() <= kept + 1,
                "cut at {at}: {numbers:?}, {kept} lines are whole"
            );
            if is_header_without_newline(&small(pid), at) {
                continue;
            }
            assert_eq!(
                damaged.contains(&format!("trace.{pid}.jsonl")),
                !clean.contains(&at),
                "cut at {at} is damage"
            );
        }
        assert_eq!(found[&99_999].len(), 4);
    }
}

#[test]
fn a_cut_fragment_alone_ends_with_0_or_2() {
    let whole = small(FIRST_PID);
    let (ends, _) = ends_and_clean_cuts(&whole);
    let step = if is_full() { 1 } else { 3 };
    for cut in (0..=whole.bytes.len()).step_by(step) {
        let dir = RunDir::new();
        dir.put("10000", &whole.bytes[..cut]);
        let ended = Ended::of(
            trace_merge()
                .arg(dir.path())
                .args(["--report", "none", "-o", "-"]),
        );
        let nothing_whole = cut < ends[0];
        assert!(
            ended.code == 0 || (ended.code == 2 && nothing_whole),
            "cut at {cut}: {} {}",
            ended.code,
            ended.stderr
        );
    }
}

#[test]
fn a_byte_harmed_anywhere_costs_only_its_line() {
    let line = |pid: u32, number: u32| {
        Process::new(pid)
            .main_thread()
            .span(1_000_000, 5, &format!("{pid}/{number}"), "\"a\":[1]")
    };
    let build = |pid: u32| stream(&[line(pid, 0), line(pid, 1), line(pid, 2), line(pid, 3)]);
    let sample = build(FIRST_PID);
    let positions: Vec<u32> = (0..u32::try_from(sample.len()).unwrap()).collect();
    for (batch, byte) in positions
        .chunks(200)
        .flat_map(|batch| [0, b'\n', b'"', b'{', 0xff].map(|byte| (batch, byte)))
    {
        let dir = RunDir::new();
        for position in batch {
            let pid = FIRST_PID + position;
            let mut bytes = build(pid);
            bytes[*position as usize] = byte;
            dir.put(&pid.to_string(), &bytes);
        }
        let merged = dir.merge();
        for position in batch {
            let (pid, at) = (FIRST_PID + position, *position as usize);
            let own_line = sample[..at].iter().filter(|byte| **byte == b'\n').count();
            let joined = usize::from(sample[at] == b'\n') + own_line;
            for number in (0..4).filter(|number| !(own_line..=joined).contains(number)) {
                let count = merged.trace.all_named(&format!("{pid}/{number}")).len();
                assert_eq!(count, 1, "byte {byte:#x} at {at}: line {number}");
            }
        }
    }
}

/// A fragment of `pid` with one flushed span, and a ring with two more and an open one.
fn with_ring(pid: u32) -> (Fragment, Ring) {
    let process = Process::with_ring(pid);
    let line = |number: u32| {
        process.main_thread().span(
            1_000_000 + u64::from(number),
            5,
            &format!("{pid}/{number}"),
            "",
        )
    };
    let mut fragment = process.fragment();
    let from = fragment.block(1, 0, &stream(&[line(0)]));
    let mut ring = Ring::of(&process);
    let site = ring.site("step", "worker");
    ring.slots = vec![
        Slot::default(),
        Slot {
            tid: pid,
            from,
            flushed: from,
            stream: stream(&[line(1), line(2)]),
            ..Slot::default()
        },
    ];
    ring.slots[1].open = vec![Open {
        site,
        ..Open::named(2_000_000, "")
    }];
    (fragment, ring)
}

/// Merges batches of rings changed by `spoil` at each of `places`. What was flushed must be there, nothing twice, and, where
/// `told` says so, a lost tail must be counted.
fn spoil_rings(places: &[usize], told: bool, spoil: impl Fn(&mut Vec<u8>, usize)) {
    for batch in places.chunks(300) {
        let dir = RunDir::new();
        for (index, place) in batch.iter().enumerate() {
            let pid = FIRST_PID + u32::try_from(index).unwrap();
            let (fragment, ring) = with_ring(pid);
            fragment.write_here(&dir.fragments());
            let mut bytes = ring.bytes();
            spoil(&mut bytes, *place);
            std::fs::write(dir.fragments().join(format!("trace.{pid}.ring")), bytes).unwrap();
        }
        let merged = dir.merge();
        let damaged: BTreeSet<String> = merged
            .report
            .damage()
            .into_iter()
            .map(|damage| damage.0)
            .collect();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for name in merged.trace.names() {
            *counts.entry(name).or_default() += 1;
        }
        for (index, place) in batch.iter().enumerate() {
            let pid = FIRST_PID + u32::try_from(index).unwrap();
            let has = |number: u32| {
                counts
                    .get(format!("{pid}/{number}").as_str())
                    .copied()
                    .unwrap_or(0)
            };
            assert_eq!(has(0), 1, "ring spoiled at {place}: what was flushed");
            assert!(
                has(1) <= 1 && has(2) <= 1,
                "ring spoiled at {place}: doubled"
            );
            let counted = ["jsonl", "ring"]
                .iter()
                .any(|end| damaged.contains(&format!("trace.{pid}.{end}")));
            let whole = has(1) + has(2) == 2;
            assert!(
                whole || counted || !told,
                "ring spoiled at {place}: a lost tail is counted"
            );
        }
    }
}

#[test]
fn a_ring_cut_at_every_byte_costs_only_its_tail() {
    let len = with_ring(FIRST_PID).1.bytes().len();
    // Usually at every fifth byte.
    let step = if is_full() { 1 } else { 5 };
    spoil_rings(
        &(0..len).step_by(step).collect::<Vec<_>>(),
        true,
        Vec::truncate,
    );
}

/// The ring has no checksum: some harm cannot be told from a process that had recorded less.
#[test]
fn a_ring_harmed_at_any_field_costs_only_its_tail() {
    let slot = with_ring(FIRST_PID).1.slot_offset(1);
    let places: Vec<usize> = (0..100)
        .chain(1024..1100)
        .chain(3072..3120)
        .chain(slot..slot + 200)
        .collect();
    for byte in [0x00, 0x01, 0x80, 0xff] {
        spoil_rings(&places, false, |ring, place| ring[place] ^= byte);
        spoil_rings(&places, false, |ring, place| ring[place] = byte);
    }
}
