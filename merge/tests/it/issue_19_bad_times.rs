//! Damaged times (issue 19, 14): an event more than 30 days from all others moves none of them, and is told.

use crate::foreign::put;
use crate::invocation::{Merged, RunDir};
use crate::trace::ns;
use format_oracle::writer::Process;
use format_oracle::writer::line::{On, stream};

/// Microseconds since 1970.
const EPOCH_US: u64 = 1_795_248_902_000_000;
/// Times that are none of a recording's that has those: about its start, near zero, in 2039.
const ODD_US: [u64; 3] = [0, 7_000_000, 2_200_000_000_000_000];

/// The line of a span in the order of the pypto-serving recorder.
fn pypto(name: &str, ts: u64, dur: u64) -> String {
    format!(
        r#"{{"name":"{name}","cat":"w","ph":"X","ts":{ts},"dur":{dur},"pid":7,"tid":8,"args":{{}}}}"#
    )
}

/// Five good spans with `odd` among them.
fn with(odd: &str, base_us: u64) -> Vec<String> {
    let mut lines: Vec<String> = (0..5)
        .map(|nth| pypto("good", base_us + 10 * nth, 2))
        .collect();
    lines.insert(2, odd.to_owned());
    lines
}

/// Only the good ones are there, at the times that they have without the other; that one is told where it stands.
fn assert_told(merged: &Merged, offset: usize) {
    let good = merged.trace.all_named("good");
    let times: Vec<i64> = good.iter().map(|event| ns(&event["ts"])).collect();
    assert_eq!(
        times,
        [0, 10_000, 20_000, 30_000, 40_000],
        "{}",
        merged.report.0
    );
    assert!(merged.trace.all_named("odd").is_empty());
    assert_eq!(
        merged.report.number("damage_total"),
        1,
        "{}",
        merged.report.0
    );
    let [(_, at, kind)] = &merged.report.damage()[..] else {
        panic!("{}", merged.report.0);
    };
    assert_eq!((*at, kind.as_str()), (offset as u64, "bad_time"));
}

/// Spans that are damaged beside times from `base_us` on.
fn odd_spans(base_us: u64) -> Vec<String> {
    let far = ODD_US
        .into_iter()
        .filter(|at| at.abs_diff(base_us) > 1_000_000_000_000);
    let far = far.map(|at| pypto("odd", at, 2));
    far.chain([pypto("odd", base_us + 25, 900_000_000_000_000)])
        .collect()
}

#[test]
fn issue_19_a_damaged_time_moves_no_line_of_other_recorders() {
    for base_us in [EPOCH_US, 81_000_000] {
        for odd in odd_spans(base_us) {
            let (dir, lines) = (RunDir::new(), with(&odd, base_us));
            dir.put("7", (lines.join("\n") + "\n").as_bytes());
            let offset = lines[0].len() + lines[1].len() + 2;
            for options in [&[][..], &["--sort"], &["--threads", "1"], &["--from", "0s"]] {
                assert_told(&Merged::of(options, &[dir.path()]), offset);
            }
            let kept = Merged::of(&["--keep-times"], &[dir.path()]);
            assert_eq!(kept.report.number("damage_total"), 0);
            assert_eq!(kept.trace.all_named("odd").len(), 1);
            let verbatim = Merged::of(&["--verbatim"], &[dir.path()]);
            assert_eq!(verbatim.report.number("damage_total"), 0);
            assert_eq!(verbatim.trace.names().len(), 6);
        }
    }
}

#[test]
fn issue_19_a_damaged_time_moves_no_document() {
    for odd in odd_spans(EPOCH_US) {
        let (dir, lines) = (RunDir::new(), with(&odd, EPOCH_US));
        let text = format!("[{}]", lines.join(",\n"));
        let path = put(&dir, "t.json", text.as_bytes());
        let offset = 1 + lines[0].len() + lines[1].len() + 4;
        let merged = Merged::of(&[], &[&path]);
        assert_told(&merged, offset);
        assert_eq!(merged.report.0["foreign"][0]["method"], "wall_clock");
        let kept = Merged::of(&["--keep-times"], &[&path]);
        assert_eq!(kept.trace.all_named("odd").len(), 1);
    }
    // Beside a base, as Kineto writes it.
    let (dir, lines) = (
        RunDir::new(),
        with(&pypto("odd", 2_200_000_000_000_000, 2), 81_000_000),
    );
    let head = r#"{"baseTimeNanoseconds":1790857026000000000,"traceEvents":["#;
    let text = format!("{head}{}]}}", lines.join(","));
    let path = put(&dir, "k.json", text.as_bytes());
    assert_told(
        &Merged::of(&[], &[&path]),
        head.len() + lines[0].len() + lines[1].len() + 2,
    );
}

