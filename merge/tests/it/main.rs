//! Integration tests of the `trace-merge` binary. Every test writes fragments byte by byte
//! according to FORMAT.md, runs the binary, and compares its trace and report with an independent
//! naive reader.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests: a failed step is a failed test, and a skipped test must say so"
)]

mod clashing;
mod invocation;
mod memory;
mod oracle;
mod random;
mod sorted;
mod trace;

mod cases;
mod catapult;
mod check;
mod clocks;
mod collectives;
mod cuts;
mod damaged_blocks;
mod damaged_rings;
mod deep;
mod events;
mod exchanged;
mod faults;
mod follow;
mod foreign;
mod format;
mod full;
mod fuzzed;
mod golden;
mod interrupted;
mod issue_19_documents;
mod issue_19_hidden;
mod joined;
mod keys;
mod lanes;
mod link_bounds;
mod linked_perfetto;
mod links;
mod many_fragments;
mod many_spans;
mod modes;
mod mutated;
mod no_room;
mod open_spans;
mod others_spans;
mod out_of_memory;
mod output;
mod paced;
mod perfetto;
mod placed;
mod program_flows;
mod progress;
mod pypto;
mod runs;
mod segments;
mod settle;
mod split;
mod streams;
mod usage;
mod verbatim;
mod view;
mod window;
mod window_segments;
mod written_over;
