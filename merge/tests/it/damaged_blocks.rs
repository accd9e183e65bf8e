//! Golden set, blocks: checksums, repeats, gaps, losses, segments.

use crate::invocation::{Merged, RunDir};
use format_oracle::writer::line::stream;
use format_oracle::writer::{Fragment, Process};

const PID: u32 = 500;
const FILE: &str = "trace.500.jsonl";

fn span(name: &str) -> String {
    Process::new(PID)
        .main_thread()
        .span(1_000_000, 500, name, "")
}

fn merge(fragment: &Fragment) -> Merged {
    let dir = RunDir::new();
    fragment.write_here(&dir.fragments());
    dir.merge()
}

fn damage(offset: usize, kind: &str) -> (String, u64, String) {
    (FILE.into(), offset as u64, kind.into())
}

#[test]
fn whole_blocks_are_no_damage() {
    let mut fragment = Process::new(PID).fragment();
    let next = fragment.block(1, 0, &stream(&[span("a"), span("b")]));
    fragment.block(0, 0, &stream(&[Process::new(PID).anchor(5)]));
    fragment.block(1, next, &stream(&[span("c")]));
    let merged = merge(&fragment);
    assert_eq!(merged.trace.names(), ["a", "b", "c"]);
    assert_eq!(merged.report.number("damage_total"), 0);
    assert!(
        merged
            .trace
            .events
            .iter()
            .all(|event| !event["name"].as_str().unwrap().starts_with("sa_"))
    );
}

#[test]
fn a_bad_checksum_costs_only_the_damaged_line() {
    let mut fragment = Process::new(PID).fragment();
    let content = stream(&[span("a"), span("b"), span("c")]);
    let start = fragment.bytes.len();
    let next = fragment.block(1, 0, &content);
    fragment.block(1, next, &stream(&[span("d")]));
    let at = start
        + fragment.bytes[start..]
            .windows(10)
            .position(|window| window == b"\"name\":\"b\"")
            .unwrap();
    fragment.bytes[at] = b'!';
    let merged = merge(&fragment);
    assert_eq!(merged.trace.names(), ["a", "c", "d"]);
    assert!(
        merged.report.damage().contains(&damage(start, "bad_block")),
        "{:?}",
        merged.report.damage()
    );
    assert_eq!(
        merged.report.kind("gap"),
        0,
        "a bad block is not told twice"
    );
}

#[test]
fn a_bad_checksum_in_the_header_costs_no_line() {
    let mut fragment = Process::new(PID).fragment();
    let start = fragment.bytes.len();
    fragment.block(1, 0, &stream(&[span("a"), span("b")]));
    let sum = start
        + fragment.bytes[start..]
            .windows(7)
            .position(|window| window == b"\"sum\":\"")
            .unwrap()
        + 7;
    fragment.bytes[sum] = if fragment.bytes[sum] == b'0' {
        b'1'
    } else {
        b'0'
    };
    let merged = merge(&fragment);
    assert_eq!(merged.trace.names(), ["a", "b"]);
    assert_eq!(merged.report.damage(), [damage(start, "bad_block")]);
}

#[test]
fn a_destroyed_block_header_costs_no_line() {
    let mut fragment = Process::new(PID).fragment();
    let start = fragment.bytes.len();
    let next = fragment.block(1, 0, &stream(&[span("a"), span("b")]));
    fragment.block(1, next, &stream(&[span("c")]));
    fragment.bytes[start] = b'!';
    let merged = merge(&fragment);
    assert_eq!(merged.trace.names(), ["a", "b", "c"]);
    assert!(
        merged.report.damage().contains(&damage(start, "bad_json")),
        "{:?}",
        merged.report.damage()
    );
}

#[test]
fn a_block_of_a_torn_file_gives_its_whole_lines() {
    let mut fragment = Process::new(PID).fragment();
    let start = fragment.bytes.len();
    fragment.block(1, 0, &stream(&[span("a"), span("b")]));
    fragment.bytes.truncate(fragment.bytes.len() - 10);
    let merged = merge(&fragment);
    assert_eq!(merged.trace.names(), ["a"]);
    assert!(
        merged.report.damage().contains(&damage(start, "bad_block")),
        "{:?}",
        merged.report.damage()
    );
}

#[test]
fn a_doubled_block_counts_once() {
    let mut fragment = Process::new(PID).fragment();
    let content = stream(&[span("a"), span("b")]);
    fragment.block(1, 0, &content);
    let next = fragment.block(1, 0, &content);
    fragment.block(1, next, &stream(&[span("c")]));
    fragment.block(1, 0, &content);
    let merged = merge(&fragment);
    assert_eq!(merged.trace.names(), ["a", "b", "c"]);
    assert_eq!(merged.report.number("damage_total"), 0);
}

