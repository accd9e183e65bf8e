//! Damaged times (issue 19, 14): an event more than 30 days from all others moves none of them, and is told.

use crate::foreign::put;
use crate::invocation::{Merged, RunDir};
use crate::pypto::line;
use crate::trace::ns;
use format_oracle::writer::Process;
use format_oracle::writer::line::{On, stream};
use std::path::Path;

/// Microseconds since 1970.
const EPOCH_US: u64 = 1_795_248_902_000_000;
/// Times that are none of a recording's that has those: about its start, near zero, in 2039.
const ODD_US: [u64; 3] = [0, 7_000_000, 2_200_000_000_000_000];

const NEAR_NS: u64 = 5_000_000_000;

/// Five good spans with `odd` among them.
fn with(odd: &str, base_us: u64) -> Vec<String> {
    let good = |nth: u64| line("good", base_us + 10 * nth, 2, "");
    let lines = [good(0), good(1), odd.to_owned(), good(2), good(3), good(4)];
    lines.to_vec()
}

/// Only the good ones are there, at the times that they have without the other; that one is told where it stands.
fn assert_told(merged: &Merged, offset: usize) {
    let good = merged.trace.all_named("good");
    let times: Vec<i64> = good.iter().map(|event| ns(&event["ts"])).collect();
    assert_eq!(times, [0, 10_000, 20_000, 30_000, 40_000]);
    assert!(merged.trace.all_named("odd").is_empty());
    let damage = merged.report.damage();
    let [(_, at, kind)] = &damage[..] else {
        panic!("{damage:?}");
    };
    assert_eq!((*at, kind.as_str()), (offset as u64, "bad_time"));
}

/// Spans that are damaged beside times from `base_us` on.
fn odd_spans(base_us: u64) -> Vec<String> {
    let is_far = |at: &u64| at.abs_diff(base_us) > 1_000_000_000_000;
    let far = ODD_US.into_iter().filter(is_far);
    let far = far.map(|at| line("odd", at, 2, ""));
    far.chain([line("odd", base_us + 25, 900_000_000_000_000, "")])
        .collect()
}

fn text(lines: &[String]) -> String {
    lines.join("\n") + "\n"
}

/// A run of one file of lines.
fn run_of(lines: &[String]) -> RunDir {
    let dir = RunDir::new();
    dir.put("7", text(lines).as_bytes());
    dir
}

#[test]
fn issue_19_a_damaged_time_moves_no_line_of_other_recorders() {
    for base_us in [EPOCH_US, 81_000_000] {
        for odd in odd_spans(base_us) {
            let lines = with(&odd, base_us);
            let dir = run_of(&lines);
            let offset = text(&lines[..2]).len();
            for options in [&[][..], &["--sort"], &["--threads", "1"], &["--from", "0s"]] {
                assert_told(&Merged::of(options, &[dir.path()]), offset);
            }
            for option in ["--keep-times", "--verbatim"] {
                let kept = Merged::of(&[option], &[dir.path()]);
                assert_eq!(kept.report.number("damage_total"), 0);
                assert_eq!(kept.trace.names().len(), 6);
            }
        }
    }
}

/// A list of times since 1970, and a document with a base, as Kineto writes it.
#[test]
fn issue_19_a_damaged_time_moves_no_document() {
    let based = line("odd", 2_200_000_000_000_000, 2, "");
    let head = r#"{"baseTimeNanoseconds":1790857026000000000,"traceEvents":["#;
    let listed = odd_spans(EPOCH_US)
        .into_iter()
        .map(|odd| ("[", odd, EPOCH_US));
    for (head, odd, base_us) in listed.chain([(head, based, 81_000_000)]) {
        let (dir, lines) = (RunDir::new(), with(&odd, base_us));
        let mut text = format!("{head}{}]", lines.join(",\n"));
        text.extend(head.starts_with('{').then_some('}'));
        let path = put(&dir, "t.json", text.as_bytes());
        let merged = Merged::of(&[], &[&path]);
        assert_told(&merged, text.find(&odd).unwrap());
        assert_eq!(merged.report.0["foreign"][0]["method"], "wall_clock");
        let kept = Merged::of(&["--keep-times"], &[&path]);
        assert_eq!(kept.trace.all_named("odd").len(), 1);
    }
}

