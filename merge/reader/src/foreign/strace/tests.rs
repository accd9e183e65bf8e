//! The log as it comes from several processes at once.

use super::*;
use crate::foreign::lines::FirstReading;
use std::io::{Read as _, Seek, SeekFrom};

fn outcome(text: &str) -> (StraceLog, Vec<Value>, Vec<(u64, Kind)>) {
    let dir = tempfile::tempdir().unwrap();
    let mut lines = Lines::new(dir.path(), FirstReading::default()).unwrap();
    let log = read(text.as_bytes(), &mut lines, &mut |_| {}).unwrap();
    let places = lines.places.listed.clone();
    let ((mut file, _), mut text) = (lines.finish().unwrap(), String::new());
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_string(&mut text).unwrap();
    let events = text.lines().map(|line| serde_json::from_str(line).unwrap());
    (log, events.collect(), places)
}

const SPAN_TEXT: &str = "[mono_ns=9][T0x7f][TIMING] f: [STRACE] v=1 pid=7 tid=8 inv=1 hid=9c depth=1 name=node.submit ts=2352284884589 dur=16144 run_id=1 role=a%20b";
const ANCHOR_TEXT: &str = "[mono_ns=9][T0x7f][TIMING] clock_anchor: [CLOCK_ANCHOR] v=1 pid=7 mono_ns=2000 wall_ns=1795228985127264334";

#[test]
fn spans_are_found_among_other_lines_and_glued_ones() {
    let text = format!("server starts\n{ANCHOR_TEXT}\n{SPAN_TEXT}{SPAN_TEXT}\nother [INFO] line\n");
    assert!(is_log(text.as_bytes()));
    let (log, events, places) = outcome(&text);
    assert_eq!(places, []);
    assert_eq!(log.walls_ns[&7], 1_795_228_985_127_262_334);
    assert_eq!((log.pids, events.len()), ([7].into(), 2));
    assert_eq!(events[0], events[1]);
    assert_eq!(
        events[0].to_string(),
        r#"{"args":{"depth":1,"hid":"9c","inv":1,"role":"a b","run_id":"1"},"cat":"strace","dur":16.144,"name":"node.submit","ph":"X","pid":7,"tid":8,"ts":2352284884.589}"#
    );
}

#[test]
fn what_is_no_record_is_told() {
    let text = format!("{SPAN_TEXT}\nx [STRACE] v=1 pid=oops\n{SPAN_TEXT}");
    let (_, events, places) = outcome(&text);
    let at = SPAN_TEXT.len() as u64 + 3;
    let last = text.rfind("[STRACE]").unwrap() as u64;
    assert_eq!(events.len(), 1);
    assert_eq!(places, [(at, Kind::BadEvent), (last, Kind::TornTail)]);
}

#[test]
fn documents_are_no_logs() {
    for text in [
        r#"[{"name":"[STRACE] v=1"}]"#,
        r#"{"traceEvents":[{"name":"[STRACE] v=1"}]}"#,
        "[]",
        "[INFO] nothing of it",
    ] {
        assert!(!is_log(text.as_bytes()), "{text}");
    }
}
