//! Names counted for each thread and for each request.

use crate::events::events;
use crate::reports::{has_words, of_lines_with};
use crate::traces::case;
use serde_json::Value;
use trace_report::{NamesBy, ReportOptions, RunReport, screen};

fn names_by(lines: &[Value], names_by: NamesBy) -> RunReport {
    let options = ReportOptions {
        names_by,
        ..ReportOptions::default()
    };
    of_lines_with(lines, &options)
}

/// Each name with what it is counted for, in the order of these.
fn groups(report: &RunReport) -> Vec<(Option<&str>, &str, u64)> {
    let names = report.names.iter();
    let groups = names.map(|name| (name.group.as_deref(), &*name.name, name.ncall));
    let mut groups: Vec<_> = groups.collect();
    groups.sort_unstable();
    groups
}

#[test]
fn names_are_told_apart_by_thread_and_by_request() {
    let by_thread = names_by(&case("streams have").events, NamesBy::Thread);
    // On its track a replay has another category, but no other name.
    let expected = [
        (Some("stream 1"), "matmul", 3),
        (Some("stream 2"), "matmul", 1),
    ];
    assert_eq!(groups(&by_thread), expected);
    assert!(by_thread.names.iter().all(|name| name.process == Some(0)));
    let text = screen::names_text(&by_thread, screen::NameOrder::Tsub, 9);
    has_words(&text, &["matmul [track]  NPU 0    stream 2"]);

    let lines = events(
        r#"X 9/1 0+10 http.request request_id=a
        X 9/21 20+10 http.request request_id=a
        X 9/41 40+10 http.request request_id=b
        X 9/7 60+5 step request_ids=["a","b"]"#,
    );
    let expected = [
        (None, "step", 1),
        (Some("a"), "http.request", 2),
        (Some("b"), "http.request", 1),
    ];
    assert_eq!(groups(&names_by(&lines, NamesBy::Request)), expected);
}
