//! Verdicts on requests that waited in an engine's queue, with what they waited for.

use super::{Candidate, finding, percent};
use crate::amount::duration;
use crate::table::{RunReport, SeriesKind, Verdict, VerdictRule, setting};

/// Minimum share of E2E that requests must spend in the queue.
const QUEUE: f64 = 0.20;
/// Minimum share of the time with requests in flight in which some are queued.
const WAITING: f64 = 0.30;
/// Minimum share of the time with queued requests in which the maximum number of requests runs.
const AT_CAP: f64 = 0.80;
/// Share of the maximum that counts as the maximum, because values are means of a part of the time.
const NEARLY: f64 = 0.90;
/// KV cache use from which the cache counts as full, in percent. It is below 100 because a request needs several
/// blocks.
pub(in crate::fold) const KV_FULL: f64 = 85.0;

/// Advice if too few requests run at once.
const RAISE: &str = "Raise the maximum number of running requests (vLLM: `--max-num-seqs`, SGLang: `--max-running-requests`)";

/// Load of an engine while requests were queued in it.
struct EngineLoad {
    process: usize,
    /// Maximum number of requests that ran at once.
    most_running: f64,
    mean_waiting: f64,
    /// Share of the time in which requests were queued.
    waiting: f64,
    /// Share of that time in which `most_running` requests ran.
    at_cap: f64,
    /// Mean KV cache use while requests were queued, in percent.
    kv_percent: Option<f64>,
    most_kv_percent: Option<f64>,
}

/// Returns the verdict for requests that waited in a queue, or that were preempted.
pub(super) fn queue(report: &RunReport) -> Option<Candidate> {
    let waited = |rule| finding(report, rule).map_or(0.0, |finding| finding.waited);
    let (queue, preempted) = (waited("queue"), waited("preemptions"));
    let engines = report.load.iter();
    let engines = engines.filter(|level| level.of == SeriesKind::Waiting);
    let loads = engines.filter_map(|level| EngineLoad::from_report(report, level.process?));
    let load = loads.max_by(|one, other| one.mean_waiting.total_cmp(&other.mean_waiting))?;
    let is_preempted = preempted > 0.0 && load.most_kv_percent >= Some(KV_FULL);
    if queue + preempted < QUEUE {
        return None;
    }
    if load.kv_percent >= Some(KV_FULL) || is_preempted {
        return Some(kv_full(report, &load, [queue, preempted]));
    }
    let is_capped = load.waiting >= WAITING && load.at_cap >= AT_CAP;
    let limit = engine_setting(report, load.process, setting::MAX_NUM_SEQS);
    let is_below = limit.is_some_and(|limit| load.most_running < limit);
    (is_capped && !is_below).then(|| capped(report, &load, queue))
}

impl EngineLoad {
    fn from_report(report: &RunReport, process: usize) -> Option<EngineLoad> {
        let level = |kind| {
            let mut levels = report.load.iter();
            levels.find(|level| level.of == kind && level.process == Some(process))
        };
        let values = |kind, process| {
            let mut series = report.timeline.series.iter();
            let series = series.find(|series| series.of == kind && series.process == process);
            series.map_or(&[][..], |series| &series.values[..])
        };
        let most_running = level(SeriesKind::Running)?.max;
        let running = values(SeriesKind::Running, Some(process));
        let kv = values(SeriesKind::KvUsedPercent, Some(process));
        let in_flight = values(SeriesKind::InFlight, None);
        let waiting = values(SeriesKind::Waiting, Some(process));
        let (mut parts, mut waiting_parts, mut at_cap, mut kv_sum) = (0_u32, 0_u32, 0_u32, 0.0);
        for (part, waiting) in waiting.iter().enumerate() {
            let at = |values: &[Option<f64>]| values.get(part).copied().flatten().unwrap_or(0.0);
            parts += u32::from(at(in_flight) > 0.0 || in_flight.is_empty());
            if waiting.unwrap_or(0.0) > 0.0 {
                waiting_parts += 1;
                at_cap += u32::from(at(running) >= NEARLY * most_running);
                kv_sum += at(kv);
            }
        }
        let share = |n: u32, all: u32| f64::from(n) / f64::from(all.max(1));
        Some(EngineLoad {
            process,
            most_running,
            mean_waiting: level(SeriesKind::Waiting)?.mean,
            waiting: share(waiting_parts, parts),
            at_cap: share(at_cap, waiting_parts),
            kv_percent: (!kv.is_empty()).then(|| kv_sum / f64::from(waiting_parts.max(1))),
            most_kv_percent: level(SeriesKind::KvUsedPercent).map(|level| level.max),
        })
    }
}

