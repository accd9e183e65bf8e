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
    fn on(fragment: Fragment) -> Case {
        Case {
            fragment,
            good: Vec::new(),
            bad: Vec::new(),
        }
    }

    fn span(&self, name: &str) -> String {
        Process::new(PID).thread(4712).span(
            1_000_000 + self.fragment.bytes.len() as u64,
            500,
            name,
            "\"a\":1",
        )
    }

    /// Appends a whole good line.
    fn good(&mut self, name: &str) {
        self.good_ending(name, "\n");
    }

    /// Appends a good line that ends in `ending`.
    fn good_ending(&mut self, name: &str, ending: &str) {
        let line = self.span(name) + ending;
        self.fragment.raw(line.as_bytes());
        self.good.push(name.to_owned());
    }

    /// Appends bytes that are damage of `kind` from their first byte on.
    fn bad(&mut self, bytes: &[u8], kind: &str) {
        let offset = self.fragment.raw(bytes);
        self.bad
            .push(("trace.4711.jsonl".into(), offset, kind.into()));
    }

    fn check(self, what: &str) {
        let dir = RunDir::new();
        dir.put("4711", &self.fragment.bytes);
        let merged = dir.merge();
        let mut good = self.good;
        good.sort();
        assert_eq!(merged.trace.names(), good, "{what}");
        assert_eq!(merged.report.damage(), self.bad, "{what}");
        assert_eq!(
            merged.report.number("damage_total"),
            self.bad.len() as u64,
            "{what}"
        );
        for (_, _, kind) in &self.bad {
            let count = self.bad.iter().filter(|bad| bad.2 == *kind).count();
            assert_eq!(merged.report.kind(kind), count as u64, "{what}: {kind}");
        }
    }
}

/// Runs a case as a fragment of others and as plain lines of ours.
fn both(what: &str, build: impl Fn(&mut Case)) {
    for (kind, fragment) in [
        ("foreign", Fragment::foreign(PID)),
        ("own", Process::new(PID).fragment()),
    ] {
        let mut case = Case::on(fragment);
        build(&mut case);
        case.check(&format!("{what}, {kind}"));
    }
}

/// A bad line between two good ones.
fn between(kind: &str, line: &[u8]) {
    both(
        &format!("{kind}: {}", String::from_utf8_lossy(line)),
        |case| {
            case.good("before");
            case.bad(line, kind);
            case.fragment.raw(b"\n");
            case.good("after");
        },
    );
}

#[test]
fn lines_that_are_no_json_object() {
    let lines: [&[u8]; 11] = [
        b"garbage",
        b"[1,2]",
        b"7",
        b"\"text\"",
        b"{}x",
        b"{\"ph\":\"X\",\"pid\":4711,\"ts\":1.5",
        b"{\"ph\":\"X\",\"pid\":4711,\"tid\":1,\"ts\":1,\"dur\":NaN,\"name\":\"nan\"}",
        b"{\"ph\":\"X\",\"pid\":4711,\"tid\":1,\"ts\":1,\"dur\":Infinity,\"name\":\"inf\"}",
        b"{\"ph\":\"X\",\"pid\":4711,\"tid\":1,\"ts\":1,\"dur\":1,\"name\":\"raw \t control\"}",
        b"{\"ph\":\"X\",\"pid\":4711,\"tid\":1,\"ts\":1,\"dur\":1,\"name\":\"raw \x01 control\"}",
        b"{\"ph\":\"X\",\"pid\":4711,\"tid\":1,\"ts\":1,\"dur\":1,\"name\":\"bad \\x escape\"}",
    ];
    for line in lines {
        between("bad_json", line);
    }
}

#[test]
fn objects_that_are_no_event() {
    let lines = [
        "{}",
        r#"{"pid":4711,"tid":1,"ts":1,"dur":1,"name":"no ph"}"#,
        r#"{"ph":7,"pid":4711,"tid":1,"ts":1,"dur":1,"name":"ph is a number"}"#,
        r#"{"ph":"","pid":4711,"tid":1,"ts":1,"dur":1,"name":"ph is empty"}"#,
        r#"{"ph":"X","pid":4711,"tid":1,"dur":1,"name":"no ts"}"#,
        r#"{"ph":"X","pid":4711,"tid":1,"ts":null,"dur":1,"name":"null ts"}"#,
        r#"{"ph":"X","pid":4711,"tid":1,"ts":"soon","dur":1,"name":"text ts"}"#,
        r#"{"ph":"X","pid":4711,"tid":1,"ts":[1],"dur":1,"name":"list ts"}"#,
        r#"{"ph":"X","pid":4711,"tid":1,"ts":1,"name":"no dur"}"#,
        r#"{"ph":"X","pid":4711,"tid":1,"ts":1,"dur":null,"name":"null dur"}"#,
        r#"{"ph":"X","tid":1,"ts":1,"dur":1,"name":"no pid"}"#,
        r#"{"ph":"X","pid":null,"tid":1,"ts":1,"dur":1,"name":"null pid"}"#,
    ];
    for line in lines {
        between("bad_event", line.as_bytes());
    }
}