#[test]
fn a_longer_repeat_adds_only_what_is_new() {
    let mut fragment = Process::new(PID).fragment();
    fragment.block(1, 0, &stream(&[span("a")]));
    fragment.block(1, 0, &stream(&[span("a"), span("b")]));
    let merged = merge(&fragment);
    assert_eq!(merged.trace.names(), ["a", "b"]);
    assert_eq!(merged.report.number("damage_total"), 0);
}

#[test]
fn a_short_write_that_was_repeated_is_no_damage() {
    let mut whole = Process::new(PID).fragment();
    let start = whole.bytes.len();
    whole.block(1, 0, &stream(&[span("a"), span("b")]));
    for cut in start + 1..whole.bytes.len() {
        let mut fragment = Fragment {
            pid: PID,
            bytes: whole.bytes[..cut].to_vec(),
        };
        fragment.raw(b"\n");
        let next = fragment.block(1, 0, &stream(&[span("a"), span("b"), span("c")]));
        fragment.block(1, next, &stream(&[span("d")]));
        if cut % 7 == 0 || cut + 3 > whole.bytes.len() {
            let merged = merge(&fragment);
            assert_eq!(merged.trace.names(), ["a", "b", "c", "d"], "cut at {cut}");
            let inside = whole.bytes[start..cut].contains(&b'\n');
            assert!(
                !inside || merged.report.number("damage_total") == 0,
                "cut at {cut}: {:?}",
                merged.report.damage()
            );
        }
    }
}

#[test]
fn a_damaged_repeat_of_a_short_write_gives_its_whole_lines() {
    let mut fragment = Process::new(PID).fragment();
    let content = stream(&[span("a"), span("b"), span("c")]);
    fragment.block(1, 0, &content);
    fragment
        .bytes
        .truncate(fragment.bytes.len() - content.len() + 10);
    fragment.raw(b"\n");
    fragment.block(1, 0, &content);
    let brace = fragment.bytes.len() - 4;
    fragment.bytes[brace] = b'!';
    let merged = merge(&fragment);
    assert_eq!(merged.trace.names(), ["a", "b"]);
    assert!(merged.report.kind("bad_block") >= 1);
}

#[test]
fn positions_start_again_in_each_generation_and_slot() {
    let mut fragment = Process::new(PID).fragment();
    fragment.block_of(1, 0, 0, &stream(&[span("a")]));
    fragment.block_of(1, 1, 0, &stream(&[span("b")]));
    fragment.block_of(2, 0, 0, &stream(&[span("c")]));
    let merged = merge(&fragment);
    assert_eq!(merged.trace.names(), ["a", "b", "c"]);
    assert_eq!(merged.report.number("damage_total"), 0);
}

