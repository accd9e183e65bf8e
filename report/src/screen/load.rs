//! Load: requests in flight, running and queued, cache use, and batches.

use super::amount::{cells, counted, duration, figures_table, grouped, share};
use super::names::process_name;
use crate::table::{LoadLevel, Metric, RunReport, SeriesKind, Sizing, SizingRefusal};

/// Writes the table of load levels, and lines on what the load did to the requests.
pub(super) fn write(report: &RunReport, out: &mut String) {
    if report.load.is_empty() {
        return;
    }
    out.push_str("load       over time: for half of the time, the value was at most p50\n");
    let mut rows = vec![cells("|mean|p50|p90|p99|max")];
    for level in &report.load {
        let figures = [level.mean, level.p50, level.p90, level.p99, level.max];
        let mut row = vec![name(report, level)];
        row.extend(figures.map(|figure| match level.of {
            SeriesKind::KvUsedPercent => format!("{figure:.1} %"),
            _ => format!("{figure:.1}"),
        }));
        rows.push(row);
    }
    out.push_str(&figures_table(&rows, 1..6));
    write_unfinished(report, out);
    write_spikes(report, out);
    write_sizing(report, out);
    write_cached(report, out);
    write_batching(report, out);
    out.push('\n');
}

/// Returns the name of a load level, such as `running in EngineCore`.
fn name(report: &RunReport, level: &LoadLevel) -> String {
    let kind = match level.of {
        SeriesKind::InFlight => "requests in flight",
        SeriesKind::Running => "running in",
        SeriesKind::Waiting => "queued in",
        _ => "KV cache use of",
    };
    match level.process {
        Some(process) => format!("{kind} {}", process_name(report, process)),
        None => kind.to_owned(),
    }
}

/// Writes how many of the requests in flight have no end in the trace. By Little's law, the mean number of the others
/// is their rate times their mean time.
fn write_unfinished(report: &RunReport, out: &mut String) {
    let mut levels = report.load.iter();
    let Some(level) = levels.find(|level| level.of == SeriesKind::InFlight) else {
        return;
    };
    let ended = report
        .request
        .iter()
        .filter(|request| request.finished_ns.is_some());
    let times = ended.filter_map(|request| request.in_flight_ns(i64::MAX));
    let sum_ns: f64 = times.map(|(from_ns, to_ns)| (to_ns - from_ns) as f64).sum();
    let expected = sum_ns / level.wall_ns as f64;
    let over = level.mean - expected;
    if over > 0.05 {
        out.push_str(&format!(
            "  of the mean number in flight, {expected:.1} end in the trace and {over:.1} do not (Little's law)\n"
        ));
    }
}

/// Writes the number of spikes (times with unusually many requests), and for the longest one its load and the mean E2E
/// of its requests next to the mean of all other requests.
fn write_spikes(report: &RunReport, out: &mut String) {
    let spikes = report.spikes.longest.iter();
    let Some(longest) = spikes.max_by_key(|spike| spike.dur_ns) else {
        return;
    };
    out.push_str(&format!(
        "  {}, the longest at {} for {}: up to {} requests at once and {} in total",
        counted(report.spikes.n, "spike", "spikes"),
        duration(longest.start_ns as f64),
        duration(longest.dur_ns as f64),
        grouped(longest.peak),
        grouped(longest.requests)
    ));
    if let (Some(inside_ns), Some(others_ns)) = (longest.e2e_mean_ns, longest.others_e2e_mean_ns) {
        let (inside, others) = (duration(inside_ns), duration(others_ns));
        out.push_str(&format!(
            ", with a mean E2E of {inside} instead of {others}"
        ));
    }
    out.push('\n');
}

