//! How much there was to do.

use super::amount::{cells, counted, duration, figures_table, grouped, share};
use super::names::process_name;
use crate::table::{LoadLevel, Metric, RunReport, SeriesKind, Sizing, SizingRefusal};

pub(super) fn put(report: &RunReport, out: &mut String) {
    if report.load.is_empty() {
        return;
    }
    out.push_str("load       levels weighted by time: half of the time they were at most p50\n");
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
    put_little(report, out);
    put_spikes(report, out);
    put_sizing(report, out);
    put_cached(report, out);
    put_batching(report, out);
    out.push('\n');
}

fn name(report: &RunReport, level: &LoadLevel) -> String {
    let of = match level.of {
        SeriesKind::UnderWay => "requests in flight",
        SeriesKind::Running => "running in",
        SeriesKind::Waiting => "waiting in",
        _ => "KV cache use of",
    };
    match level.process {
        Some(process) => format!("{of} {}", process_name(report, process)),
        None => of.to_owned(),
    }
}

/// Writes how many of the requests in flight have no end in the trace. By Little's law, the mean number of the others is their rate times their mean time.
fn put_little(report: &RunReport, out: &mut String) {
    let mut levels = report.load.iter();
    let Some(level) = levels.find(|level| level.of == SeriesKind::UnderWay) else {
        return;
    };
    let ended = report.request.iter().filter(|of| of.finished_ns.is_some());
    let times = ended.filter_map(|of| of.under_way_ns(i64::MAX));
    let sum_ns: f64 = times.map(|(from_ns, to_ns)| (to_ns - from_ns) as f64).sum();
    let expected = sum_ns / level.wall_ns as f64;
    let over = level.mean - expected;
    if over > 0.05 {
        out.push_str(&format!(
            "  by their rate and times {expected:.1} would be in flight: {over:.1} have no end here\n"
        ));
    }
}

/// Times with unusually many requests, and whether those took longer.
fn put_spikes(report: &RunReport, out: &mut String) {
    let spikes = report.spikes.longest.iter();
    let Some(longest) = spikes.max_by_key(|spike| spike.dur_ns) else {
        return;
    };
    out.push_str(&format!(
        "  {}, the longest at {} for {}: up to {} requests at once, {} in all",
        counted(report.spikes.n, "spike", "spikes"),
        duration(longest.start_ns as f64),
        duration(longest.dur_ns as f64),
        grouped(longest.peak),
        grouped(longest.requests)
    ));
    if let (Some(inside_ns), Some(others_ns)) = (longest.e2e_mean_ns, longest.others_e2e_mean_ns) {
        let (inside, others) = (duration(inside_ns), duration(others_ns));
        out.push_str(&format!(" of {inside} on average, and {others} outside"));
    }
    out.push('\n');
}

/// How times grow with the number at once, and up to how many an objective holds.
fn put_sizing(report: &RunReport, out: &mut String) {
    for of in report.sizing.iter().filter(|of| is_told(of)) {
        let name = match of.of {
            Metric::EngineTtft => "TTFT, engine",
            Metric::Ttft => "TTFT, frontend",
            Metric::Tpot => "TPOT",
            _ => "E2E",
        };
        let points = counted(of.points.len() as u64, "point", "points");
        let line = of.fit.map(|fit| {
            let (each, r_squared) = (duration(fit.slope_ns), fit.r_squared);
            format!("{each} for each request in flight, from {points} (R² {r_squared:.2})")
        });
        out.push_str(&format!("  p95 of {name}: {}", line.unwrap_or(points)));
        match of.refused {
            Some(why) => out.push_str(&format!("; no advice: {}", refusal(why))),
            None => put_advice(of, out),
        }
        out.push('\n');
    }
}

/// An objective is always answered. Without one, what advises nothing is not told.
fn is_told(of: &Sizing) -> bool {
    of.target_ns.is_some() || of.refused.is_none()
}

fn put_advice(of: &Sizing, out: &mut String) {
    let Some((target_ns, concurrency)) = of.target_ns.zip(of.concurrency) else {
        return;
    };
    let (target, many) = (duration(target_ns as f64), grouped(concurrency));
    out.push_str(&match (concurrency, of.is_beyond) {
        (0, _) => format!("; {target} does not hold even for one"),
        (_, true) => format!("; {target} holds up to {many}, the highest point, and maybe beyond"),
        (_, false) => format!("; {target} holds up to {many}"),
    });
}

fn refusal(why: SizingRefusal) -> &'static str {
    match why {
        SizingRefusal::FewPoints => {
            "three points of 20 requests each are needed, at different numbers in flight"
        }
        SizingRefusal::NotLinear => "the points lie too far from a line (R² below 0.7)",
        SizingRefusal::NotRising => "it does not grow with their number",
    }
}

/// What the prefix cache saved.
fn put_cached(report: &RunReport, out: &mut String) {
    let known = report
        .request
        .iter()
        .filter_map(|request| Some((request.cached_tokens?, request.prompt_tokens?)));
    let (cached, prompt) = known.fold((0.0, 0.0), |sum, (cached, prompt)| {
        (sum.0 + cached as f64, sum.1 + prompt as f64)
    });
    if prompt > 0.0 {
        out.push_str(&format!(
            "  the prefix cache had {} of the tokens of prompts\n",
            share(cached, prompt)
        ));
    }
}

/// What the engines put into their steps, and what that cost.
fn put_batching(report: &RunReport, out: &mut String) {
    for of in report.batching.iter().filter(|of| of.steps > 0) {
        let each = |tokens: u64| tokens as f64 / of.steps as f64;
        out.push_str(&format!(
            "  {}: {} steps, {:.1} tokens of prompts and {:.1} of answers in the mean one\n",
            process_name(report, of.process),
            grouped(of.steps),
            each(of.prefill_tokens),
            each(of.decode_tokens)
        ));
        if let Some((more_ns, _)) = of.stall().filter(|(more_ns, _)| *more_ns > 0.0) {
            out.push_str(&format!(
                "    a step of answers takes {}; with a prompt in it {} longer ({} of the steps)\n",
                duration(of.decode_step_ns),
                duration(more_ns),
                share(of.mixed_steps as f64, of.steps as f64)
            ));
        }
        if of.drafted_tokens > 0 {
            out.push_str(&format!(
                "    of {} speculated tokens {} were right\n",
                grouped(of.drafted_tokens),
                share(of.accepted_tokens as f64, of.drafted_tokens as f64)
            ));
        }
    }
}