#[test]
fn issue_19_a_damaged_time_moves_no_block() {
    let process = Process::new(7);
    let thread = process.main_thread();
    for (ts_ns, dur_ns) in [
        (1_795_248_902_000_000_000, 5),
        (5_000_000_000, 900_000_000_000_000_000),
    ] {
        let dir = RunDir::new();
        let mut fragment = process.fragment();
        let mut lines: Vec<String> = (0..5)
            .map(|nth| thread.span(5_000_000_000 + 10_000 * nth, 2_000, "good", ""))
            .collect();
        lines.insert(2, thread.span(ts_ns, dur_ns, "odd", ""));
        fragment.block(0, 0, &stream(&[process.anchor(5_000_000_000)]));
        fragment.block(1, 0, &stream(&lines));
        let odd = memchr_in(&fragment.bytes, &lines[2]);
        fragment.write_here(&dir.fragments());
        for options in [&[][..], &["--sort"], &["--from", "0s"]] {
            assert_told(&Merged::of(options, &[dir.path()]), odd);
        }
    }
}

/// What is missing stands where the good events beside it are, not where a damaged one says it was.
#[test]
fn issue_19_a_gap_beside_a_damaged_time_stands_beside_the_good_ones() {
    const NEAR_NS: u64 = 5_000_000_000;
    let process = Process::new(7);
    let worker = process.thread(9);
    let odd = worker.span(1_795_248_902_000_000_000, 2_000, "odd", "");
    let good = |nth: u64| worker.span(NEAR_NS + 10_000 * nth, 2_000, "good", "");
    for (before, after) in [
        (vec![good(0), good(1), odd.clone()], vec![good(3), good(4)]),
        (vec![good(0), good(1)], vec![odd.clone(), good(3), good(4)]),
    ] {
        let dir = RunDir::new();
        let mut fragment = process.fragment();
        fragment.block(0, 0, &stream(&[process.anchor(NEAR_NS)]));
        let from = fragment.block(1, 0, &stream(&before));
        fragment.block(1, from + 1000, &stream(&after));
        fragment.write_here(&dir.fragments());
        for options in [&[][..], &["--sort"], &["--from", "0s"]] {
            let merged = Merged::of(options, &[dir.path()]);
            assert_eq!(merged.report.kind("bad_time"), 1, "{}", merged.report.0);
            assert_eq!(merged.report.kind("gap"), 1, "{}", merged.report.0);
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
    let dir = RunDir::new();
    fragment.write_here(&dir.fragments());
    let merged = Merged::of(&[], &[dir.path()]);
    let [gap] = merged.trace.gaps()[..] else {
        panic!("one gap: {:?}", merged.trace.gaps())
    };
    assert_eq!(ns(&gap["ts"]), 7_500, "{gap}");
}

fn memchr_in(bytes: &[u8], line: &str) -> usize {
    let found = bytes
        .windows(line.len())
        .position(|part| part == line.as_bytes());
    found.unwrap()
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
            let mut lines: Vec<String> = (0..5)
                .map(|nth| span(pid, base_us + 10 * nth, "good"))
                .collect();
            if let Some((at, odd_us)) = odd.filter(|_| pid == 9) {
                lines.insert(at, span(pid, odd_us, "odd"));
            }
            dir.put(&pid.to_string(), (lines.join("\n") + "\n").as_bytes());
        }
        Merged::of(options, &[dir.path()])
    };
    for options in [&[][..], &["--threads", "1"], &["--from", "0s"]] {
        let good = merged(None, options);
        assert_eq!(good.trace.links().count(), 10);
        for odd in [0, 1, 3, 5]
            .into_iter()
            .flat_map(|at| ODD_US.map(|us| (at, us)))
        {
            let found = merged(Some(odd), options);
            assert_eq!(found.report.kind("bad_time"), 1, "{odd:?}");
            assert_eq!(found.report.0["links"], good.report.0["links"], "{odd:?}");
            let links = [&found, &good].map(|merged| merged.trace.links().collect::<Vec<_>>());
            assert_eq!(links[0], links[1], "{odd:?}");
        }
        // Events of the request after a pause are linked, too.
        let month: Vec<String> = (0..10)
            .map(|nth| span(7, EPOCH_US + nth / 5 * 3_456_000_000_000 + nth, "good"))
            .collect();
        let dir = RunDir::new();
        dir.put("7", (month.join("\n") + "\n").as_bytes());
        let found = Merged::of(options, &[dir.path()]);
        assert_eq!(found.report.number("damage_total"), 0);
        assert_eq!(found.trace.links().count(), 10);
    }
}

