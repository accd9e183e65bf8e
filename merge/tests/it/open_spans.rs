//! Spans that were open when a process was killed: shown as unfinished.

use crate::damaged_rings::{PID, flushed, merge, ring};
use format_oracle::writer::line::stream;
use format_oracle::writer::{Lane, Open, Process};

const LANE: u32 = 1 << 22;

#[test]
fn a_stack_deeper_than_stored_gives_what_is_stored() {
    let (fragment, next) = flushed(&["a"]);
    let mut file = ring(next, &[]);
    file.slots[1].open = (0..300)
        .map(|depth| Open::named(2_000_000 + depth, &format!("depth {depth}")))
        .collect();
    let merged = merge(&fragment, Some(&file.bytes()));
    assert_eq!(merged.report.number("unfinished_spans"), 32);
}

#[test]
fn a_span_on_a_lane_that_ended_after_the_copy_is_not_open_whichever_row_it_is_on() {
    let (mut fragment, next) = flushed(&["a"]);
    let mut file = ring(next, &[]);
    file.lanes = vec![
        Lane::open(0, Open::named(3_000_000, "outer")),
        Lane {
            parent: 1,
            ..Lane::open(1, Open::named(3_000_100, "inner"))
        },
        Lane {
            parent: 2,
            ..Lane::open(2, Open::named(3_000_200, "innermost"))
        },
    ];
    // The outer one ended first, so that the inner one has a row of its own.
    let process = Process::new(PID);
    let ended = [
        process.thread(LANE).span(3_000_000, 500, "outer", ""),
        process
            .thread(LANE + 1)
            .span(3_000_200, 400, "innermost", ""),
    ];
    fragment.block(1, next, &stream(&ended));
    let merged = merge(&fragment, Some(&file.bytes()));
    let begun = merged.trace.phase("B");
    assert_eq!(begun.len(), 1);
    let inner = merged.trace.named("inner");
    assert_eq!(inner["tid"], merged.trace.named("innermost")["tid"]);
    assert_ne!(inner["tid"], merged.trace.named("outer")["tid"]);
}

#[test]
fn hostile_sites_and_names_do_no_harm() {
    for (site, name) in [
        (u32::MAX, "x"),
        (900, "x"),
        (3, "x"),
        (0, "quote \" back \\ ctl \u{1}"),
    ] {
        let (fragment, next) = flushed(&["a"]);
        let mut file = ring(next, &["b"]);
        file.site("step", "worker");
        file.slots[1].open = vec![Open {
            site,
            ..Open::named(2_000_000, name)
        }];
        let merged = merge(&fragment, Some(&file.bytes()));
        let names = merged.trace.names();
        let has_lines = names.contains(&"a") && names.contains(&"b");
        assert!(has_lines, "site {site}: {names:?}");
        let shown = name.replace('\u{1}', "<U+0001>");
        assert!(site != 0 || names.contains(&shown.as_str()), "{names:?}");
    }
}

#[test]
fn a_settled_fragment_whose_ring_is_still_there_shows_all_once() {
    let (mut fragment, next) = flushed(&["a"]);
    let process = Process::new(PID);
    let mut file = ring(next, &["b"]);
    file.slots[1].open = vec![Open::named(2_000_000, "open")];
    let tail = file.slots[1].stream.clone();
    for _ in 0..2 {
        fragment.block(1, next, &tail);
        let begun = process.main_thread().begin(2_000_000, "open");
        fragment.block(0, 0, &stream(&[begun, process.end(2_000_000)]));
    }
    for bytes in [Some(file.bytes()), None] {
        let merged = merge(&fragment, bytes.as_deref());
        assert_eq!(merged.trace.names(), ["a", "b", "open"]);
        assert_eq!(merged.report.number("unfinished_spans"), 1);
        assert!(merged.report.damage().is_empty());
    }
}
