//! Finds the biggest change that users feel in a comparison, and its cause.
//!
//! A changed setting or load explains a figure only if it acts on the part of the requests' time that changed, in the
//! same direction. Other changes are shown as happening at the same time.

use super::diff_side::Side;
use super::findings::requests::IN_FRONTEND;
use super::verdict::KV_FULL;
use crate::statistics::mann_whitney;
use crate::table::{
    Change, ChangeCause, CrashedSide, FigureChange, Headline, HeadlineStatistic, IdleCause,
    IdleDiff, LoadDiff, LoadFigure, Metric, MetricDiff, PartDiff, RowKind, RunDiff, SettingDiff,
    VerdictRule, setting,
};
use serde_json::Value;

/// Minimum number of answered requests per side for a figure to be tested.
const TESTED: u64 = 8;
/// Minimum relative change of a figure that matters, whatever the tests say. Two runs of one server often differ by
/// this much.
const SMALL: f64 = 0.05;
/// Minimum difference between the shares of answered requests, absolute and in standard deviations.
const ANSWERED: (f64, f64) = (0.05, 3.3);
/// Factor by which a load figure has to change.
const LOAD: f64 = 1.1;
/// Share of the devices' time by which a cause of idle time has to change.
const IDLE: f64 = 0.05;
/// Minimum share of the change of E2E that TTFT and decode must explain. Otherwise E2E is the headline.
const EXPLAINED: f64 = 0.7;
/// Longer prompts or outputs explain a change of time up to this power of their own change. Attention grows with the
/// square of the length.
const LENGTH_POWER: f64 = 3.0;

pub(super) fn headline(diff: &RunDiff, one: Side<'_>, other: Side<'_>) -> Headline {
    if let Some(crash) = crash(one, other) {
        return Headline::Crash(crash);
    }
    if diff.requests.0 == 0 || diff.requests.1 == 0 {
        return Headline::NoRequests;
    }
    if is_answered_changed(diff) {
        return Headline::Answered;
    }
    let felt: Vec<(&MetricDiff, f64)> = felt(diff);
    if felt.is_empty() {
        return Headline::FewRequests;
    }
    let certain = felt.into_iter().filter(|(metric, _)| metric.is_certain());
    let size = |metric: &MetricDiff| metric.ratio.map_or(0.0, |ratio| (ratio - 1.0).abs());
    let (big, small): (Vec<_>, Vec<_>) = certain.partition(|(metric, _)| size(metric) >= SMALL);
    // Both runs have the metrics of `felt`, so each has a ratio.
    let search = |metric| Search::new(diff, [one, other], metric);
    match (most(big), most(small)) {
        (Some(metric), _) => Headline::Figure(search(metric).change()),
        (None, Some(metric)) => Headline::SmallChange(search(metric).figure()),
        (None, None) => Headline::NoChange,
    }
}

/// Returns the figure whose change costs a request the most time.
fn most(metrics: Vec<(&MetricDiff, f64)>) -> Option<&MetricDiff> {
    let metrics = metrics.into_iter();
    let most = metrics.max_by(|one, other| one.1.total_cmp(&other.1));
    most.map(|(metric, _)| metric)
}

/// Returns the crash of one side if the other side has none.
fn crash(one: Side<'_>, other: Side<'_>) -> Option<CrashedSide> {
    let first_crash = |side: Side<'_>| {
        let mut crashes = side.0.iter().filter_map(|run| {
            Some((
                run.recorded.process_name(run.crash.as_ref()?.process),
                run.crash.clone()?,
            ))
        });
        crashes.next()
    };
    let (is_second, (process, crash)) = match (first_crash(one), first_crash(other)) {
        (Some(crash), None) => (false, crash),
        (None, Some(crash)) => (true, crash),
        _ => return None,
    };
    Some(CrashedSide {
        is_second,
        process,
        exit: crash.exit,
        step: crash.step,
        requests: crash.requests,
    })
}

