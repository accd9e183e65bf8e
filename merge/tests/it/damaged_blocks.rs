//! Golden set, blocks: checksums, repeats, gaps, losses.

use crate::invocation::{Merged, RunDir};
use format_oracle::writer::line::stream;
use format_oracle::writer::{Fragment, Process};

const PID: u32 = 500;

fn lines(names: &str) -> Vec<u8> {
    let on = Process::new(PID).main_thread();
    let span = |name: char| on.span(1_000_000, 500, &name.to_string(), "");
    stream(&names.chars().map(span).collect::<Vec<_>>())
}

fn merge(fragment: &Fragment) -> Merged {
    RunDir::of(fragment).merge()
}

/// Writes a block of slot 1 and changes one byte of it, at `at` or, if that is negative, as far before its end.
fn changed(to: &mut Fragment, names: &str, at: isize, byte: u8) -> u64 {
    let start = to.bytes.len();
    let next = to.block(1, 0, &lines(names));
    let from = if at < 0 { to.bytes.len() } else { start };
    to.bytes[from.checked_add_signed(at).unwrap()] = byte;
    next
}

/// Writes the first bytes of a block of slot 1, as a write that was cut short.
fn cut(to: &mut Fragment, names: &str, missing: usize) {
    to.block(1, 0, &lines(names));
    to.bytes.truncate(to.bytes.len() - missing);
}