#[test]
fn issue_19_a_damaged_time_moves_no_block() {
    let process = Process::new(7);
    let thread = process.main_thread();
    for (ts_ns, dur_ns) in [
        (1_795_248_902_000_000_000, 5),
        (NEAR_NS, 900_000_000_000_000_000),
    ] {
        let good = |nth: u64| thread.span(NEAR_NS + 10_000 * nth, 2_000, "good", "");
        let odd = thread.span(ts_ns, dur_ns, "odd", "");
        let lines = [good(0), good(1), odd.clone(), good(2), good(3), good(4)];
        let mut fragment = process.fragment();
        fragment.block(0, 0, &stream(&[process.anchor(NEAR_NS)]));
        fragment.block(1, 0, &stream(&lines));
        let text = String::from_utf8(fragment.bytes.clone()).unwrap();
        let dir = RunDir::of(&fragment);
        for options in [&[][..], &["--sort"], &["--from", "0s"]] {
            let merged = Merged::of(options, &[dir.path()]);
            assert_told(&merged, text.find(&odd).unwrap());
        }
    }
}

/// What is missing stands where the good events beside it are, not where a damaged one says it was.
#[test]
fn issue_19_a_gap_beside_a_damaged_time_stands_beside_the_good_ones() {
    let process = Process::new(7);
    let worker = process.thread(9);
    let odd = worker.span(1_795_248_902_000_000_000, 2_000, "odd", "");
    let good = |nth: u64| worker.span(NEAR_NS + 10_000 * nth, 2_000, "good", "");
    for (before, after) in [
        (vec![good(0), good(1), odd.clone()], vec![good(3), good(4)]),
        (vec![good(0), good(1)], vec![odd.clone(), good(3), good(4)]),
    ] {
        let mut fragment = process.fragment();
        fragment.block(0, 0, &stream(&[process.anchor(NEAR_NS)]));
        let from = fragment.block(1, 0, &stream(&before));
        fragment.block(1, from + 1000, &stream(&after));
        let dir = RunDir::of(&fragment);
        for options in [&[][..], &["--sort"], &["--from", "0s"]] {
            let merged = Merged::of(options, &[dir.path()]);
            let kinds = ["bad_time", "gap"].map(|kind| merged.report.kind(kind));
            assert_eq!(kinds, [1, 1], "{}", merged.report.0);
            let [gap] = merged.trace.gaps()[..] else {
                panic!("one gap: {:?}", merged.trace.gaps())
            };
            assert_eq!(ns(&gap["ts"]), 12_000, "{gap}");
            assert_eq!(gap["args"]["span_us"], 20, "{gap}");
        }
    }
}

