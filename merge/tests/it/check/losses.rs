//! Events, and the rules that they break: a table.

use super::{Counts, changed, counts, flow, span};
use serde_json::{Value, json};

/// Returns events, and how often each rule is broken by them. All are in process 1 and its thread 1, and their arrows have small ids.
#[expect(clippy::too_many_lines, reason = "a table")]
pub(super) fn losses() -> Vec<(Vec<Value>, Counts)> {
    let none = || json!({});
    let other = |event: Value| changed(event, json!({"tid": 2}));
    let counter = |args: Value| json!({"ph": "C", "pid": 1, "ts": 5, "name": "q", "args": args});
    vec![
        (
            vec![span(none()), span(json!({"ts": -5}))],
            counts([("negative_time", 1)]),
        ),
        (
            vec![span(none()), span(json!({"ts": null}))],
            counts([("no_time", 1)]),
        ),
        (
            vec![span(none()), span(json!({"dur": null}))],
            counts([("no_time", 1)]),
        ),
        (
            vec![span(none()), span(json!({"ph": null}))],
            counts([("bad_phase", 1)]),
        ),
        (
            vec![span(none()), span(json!({"ph": "Q"}))],
            counts([("bad_phase", 1)]),
        ),
        (
            vec![
                span(none()),
                span(json!({"ts": 50})),
                span(json!({"ts": 60, "dur": 45})),
                span(json!({"ts": 120})),
            ],
            counts([("overlap", 1)]),
        ),
        (
            vec![
                span(none()),
                json!({"ph": "B", "pid": 1, "tid": 1, "ts": 20, "name": "b"}),
                json!({"ph": "E", "pid": 1, "tid": 1, "ts": 120}),
                json!({"ph": "E", "pid": 1, "tid": 1, "ts": 130}),
            ],
            counts([("misplaced_end", 1), ("end_without_begin", 1)]),
        ),
        (
            vec![
                span(none()),
                flow("s", 11, json!(1), none()),
                flow("s", 12, json!(1), none()),
                flow("f", 13, json!(1), none()),
            ],
            counts([("flow_twice", 1)]),
        ),
        (
            vec![
                span(none()),
                flow("s", 12, json!(5), none()),
                other(flow("f", 13, json!(5), none())),
            ],
            counts([("flow_without_span", 1)]),
        ),
        (
            vec![
                span(none()),
                flow("s", 12, json!("zz"), none()),
                flow("s", 13, json!(1.5), none()),
                flow("s", 14, Value::Null, json!({"id": null})),
                flow(
                    "s",
                    15,
                    Value::Null,
                    json!({"id": null, "id2": {"global": "0x1"}}),
                ),
            ],
            counts([("bad_id", 4)]),
        ),
        (
            vec![
                // What ends at a time does so before what begins then.
                span(json!({"ts": 20, "dur": 5})),
                json!({"ph": "B", "pid": 1, "tid": 1, "ts": 10, "name": "b"}),
                json!({"ph": "E", "pid": 1, "tid": 1, "ts": 20, "name": "b"}),
            ],
            counts([]),
        ),
        (
            vec![
                // An end is of the same category, if it has one.
                json!({"ph": "B", "pid": 1, "tid": 1, "ts": 10, "name": "b", "cat": "x"}),
                json!({"ph": "E", "pid": 1, "tid": 1, "ts": 20, "name": "b", "cat": "y"}),
                json!({"ph": "E", "pid": 1, "tid": 1, "ts": 30, "name": "b"}),
            ],
            counts([("end_without_begin", 1)]),
        ),
        (
            vec![
                // Of nothing, of another id, of another category, of another name.
                json!({"ph": "e", "pid": 1, "ts": 2, "name": "q", "cat": "c", "id": 1}),
                json!({"ph": "b", "pid": 1, "ts": 3, "name": "q", "cat": "c", "id": 1}),
                json!({"ph": "e", "pid": 1, "ts": 4, "name": "q", "cat": "c", "id": "1"}),
                json!({"ph": "e", "pid": 1, "ts": 5, "name": "q", "id": 1}),
                json!({"ph": "e", "pid": 1, "ts": 6, "name": "r", "cat": "c", "id": 1}),
            ],
            counts([("end_without_begin", 4)]),
        ),
        (
            vec![
                json!({"ph": "b", "pid": 1, "ts": 3, "name": "q", "cat": "c", "id": 1}),
                json!({"ph": "b", "pid": 1, "ts": 4, "name": "r", "cat": "c", "id": 1}),
                json!({"ph": "e", "pid": 1, "ts": 5, "name": "q", "cat": "c", "id": 1}),
                json!({"ph": "e", "pid": 1, "ts": 6, "name": "r", "cat": "c", "id": 1}),
            ],
            counts([("misplaced_end", 1), ("end_without_begin", 1)]),
        ),
        (
            vec![
                // No time passes between these.
                span(none()),
                json!({"ph": "b", "pid": 1, "ts": 3, "name": "q", "cat": "c", "id": 1}),
                json!({"ph": "e", "pid": 1, "ts": 3, "name": "q", "cat": "c", "id": 1}),
            ],
            counts([]),
        ),
        (
            vec![
                // The id of a process, and one of all.
                json!({"ph": "b", "pid": 1, "ts": 3, "name": "q", "cat": "c", "id2": {"local": 1}}),
                json!({"ph": "e", "pid": 2, "ts": 5, "name": "q", "cat": "c", "id2": {"local": 1}}),
                json!({"ph": "b", "pid": 1, "ts": 3, "name": "q", "cat": "c", "id2": {"global": 2}}),
                json!({"ph": "e", "pid": 2, "ts": 5, "name": "q", "cat": "c", "id": 2}),
            ],
            counts([("end_without_begin", 1)]),
        ),
        (
            vec![
                json!({"ph": "b", "pid": 1, "ts": 3, "name": "q", "cat": "c"}),
                json!({"ph": "e", "pid": 1, "ts": 5, "name": "q", "cat": "c", "id2": {"local": 1}}),
            ],
            counts([("bad_id", 1), ("end_without_begin", 1)]),
        ),
        (
            vec![span(none()), span(json!({"tid": 1_u64 << 47}))],
            counts([("bad_thread", 1)]),
        ),
        (
            vec![
                // These lie on their process, whatever thread they name.
                span(none()),
                changed(counter(json!({"a": 1})), json!({"tid": 0})),
                changed(counter(json!({"a": 1})), json!({"tid": 1_u64 << 47})),
                json!({"ph": "b", "pid": 1, "tid": 0, "ts": 3, "name": "q", "cat": "c", "id": 8}),
                json!({"ph": "e", "pid": 1, "tid": -1, "ts": 5, "name": "q", "cat": "c", "id": 8}),
                json!({"ph": "i", "pid": 1, "tid": 0, "ts": 5, "name": "q", "s": "p"}),
                json!({"ph": "i", "pid": 1, "tid": 0, "ts": 5, "name": "q", "s": "g"}),
            ],
            counts([]),
        ),
        (
            vec![
                changed(counter(json!({"a": 1})), json!({"pid": 1_u64 << 40})),
                json!({"ph": "b", "pid": -1, "ts": 3, "name": "q", "cat": "c", "id": 9}),
            ],
            counts([("bad_thread", 2)]),
        ),
        (
            vec![
                flow("s", 20, json!("0xff"), none()),
                span(none()),
                flow("f", 30, json!("ff"), none()),
                flow("f", 30, json!(255), none()),
            ],
            counts([]),
        ),
    ]
}