/// Returns true if the share of answered requests differs between the sides, by a test of two proportions.
fn is_answered_changed(diff: &RunDiff) -> bool {
    let share = |answered: u64, n: u64| answered as f64 / n as f64;
    let (one, other) = diff.requests;
    let (answered_one, answered_other) = diff.answered;
    let apart = (share(answered_one, one) - share(answered_other, other)).abs();
    let all = share(answered_one + answered_other, one + other);
    let deviation = (all * (1.0 - all) * (1.0 / one as f64 + 1.0 / other as f64)).sqrt();
    apart >= ANSWERED.0 && apart > ANSWERED.1 * deviation
}

/// Returns the figures that users feel and that both sides have for enough requests, each with the time that its change
/// costs a request. Without a frontend, these are the engine's figures.
fn felt(diff: &RunDiff) -> Vec<(&MetricDiff, f64)> {
    let is_tested = |metric: &&MetricDiff| metric.one.n >= TESTED && metric.other.n >= TESTED;
    let tested: Vec<&MetricDiff> = diff.metrics.iter().filter(is_tested).collect();
    let output = diff
        .load
        .iter()
        .find(|load| load.of == LoadFigure::OutputTokens);
    let tokens = output.map_or(1.0, |load| {
        load.one.unwrap_or(1.0).min(load.other.unwrap_or(1.0))
    });
    let weighted = |weights: &[(Metric, f64)]| -> Vec<(&MetricDiff, f64)> {
        let found = weights.iter().filter_map(|(metric, weight)| {
            let metric = tested.iter().find(|found| found.metric == *metric)?;
            Some((*metric, metric.more_ns()?.abs() * weight))
        });
        found.collect()
    };
    let user_metrics = weighted(&[
        (Metric::Ttft, 1.0),
        (Metric::Tpot, (tokens - 1.0).max(1.0)),
        (Metric::E2e, EXPLAINED),
    ]);
    match user_metrics.is_empty() {
        true => weighted(&[(Metric::EngineTtft, 1.0), (Metric::Decode, 1.0)]),
        false => user_metrics,
    }
}

/// Search for the cause of a change.
struct Search<'a> {
    diff: &'a RunDiff,
    sides: [Side<'a>; 2],
    metric: &'a MetricDiff,
    /// Index of the side with the lower figure, and of the side with the higher figure.
    fast: usize,
    slow: usize,
    /// Part of a request's time that changed most.
    part: Option<PartDiff>,
}

impl<'a> Search<'a> {
    fn new(diff: &'a RunDiff, sides: [Side<'a>; 2], metric: &'a MetricDiff) -> Search<'a> {
        let is_slower = metric.ratio.is_some_and(|ratio| ratio > 1.0);
        let slow = usize::from(is_slower);
        Search {
            diff,
            sides,
            metric,
            fast: 1 - slow,
            slow,
            part: part(diff, metric, is_slower),
        }
    }

    /// Returns the values of the faster and of the slower side.
    fn fast_and_slow<T: Clone>(&self, one: T, other: T) -> (T, T) {
        let both = [one, other];
        (both[self.fast].clone(), both[self.slow].clone())
    }

    fn figure(&self) -> FigureChange {
        let (one, other) = (&self.metric.one, &self.metric.other);
        // The median represents the change unless only a part of the requests changed.
        let median_change = (other.p50_ns / one.p50_ns).ln();
        let mean_change = (other.mean_ns / one.mean_ns).ln();
        let (statistic, one_ns, other_ns) = match median_change / mean_change >= 0.5 {
            true => (HeadlineStatistic::P50, one.p50_ns, other.p50_ns),
            false => (HeadlineStatistic::Mean, one.mean_ns, other.mean_ns),
        };
        FigureChange {
            metric: self.metric.metric,
            statistic,
            one_ns,
            other_ns,
            part: None,
            cause: None,
        }
    }

    fn change(&self) -> FigureChange {
        FigureChange {
            part: self.part.clone(),
            cause: self.cause(),
            ..self.figure()
        }
    }

