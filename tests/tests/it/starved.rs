//! One allocation of a thread that records is refused, each in turn: the host goes on, and what is missing is counted.

use crate::host;
use e2e::host_support::{Merged, scratch};

/// More than there are.
const MANY: u64 = 2000;

/// Lets the host record with this allocation refused; what is in the trace but times, what is counted as lost, and whether the host came so far.
fn record(number: u64) -> (Vec<String>, u64, bool) {
    let dir = scratch();
    let dir = dir.path();
    let host = host(dir, &["starved", &number.to_string()]);
    let outcome = host.run().quiet();
    let merged = Merged::newest(dir);
    let events = merged.events().iter();
    let of_host = events.filter(|event| event["cat"] != "sa_profile" && event["ph"] != "M");
    let said = |event: &serde_json::Value| {
        let (name, phase, args) = (&event["name"], &event["ph"], &event["args"]);
        format!("{name} {phase} {args}")
    };
    let mut said: Vec<String> = of_host.map(said).collect();
    said.sort_unstable();
    (said, merged.lost(), outcome.stdout == "refused\n")
}

#[test]
fn an_allocation_that_is_refused_ends_nothing_and_what_is_missing_is_counted() {
    let plain = record(0);
    assert_eq!((plain.1, plain.2), (0, false));
    assert!(plain.0.len() >= 17, "{}", plain.0.len());
    let mut missing = 0;
    for number in 1..MANY {
        let (said, lost, refused) = record(number);
        if said != plain.0 {
            let differs = plain.0.iter().find(|line| !said.contains(line));
            assert!(lost > 0, "{number}: missing without a count: {differs:?}");
            missing += 1;
        }
        if !refused {
            println!("ALLOCATIONS up to {number} refused, one each: {missing} events missing");
            assert!(number > 40 && missing > 10, "{number} {missing}");
            return;
        }
    }
    panic!("more than {MANY} allocations");
}
