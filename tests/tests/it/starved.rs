//! One allocation of a thread that records is refused, each in turn: the host goes on, and what is missing is counted.

use e2e::host_support::{Host, Merged, scratch};
use std::path::Path;

const STARVED: &str = env!("CARGO_BIN_EXE_starved");
/// More than there are.
const MANY: u64 = 2000;

/// What a trace says of the host's events, without their times.
type Lines = Vec<String>;

/// Lets the host record with this allocation refused; what is in the trace, what is counted as lost, and whether the host came so far.
fn record(number: u64, dir: &Path) -> (Lines, u64, bool) {
    let outcome = Host::new(STARVED)
        .arguments(&[&number.to_string()])
        .recorded_in(dir)
        .run();
    assert_eq!(outcome.status.code(), Some(7), "{number}: {outcome:?}");
    assert_eq!(outcome.stderr, "", "{number}");
    let merged = Merged::newest(dir);
    let events = merged.events().iter();
    let of_host = events.filter(|event| event["cat"] != "sa_profile" && event["ph"] != "M");
    let said = |event: &serde_json::Value| {
        let (name, phase, args) = (&event["name"], &event["ph"], &event["args"]);
        format!("{name} {phase} {args}")
    };
    let mut said: Lines = of_host.map(said).collect();
    said.sort_unstable();
    (said, merged.lost(), outcome.stdout == "refused\n")
}

#[test]
fn an_allocation_that_is_refused_ends_nothing_and_what_is_missing_is_counted() {
    let plain = record(0, scratch().path());
    assert_eq!((plain.1, plain.2), (0, false));
    assert!(plain.0.len() >= 17, "{}", plain.0.len());
    let mut missing = 0;
    for number in 1..MANY {
        let (said, lost, refused) = record(number, scratch().path());
        if said != plain.0 {
            assert!(
                lost > 0,
                "{number}: missing without a count: {:.300?}",
                differs(&plain.0, &said)
            );
            missing += 1;
        }
        if !refused {
            println!(
                "ALLOCATIONS {} refused, one each; something was missing {missing} times",
                number - 1
            );
            assert!(number > 40 && missing > 10, "{number} {missing}");
            return;
        }
    }
    panic!("more than {MANY} allocations");
}

/// What only one of the two says.
fn differs<'a>(one: &'a Lines, other: &'a Lines) -> Vec<&'a String> {
    let only = |a: &'a Lines, b: &'a Lines| a.iter().filter(move |said| !b.contains(said));
    only(one, other).chain(only(other, one)).collect()
}
