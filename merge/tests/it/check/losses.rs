//! Events, and what is lost of them: a table.

use super::{Counts, changed, counts, flow, span};
use serde_json::{Value, json};

/// Events and what is lost of them. All are in process 1 and its thread 1, and their arrows have small ids.
#[expect(clippy::too_many_lines, reason = "a table")]
pub(super) fn losses() -> Vec<(Vec<Value>, Counts)> {
    let none = || json!({});
    let other = |event: Value| changed(event, json!({"tid": 2}));
    let counter = |args: Value| json!({"ph": "C", "pid": 1, "ts": 5, "name": "q", "args": args});
    vec![
        (
            vec![span(none()), span(json!({"ts": -5}))],
            counts([("negative_ts", 1)]),
        ),
        (
            vec![span(none()), span(json!({"ts": null}))],
            counts([("no_ts", 1)]),
        ),
        (
            vec![span(none()), span(json!({"dur": null}))],
            counts([("no_dur", 1)]),
        ),
        (
            vec![span(none()), span(json!({"ph": null}))],
            counts([("no_phase", 1)]),
        ),
        (
            vec![span(none()), span(json!({"ph": "Q"}))],
            counts([("unknown_phase", 1)]),
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
            counts([("misplaced_end", 1), ("end_without_begin", 2)]),
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
                flow("f", 13, json!(2), none()),
                flow("t", 14, json!(3), none()),
                flow("f", 15, json!(4), json!({"bp": null})),
                span(json!({"ts": 40, "dur": 5})),
            ],
            counts([("flow_without_start", 2), ("flow_from_elsewhere", 1)]),
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
                flow("s", 12, json!(6), none()),
                flow("f", 13, json!(6), json!({"bp": null})),
            ],
            counts([("flow_without_next_span", 1)]),
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
            counts([("flow_id", 4)]),
        ),
        (
            vec![
                span(json!({"bind_id": "0x5"})),
                span(json!({"ts": 200, "bind_id": 5, "flow_in": "true"})),
            ],
            counts([("flow_without_direction", 2)]),
        ),
        (
            vec![
                span(json!({"bind_id": "zz", "flow_out": true})),
                span(json!({"ts": 200, "bind_id": 1.5, "flow_out": true})),
            ],
            counts([("bind_id", 2)]),
        ),
        (
            vec![
                span(json!({"bind_id": "0x10000000000", "flow_out": true})),
                span(json!({"ts": 200, "bind_id": 1_u64 << 40, "flow_in": true, "flow_out": true})),
                json!({"ph": "b", "pid": 1, "ts": 300, "name": "q", "cat": "c", "id": 4, "bind_id": 1_u64 << 40, "flow_in": true}),
                json!({"ph": "B", "pid": 1, "tid": 1, "ts": 400, "name": "b", "bind_id": 1_u64 << 40, "flow_in": true}),
            ],
            counts([]),
        ),
        (
            vec![
                span(json!({"bind_id": 1_u64 << 41, "flow_in": true})),
                span(json!({"ts": 200, "bind_id": 1_u64 << 41, "flow_out": true})),
                span(json!({"ts": 300, "bind_id": 1_u64 << 41, "flow_out": true})),
                other(span(json!({"ts": 400, "dur": 10}))),
                // It is dropped, and its thread has no span left to bind to.
                other(span(
                    json!({"ts": 405, "bind_id": 1_u64 << 42, "flow_out": true}),
                )),
                other(span(
                    json!({"ts": 600, "bind_id": 1_u64 << 42, "flow_in": true}),
                )),
            ],
            counts([("flow_without_start", 1), ("flow_twice", 1), ("overlap", 1)]),
        ),
        (
            vec![
                json!({"ph": "i", "pid": 1, "ts": 5, "name": "q"}),
                json!({"ph": "i", "tid": 1, "ts": 5, "name": "q", "s": "g"}),
                json!({"ph": "i", "pid": 1, "tid": null, "ts": 5, "name": "q", "s": "x"}),
            ],
            counts([("instant_without_thread", 2)]),
        ),
        (
            (0..514)
                .map(|depth| span(json!({"dur": 2000 - depth})))
                .collect(),
            counts([("too_deep", 2)]),
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
                // Of a span that is open nobody knows that it overlaps.
                span(none()),
                json!({"ph": "B", "pid": 1, "tid": 1, "ts": 20, "name": "b"}),
                span(json!({"ts": 30, "dur": 100})),
                span(json!({"ts": 140, "dur": 100})),
            ],
            counts([("misplaced_end", 1)]),
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
                // The end of another name makes the track free, and another id takes it.
                json!({"ph": "b", "pid": 1, "ts": 3, "name": "u", "cat": "c", "id": 1}),
                json!({"ph": "e", "pid": 1, "ts": 4, "name": "r", "cat": "c", "id": 1}),
                json!({"ph": "e", "pid": 1, "ts": 5, "name": "u", "cat": "c", "id": 2}),
            ],
            counts([("end_without_begin", 1)]),
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
            counts([("async_without_id", 1), ("end_without_begin", 1)]),
        ),
        (
            vec![
                counter(json!({"a": "x", "b": 3, "c": "4.5", "d": true})),
                changed(counter(none()), json!({"args": null})),
            ],
            counts([("counter_value", 3)]),
        ),
        (
            vec![span(none()), span(json!({"tid": 1_u64 << 47}))],
            counts([("id_out_of_range", 1)]),
        ),
        (
            vec![span(none()), span(json!({"tid": 0, "ts": 200}))],
            counts([("tid_zero", 1)]),
        ),
        (
            vec![span(none()), counter(json!({"a": 1, "b": 2.5}))],
            counts([]),
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
                // A main thread that shows nothing hides nothing.
                span(json!({"tid": 0})),
                counter(json!({"a": 1})),
            ],
            counts([]),
        ),
        (
            vec![
                changed(counter(json!({"a": 1})), json!({"pid": 1_u64 << 40})),
                json!({"ph": "b", "pid": -1, "ts": 3, "name": "q", "cat": "c", "id": 9}),
            ],
            counts([("id_out_of_range", 2)]),
        ),
        (
            vec![
                span(none()),
                json!({"ph": "M", "pid": 1, "name": "process_name", "ts": 1_763_689_523_000_050.074_f64, "args": {"name": "n"}}),
            ],
            counts([]),
        ),
        (vec![span(json!({"ts": 1_000, "dur": 10}))], counts([])),
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
