//! The report on one screen: its contents, and that it fits for any run.

use crate::reports::{fixture, report};
use serde_json::json;
use trace_merge::LossReport;
use trace_report::screen::{self, ScreenOptions};
use trace_report::{
    CostOf, EngineSettings, Finding, Pause, RunPhase, RunPhaseKind, RunReport, ServingTime,
    StartUp, StartUpSpan, TraceRange, Verdict, VerdictRule,
};

const S: i64 = 1_000_000_000;

/// Checks that a screen has at most 40 lines of at most 100 columns, and no useless empty lines.
#[track_caller]
pub(crate) fn fits(screen: &str) {
    // Characters that are not known to be narrow may take two columns.
    let is_narrow = |letter: char| letter.is_ascii() || "…·–→±µ".contains(letter);
    let width = |line: &str| -> usize {
        let widths = line
            .chars()
            .map(|letter| 2 - usize::from(is_narrow(letter)));
        widths.sum()
    };
    let widest = screen.lines().map(width).max();
    assert!(widest <= Some(100), "{widest:?} columns: {screen}");
    let lines = screen.lines().count();
    assert!(lines <= 40, "{lines} lines: {screen}");
    assert!(
        !screen.contains("\n\n\n") && !screen.starts_with('\n'),
        "{screen}"
    );
}

/// Returns a report in which everything without a limit in a trace is very large.
pub(crate) fn overfull(report: &RunReport) -> RunReport {
    let mut report = report.clone();
    let long = |words: &str| format!("{words} ").repeat(60);
    let id = "chatcmpl-東京-".to_owned() + &"0123456789abcdef".repeat(20);
    for process in &mut report.recorded.processes {
        process.name = Some(long("引擎\u{202e}") + &"x".repeat(200));
        process.device_name = None;
        process.was_running = true;
    }
    report.verdict = Verdict {
        rule: VerdictRule::Crash,
        text: long("請求 waited for"),
        advice: long("raise --max-num-seqs or"),
        evidence: format!("{id} {}", long("82 % of 1.2 s,")),
        place: Some(place()),
    };
    let finding = |nth: u32| Finding {
        rule: "exposed_communication",
        evidence: format!("{id}, {}", long("the queue")),
        cost: 1.0,
        of: CostOf::Figures,
        advice: "one advice of some length, and another one; and then a third one that no longer fits into the line",
        waited: f64::from(nth) / 10.0,
        place: None,
    };
    report.findings = (0..9).map(finding).collect();
    let loss = LossReport {
        process: Some(long("api")),
        number: None,
        pid: 42,
        thread: Some(long("thread")),
        cause: "disk_full".to_owned(),
        events: 98,
        bytes: 0,
        changed: 0,
        events_left: 2,
        processes: 0,
        error: 0,
        from_ns: Some(0),
        to_ns: Some(60 * S),
    };
    report.recorded.losses = vec![loss; 9];
    report.recorded.lost_events = u64::MAX;
    report.recorded.refused_processes = u64::MAX;
    report.recorded.damaged = u64::MAX;
    report.recorded.unfinished = u64::MAX;
    report.recorded.cautions = vec![long("careful"); 9];
    let level = report.load.first().cloned();
    let levels = level.iter().flat_map(|level| vec![level.clone(); 9]);
    report.load.extend(levels.map(|mut level| {
        level.max = f64::MAX;
        level
    }));
    report.serving.is_whole = false;
    report.serving.pauses = vec![
        Pause {
            from_ns: 0,
            to_ns: S
        };
        9
    ];
    report.start_up.wall_ns = i64::MAX;
    report.start_up.spans = vec![start_up_span(&long("init")); 9];
    report
}

fn place() -> TraceRange {
    TraceRange {
        from_ns: 234 * S + 500_000_000,
        dur_ns: 120_000_000,
    }
}

fn start_up_span(name: &str) -> StartUpSpan {
    StartUpSpan {
        name: name.to_owned(),
        process: 0,
        start_ns: 2 * S,
        ncall: 1,
        ttot_ns: 130 * S,
        tsub_ns: 120 * S,
    }
}

