//! Ranges and domains of mstx beside the vendor's library.

use crate::ground::{Ground, end};
use crate::trace::Trace;

#[test]
fn ranges_that_do_not_fit_are_counted_and_domains_have_their_own_names() {
    let ground = Ground::with_fakes();
    ground.program("ranges", &["ranges.c"], &Ground::links());
    let mut command = ground.recorded(ground.path("ranges"));
    let ended = end(command.env("FAKE_QUIET", "1"));
    assert_eq!(ended.code, 42, "{ended:?}");
    let trace = Trace::with_losses(&ground.run());
    let many = trace
        .recorded()
        .filter(|event| event["name"] == "many")
        .map(|event| event["dur"].as_f64().unwrap());
    let lengths: Vec<f64> = many.collect();
    assert!(
        lengths.iter().all(|us| *us > 15_000.0),
        "none that was not kept: {lengths:?}"
    );
    assert_eq!((lengths.len(), trace.lost()), (64, 6));
    let marks = trace.recorded().filter(|event| event["cat"] == "mstx");
    let marks = marks.filter(|event| event["ph"] == "i");
    let domains: Vec<_> = marks
        .map(|event| (event["name"].clone(), event["args"]["domain"].clone()))
        .collect();
    assert_eq!(domains.len(), 3);
    for (name, domain) in domains {
        assert_eq!(name, domain);
    }
}