    fn cause(&self) -> Option<ChangeCause> {
        let because = |change| ChangeCause {
            explains: true,
            change,
        };
        let meanwhile = |change| ChangeCause {
            explains: false,
            change,
        };
        let setting = self.setting().map(|diff| Change::Setting(diff.clone()));
        let explained = setting.or_else(|| self.load().map(Change::Load));
        explained.map(because).or_else(|| {
            let setting = self.other_setting();
            setting
                .map(|diff| Change::Setting(diff.clone()))
                .or_else(|| self.verdict())
                .or_else(|| self.idle())
                .or_else(|| self.device_work())
                .map(meanwhile)
        })
    }

    /// Returns true if one of `parts` is the part that changed most.
    fn is_part(&self, parts: &[&str]) -> bool {
        let name = self.part.as_ref().map(|part| part.name.as_str());
        let mut names = name.into_iter().flat_map(|name| name.split(" + "));
        names.any(|name| parts.contains(&name))
    }

    /// Returns a load figure of the faster and of the slower side.
    fn load_figure(&self, figure: LoadFigure) -> Option<(f64, f64)> {
        let load = self.diff.load.iter().find(|load| load.of == figure)?;
        Some(self.fast_and_slow(load.one?, load.other?))
    }

    /// Returns the setting that explains the change.
    fn setting(&self) -> Option<&'a SettingDiff> {
        let settings = self.diff.settings.as_ref()?;
        settings.different.iter().find(|diff| self.explains(diff))
    }

    /// Returns true if this setting acts on the part that changed, in the same direction. If the load shows its effect,
    /// that must have changed too.
    fn explains(&self, diff: &SettingDiff) -> bool {
        const COMPUTE: [&str; 2] = ["prefill", "decode"];
        let (Some(one), Some(other)) = (number(&diff.one), number(&diff.other)) else {
            return self.is_mode_felt(&diff.name);
        };
        let (fast, slow) = self.fast_and_slow(one, other);
        let (is_lower, is_higher) = (slow < fast, slow > fast);
        let slow_load = |figure| self.load_figure(figure).map(|(_, slow)| slow);
        match diff.name.as_str() {
            setting::MAX_NUM_SEQS if is_lower => {
                let is_reached = |max: f64| max >= slow;
                self.is_part(&["queue"])
                    && slow_load(LoadFigure::RunningMax).is_some_and(is_reached)
            }
            setting::MAX_NUM_SEQS => {
                let running = self.load_figure(LoadFigure::RunningMean);
                let is_more = running.is_some_and(|(fast, slow)| slow > LOAD * fast);
                is_higher && self.is_part(&COMPUTE) && is_more
            }
            setting::MAX_NUM_BATCHED_TOKENS if is_lower => self.is_part(&["queue", "prefill"]),
            setting::MAX_NUM_BATCHED_TOKENS => is_higher && self.is_part(&["decode"]),
            setting::NUM_KV_BLOCKS => {
                let is_full = slow_load(LoadFigure::KvUsedMax).is_some_and(|max| max >= KV_FULL);
                is_lower && self.is_part(&["queue", "decode"]) && is_full
            }
            setting::API_SERVER_COUNT => is_lower && self.is_part(&IN_FRONTEND),
            "tensor_parallel_size" => is_lower && self.is_part(&COMPUTE),
            "data_parallel_size" => is_lower && self.is_part(&["queue", "prefill", "decode"]),
            name => self.is_mode_felt(name),
        }
    }

    /// Returns true if this setting is a mode that avoids some work, and the slower side has more of that work.
    fn is_mode_felt(&self, name: &str) -> bool {
        let causes: &[IdleCause] = match name {
            "graph_mode" | "capture_sizes" => &[IdleCause::LaunchGap],
            "async_scheduling" => &[
                IdleCause::Preparing,
                IdleCause::Scheduling,
                IdleCause::Output,
            ],
            "enable_prefix_caching" => {
                let uncached = self.load_figure(LoadFigure::UncachedTokens);
                let is_more = uncached.is_some_and(|(fast, slow)| slow > LOAD * fast);
                return is_more && self.is_part(&["queue", "prefill"]);
            }
            _ => return false,
        };
        let idle = self.diff.idle.iter();
        let idle = idle.filter(|diff| causes.contains(&diff.cause));
        let more: f64 = idle.map(|diff| self.more_idle(diff)).sum();
        more >= IDLE && self.is_part(&["prefill", "decode"])
    }

    /// Returns by how much the share of an idle cause is larger on the slower side.
    fn more_idle(&self, diff: &IdleDiff) -> f64 {
        let (fast, slow) = self.fast_and_slow(diff.one, diff.other);
        slow - fast
    }

    /// Returns a setting that differs but explains nothing, as far as is known. Small differences are left out, for
    /// example a size that depends on free memory.
    fn other_setting(&self) -> Option<&'a SettingDiff> {
        let mut settings = self.diff.settings.as_ref()?.different.iter();
        settings.find(|diff| {
            let numbers = number(&diff.one).zip(number(&diff.other));
            numbers.is_none_or(|(one, other)| (other - one).abs() > SMALL * one.abs())
        })
    }

    /// Returns the load figure that explains the change. If several do, the one that changed most is returned.
    fn load(&self) -> Option<LoadDiff> {
        let is_closed = self.sides.iter().all(|side| side.is_closed_loop());
        let (one, other) = self.diff.requests;
        let chance = 2.0 * (1.0 / one as f64 + 1.0 / other as f64).sqrt();
        let growth = |figure| {
            let (fast, slow) = self.load_figure(figure)?;
            let growth = (slow / fast).ln();
            (growth.is_finite() && growth > LOAD.ln()).then_some(growth)
        };
        let is_explained = |figure: LoadFigure| match figure {
            LoadFigure::InFlightMax => is_closed && growth(figure).is_some(),
            LoadFigure::ArrivalsPerS => {
                !is_closed && growth(figure).is_some_and(|growth| growth > chance)
            }
            // If no prompt token is cached, both figures are equal.
            LoadFigure::PromptTokens => {
                self.is_longer(figure, &["prefill", "queue"], growth(figure))
            }
            LoadFigure::UncachedTokens => {
                let is_as_long = growth(LoadFigure::PromptTokens).is_none();
                is_as_long && self.is_longer(figure, &["prefill", "queue"], growth(figure))
            }
            LoadFigure::OutputTokens => {
                let is_per_token = self.metric.metric == Metric::Tpot;
                !is_per_token && self.is_longer(figure, &["decode", "queue"], growth(figure))
            }
            _ => false,
        };
        let load = self.diff.load.iter().filter(|load| is_explained(load.of));
        let most = load.max_by(|one, other| {
            let growth = |load: &LoadDiff| growth(load.of).unwrap_or(0.0);
            growth(one).total_cmp(&growth(other))
        });
        most.copied()
    }

    /// Returns true if the numbers of tokens explain the time of the part that changed most. The time in the queue may
    /// grow by any factor.
    fn is_longer(&self, figure: LoadFigure, parts: &[&str], growth: Option<f64>) -> bool {
        let [one, other] = self.sides.map(|side| side.tokens(figure));
        let is_sure = mann_whitney(&one, &other).is_some_and(|p| p < 0.05);
        let part = self.part.as_ref();
        let times = part.and_then(|part| Some(self.fast_and_slow(part.one_ns?, part.other_ns?)));
        let is_enough = |(fast, slow): (f64, f64)| {
            self.is_part(&["queue"])
                || growth.is_some_and(|growth| LENGTH_POWER * growth >= (slow / fast).ln())
        };
        is_sure && growth.is_some() && self.is_part(parts) && times.is_some_and(is_enough)
    }

    /// Returns the verdicts if they differ and the one of the slower side names a limit.
    fn verdict(&self) -> Option<Change> {
        let ([one], [other]) = (&self.diff.verdicts.0[..], &self.diff.verdicts.1[..]) else {
            return None;
        };
        let (one, other) = (*one, *other);
        let (_, slow) = self.fast_and_slow(one, other);
        let is_limit = !matches!(
            slow,
            VerdictRule::Nothing | VerdictRule::Unknown | VerdictRule::LittleLoad
        );
        let is_known = one != VerdictRule::Unknown && other != VerdictRule::Unknown;
        (one != other && is_limit && is_known).then_some(Change::Verdict { one, other })
    }

    /// Returns the idle cause that changed most in the direction of the figure.
    fn idle(&self) -> Option<Change> {
        let idle = self
            .diff
            .idle
            .iter()
            .filter(|diff| diff.cause.is_server_side());
        let most = idle.max_by(|one, other| {
            let (one, other) = (self.more_idle(one), self.more_idle(other));
            one.total_cmp(&other)
        })?;
        (self.more_idle(most) >= IDLE).then_some(Change::Idle(*most))
    }

    /// Returns the device work whose time changed most, if its mean duration is longer on the slower side.
    fn device_work(&self) -> Option<Change> {
        let mut names = self.diff.names.iter();
        let most = names.find(|diff| diff.row_kind == RowKind::Track)?;
        let (one_ns, other_ns) = (most.one?.mean_ns, most.other?.mean_ns);
        let (fast, slow) = self.fast_and_slow(one_ns, other_ns);
        (self.is_part(&["prefill", "decode"]) && slow > LOAD * fast).then(|| Change::Name {
            name: most.name.clone(),
            one_ns,
            other_ns,
        })
    }
}

