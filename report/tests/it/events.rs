//! Hand-written traces: each event is a line of a text.

use serde_json::{Value, json};
use tempfile::NamedTempFile;

/// Keys that are members of an event. All other keys are args.
const MEMBERS: [&str; 10] = [
    "bind_id", "bp", "cat", "flow_in", "flow_out", "id", "id2", "s", "tdur", "tts",
];

/// Returns the events of a text. Words are parsed as JSON, or else taken as texts. Quotes enclose spaces, and turn a
/// number into a text. The default thread is 1.
///
/// ```text
/// X 10/7 100.5+20 'a name' cat=kernel queue_us=3   a span of process 10, from 100.5 µs on for 20 µs
/// i 10 500 request.token request_id=r              instants are of their thread
/// C 10 60 requests running=8 waiting=0
/// P 101 'NPU 0' 'NPU 0, pid 11'                    the name and the labels of a process
/// L 11 'pid 11'                                    only its labels
/// T 101/2 'Stream 2'                               the name of a thread
/// M 7/7 sa_end monotonic_ns=5 open=0               metadata of another name
/// // a comment
/// ```
pub(crate) fn events(text: &str) -> Vec<Value> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.flat_map(parse_line).collect()
}

/// Returns the event of one line.
pub(crate) fn event(line: &str) -> Value {
    parse_line(line).remove(0)
}

fn parse_line(line: &str) -> Vec<Value> {
    let words = words(line);
    let (pid, tid) = words[1].split_once('/').unwrap_or((words[1], "1"));
    let meta = |name: &str, key: &str, text: &str| json!({"ph": "M", "pid": value(pid), "tid": value(tid), "name": name, "args": {key: unquoted(text)}});
    match words[..] {
        ["P", _, name] => vec![meta("process_name", "name", name)],
        ["P", _, name, labels] => vec![
            meta("process_name", "name", name),
            meta("process_labels", "labels", labels),
        ],
        ["L", _, labels] => vec![meta("process_labels", "labels", labels)],
        ["T", _, name] => vec![meta("thread_name", "name", name)],
        [phase, _, ref rest @ ..] => {
            let mut event = json!({"ph": phase, "pid": value(pid), "tid": value(tid)});
            let mut rest = rest;
            if let (true, [time, others @ ..]) = (phase != "M", rest) {
                let (ts, dur) = match time.split_once('+') {
                    Some((ts, dur)) => (ts, Some(dur)),
                    None => (*time, None),
                };
                event["ts"] = value(ts);
                if let Some(dur) = dur {
                    event["dur"] = value(dur);
                }
                rest = others;
            }
            if phase == "i" {
                event["s"] = json!("t");
            }
            let is_named = rest.first().is_some_and(|word| !word.contains('='));
            if is_named {
                event["name"] = json!(unquoted(rest[0]));
            }
            for word in &rest[usize::from(is_named)..] {
                let (key, text) = word.split_once('=').unwrap();
                match MEMBERS.contains(&key) {
                    true => event[key] = value(text),
                    false => event["args"][unquoted(key)] = value(text),
                }
            }
            vec![event]
        }
        _ => panic!("{line}"),
    }
}

/// Splits a line at spaces. Quoted words keep their quotes.
pub(crate) fn words(line: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let words = line.split(|letter| {
        is_quoted ^= letter == '\'';
        letter == ' ' && !is_quoted
    });
    words.filter(|word| !word.is_empty()).collect()
}

pub(crate) fn unquoted(word: &str) -> &str {
    word.trim_matches('\'')
}

pub(crate) fn value(word: &str) -> Value {
    serde_json::from_str(word).unwrap_or_else(|_| json!(unquoted(word)))
}

/// Writes a Chrome trace with these events.
pub(crate) fn trace(events: &[Value]) -> NamedTempFile {
    let file = NamedTempFile::with_suffix(".json").unwrap();
    std::fs::write(file.path(), json!({ "traceEvents": events }).to_string()).unwrap();
    file
}
