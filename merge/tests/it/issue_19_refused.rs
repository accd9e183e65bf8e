//! Processes that could not record at all, in the report.

use crate::invocation::{Merged, RunDir};
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;

/// Processes that could not record are counted, however many other losses there are; they are told first.
#[test]
fn issue_19_refused_processes_are_counted_beside_many_losses() {
    let process = Process::new(7);
    let mut lines: Vec<String> = (0..300)
        .map(|tid| process.thread(100 + tid).loss(1_000_000, "busy", 5, ""))
        .collect();
    let args = r#","processes":3,"errno":13"#;
    let refused = process.main_thread();
    lines.insert(7, refused.loss(1_000_000, "children_refused", 0, args));
    lines.push(process.main_thread().span(1_000_000, 500_000, "a", ""));
    let mut fragment = process.fragment();
    fragment.block(0, 0, &stream(&lines));
    let dir = RunDir::new();
    fragment.write_here(&dir.fragments());
    let merged = Merged::of(&[], &[dir.path()]);
    assert_eq!(merged.report.number("refused_processes"), 3);
    assert_eq!(merged.report.number("lost_events"), 1500);
    let losses = merged.report.0["losses"].as_array().unwrap();
    assert_eq!(
        (losses.len(), &losses[0]["cause"]),
        (256, &"children_refused".into())
    );
}