/// Before the recorder's clock began, as in a container whose clock was set back.
#[test]
fn issue_19_a_gap_before_zero_has_its_time() {
    let event = |ts: &str| {
        format!(r#"{{"ph":"i","pid":7,"tid":9,"ts":{ts},"s":"t","name":"good","cat":"c"}}"#)
    };
    let mut fragment = Process::new(7).fragment();
    let from = fragment.block(1, 0, &stream(&[event("-9.000"), event("-1.500")]));
    fragment.block(1, from + 1000, &stream(&[event("-0.250")]));
    let dir = RunDir::of(&fragment);
    let merged = Merged::of(&[], &[dir.path()]);
    let [gap] = merged.trace.gaps()[..] else {
        panic!("one gap: {:?}", merged.trace.gaps())
    };
    assert_eq!(ns(&gap["ts"]), 7_500, "{gap}");
}

/// Requests are linked as if the damaged line was not there, wherever it stands: the first event of the request may be damaged, or a later one.
#[test]
fn issue_19_a_damaged_time_links_no_request() {
    let span = |pid: u32, at_us: u64, name: &str| {
        let event = format!(r#""pid":{pid},"tid":{pid},"ts":{at_us},"dur":2,"name":"{name}""#);
        format!(r#"{{"ph":"X",{event},"cat":"c","args":{{"request_id":"abc"}}}}"#)
    };
    let merged = |odd: Option<(usize, u64)>, options: &[&str]| {
        let dir = RunDir::new();
        for (pid, base_us) in [(7, EPOCH_US), (9, EPOCH_US + 5)] {
            let good = |nth: u64| span(pid, base_us + 10 * nth, "good");
            let mut lines: Vec<String> = (0..5).map(good).collect();
            if let Some((at, odd_us)) = odd.filter(|_| pid == 9) {
                lines.insert(at, span(pid, odd_us, "odd"));
            }
            dir.put(&pid.to_string(), text(&lines).as_bytes());
        }
        Merged::of(options, &[dir.path()])
    };
    for options in [&[][..], &["--threads", "1"], &["--from", "0s"]] {
        let good = merged(None, options);
        assert_eq!(good.trace.links().count(), 10);
        for at in [0, 1, 3, 5] {
            for odd_us in ODD_US {
                let found = merged(Some((at, odd_us)), options);
                let what = format!("{odd_us} at {at}");
                assert_eq!(found.report.kind("bad_time"), 1, "{what}");
                let told = [&found, &good].map(|merged| &merged.report.0["links"]);
                assert_eq!(told[0], told[1], "{what}");
                assert!(found.trace.links().eq(good.trace.links()), "{what}");
            }
        }
        // Events of the request after a pause are linked, too.
        let late = |nth: u64| span(7, EPOCH_US + nth / 5 * 3_456_000_000_000 + nth, "good");
        let dir = run_of(&(0..10).map(late).collect::<Vec<_>>());
        let found = Merged::of(options, &[dir.path()]);
        assert_eq!(found.report.number("damage_total"), 0);
        assert_eq!(found.trace.links().count(), 10);
    }
}

/// What is far away from others for a reason stays.
#[test]
fn issue_19_times_that_differ_for_a_reason_stay() {
    let is_whole = |options: &[&str], paths: &[&Path], events: usize| {
        let merged = Merged::of(options, paths);
        assert_eq!(merged.report.damage(), []);
        assert_eq!(merged.trace.names().len(), events);
    };
    // Uptimes of two hosts, each fragment alone; one has a single event.
    let dir = run_of(&[line("good", 81_000_000, 2, "")]);
    let other = On { pid: 9, tid: 9 };
    let other = other.span(9_000_000_000_000_000, 5, "other", "");
    dir.put("9", text(&[other]).as_bytes());
    is_whole(&[], &[dir.path()], 2);
    // Documents with axes of their own, one a single span of two months.
    let long = line("long", 0, 60 * 86_400_000_000, "");
    let one = put(&dir, "a.json", format!("[{long}]").as_bytes());
    let lines = with(&line("good", EPOCH_US, 2, ""), EPOCH_US);
    let two = put(&dir, "b.json", lines.join("\n").as_bytes());
    let offset = format!("{}=1795248902s", one.display());
    is_whole(&["--offset", &offset], &[&one, &two], 7);
}

/// Nothing is lost of a recording that goes on for months.
#[test]
fn issue_19_a_recording_of_months_is_whole() {
    const DAY_US: u64 = 86_400_000_000;
    let lines = |days: &[u64], each: u64| -> Vec<String> {
        let at = |day: &u64| EPOCH_US + day * DAY_US;
        let of_day = |day| (0..each).map(move |nth| line("good", at(day) + 10 * nth, 2, ""));
        days.iter().flat_map(of_day).collect()
    };
    let steady = lines(&(0..90).collect::<Vec<_>>(), 5);
    // A start, a pause of 45 days, and then much; and a span that lasts as long as all of it.
    let lifetime = line("lifetime", EPOCH_US, 90 * DAY_US, "");
    let late = [lines(&[0], 8), lines(&(45..90).collect::<Vec<_>>(), 20)].concat();
    let early = lines(&[0], 300);
    for lines in [
        steady,
        [vec![lifetime.clone()], late].concat(),
        [vec![lifetime], early].concat(),
    ] {
        let dir = run_of(&lines);
        let document = put(&dir, "t.json", format!("[{}]", lines.join(",")).as_bytes());
        for path in [dir.path(), &document] {
            for options in [&[][..], &["--sort"], &["--from", "0s"]] {
                let merged = Merged::of(options, &[path]);
                assert_eq!(merged.report.damage(), [], "{options:?}");
                assert_eq!(merged.trace.names().len(), lines.len());
            }
        }
    }
}

/// Of two events the one that lies near the anchors is the good one.
#[test]
fn issue_19_anchors_say_which_of_two_times_is_damaged() {
    let process = Process::new(7);
    let thread = process.main_thread();
    for odd_ns in [
        NEAR_NS + 60 * 365 * 86_400_000_000_000,
        1_795_248_902_000_000_000,
    ] {
        for odd_first in [true, false] {
            let mut fragment = process.fragment();
            let span = |(at_ns, name)| thread.span(at_ns, 2_000, name, "");
            let mut lines = [(NEAR_NS, "good"), (odd_ns, "odd")].map(span);
            if odd_first {
                lines.reverse();
            }
            fragment.block(0, 0, &stream(&[process.anchor(NEAR_NS)]));
            fragment.block(1, 0, &stream(&lines));
            let merged = RunDir::of(&fragment).merge();
            assert_eq!(merged.trace.names(), ["good"], "{}", merged.report.0);
            assert_eq!(merged.report.kind("bad_time"), 1);
        }
    }
}
