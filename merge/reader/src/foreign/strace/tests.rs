//! Logs of several processes at once, and text that is not a valid record.

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
#[test]
fn invalid_records_are_reported() {
    let good = " v=1 pid=7 tid=8 inv=1 hid=9c depth=2 name=a ts=5 dur=6";
    for bad in [
        " v=1 pid=oops",
        "",
        &good.replace("v=1", "v=2"),
        &good.replace(" dur=6", ""),
        &good.replace("ts=5", "ts=-5"),
        &format!("{good} word"),
    ] {
        let text = format!("{SPAN_TEXT}\nx [STRACE]{bad}\n{SPAN_TEXT}");
        let (_, events, places) = outcome(&text);
        let at = SPAN_TEXT.len() as u64 + 3;
        let last = text.rfind("[STRACE]").unwrap() as u64;
        assert_eq!(events.len(), 1);
        assert_eq!(
            places,
            [(at, Kind::BadEvent), (last, Kind::TornTail)],
            "{bad}"
        );
    }
}

#[test]
fn documents_are_not_logs() {
    let inside = r#"{"name":"[STRACE] v=1"}"#;
    let object = format!(r#"{{"traceEvents":[{inside}]}}"#);
    for text in [
        &format!("[{inside}]"),
        &object,
        "[]",
        "[INFO] nothing of it",
    ] {
        assert!(!is_log(text.as_bytes()), "{text}");
    }
}
