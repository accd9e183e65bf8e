//! Spans without a length and samples of other profilers, in large numbers.

use crate::foreign::put;
use crate::invocation::{Merged, RunDir};
use crate::split::split;
use serde_json::{Value, json};

fn merged(options: &[&str], events: &Value) -> (RunDir, Merged) {
    let dir = RunDir::new();
    let path = put(&dir, "other.json", events.to_string().as_bytes());
    let merged = Merged::new(options, &[&path]);
    (dir, merged)
}

/// There may be many such pairs, and their ends may be far from their begins.
#[test]
fn all_spans_without_a_length_get_the_args_of_their_ends() {
    const PAIRS: u64 = 20_000;
    // The first begin is in another chunk than its end.
    let far = 10 * PAIRS;
    let mut events = vec![json!({"ph":"B","name":"FAR","ts":far,"pid":1})];
    for nth in 0..PAIRS {
        let (ts, now) = (10 * nth, 10 * nth + 1);
        events.extend([
            json!({"ph":"B","name":"ALLREDUCE","ts":ts,"pid":1,"args":{"k":nth}}),
            json!({"ph":"B","name":"WAIT","ts":now,"pid":1,"args":{"k":nth,"of":"begin"}}),
            json!({"ph":"E","ts":now,"pid":1,"args":{"request_id":format!("r{nth}"),"k":null}}),
            json!({"ph":"E","ts":ts + 9,"pid":1,"args":{}}),
        ]);
    }
    events.push(json!({"ph":"E","ts":far,"pid":1,"args":{"far":true}}));
    let events = json!(events);
    for options in [&[][..], &["--sort"]] {
        let (_dir, shown) = merged(options, &events);
        assert_eq!(shown.trace.phase("E").len() as u64, PAIRS, "{options:?}");
        let waits = shown.trace.all_named("WAIT");
        assert_eq!(waits.len() as u64, PAIRS);
        for (wait, nth) in waits.into_iter().zip(0..) {
            let args = json!({"of":"begin","request_id":format!("r{nth}"),"k":null});
            assert_eq!((&wait["ph"], &wait["args"]), (&json!("X"), &args));
        }
        assert_eq!(shown.trace.named("FAR")["args"], json!({"far":true}));
    }
}

#[test]
fn each_part_of_a_trace_contains_the_whole_profile_of_v8() {
    let part = |ts: u64, data: Value| json!({"ph":"P","name":"ProfileChunk","cat":"v8","id":"0x1","pid":7,"tid":7,"ts":ts,"args":{"data":data}});
    let begin = part(5_100, json!({"startTime":5_100}));
    let end = part(6_000, json!({"endTime":5_900}));
    let span = |nth| json!({"ph":"X","name":"span","ts":6_000 + nth,"dur":1,"pid":7,"tid":7});
    let events: Vec<Value> = [begin, end].into_iter().chain((0..300).map(span)).collect();
    let (dir, whole) = merged(&[], &json!(events));
    let (parts, _) = split(&dir.path().join("other.json"), &[], "8kB");
    assert!(parts.len() > 2);
    for part in parts {
        assert!(part.bytes.len() <= 8_000, "{}", part.bytes.len());
        assert_eq!(part.trace.phase("P"), whole.trace.phase("P"));
    }
}