/// Writes how times grow with the number of requests in flight, and up to which number an objective is met.
fn write_sizing(report: &RunReport, out: &mut String) {
    for sizing in report.sizing.iter().filter(|sizing| is_shown(sizing)) {
        let name = match sizing.of {
            Metric::EngineTtft => "TTFT, engine",
            Metric::Ttft => "TTFT, frontend",
            Metric::Tpot => "TPOT",
            _ => "E2E",
        };
        let points = counted(sizing.points.len() as u64, "point", "points");
        let line = sizing.fit.map(|fit| {
            let (each, r_squared) = (duration(fit.slope_ns), fit.r_squared);
            format!(
                "grows by {each} with each request in flight, from {points} (R² {r_squared:.2})"
            )
        });
        out.push_str(&format!("  p95 of {name}: {}", line.unwrap_or(points)));
        match sizing.refused {
            Some(why) => out.push_str(&format!("; no advice: {}", refusal(why))),
            None => write_advice(sizing, out),
        }
        out.push('\n');
    }
}

/// Returns true if the sizing has a target or gives advice.
fn is_shown(sizing: &Sizing) -> bool {
    sizing.target_ns.is_some() || sizing.refused.is_none()
}

/// Writes up to how many requests in flight a latency stays within its target. Writes nothing without a target.
fn write_advice(sizing: &Sizing, out: &mut String) {
    let Some((target_ns, concurrency)) = sizing.target_ns.zip(sizing.concurrency) else {
        return;
    };
    let (target, many) = (duration(target_ns as f64), grouped(concurrency));
    out.push_str(&match (concurrency, sizing.is_beyond) {
        (0, _) => format!("; even a single request exceeds {target}"),
        (_, true) => {
            format!("; stays within {target} up to {many}, the highest point, and maybe beyond")
        }
        (_, false) => format!("; stays within {target} up to {many}"),
    });
}

/// Returns the reason why the report gives no advice on the number of requests in flight.
fn refusal(why: SizingRefusal) -> &'static str {
    match why {
        SizingRefusal::FewPoints => {
            "three points of 20 requests each are needed, at different numbers in flight"
        }
        SizingRefusal::NotLinear => "the points are too far from a line (R² below 0.7)",
        SizingRefusal::NotRising => "it does not grow with the number in flight",
    }
}

/// Writes the share of prompt tokens that were in the prefix cache.
fn write_cached(report: &RunReport, out: &mut String) {
    let tokens = report
        .request
        .iter()
        .filter_map(|request| Some((request.cached_tokens?, request.prompt_tokens?)));
    let (cached, prompt) = tokens.fold((0.0, 0.0), |sum, (cached, prompt)| {
        (sum.0 + cached as f64, sum.1 + prompt as f64)
    });
    if prompt > 0.0 {
        out.push_str(&format!(
            "  {} of the prompt tokens were in the prefix cache\n",
            share(cached, prompt)
        ));
    }
}

/// Writes what the engines put into their steps, and how long the steps took.
fn write_batching(report: &RunReport, out: &mut String) {
    for batching in report.batching.iter().filter(|batching| batching.steps > 0) {
        let each = |tokens: u64| tokens as f64 / batching.steps as f64;
        out.push_str(&format!(
            "  {}: {} steps, with {:.1} prompt tokens and {:.1} output tokens on average\n",
            process_name(report, batching.process),
            grouped(batching.steps),
            each(batching.prefill_tokens),
            each(batching.decode_tokens)
        ));
        if let Some((more_ns, _)) = batching.stall().filter(|(more_ns, _)| *more_ns > 0.0) {
            out.push_str(&format!(
                "    a step without a prompt takes {}, and a step with one delays other answers by {} ({} of the steps)\n",
                duration(batching.decode_step_ns),
                duration(more_ns),
                share(batching.delaying_steps() as f64, batching.steps as f64)
            ));
        }
        if batching.drafted_tokens > 0 {
            out.push_str(&format!(
                "    of {} speculated tokens, {} were accepted\n",
                grouped(batching.drafted_tokens),
                share(
                    batching.accepted_tokens as f64,
                    batching.drafted_tokens as f64
                )
            ));
        }
    }
}