/// Returns a setting of an engine, or else of any process that has it.
fn engine_setting(report: &RunReport, process: usize, name: &str) -> Option<f64> {
    let has_setting = |settings: &&crate::EngineSettings| settings.values.contains_key(name);
    let all = || report.settings.iter().filter(has_setting);
    let own = all().find(|settings| settings.process == process);
    own.or_else(|| all().next())?.values[name].as_f64()
}

/// Returns a phrase for KV cache use that stayed below a limit.
fn below(kv_percent: f64) -> String {
    format!("below {:.0} %", kv_percent.floor() + 1.0)
}

fn capped(report: &RunReport, load: &EngineLoad, queue: f64) -> Candidate {
    let most = load.most_running;
    let ran = if most == 1.0 { "request" } else { "requests" };
    let kv = load.most_kv_percent.map(below);
    let stayed = kv.map_or(String::new(), |kv| format!(" and KV cache use stayed {kv}"));
    let advice = match engine_setting(report, load.process, setting::MAX_NUM_SEQS) {
        Some(limit) => format!("{RAISE}, which is {limit}."),
        None => format!("{RAISE}."),
    };
    Candidate {
        waited: queue,
        verdict: Verdict {
            rule: VerdictRule::ConcurrencyCapped,
            text: format!(
                "Requests waited for a free slot: the queue was {} of E2E while at most {most:.0} {ran} ran at once{stayed}.",
                percent(queue)
            ),
            advice,
            evidence: evidence(report, load, true),
            place: finding(report, "queue").and_then(|finding| finding.place),
        },
    }
}

fn kv_full(report: &RunReport, load: &EngineLoad, [queue, preempted]: [f64; 2]) -> Candidate {
    let preemptions = report
        .request
        .iter()
        .filter(|request| request.preemptions > 0)
        .count();
    let mut text = "The KV cache was full: ".to_owned();
    text += &match preemptions {
        0 => format!("the queue was {} of E2E", percent(queue)),
        n => format!(
            "the queue was {} of E2E, and {n} of {} requests were preempted",
            percent(queue),
            report.requests.n
        ),
    };
    if let Some(kv_percent) = load.most_kv_percent {
        text += &format!(", while KV cache use reached {kv_percent:.0} %");
    }
    let blocks = engine_setting(report, load.process, setting::NUM_KV_BLOCKS);
    let blocks = blocks.map_or(String::new(), |blocks| format!(" than its {blocks} blocks"));
    let rule = if queue >= preempted {
        "queue"
    } else {
        "preemptions"
    };
    Candidate {
        waited: (queue + preempted).min(1.0),
        verdict: Verdict {
            rule: VerdictRule::KvFull,
            text: text + ".",
            advice: format!(
                "Give the KV cache more memory{blocks} (vLLM: `--gpu-memory-utilization`, SGLang: `--mem-fraction-static`), or let fewer or shorter requests run at once."
            ),
            evidence: evidence(report, load, false),
            place: finding(report, rule).and_then(|finding| finding.place),
        },
    }
}

/// Returns the figures that support the verdict. With `at_cap`, they include for how long the maximum number of
/// requests ran.
fn evidence(report: &RunReport, load: &EngineLoad, at_cap: bool) -> String {
    let summary = &report.requests;
    let queue = match summary.queue.n {
        0 => String::new(),
        _ => format!(
            "mean time in the queue {}, ",
            duration(summary.queue.mean_ns)
        ),
    };
    let mut evidence = format!(
        "{queue}mean E2E {}; {:.1} requests were queued on average",
        duration(summary.e2e.mean_ns),
        load.mean_waiting
    );
    if at_cap {
        evidence += &format!(
            "; while any were, the maximum of {:.0} ran for {} of the time",
            load.most_running,
            percent(load.at_cap)
        );
    }
    if let Some(kv_percent) = load.kv_percent {
        evidence += &format!("; mean KV cache use {kv_percent:.1} %");
    }
    evidence
}