/// Returns the report of the fixture, with a verdict, and with a start-up before it.
fn served() -> RunReport {
    let mut report = report(fixture("serving.json"));
    report.verdict = Verdict {
        rule: VerdictRule::ConcurrencyCapped,
        text: "Requests waited for a free slot: the queue was 82 % of E2E while at most 2 requests ran and KV cache use stayed below 1 %.".to_owned(),
        advice: "Raise `--max-num-seqs`.".to_owned(),
        evidence: "the queue took 947 ms of 1.15 s; at most 2 requests ran, which is max_num_seqs".to_owned(),
        place: Some(place()),
    };
    report.findings[0].waited = 0.82;
    report.serving = ServingTime {
        from_ns: 233 * S,
        to_ns: 283 * S,
        wall_ns: 8 * S,
        pauses: vec![Pause {
            from_ns: 240 * S,
            to_ns: 282 * S,
        }],
        is_whole: false,
    };
    report.run_phases = vec![RunPhase {
        kind: RunPhaseKind::Shutdown,
        from_ns: 283 * S,
        to_ns: 285 * S,
    }];
    report.start_up = StartUp {
        wall_ns: 233 * S,
        spans: vec![start_up_span("Worker.init_device")],
    };
    report.settings = vec![EngineSettings {
        process: 0,
        values: [
            ("max_num_seqs".to_owned(), json!(2)),
            ("graph_mode".to_owned(), json!("full")),
        ]
        .into(),
    }];
    report
}

#[test]
fn the_screen_begins_with_the_verdict() {
    let (report, options) = (served(), options(false));
    let brief = screen::brief(&report, options);
    let expected = std::fs::read_to_string(fixture("served.screen.txt")).unwrap();
    assert_eq!(brief, expected);
    let all = screen::all(&report, options);
    let verdict = brief.split("\n\n").next().unwrap();
    assert!(all.starts_with(verdict), "{all}");
    for words in [
        "\nserving    all figures cover 8.00 s; ",
        "\n  queue (26.7 % of a request's time, ",
        "\nsettings   api\n  graph_mode full, max_num_seqs 2\n",
        "\nstart-up   233 s until ",
        "\n  Worker.init_device  api          2.00 s      1  120 s  130 s\n",
        "; shares are of the serving time\n",
    ] {
        assert!(all.contains(words), "{words}: {all}");
    }
    // The lines for the end of `sa-profile run` contain no evidence. An unknown verdict has no lines.
    let lines = screen::verdict_lines(&report);
    assert_eq!(lines.last().unwrap(), "Raise `--max-num-seqs`.");
    assert!(verdict.starts_with(&lines.join("\n")));
    let unknown = Verdict {
        rule: VerdictRule::Unknown,
        ..report.verdict.clone()
    };
    let report = RunReport {
        verdict: unknown,
        ..report
    };
    assert!(screen::verdict_lines(&report).is_empty());
}

fn options(is_styled: bool) -> ScreenOptions<'static> {
    ScreenOptions {
        is_styled,
        run: Some("out"),
    }
}

#[test]
fn a_terminal_shows_the_same_with_styles() {
    let mut report = served();
    report.recorded.lost_events = 1;
    let [plain, styled] = [false, true].map(|is_styled| screen::brief(&report, options(is_styled)));
    for words in [
        "\u{1b}[1mRequests waited ",
        "  \u{1b}[36mqueue\u{1b}[0m (82 %)",
        "\u{1b}[33mmissing\u{1b}[0m    1 event lost",
    ] {
        assert!(styled.contains(words), "{words:?}: {styled:?}");
    }
    let mut pieces = styled.split("\u{1b}[");
    let first = pieces.next().unwrap().to_owned();
    let unstyled = pieces.fold(first, |text, piece| text + piece.split_once('m').unwrap().1);
    assert_eq!(unstyled, plain);
}

#[test]
fn ids_and_names_are_shortened_in_the_middle() {
    let id = "chatcmpl-12ab34cd56ef78901234567890abc9f3e";
    let text = std::fs::read_to_string(fixture("serving.json")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    std::fs::write(&path, text.replace("\"r3\"", &format!("\"{id}\""))).unwrap();
    let mut report = report(path);
    report.findings[0].evidence = format!("most of all {id}");
    let expected = "chatcmpl-12ab34c…abc9f3e";
    for screen in [
        screen::brief(&report, options(false)),
        screen::text(&report),
    ] {
        assert!(screen.contains(expected), "{screen}");
        assert!(!screen.contains(id), "{screen}");
    }
}