#[test]
fn a_gap_is_damage_unless_a_loss_explains_it() {
    for (first, told) in [(0, false), (0, true), (1, false), (1, true)] {
        let mut fragment = Process::new(PID).fragment();
        let mut from = 0;
        if first == 1 {
            from = fragment.block(1, 0, &stream(&[span("a")]));
        }
        if told {
            let place = format!(r#","slot":1,"gen":0,"from":{from},"to":{}"#, from + 1000);
            let loss = Process::new(PID)
                .main_thread()
                .loss(1_000_500, "disk_full", 12, &place);
            fragment.block(0, 0, &stream(&[loss]));
        }
        fragment.block(1, from + 1000, &stream(&[span("b")]));
        let merged = merge(&fragment);
        assert_eq!(
            merged.report.kind("gap"),
            u64::from(!told),
            "first {first}, told {told}"
        );
        assert_eq!(
            merged.report.number("damage_total"),
            u64::from(!told),
            "first {first}, told {told}"
        );
        assert_eq!(
            merged.report.number("lost_events"),
            if told { 12 } else { 1 },
            "a gap that nothing explains held an event at least"
        );
        assert_eq!(
            merged.trace.all_named("sa_loss").len(),
            1,
            "a loss is visible, whoever tells it"
        );
        assert_eq!(merged.trace.all_named("b").len(), 1);
    }
}

#[test]
fn issue_19_a_gap_stands_on_the_row_whose_events_are_missing() {
    let worker = Process::new(PID).thread(9);
    let span = |ts_ns: u64, name: &str| worker.span(ts_ns, 500_000, name, "");
    let mut fragment = Process::new(PID).fragment();
    fragment.block(
        0,
        0,
        &stream(&[Process::new(PID)
            .main_thread()
            .span(500_000, 9_000_000, "other", "")]),
    );
    let from = fragment.block(1, 0, &stream(&[span(1_000_000, "a"), span(2_000_000, "b")]));
    fragment.block(
        1,
        from + 1000,
        &stream(&[span(7_000_000, "c"), span(8_000_000, "d")]),
    );
    let merged = merge(&fragment);
    let [gap] = merged.trace.gaps()[..] else {
        panic!("one gap: {:?}", merged.trace.gaps())
    };
    // From the end of the last span before it to that of the first one behind it; the trace begins with the first span.
    assert_eq!(
        (&gap["tid"], &gap["s"], &gap["ts"]),
        (&9.into(), &"t".into(), &2000.0.into())
    );
    let args = serde_json::json!({"cause": "gap", "events": 1, "span_us": 5000, "bytes": 1000});
    assert_eq!(gap["args"], args);
    assert_eq!(merged.report.number("lost_events"), 1);
    let loss = &merged.report.0["losses"][0];
    let told = (
        &loss["cause"],
        &loss["events"],
        &loss["bytes"],
        &loss["events_left"],
    );
    assert_eq!(
        told,
        (&"gap".into(), &1.into(), &1000.into(), &1.into()),
        "{loss}"
    );
    assert_eq!(
        (&loss["from_ns"], &loss["to_ns"]),
        (&2_000_000.into(), &7_000_000.into())
    );
}

#[test]
fn a_loss_that_explains_less_than_the_gap_leaves_damage() {
    let mut fragment = Process::new(PID).fragment();
    let loss = Process::new(PID).main_thread().loss(
        1_000_500,
        "disk_full",
        12,
        r#","slot":1,"gen":0,"from":0,"to":500"#,
    );
    fragment.block(0, 0, &stream(&[loss]));
    fragment.block(1, 1000, &stream(&[span("b")]));
    assert_eq!(merge(&fragment).report.kind("gap"), 1);
}

#[test]
fn segments_of_one_recorder_join() {
    let process = Process::new(PID);
    let dir = RunDir::new();
    let mut first = process.fragment();
    let next = first.block(1, 0, &stream(&[span("a")]));
    first.write(&dir.fragments(), "500");
    let mut second = Fragment::foreign(PID);
    second.line(&process.header(1));
    second.block(1, next, &stream(&[span("b")]));
    second.write(&dir.fragments(), "500.s1");
    let merged = dir.merge();
    assert_eq!(merged.trace.names(), ["a", "b"]);
    assert_eq!(
        merged.report.number("damage_total"),
        0,
        "{:?}",
        merged.report.damage()
    );
    assert_eq!(
        merged.trace.named("a")["pid"],
        merged.trace.named("b")["pid"]
    );
    assert_eq!(
        merged.trace.named("a")["tid"],
        merged.trace.named("b")["tid"]
    );
}

#[test]
fn a_missing_segment_is_a_gap() {
    let process = Process::new(PID);
    let dir = RunDir::new();
    let mut first = process.fragment();
    let next = first.block(1, 0, &stream(&[span("a")]));
    first.write(&dir.fragments(), "500");
    let mut third = Fragment::foreign(PID);
    third.line(&process.header(2));
    third.block(1, next + 100, &stream(&[span("c")]));
    third.write(&dir.fragments(), "500.s2");
    let merged = dir.merge();
    assert_eq!(merged.trace.names(), ["a", "c"]);
    assert!(
        merged.report.kind("gap") >= 1,
        "{:?}",
        merged.report.damage()
    );
}

/// A fragment that shows blocks among its first lines is split at all of them. One that shows none there for a long while, as if it were
/// foreign, must be read in the same way.
#[test]
fn blocks_far_behind_a_damaged_head_are_found() {
    type Write<'a> = &'a dyn Fn(&mut Fragment);
    let content = stream(&[span("a"), span("b"), span("a")]);
    let text = format!(r#""text":"{}""#, "x".repeat(4000));
    let long = Process::new(PID).main_thread().span(1, 1, "plain", &text);
    let header = |tail: &str| format!(r#"{{"ph":"M","name":"sa_block","pid":5{tail}"#);
    let repeats = header(r#","tid":5,"ph":"i","ts":9.000,"name":"repeats"}"#);
    let cases: [(&str, Write<'_>); 6] = [
        ("nothing", &|_| {}),
        ("a whole one", &|to| _ = to.block(1, 0, &content)),
        ("the same positions again", &|to| {
            to.block(1, 0, &content);
            to.block(1, 0, &content);
        }),
        ("a wrong byte", &|to| {
            to.block(1, 0, &content);
            let last = to.bytes.len() - 2;
            to.bytes[last] = b'!';
        }),
        ("a zero in the header", &|to| {
            _ = to.raw(format!("{}\0\n", header("")).as_bytes());
            to.block(1, 0, &content);
        }),
        ("a key again", &|to| {
            _ = to.raw(format!("{repeats}\n").as_bytes());
            to.block(1, 4, &content);
        }),
    ];
    for (what, write) in cases {
        let merged = [true, false].map(|is_plain_to_see| {
            let mut fragment = Fragment::foreign(PID);
            if is_plain_to_see {
                fragment.block(2, 0, &stream(&[span("seen")]));
            }
            while fragment.bytes.len() < 3 << 20 {
                fragment.line(&long);
            }
            write(&mut fragment);
            let merged = merge(&fragment);
            let names = merged.trace.names().into_iter().map(str::to_owned);
            let names: Vec<_> = names.filter(|name| name != "seen").collect();
            (names, merged.report.0["damage_by_kind"].clone())
        });
        assert_eq!(merged[0], merged[1], "{what}");
    }
}
