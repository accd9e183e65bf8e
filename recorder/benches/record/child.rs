//! A child process: one case, its rounds, and a look at what reached the disk.

use std::path::Path;

use measure::peer::{Fastrace, MutexSerde, Peer, TracingChrome};
use measure::rounds::{self, Body, Plan, Round};
use measure::{Free, Kind, warm_page_cache};
use sa_recorder::Recorder;

use crate::case::{self, Case, SUSTAINED_BYTES, Work};
use crate::disk::{self, Written};
use crate::spans;

/// Marks a child's command line: `FLAG CASE ROUNDS DIRECTORY`.
pub(crate) const FLAG: &str = "--case-in-child";

/// Runs the case and prints lines `ROUND <span_ns> <floor_ns> <cpu_ns> <floor_cpu_ns> <total_cpu_ns>` and one `DISK <expected> <events> <bytes>`.
pub(crate) fn run(name: &str, rounds: &str, directory: &str) -> Result<(), String> {
    let case = case::find(name).ok_or_else(|| format!("no case {name}"))?;
    let rounds = rounds
        .parse()
        .map_err(|error| format!("{rounds}: {error}"))?;
    let plan = Plan {
        threads: case.threads,
        spans: case.spans,
        warm_rounds: case.warm_rounds(),
        rounds,
    };
    let directory = Path::new(directory);
    if case.warm_rounds() > 0 {
        warm_page_cache(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    match case.work {
        Work::TracingChrome => with_peer(plan, TracingChrome::start(directory)?),
        Work::Fastrace => with_peer(plan, Fastrace::start(directory)?),
        Work::MutexSerde => with_peer(plan, MutexSerde::start(directory)?),
        _ => with_recorder(case, plan),
    }
}

fn with_peer(plan: Plan, peer: impl Peer) -> Result<(), String> {
    let body = Body {
        record: &|count| peer.record(Kind::Span1, 0..count, &mut Free),
        settle: &|| peer.settle(),
    };
    print_rounds(&rounds::run(plan, body));
    let path = peer.finish().ok_or("the peer wrote no file")?;
    let bytes = std::fs::metadata(&path)
        .map_err(|error| format!("{}: {error}", path.display()))?
        .len();
    let events = plan.events();
    print_disk(events, Written { events, bytes });
    Ok(())
}

fn with_recorder(case: &Case, mut plan: Plan) -> Result<(), String> {
    let recorder = Recorder::init();
    if recorder.is_enabled() != case.records() {
        return Err(format!(
            "{}: recording is on: {}",
            case.name,
            recorder.is_enabled()
        ));
    }
    let mut extra = 0;
    if case.work == Work::Sustained {
        extra = 1_000;
        plan.spans = SUSTAINED_BYTES / line_bytes(recorder, extra)?;
    }
    let record: &(dyn Fn(u64) + Sync) = match case.work {
        Work::Instant => &spans::instant_1arg,
        Work::AsyncSpan => &spans::async_span_1arg,
        Work::AsyncChild => &spans::async_child_1arg,
        Work::Filtered => &spans::span_verbose,
        _ => &spans::span_1arg,
    };
    print_rounds(&rounds::run(
        plan,
        Body {
            record,
            settle: &|| recorder.flush(),
        },
    ));
    let fragment = recorder.fragment();
    recorder.finish();
    let expected = if matches!(case.work, Work::Disabled | Work::Filtered) {
        0
    } else {
        plan.events() + extra
    };
    let written = match fragment {
        Some(path) => {
            disk::count_segments(&path).map_err(|error| format!("{}: {error}", path.display()))?
        }
        None => Written::default(),
    };
    print_disk(expected, written);
    Ok(())
}

/// Records `count` spans and returns the bytes of one line.
fn line_bytes(recorder: Recorder, count: u64) -> Result<u64, String> {
    spans::span_1arg(count);
    recorder.flush();
    let path = recorder.fragment().ok_or("no fragment")?;
    let written = disk::count(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(written.bytes / count)
}

fn print_rounds(rounds: &[Round]) {
    for round in rounds {
        let Round {
            span_ns,
            floor_ns,
            cpu_ns,
            floor_cpu_ns,
            total_cpu_ns,
        } = round;
        println!("ROUND {span_ns} {floor_ns} {cpu_ns} {floor_cpu_ns} {total_cpu_ns}");
    }
}

fn print_disk(expected: u64, written: Written) {
    println!("DISK {expected} {} {}", written.events, written.bytes);
}
