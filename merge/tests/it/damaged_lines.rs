//! Golden set, lines: every good line survives, every damage is counted with its kind and byte offset.

use crate::invocation::RunDir;
use format_oracle::writer::{Fragment, Process};

const PID: u32 = 4711;

/// A fragment under construction and what must come of it.
struct Case {
    fragment: Fragment,
    good: Vec<String>,
    bad: Vec<(String, u64, String)>,
}

impl Case {
    fn span(&self, name: &str) -> String {
        let at_ns = 1_000_000 + self.fragment.bytes.len() as u64;
        let on = Process::new(PID).thread(4712);
        on.span(at_ns, 500, name, "\"a\":1")
    }

    /// Appends a whole good line, which ends in `ending`.
    fn good(&mut self, name: &str, ending: &str) {
        let line = self.span(name) + ending;
        self.fragment.raw(line.as_bytes());
        self.good.push(name.to_owned());
    }

    /// Appends bytes that are damage of `kind` from their first byte on.
    fn bad(&mut self, kind: &str, bytes: &[u8]) {
        let offset = self.fragment.raw(bytes);
        let damage = ("trace.4711.jsonl".into(), offset, kind.into());
        self.bad.push(damage);
    }

    fn check(mut self, what: &str) {
        let dir = RunDir::new();
        dir.put("4711", &self.fragment.bytes);
        let merged = dir.merge();
        self.good.sort();
        assert_eq!(merged.trace.names(), self.good, "{what}");
        assert_eq!(merged.report.damage(), self.bad, "{what}");
        for (_, _, kind) in &self.bad {
            let count = self.bad.iter().filter(|bad| bad.2 == *kind).count();
            assert_eq!(merged.report.kind(kind), count as u64, "{what}: {kind}");
        }
    }
}

/// Runs a case as a fragment of others and as plain lines of ours.
fn both(what: &str, build: impl Fn(&mut Case)) {
    for fragment in [Fragment::foreign(PID), Process::new(PID).fragment()] {
        let mut case = Case {
            fragment,
            good: Vec::new(),
            bad: Vec::new(),
        };
        build(&mut case);
        case.check(what);
    }
}

/// Kinds of damage, and lines.
const BAD_LINES: &str = r#"bad_json garbage
bad_json [1,2]
bad_json "text"
bad_json {}x
bad_json {"ph":"X","pid":1,"ts":1.5
bad_json {"ph":"X","pid":1,"ts":1,"dur":NaN}
bad_json {"ph":"i","pid":1,"ts":1,"name":"\x"}
bad_event {}
bad_event {"pid":1,"ts":1,"dur":1}
bad_event {"ph":7,"pid":1,"ts":1,"dur":1}
bad_event {"ph":"","pid":1,"ts":1,"dur":1}
bad_event {"ph":"X","pid":1,"dur":1}
bad_event {"ph":"X","pid":1,"ts":"soon","dur":1}
bad_event {"ph":"X","pid":1,"ts":[1],"dur":1}
bad_event {"ph":"X","pid":1,"ts":1}
bad_event {"ph":"X","ts":1,"dur":1}
bad_event {"ph":"X","pid":null,"ts":1,"dur":1}"#;

#[test]
fn lines_between_good_ones() {
    both("bad lines", |case| {
        let texts = BAD_LINES.lines().map(|line| line.split_once(' ').unwrap());
        let texts = texts.map(|(kind, line)| (kind, line.as_bytes()));
        let of_bytes: [(&str, &[u8]); 3] = [
            ("bad_json", b"\t"),
            ("bad_utf8", b"\xff"),
            ("bad_utf8", b"\xed\xa0\x80"),
        ];
        let named = of_bytes.map(|(kind, bytes)| {
            let line = [br#"{"ph":"i","pid":1,"ts":1,"name":""#, bytes, b"\"}"];
            (kind, line.concat())
        });
        let named = named.iter().map(|(kind, line)| (*kind, &line[..]));
        for (kind, line) in texts.chain(named) {
            case.good("before", "\r\n\n\r\n");
            case.bad(kind, line);
            case.fragment.raw(b"\n");
        }
        case.good("t\u{e9} \u{1f680}", "\n");
        // Invisible characters are spelled out. They are not damage.
        let line = case.span("esc \u{7f}\\u0001\\n\\\"");
        case.fragment.line(&line);
        case.good.push("esc <U+007F><U+0001><U+000A>\"".into());
    });
}

/// A power failure can leave a hole of NUL bytes in a file. The lines around it are still read.
#[test]
fn holes_of_nul() {
    for nuls in [1, 4096, 100_000] {
        both(&format!("{nuls} NULs"), |case| {
            case.good("before", "\n");
            case.bad("nul", &vec![0; nuls]);
            case.fragment.raw(b"\n");
            case.good("between", "\n");
            case.bad("nul", &vec![0; nuls]);
            case.good("directly after", "\n");
            case.bad("nul", &vec![0; nuls]);
        });
    }
}

/// A byte order mark, and a header that is damaged.
#[test]
fn the_first_line() {
    let process = Process::new(PID);
    let span = process.main_thread().span(1000, 5, "kept", "") + "\n";
    let mut own = process.fragment();
    own.block(1, 0, span.as_bytes());
    let own = String::from_utf8(own.bytes).unwrap();
    for (text, kind) in [
        (format!("\u{feff}{span}"), "bom"),
        (format!("\u{feff}{own}"), "bom"),
        (own.replacen('{', "!", 1), "bad_json"),
    ] {
        let dir = RunDir::new();
        dir.put("4711", text.as_bytes());
        let merged = dir.merge();
        assert_eq!(merged.trace.names(), ["kept"]);
        let damage = ("trace.4711.jsonl".to_owned(), 0, kind.to_owned());
        assert_eq!(merged.report.damage(), [damage]);
    }
}

#[test]
fn a_line_over_16_mib() {
    both("100 MB and 15 MB", |case| {
        let mut long = br#"{"ph":"X","pid":4711,"tid":1,"ts":1,"dur":1,"name":""#.to_vec();
        long.resize(100_000_000, b'x');
        long.extend(b"\"}");
        case.bad("line_too_long", &long);
        case.fragment.raw(b"\n");
        let text = format!(r#""text":"{}""#, "y".repeat(15_000_000));
        let line = Process::new(PID).main_thread().span(9, 1, "long", &text);
        case.fragment.line(&line);
        case.good.push("long".into());
        case.good("after", "\n");
    });
}
