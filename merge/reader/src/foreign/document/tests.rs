//! Tests that all forms of a document give their events.

use super::*;
use crate::foreign::lines::FirstReading;
use std::io::{Read as _, Seek, SeekFrom};

/// Lines, and the location and kind of each damage.
type Outcome = (Vec<String>, Vec<(u64, Kind)>);

fn outcome(text: &[u8]) -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let mut lines = Lines::new(dir.path(), FirstReading::default()).unwrap();
    read(text, &mut lines, &mut |_| {}).unwrap();
    let places = lines.places.listed.clone();
    let (mut file, _) = lines.finish().unwrap();
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_string(&mut text).unwrap();
    (text.lines().map(str::to_owned).collect(), places)
}

fn event(ts: u32) -> String {
    format!(r#"{{"ph":"X","name":"a","pid":1,"tid":2,"ts":{ts},"dur":1,"args":{{"x":[{{}}]}}}}"#)
}

fn events(count: u32) -> Vec<String> {
    (0..count).map(event).collect()
}

#[test]
fn damage_costs_what_is_damaged() {
    let (one, two) = (event(1), event(2));
    // Documents with two events. The arrow marks the damage.
    for (kind, document) in [
        (
            Kind::BadJson,
            r#"[ONE,↓{"ph":"X","name":"a "quote" in it","ts":1},TWO]"#,
        ),
        (Kind::BadEvent, r#"[ONE,↓{"ph":"X","ts":1},TWO]"#),
        (Kind::BadEvent, "[ONE,↓null,TWO]"),
        (Kind::BadJson, "[ONE,↓xx,TWO]"),
        (Kind::Nul, "[ONE,↓\0\0\0TWO]"),
        (Kind::Bom, "↓\u{feff}[ONE,TWO]"),
        (Kind::BadJson, "ONE\n↓garbage\nTWO\n"),
        (
            Kind::BadJson,
            r#"{"bad":"a "↓quote" in it","traceEvents":[ONE,TWO]}"#,
        ),
        (
            Kind::BadJson,
            r#"{"traceEvents":[ONE,TWO],↓"bad":nope,"c":1}"#,
        ),
    ] {
        let document = document.replace("ONE", &one).replace("TWO", &two);
        let at = document.find('↓').unwrap() as u64;
        let (lines, places) = outcome(document.replace('↓', "").as_bytes());
        assert_eq!(lines, [one.clone(), two.clone()], "{document}");
        assert_eq!(places, [(at, kind)], "{document}");
    }
}

/// Returns a list, an object and lines with these events.
fn forms(all: &[String]) -> [String; 3] {
    let listed = all.join(",\n");
    let object = format!("{{\"a\":{{\"b\":[1]}},\"traceEvents\":[\n{listed}\n],\"x\":null}}");
    [format!("[{}]", all.join(",")), object, all.join("\n")]
}

#[test]
fn cut_at_every_byte_a_document_loses_at_most_its_last_event() {
    let all = events(4);
    for text in forms(&all) {
        let end = |event: &String| text.find(event).unwrap() + event.len();
        let ends: Vec<usize> = all.iter().map(end).collect();
        for cut in 0..text.len() {
            let (lines, places) = outcome(&text.as_bytes()[..cut]);
            let whole = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(lines, all[..whole], "cut at {cut}: {text}");
            let kinds: Vec<Kind> = places.iter().map(|(_, kind)| *kind).collect();
            assert!(
                matches!(kinds[..], [] | [Kind::TornTail]),
                "cut at {cut}: {places:?}"
            );
        }
    }
}

/// Mutates documents at random. Only complete events may come out, and everything lost must be reported as damage.
#[test]
fn mutated_documents_give_whole_events_and_damage() {
    let all = events(6);
    let seeds = forms(&all);
    let alphabet = b"{}[]\",:\\eE+-.019tfnu \t\n\x00\x01\xff\xc3";
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 16).unwrap() % limit
    };
    let (mut whole, mut damaged) = (0, 0);
    for round in 0..1500 {
        let mut text = seeds[round % 3].clone().into_bytes();
        for _ in 0..=next(3) {
            let at = next(text.len());
            match next(4) {
                0 => drop(text.drain(at..(at + next(60)).min(text.len()))),
                1 => text[at] = alphabet[next(alphabet.len())],
                2 => text.insert(at, alphabet[next(alphabet.len())]),
                _ => text.splice(at..at, *b"\0\0\0{\"").for_each(drop),
            }
            if text.is_empty() {
                break;
            }
        }
        let (lines, places) = outcome(&text);
        for line in &lines {
            assert!(crate::event::line::parse(line.as_bytes()).is_ok(), "{line}");
        }
        let is_whole = lines.len() == all.len();
        let shown = String::from_utf8_lossy(&text).into_owned();
        let is_reported = !places.is_empty() || lines.len() > all.len();
        assert!(is_whole || is_reported || is_cut(&text, &all), "{shown}");
        let is_inside = |(at, _): &(u64, Kind)| *at <= text.len() as u64;
        assert!(places.iter().all(is_inside), "{shown}");
        whole += lines.len();
        damaged += places.len();
    }
    assert!(whole > 1500 * 4 && damaged > 500, "{whole} {damaged}");
}

/// Returns true if the mutations removed an event from the text.
fn is_cut(text: &[u8], all: &[String]) -> bool {
    let is_there = |event: &&String| memmem::find(text, event.as_bytes()).is_some();
    all.iter().filter(is_there).count() < all.len()
}
