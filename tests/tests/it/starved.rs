//! Each allocation of a recording thread fails in turn: the host continues, and missing events are counted.

use crate::host;
use e2e::host_support::{Merged, scratch};

/// More allocations than there are.
const MANY: u64 = 2000;

/// Runs the host while allocation `number` fails. Returns the events without their times, the number of lost events, and whether that allocation was reached.
fn record(number: u64) -> (Vec<String>, u64, bool) {
    let dir = scratch();
    let dir = dir.path();
    let host = host(dir, &["starved", &number.to_string()]);
    let outcome = host.run().quiet();
    let merged = Merged::newest(dir);
    let events = merged.events().iter();
    let host_events = events.filter(|event| event["cat"] != "sa_profile" && event["ph"] != "M");
    let shown = |event: &serde_json::Value| {
        let (name, phase, args) = (&event["name"], &event["ph"], &event["args"]);
        format!("{name} {phase} {args}")
    };
    let mut shown: Vec<String> = host_events.map(shown).collect();
    shown.sort_unstable();
    (shown, merged.lost(), outcome.stdout == "refused\n")
}

#[test]
fn a_failed_allocation_ends_nothing_and_missing_events_are_counted() {
    let plain = record(0);
    assert_eq!((plain.1, plain.2), (0, false));
    assert!(plain.0.len() >= 17, "{}", plain.0.len());
    let mut missing = 0;
    for number in 1..MANY {
        let (shown, lost, refused) = record(number);
        if shown != plain.0 {
            let differs = plain.0.iter().find(|line| !shown.contains(line));
            assert!(lost > 0, "{number}: missing without a count: {differs:?}");
            missing += 1;
        }
        if !refused {
            println!("ALLOCATIONS up to {number} failed, one at a time: {missing} events missing");
            assert!(number > 40 && missing > 10, "{number} {missing}");
            return;
        }
    }
    panic!("more than {MANY} allocations");
}