/// Tells that positions of slot 1 were lost.
fn lose(to: &mut Fragment, from: u64, end: u64) {
    let place = format!(r#","slot":1,"gen":0,"from":{from},"to":{end}"#);
    let on = Process::new(PID).main_thread();
    to.block(0, 0, &stream(&[on.loss(1, "disk_full", 12, &place)]));
}

type Write = fn(&mut Fragment);

/// Cases: name, function that writes the fragment, spans that are shown, and kinds of damage.
const CASES: [(&str, Write, &str, &str); 17] = [
    ("whole blocks", whole, "abc", ""),
    ("a line", a_line, "acd", "bad_block bad_json"),
    ("a checksum", a_checksum, "ab", "bad_block"),
    ("a header", a_header, "abc", "bad_json gap"),
    ("torn", |to| cut(to, "ab", 10), "a", "bad_block torn_tail"),
    ("repeated", repeated, "abc", ""),
    ("repeated with more", repeated_with_more, "ab", ""),
    ("a short write", a_short_write, "abcd", ""),
    ("a damaged repeat", a_damaged_repeat, "ab", DAMAGED_TWICE),
    ("generations and slots", generations, "abc", ""),
    ("a gap below", a_gap_below, "b", "gap"),
    ("a gap between", a_gap_between, "ab", "gap"),
    ("a loss below", a_loss_below, "b", ""),
    ("a loss between", a_loss_between, "ab", ""),
    ("a loss of less", a_loss_of_less, "b", "gap"),
    ("a zero in a header", a_zero, "ab", ""),
    ("a key twice in a header", a_key_twice, "ab", ""),
];
const DAMAGED_TWICE: &str = "bad_block bad_json bad_block bad_json";

fn whole(to: &mut Fragment) {
    let next = to.block(1, 0, &lines("ab"));
    to.block(0, 0, &stream(&[Process::new(PID).anchor(5)]));
    to.block(1, next, &lines("c"));
}

fn a_line(to: &mut Fragment) {
    let line = isize::try_from(lines("c").len()).unwrap();
    let next = changed(to, "abc", -line - 5, b'!');
    to.block(1, next, &lines("d"));
}

fn a_checksum(to: &mut Fragment) {
    let start = to.bytes.len();
    to.block(1, 0, &lines("ab"));
    let header = to.bytes[start..].windows(7);
    let sum = start + 7 + { header }.position(|text| text == b"\"sum\":\"").unwrap();
    to.bytes[sum] = if to.bytes[sum] == b'0' { b'1' } else { b'0' };
}

fn a_header(to: &mut Fragment) {
    let next = changed(to, "ab", 0, b'!');
    to.block(1, next, &lines("c"));
}

fn repeated(to: &mut Fragment) {
    to.block(1, 0, &lines("ab"));
    let next = to.block(1, 0, &lines("ab"));
    to.block(1, next, &lines("c"));
    to.block(1, 0, &lines("ab"));
}

fn repeated_with_more(to: &mut Fragment) {
    to.block(1, 0, &lines("a"));
    to.block(1, 0, &lines("ab"));
}

fn a_short_write(to: &mut Fragment) {
    cut(to, "ab", 20);
    to.raw(b"\n");
    let next = to.block(1, 0, &lines("abc"));
    to.block(1, next, &lines("d"));
}

fn a_damaged_repeat(to: &mut Fragment) {
    cut(to, "abc", lines("abc").len() - 10);
    to.raw(b"\n");
    changed(to, "abc", -4, b'!');
}

fn generations(to: &mut Fragment) {
    to.block_of(1, 0, 0, &lines("a"));
    to.block_of(1, 1, 0, &lines("b"));
    to.block_of(2, 0, 0, &lines("c"));
}

fn a_gap_below(to: &mut Fragment) {
    to.block(1, 1000, &lines("b"));
}

fn a_gap_between(to: &mut Fragment) {
    let from = to.block(1, 0, &lines("a"));
    to.block(1, from + 1000, &lines("b"));
}

fn a_loss_below(to: &mut Fragment) {
    lose(to, 0, 1000);
    a_gap_below(to);
}

fn a_loss_between(to: &mut Fragment) {
    a_gap_between(to);
    let from = lines("a").len() as u64;
    lose(to, from, from + 1000);
}

fn a_loss_of_less(to: &mut Fragment) {
    lose(to, 0, 500);
    a_gap_below(to);
}

const HEADER: &str = r#"{"ph":"M","name":"sa_block","pid":5"#;

fn a_zero(to: &mut Fragment) {
    to.raw(format!("{HEADER}\0\n").as_bytes());
    to.block(1, 0, &lines("ab"));
}

fn a_key_twice(to: &mut Fragment) {
    to.line(&format!(r#"{HEADER},"ph":"i","ts":9,"name":"twice"}}"#));
    to.block(1, 0, &lines("ab"));
}

/// The names of one letter that are shown, and the kinds of damage.
fn found(merged: &Merged) -> [String; 2] {
    let names = merged.trace.names().into_iter();
    let damage = merged.report.damage().into_iter();
    let kinds: Vec<_> = damage.map(|damage| damage.2).collect();
    let names = names.filter(|name| name.len() == 1).collect();
    [names, kinds.join(" ")]
}

#[test]
fn damage_to_a_block_costs_only_what_is_damaged() {
    for (what, write, names, kinds) in CASES {
        let mut fragment = Process::new(PID).fragment();
        let start = fragment.bytes.len() as u64;
        write(&mut fragment);
        let merged = merge(&fragment);
        assert_eq!(found(&merged), [names, kinds], "{what}");
        let (report, damage) = (&merged.report, merged.report.damage());
        let mut bad = damage.iter().filter(|damage| damage.2 != "gap");
        assert!(bad.next().is_none_or(|damage| damage.1 == start), "{what}");
        // A gap that nothing explains held an event at least.
        let lost = 12 * u64::from(what.contains("loss")) + report.kind("gap");
        assert_eq!(report.number("lost_events"), lost, "{what}");
        let is_seen = !merged.trace.all_named("sa_loss").is_empty();
        assert_eq!(is_seen, lost > 0, "{what}");
    }
}

/// A fragment that shows blocks among its first lines is split at all of them. One that shows none there for a long while, as if it were
/// foreign, must be read in the same way.
#[test]
fn blocks_far_behind_a_damaged_head_are_found() {
    let text = format!(r#""text":"{}""#, "x".repeat(4000));
    let long = Process::new(PID).main_thread().span(1, 1, "plain", &text);
    for (what, write, ..) in CASES {
        let merged = [true, false].map(|is_plain_to_see| {
            let mut fragment = Fragment::foreign(PID);
            if is_plain_to_see {
                fragment.block(7, 0, &lines("-"));
            }
            while fragment.bytes.len() < 3 << 20 {
                fragment.line(&long);
            }
            write(&mut fragment);
            found(&merge(&fragment)).map(|text| text.replace('-', ""))
        });
        assert_eq!(merged[0], merged[1], "{what}");
    }
}

#[test]
fn issue_19_a_gap_stands_on_the_row_whose_events_are_missing() {
    let process = Process::new(PID);
    let span = |at_ms: u64| process.thread(9).span(at_ms * 1_000_000, 500_000, "a", "");
    let other = process.main_thread().span(500_000, 9_000_000, "other", "");
    let mut fragment = process.fragment();
    fragment.block(0, 0, &stream(&[other]));
    let from = fragment.block(1, 0, &stream(&[span(1), span(2)]));
    fragment.block(1, from + 1000, &stream(&[span(7), span(8)]));
    let merged = merge(&fragment);
    let [gap] = merged.trace.gaps()[..] else {
        panic!("one gap: {:?}", merged.trace.gaps())
    };
    // The gap lasts from the end of the span before it to the end of the first span after it. The trace begins at the first span.
    assert_eq!((&gap["tid"], &gap["s"]), (&9.into(), &"t".into()));
    assert_eq!(gap["ts"], 2000.0);
    let args = serde_json::json!({"cause": "gap", "events": 1, "span_us": 5000, "bytes": 1000});
    assert_eq!(gap["args"], args);
    let loss = &merged.report.0["losses"][0];
    let [cause, numbers @ ..] = [
        "cause",
        "events",
        "bytes",
        "events_left",
        "from_ns",
        "to_ns",
    ]
    .map(|key| &loss[key]);
    assert_eq!(cause, "gap");
    assert_eq!(numbers, [1, 1000, 1, 2_000_000, 7_000_000]);
}

/// Processes that could not record are counted and reported first, however many other losses there are.
#[test]
fn issue_19_refused_processes_are_counted_beside_many_losses() {
    let process = Process::new(PID);
    let mut lines: Vec<String> = (0..300)
        .map(|tid| process.thread(100 + tid).loss(1_000_000, "busy", 5, ""))
        .collect();
    let args = r#","processes":3,"errno":13"#;
    let refused = process.main_thread();
    lines.insert(7, refused.loss(1_000_000, "children_refused", 0, args));
    lines.push(process.main_thread().span(1_000_000, 500_000, "a", ""));
    let mut fragment = process.fragment();
    fragment.block(0, 0, &stream(&lines));
    let merged = merge(&fragment);
    assert_eq!(merged.report.number("refused_processes"), 3);
    assert_eq!(merged.report.number("lost_events"), 1500);
    let losses = merged.report.0["losses"].as_array().unwrap();
    assert_eq!(losses.len(), 256);
    assert_eq!(losses[0]["cause"], "children_refused");
}