/// Returns the part of a request's time that changed most in the direction of a figure, if it accounts for at least
/// half of the change.
fn part(diff: &RunDiff, metric: &MetricDiff, is_slower: bool) -> Option<PartDiff> {
    let from_metric = |name: &str, metric: Metric| {
        let found = diff.metrics.iter().find(|diff| diff.metric == metric)?;
        let ns = |quantiles: &crate::Quantiles| (quantiles.n > 0).then_some(quantiles.mean_ns);
        Some(PartDiff {
            name: name.to_owned(),
            one_ns: ns(&found.one),
            other_ns: ns(&found.other),
        })
    };
    let engine_parts = [
        ("queue", Metric::Queue),
        ("prefill", Metric::Prefill),
        ("decode", Metric::Decode),
    ];
    let parts: Vec<PartDiff> = match diff.parts.is_empty() {
        true => {
            let parts = engine_parts.into_iter();
            parts
                .filter_map(|(name, metric)| from_metric(name, metric))
                .collect()
        }
        false => diff.parts.clone(),
    };
    let has = |part: &PartDiff, names: &[&str]| {
        let mut parts = part.name.split(" + ");
        parts.any(|part| names.contains(&part))
    };
    let is_in = |part: &PartDiff| match metric.metric {
        Metric::Tpot | Metric::Decode => has(part, &["decode"]),
        Metric::Ttft | Metric::EngineTtft => !has(part, &["decode", "return", "answer"]),
        _ => true,
    };
    let sign = if is_slower { 1.0 } else { -1.0 };
    let more = |part: &PartDiff| part.more_ns().map_or(0.0, |ns| sign * ns);
    let found = parts.into_iter().filter(is_in);
    let most = found.max_by(|one, other| more(one).total_cmp(&more(other)))?;
    let whole_ns = sign * metric.more_ns()?;
    let is_most = match metric.metric {
        Metric::Tpot => more(&most) > 0.0,
        _ => more(&most) >= 0.5 * whole_ns,
    };
    is_most.then_some(most)
}

/// Returns the largest value of a setting, or `None` if a value is not a number.
fn number(values: &[Value]) -> Option<f64> {
    let numbers: Option<Vec<f64>> = values.iter().map(Value::as_f64).collect();
    numbers?.into_iter().max_by(f64::total_cmp)
}
