//! Invisible characters in names of recorded things and of the directory (issues 19 and 13): none of them may reach the terminal.

use crate::program::Ground;
use std::fs;
use std::path::Path;

/// Characters for which `is_invisible` returns true.
const HIDDEN: [char; 3] = ['\u{202e}', '\u{1b}', '\u{200b}'];

/// Writes a run of a dead process with such characters in its name, host and run.
fn record(directory: &Path) {
    let fragments = directory.join("fragments");
    fs::create_dir_all(&fragments).unwrap();
    let odd = "x\u{202e}y\u{200b}";
    let header = format!(
        r#"{{"ph":"M","pid":4711,"tid":4711,"name":"sa_fragment","args":{{"version":1,"nonce":"9f86d081884c7d65","segment":0,"run":"run-{odd}","main":true,"host":"h{odd}","boot_id":"b","pid_ns":1,"time_ns":2,"monotonic_offset_ns":0,"pid":4711,"start_time":812345,"exe":"exe{odd}","script":"s{odd}\u001b[2J.py","ring":"heap","page_bytes":4096}}}}"#
    );
    let span = r#"{"ph":"X","pid":4711,"tid":4711,"ts":5000.000,"dur":2.000,"name":"n","cat":"c"}"#;
    let name = format!(
        r#"{{"ph":"M","pid":4711,"tid":4711,"name":"process_name","args":{{"name":"worker{odd}\u001b[2J"}}}}"#
    );
    let text = format!("{header}\n{name}\n{span}\n");
    fs::write(fragments.join("trace.4711.jsonl"), text).unwrap();
}

#[test]
fn issue_19_no_message_turns_a_terminal_around() {
    let ground = Ground::new();
    let directory = "od\u{202e}d\u{1b}[2J";
    record(&ground.path(directory));
    for words in [
        &["status", directory][..],
        &["status", "--json", directory],
        &["doctor", directory],
        &["doctor", "--json", directory],
        &["stop", directory],
        &["level", "e2e", directory],
        &["snapshot", directory, "cop\u{202e}y"],
    ] {
        let ended = ground.run(words);
        let said = ended.stdout.clone() + &ended.stderr;
        assert!(!said.contains(HIDDEN), "{words:?}: {said:?}");
        let is_json = words.contains(&"--json");
        let spelled = if is_json { "\\u202e" } else { "<U+202E>" };
        assert!(said.contains(spelled), "{words:?}: {said:?}");
        if is_json {
            serde_json::from_str::<serde_json::Value>(&ended.stdout).unwrap();
        }
    }
}
