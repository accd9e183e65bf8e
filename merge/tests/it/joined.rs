//! Windows, filters and rows beside threads together: what is shown must be what a merge of the shown lines alone shows.

use crate::clashing::{Clashing, ORDERS};
use crate::invocation::{Merged, RunDir};
use crate::random::Rng;
use crate::trace::Event;
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;

/// A span, an instant, or the two halves of a span.
struct Thing {
    lines: Vec<String>,
    start: u64,
    end: u64,
    kept: bool,
}

/// Things of one thread, so close that many overlap. Those whose names begin with "keep" are asked for.
fn things(rng: &mut Rng, tid: u32, count: usize) -> Vec<Thing> {
    let mut things = Vec::new();
    for serial in 0..count {
        let mut thread = Clashing::new(rng, tid, 4_000);
        let kept = !thread.rng.one_in(3);
        let name = format!("{} {serial}", if kept { "keep" } else { "hide" });
        let (start, dur) = (thread.time(), 1 + thread.rng.below(200) as u64);
        let mut end = start + dur;
        match thread.rng.below(8) {
            0 => {
                thread.put("B", &name, (start, start), "");
                thread.put("E", &name, (end, end), "");
            }
            1 => {
                thread.put("i", &name, (start, start), r#","s":"t""#);
                end = start;
            }
            _ => thread.span(&name, start, dur),
        }
        let lines = thread.lines(ORDERS[0]);
        things.push(Thing {
            lines,
            start,
            end,
            kept,
        });
    }
    things
}

fn write<'a>(dir: &RunDir, things: impl Iterator<Item = &'a Thing>) {
    let lines: Vec<String> = things.flat_map(|thing| thing.lines.clone()).collect();
    dir.put("900", &stream(&lines));
}

/// The events as they were before they were cut, sorted; and how many are marked.
fn unmarked(merged: &Merged) -> (Vec<Event>, u64) {
    let (mut events, marks) = merged.trace.whole();
    events.sort();
    (events, marks)
}

#[test]
fn rows_are_those_of_what_is_shown() {
    let (mut moved, mut marked, mut unmoved) = (0, 0, 0);
    for seed in 0..120 {
        let mut rng = Rng::new(seed);
        let mut all = things(&mut rng, 901, 60);
        all.extend(things(&mut rng, 902, 30));
        let first = all.iter().map(|thing| thing.start).min().unwrap();
        let (from, to) = match seed % 3 {
            0 => (0, u64::MAX),
            _ => {
                let from = rng.below(3_000) as u64;
                (first + from, first + from + 1 + rng.below(1_000) as u64)
            }
        };
        let is_filtered = seed % 2 == 0;
        let edges = ["from", "to"].into_iter().zip([from, to]);
        let edges = edges.filter(|_| to < u64::MAX);
        let edges: Vec<String> = edges
            .map(|(edge, at)| format!("--{edge}={}ns", at - first))
            .collect();
        let mut options = vec!["--no-settle"];
        options.extend(edges.iter().map(String::as_str));
        options.extend(is_filtered.then_some("--name=keep*"));
        let is_shown =
            |thing: &&Thing| thing.start <= to && thing.end >= from && (thing.kept || !is_filtered);
        let (dir, alone) = (RunDir::new(), RunDir::new());
        write(&dir, all.iter());
        write(&alone, all.iter().filter(is_shown));
        let found = Merged::of(&options, &[dir.path()]);
        if !all.iter().any(|thing| is_shown(&thing)) {
            continue;
        }
        let expected = Merged::of(&["--no-settle"], &[alone.path()]);
        let what = format!("seed {seed} {options:?}");
        let (events, marks) = unmarked(&found);
        assert_eq!(events, unmarked(&expected).0, "{what}");
        let is_crossing =
            |thing: &&Thing| is_shown(thing) && (thing.start < from || thing.end > to);
        let crossing = all.iter().filter(is_crossing).count() as u64;
        let told = found.report.0["window"]["spans_cut"].as_u64();
        assert_eq!(told.unwrap_or(0), crossing, "{what}");
        assert!((crossing..=2 * crossing).contains(&marks), "{what}");
        let spans = [&found, &expected].map(|merged| merged.report.number("overlapping_spans"));
        assert_eq!(spans[0], spans[1], "{what}");
        (moved, marked) = (moved + spans[0], marked + marks);
        unmoved += dir.merge().report.number("overlapping_spans") - spans[0];
    }
    let is_enough = moved > 300 && marked > 200 && unmoved > 300;
    assert!(is_enough, "{moved} {marked} {unmoved}");
}

/// A fragment of which most is copied without a look at more than times.
#[test]
fn lines_that_begin_alike_are_filtered() {
    let process = Process::new(7);
    let (on, mut fragment) = (process.main_thread(), process.fragment());
    let mut from = 0;
    for block in 0..40 {
        let line = |serial: u64| {
            let name = ["step", "wait"][usize::try_from(serial % 2).unwrap()];
            let args = format!(r#""serial":{serial},"text":"{}""#, "x".repeat(40));
            on.span(5_000_000_000 + 1_000 * serial, 900, name, &args)
        };
        let lines: Vec<String> = (1_000 * block..1_000 * (block + 1)).map(line).collect();
        from = fragment.block(1, from, &stream(&lines));
    }
    assert!(fragment.bytes.len() > 4 << 20, "several chunks");
    let dir = RunDir::of(&fragment);
    let filtered = ["--name=step", "--no-settle"];
    let window = ["--from=10ms", "--to=20ms", "--name=step", "--no-settle"];
    for (options, serials) in [(&filtered[..], 0..40_000), (&window, 10_000..20_001)] {
        let found = Merged::of(options, &[dir.path()]);
        let shown = found.trace.shown();
        let shown = shown.map(|event| event["args"]["serial"].as_u64());
        let expected = serials.filter(|serial| serial % 2 == 0).map(Some);
        assert!(shown.eq(expected), "{options:?}");
    }
}
