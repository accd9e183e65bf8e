//! Invisible characters (issue 19, 13): direction marks and similar characters never reach a
//! terminal.

use crate::invocation::{Ended, RunDir, trace_merge};
use crate::pypto;
use format_oracle::writer::line::{On, stream};

#[test]
fn issue_19_messages_do_not_control_the_terminal() {
    let dir = RunDir::new();
    let odd = dir.path().join("od\u{202e}d\u{1b}[2J");
    std::fs::create_dir_all(odd.join("fragments")).unwrap();
    let missing = odd.join("nothing");
    let fragment = odd.join("fragments/trace.7.jsonl");
    let name = "safe\u{202e}gnp.exe\u{200b}";
    let named = On { pid: 7, tid: 8 }.metadata("process_name", &format!(r#""name":"{name}""#));
    let lines = [named, pypto::line(name, 10, 2, ""), "garbage".to_owned()];
    std::fs::write(&fragment, stream(&lines)).unwrap();
    for (options, path, code) in [
        (&[][..], &missing, 2),
        (&[], &odd, 0),
        (&["--report", "json"], &odd, 0),
        (&["--check"], &missing, 2),
        (&["--check"], &fragment, 1),
    ] {
        let ended = Ended::run(trace_merge().args(options).arg(path));
        assert_eq!(ended.code, code, "{options:?}: {}", ended.stderr);
        let output = ended.stderr + &String::from_utf8(ended.stdout).unwrap();
        let is_hidden = !output.contains(['\u{202e}', '\u{1b}', '\u{200b}']);
        assert!(is_hidden, "{options:?}: {output:?}");
        let is_spelled = output.contains("<U+202E>") || output.contains("\\u202e");
        assert!(code == 1 || is_spelled, "{output}");
    }
}
