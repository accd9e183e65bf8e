//! Spans that do not end one after the other, or get their arguments late.

use e2e::host_support::{Found, Host, scratch, undisturbed};
use e2e::reader::read_dir;

const HOST: &str = env!("CARGO_BIN_EXE_host");

#[test]
fn late_arguments_stay_with_their_span_and_take_no_memory() {
    let dir = scratch();
    let outcome = undisturbed(HOST, dir.path(), &["late-args", "200000"]);
    assert_eq!(outcome.stdout, "late-args 200000 bounded: true\n");
    let recording = read_dir(dir.path());
    assert_eq!(recording.damage, Vec::<String>::new());
    for label in ["step", "kernel"] {
        let of_label = |event: &&serde_json::Value| event["args"]["label"] == label;
        let events: Vec<_> = recording.events.iter().filter(of_label).collect();
        assert_eq!(events.len(), 200_000);
        for event in events {
            assert_eq!(event["args"]["late"], event["args"]["index"], "{event}");
            assert_eq!(event["args"]["tokens"] == 8, label == "step", "{event}");
        }
    }
}

#[test]
fn spans_that_end_in_the_order_they_began_take_no_memory() {
    let dir = scratch();
    let outcome = undisturbed(HOST, dir.path(), &["out-of-order", "200000"]);
    assert_eq!(outcome.stdout, "out-of-order 200000 bounded: true\n");
    let rounds = ["a", "b", "c"].map(|label| (label, 200_000));
    let expected = [rounds.as_slice(), &[("serve", 1)]].concat();
    Found::in_dir(dir.path()).assert_exactly(&expected);
}

#[test]
fn what_is_open_after_a_deep_disorder_is_shown_by_a_crash() {
    for depth in [3, 31, 32, 33, 40, 300] {
        let dir = scratch();
        let arguments = ["deep-then-killed", &depth.to_string()];
        let host = Host::new(HOST)
            .arguments(&arguments)
            .recorded_in(dir.path());
        let _killed = host.run().was_killed();
        let recording = read_dir(dir.path());
        assert_eq!(recording.unfinished.len(), 1, "depth {depth}");
        assert_eq!(recording.unfinished[0]["name"], "work", "depth {depth}");
    }
}