#[test]
fn invalid_utf8() {
    between(
        "bad_utf8",
        b"{\"ph\":\"X\",\"pid\":4711,\"tid\":1,\"ts\":1,\"dur\":1,\"name\":\"\xff\"}",
    );
    between(
        "bad_utf8",
        b"{\"ph\":\"X\",\"pid\":4711,\"tid\":1,\"ts\":1,\"dur\":1,\"name\":\"\xed\xa0\x80\"}",
    );
}

#[test]
fn a_torn_tail() {
    both("torn tail", |case| {
        case.good("before");
        let line = case.span("torn");
        case.bad(&line.as_bytes()[..line.len() - 5], "torn_tail");
    });
}

#[test]
fn a_whole_last_line_without_newline_is_kept() {
    both("no newline", |case| {
        case.good("before");
        case.good_ending("last", "");
    });
}

#[test]
fn a_nul_hole() {
    for nuls in [1, 3, 4096, 100_000] {
        both(&format!("{nuls} NULs"), |case| {
            case.good("before");
            case.bad(&vec![0; nuls], "nul");
            case.fragment.raw(b"\n");
            case.good("after");
        });
    }
}

#[test]
fn a_nul_hole_directly_before_a_good_line() {
    both("NULs before a line", |case| {
        case.good("before");
        case.bad(&[0; 512], "nul");
        case.good("after");
    });
}

#[test]
fn nuls_at_the_end() {
    both("NULs at the end", |case| {
        case.good("before");
        case.bad(&[0; 4096], "nul");
    });
}

#[test]
fn crlf_and_empty_lines_are_no_damage() {
    both("CRLF", |case| {
        case.good_ending("crlf", "\r\n");
        case.fragment.raw(b"\n\n\r\n");
        case.good("after");
    });
}

#[test]
fn a_byte_order_mark() {
    let mut case = Case::on(Fragment::foreign(PID));
    case.bad(b"\xef\xbb\xbf", "bom");
    case.good("first");
    case.good("second");
    case.check("BOM");
}

#[test]
fn a_byte_order_mark_before_our_header() {
    let dir = RunDir::new();
    let mut fragment = Process::new(PID).fragment();
    fragment.block(
        1,
        0,
        format!(
            "{}\n",
            Process::new(PID).main_thread().span(1000, 5, "kept", "")
        )
        .as_bytes(),
    );
    dir.put("4711", &[b"\xef\xbb\xbf", &fragment.bytes[..]].concat());
    let merged = dir.merge();
    assert_eq!(merged.trace.names(), ["kept"]);
    assert_eq!(
        merged.report.damage(),
        [("trace.4711.jsonl".to_owned(), 0, "bom".to_owned())]
    );
}

#[test]
fn a_line_over_16_mib() {
    both("100 MB line", |case| {
        case.good("before");
        let mut long =
            br#"{"ph":"X","pid":4711,"tid":1,"ts":1,"dur":1,"name":"long","args":{"text":""#
                .to_vec();
        long.resize(100_000_000, b'x');
        long.extend(b"\"}}");
        case.bad(&long, "line_too_long");
        case.fragment.raw(b"\n");
        case.good("after");
    });
}

#[test]
fn a_long_line_below_the_bound_is_kept() {
    both("15 MB line", |case| {
        let text = "y".repeat(15_000_000);
        let line =
            Process::new(PID)
                .main_thread()
                .span(9, 1, "long", &format!(r#""text":"{text}""#));
        case.fragment.line(&line);
        case.good.push("long".into());
        case.good("after");
    });
}

#[test]
fn escapes_and_unicode_are_no_damage() {
    both("text", |case| {
        case.good("t\u{e9} \u{1f680}");
        // What nobody sees is spelled out, and no damage either.
        for (name, shown) in [
            ("null \u{7f} del", "null <U+007F> del"),
            ("esc \\u0001\\n\\\"", "esc <U+0001><U+000A>\""),
        ] {
            let line = case.span(name);
            case.fragment.line(&line);
            case.good.push(shown.into());
        }
    });
}

#[test]
fn a_damaged_header_costs_no_event() {
    let mut fragment = Process::new(PID).fragment();
    fragment.bytes[0] = b'!';
    fragment.block(
        1,
        0,
        format!(
            "{}\n",
            Process::new(PID).main_thread().span(1000, 5, "kept", "")
        )
        .as_bytes(),
    );
    let dir = RunDir::new();
    dir.put("4711", &fragment.bytes);
    let merged = dir.merge();
    assert_eq!(merged.trace.names(), ["kept"]);
    assert_eq!(
        merged.report.damage(),
        [("trace.4711.jsonl".to_owned(), 0, "bad_json".to_owned())]
    );
}