/// What is far away from others for a reason stays.
#[test]
fn issue_19_times_that_differ_for_a_reason_stay() {
    let dir = RunDir::new();
    // Uptimes of two hosts, each fragment alone; one has a single event.
    dir.put("7", (pypto("good", 81_000_000, 2) + "\n").as_bytes());
    let other = On { pid: 9, tid: 9 };
    dir.put(
        "9",
        (other.span(9_000_000_000_000_000, 5, "other", "") + "\n").as_bytes(),
    );
    let merged = Merged::of(&[], &[dir.path()]);
    assert_eq!(
        merged.report.number("damage_total"),
        0,
        "{}",
        merged.report.0
    );
    assert_eq!(merged.trace.names().len(), 2);
    // Documents with axes of their own, one a single span of two months.
    let long = pypto("long", 0, 60 * 86_400_000_000);
    let one = put(&dir, "a.json", format!("[{long}]").as_bytes());
    let two = put(
        &dir,
        "b.json",
        with(&pypto("good", EPOCH_US, 2), EPOCH_US)
            .join("\n")
            .as_bytes(),
    );
    let offset = format!("{}=1795248902s", one.display());
    let merged = Merged::of(&["--offset", &offset], &[&one, &two]);
    assert_eq!(
        merged.report.number("damage_total"),
        0,
        "{}",
        merged.report.0
    );
    assert_eq!(merged.trace.names().len(), 7);
}

/// Nothing is lost of a recording that goes on for months.
#[test]
fn issue_19_a_recording_of_months_is_whole() {
    const DAY_US: u64 = 86_400_000_000;
    let lines = |days: &[u64], each: u64| -> Vec<String> {
        let at = |day: &u64| EPOCH_US + day * DAY_US;
        let of_day = |day| (0..each).map(move |nth| pypto("good", at(day) + 10 * nth, 2));
        days.iter().flat_map(of_day).collect()
    };
    let steady = lines(&(0..90).collect::<Vec<_>>(), 5);
    // A start, a pause of 45 days, and then much; and a span that lasts as long as all of it.
    let lifetime = pypto("lifetime", EPOCH_US, 90 * DAY_US);
    let late = [lines(&[0], 8), lines(&(45..90).collect::<Vec<_>>(), 20)].concat();
    let early = lines(&[0], 300);
    for lines in [
        steady,
        [vec![lifetime.clone()], late].concat(),
        [vec![lifetime], early].concat(),
    ] {
        let dir = RunDir::new();
        dir.put("7", (lines.join("\n") + "\n").as_bytes());
        let document = put(&dir, "t.json", format!("[{}]", lines.join(",")).as_bytes());
        for path in [dir.path(), &document] {
            for options in [&[][..], &["--sort"], &["--from", "0s"]] {
                let merged = Merged::of(options, &[path]);
                let damage = merged.report.number("damage_total");
                assert_eq!(damage, 0, "{options:?} {}", merged.report.0["damage"]);
                assert_eq!(merged.trace.names().len(), lines.len());
            }
        }
    }
}

/// Of two events the one that lies near the anchors is the good one.
#[test]
fn issue_19_anchors_say_which_of_two_times_is_damaged() {
    const NEAR_NS: u64 = 5_000_000_000;
    let process = Process::new(7);
    let thread = process.main_thread();
    for odd_ns in [
        NEAR_NS + 60 * 365 * 86_400_000_000_000,
        1_795_248_902_000_000_000,
    ] {
        for odd_first in [true, false] {
            let dir = RunDir::new();
            let mut fragment = process.fragment();
            let mut lines = vec![
                thread.span(NEAR_NS, 2_000, "good", ""),
                thread.span(odd_ns, 2_000, "odd", ""),
            ];
            if odd_first {
                lines.reverse();
            }
            fragment.block(0, 0, &stream(&[process.anchor(NEAR_NS)]));
            fragment.block(1, 0, &stream(&lines));
            fragment.write_here(&dir.fragments());
            let merged = Merged::of(&[], &[dir.path()]);
            assert_eq!(merged.trace.names(), ["good"], "{}", merged.report.0);
            assert_eq!(merged.report.kind("bad_time"), 1);
        }
    }
}
