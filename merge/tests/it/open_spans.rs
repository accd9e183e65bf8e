//! Spans that were open when a process was killed are shown as unfinished.

use crate::damaged_rings::{PID, flushed, merge, ring};
use crate::invocation::RunDir;
use format_oracle::writer::line::stream;
use format_oracle::writer::{Open, Process};

#[test]
fn only_the_stored_part_of_a_deep_stack_is_shown() {
    let (fragment, next) = flushed(&["a"]);
    let mut file = ring(next, &[]);
    file.slots[1].open = (0..300)
        .map(|depth| Open::named(2_000_000 + depth, &format!("depth {depth}")))
        .collect();
    let merged = merge(&fragment, &file.bytes());
    assert_eq!(merged.report.number("unfinished_spans"), 32);
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
        let merged = merge(&fragment, &file.bytes());
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
    let with_ring = merge(&fragment, &file.bytes());
    for merged in [with_ring, RunDir::with_fragment(&fragment).merge()] {
        assert_eq!(merged.trace.names(), ["a", "b", "open"]);
        assert_eq!(merged.report.number("unfinished_spans"), 1);
        assert!(merged.report.damage().is_empty());
    }
}
