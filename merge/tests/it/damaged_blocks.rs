//! Blocks after a damaged beginning of a fragment, gaps between blocks, and losses.

use crate::invocation::RunDir;
use crate::random::{Rng, write_own};
use format_oracle::writer::line::stream;
use format_oracle::writer::{Fragment, Process};

const PID: u32 = 500;

/// A fragment with blocks among its first lines is split at all of its blocks. A fragment without
/// blocks there might be foreign, but must be read in the same way.
#[test]
fn blocks_far_after_a_damaged_beginning_are_found() {
    let text = format!(r#""text":"{}""#, "x".repeat(4000));
    let long = Process::new(PID).main_thread().span(1, 1, "plain", &text);
    let first = Process::new(PID).main_thread().span(1, 1, "first", "");
    for seed in 0..12 {
        let outcomes = [true, false].map(|has_early_block| {
            let mut fragment = Fragment::foreign(PID);
            if has_early_block {
                fragment.block(7, 0, &stream(&[&first]));
            }
            while fragment.bytes.len() < 3 << 20 {
                fragment.line(&long);
            }
            let dir = RunDir::new();
            write_own(&mut Rng::new(seed), &dir.fragments(), PID, false);
            let own = std::fs::read(dir.fragments().join("trace.500.jsonl")).unwrap();
            let header = memchr::memchr(b'\n', &own).unwrap();
            fragment.raw(&own[header + 1..]);
            let merged = RunDir::with_fragment(&fragment).merge();
            let damage = merged.report.damage().into_iter();
            let kinds: Vec<String> = damage.map(|damage| damage.2).collect();
            let mut events = merged.trace.comparable();
            events.retain(|event| !event.content.contains(r#""name":"first""#));
            (events, kinds)
        });
        assert!(outcomes[0] == outcomes[1], "seed {seed}");
    }
}

/// Processes that could not record are counted and reported first, however many other losses there
/// are.
#[test]
fn issue_19_refused_processes_are_counted_among_many_losses() {
    let process = Process::new(PID);
    let mut lines: Vec<String> = (0..300)
        .map(|tid| process.thread(100 + tid).loss(1_000_000, "busy", 5, ""))
        .collect();
    let args = r#","processes":3,"errno":13"#;
    let refused = process.main_thread();
    lines.insert(7, refused.loss(1_000_000, "children_refused", 0, args));
    lines.push(process.main_thread().span(1_000_000, 500_000, "a", ""));
    let merged = RunDir::with_block(&process, &lines).merge();
    assert_eq!(merged.report.number("refused_processes"), 3);
    assert_eq!(merged.report.number("lost_events"), 1500);
    let losses = merged.report.0["losses"].as_array().unwrap();
    assert_eq!(losses.len(), 256);
    assert_eq!(losses[0]["cause"], "children_refused");
}
