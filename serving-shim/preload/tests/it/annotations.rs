//! Ranges and domains of mstx together with the vendor's library.

use crate::fakes::{fakes, links};
use c_programs::{Trace, end};

#[test]
fn ranges_that_do_not_fit_are_counted_and_domains_have_names() {
    let ground = fakes();
    let program = ground.program("ranges", &["ranges.c"], &links());
    let ended = end(ground.watched(program).env("FAKE_QUIET", "1"));
    assert_eq!(ended.code, 42, "{ended:?}");
    let trace = Trace::with_losses(&ground.run());
    let ranges = trace.with("name", "many");
    assert_eq!((ranges.len(), trace.lost()), (64, 6));
    let is_whole = |range: &&serde_json::Value| range["dur"].as_f64() > Some(15_000.0);
    // A range without a slot would be shorter.
    assert!(ranges.iter().all(is_whole), "{ranges:?}");
    assert_eq!(trace.only("marked")["args"]["domain"], "group");
}
