use super::*;
use crate::event::json::Span;
use crate::event::line::parse;
use crate::event::scan::Part;

/// Returns the hits of a line that is a single part.
fn hits(line: &[u8]) -> Hits<'_> {
    let mut hits = Hits::new(line, &[]);
    hits.enter(Part::whole(line));
    hits
}

const LINES: [&str; 6] = [
    r#"{"ph":"X","pid":1,"tid":1,"ts":1.000,"dur":1.000,"name":"a","cat":"c","args":{"request_id":"cmpl-1","n":1}}"#,
    r#"{"name":"request_id","cat":"c","ph":"X","ts":1,"dur":7,"pid":1,"tid":1,"args":{"b":"x","request_ids":["a","b",7]}}"#,
    r#"{"ph":"i","pid":1,"tid":1,"ts":1.000,"s":"t","name":"a","cat":"c","args":{"request_id":"i","external_id":"e"}}"#,
    r#"{"ph":"X","pid":1,"ts":1,"dur":1,"args":{"o":{"request_id":"i"},"internal_ids":["i",{}]},"request_id":"z"}"#,
    r#"{"ph":"X","pid":1,"ts":1,"dur":1,"args":{"t":"\"request_id\":\"r\"","request_id":"request_id","external_ids":[]}}"#,
    r#"{"ph":"X","pid":1,"ts":1,"dur":1,"args":{"x_request_id":"a","request_id":12}, "x":{"args":{"request_id":"q"}}}"#,
];

#[test]
fn hits_and_a_scan_find_the_same_in_mutated_lines() {
    let alphabet = b"{}[]\",:\\e0 _sn1";
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 16).expect("64-bit") % limit
    };
    let (mut fast, mut slow) = (0, 0);
    for round in 0..200_000 {
        let mut text = LINES[round % LINES.len()].as_bytes().to_vec();
        for _ in 0..next(4) {
            let (at, to) = (next(text.len()), next(text.len()));
            match next(4) {
                0 => drop(text.remove(at)),
                1 => text[at] = alphabet[next(alphabet.len())],
                2 => text.insert(at, alphabet[next(alphabet.len())]),
                _ => {
                    let piece = text[at.min(to)..at.max(to)].to_vec();
                    text.splice(at..at, piece);
                }
            }
        }
        // If a key is repeated, the last one counts, and only a scan detects that.
        let Some(event) = parse(&text).ok().filter(|event| !event.fields.repeated) else {
            continue;
        };
        let mut scanned = RequestIds::default();
        scanned.clear();
        scanned.read_args(&event);
        // The position of the args is known in some lines and unknown in others.
        let mut unplaced = event;
        unplaced.fields.args = Span::default();
        for event in [event, unplaced] {
            let mut quick = RequestIds::default();
            quick.clear();
            let mut hits = hits(event.line);
            let read = quick.read_hits(&event, 0, &mut hits, &Lists::<()>::default());
            if read.is_none() {
                slow += 1;
                continue;
            }
            let text = String::from_utf8_lossy(&text);
            assert_eq!(quick.engine_ids, scanned.engine_ids, "{text}");
            assert_eq!(quick.client_ids, scanned.client_ids, "{text}");
            fast += 1;
        }
    }
    assert!(fast > 20_000 && slow > 2_000, "{fast} by hits, {slow} not");
}
