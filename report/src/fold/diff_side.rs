//! Figures of one side of a comparison, as means over its runs.

use crate::statistics::quantiles::Quantiles;
use crate::table::{
    IdleCause, LoadFigure, LoadLevel, Metric, NameFigures, NameTime, Request, RowKind, RunReport,
    SeriesKind, VerdictRule,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// The runs of one side.
#[derive(Clone, Copy)]
pub(super) struct Side<'a>(pub(super) &'a [RunReport]);

/// Kind of track, category and name of spans.
pub(super) type NameKey<'a> = (RowKind, &'a str, &'a str);

impl<'a> Side<'a> {
    pub(super) fn requests(self) -> u64 {
        self.0.iter().map(|run| run.requests.n).sum()
    }

    pub(super) fn answered(self) -> u64 {
        self.0.iter().map(|run| run.requests.ok).sum()
    }

    /// Returns the mean of a figure over the runs that have it.
    pub(super) fn mean(self, figure: impl Fn(&RunReport) -> Option<f64>) -> Option<f64> {
        mean(self.0.iter().filter_map(figure))
    }

    fn max(self, figure: impl Fn(&RunReport) -> Option<f64>) -> Option<f64> {
        self.0.iter().filter_map(figure).max_by(f64::total_cmp)
    }

    /// Returns the mean serving time of the runs, in ns.
    pub(super) fn wall_ns(self) -> f64 {
        let wall_ns = |run: &RunReport| match run.serving.wall_ns {
            0 => run.recorded.wall_ns,
            ns => ns,
        };
        self.mean(|run| Some(wall_ns(run) as f64)).unwrap_or(0.0)
    }

    /// Returns the distinct rules of the verdicts, sorted.
    pub(super) fn verdicts(self) -> Vec<VerdictRule> {
        let mut rules: Vec<VerdictRule> = self.0.iter().map(|run| run.verdict.rule).collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }

    /// Returns the distinct values of each setting.
    pub(super) fn settings(self) -> BTreeMap<&'a str, Vec<&'a Value>> {
        let mut settings: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        let engines = self.0.iter().flat_map(|run| &run.settings);
        for (name, value) in engines.flat_map(|engine| &engine.values) {
            let values = settings.entry(name).or_default();
            if !values.contains(&value) {
                values.push(value);
            }
        }
        settings
    }

    /// Returns a figure of the load.
    pub(super) fn load(self, figure: LoadFigure) -> Option<f64> {
        let mean_of = |kind| self.mean(|run| mean(levels(run, kind).map(|level| level.mean)));
        let max_of = |kind| {
            self.max(|run| {
                let levels = levels(run, kind).map(|level| level.max);
                levels.max_by(f64::total_cmp)
            })
        };
        match figure {
            LoadFigure::ArrivalsPerS => self.mean(arrivals_per_s),
            LoadFigure::InFlightMean => mean_of(SeriesKind::InFlight),
            LoadFigure::InFlightMax => max_of(SeriesKind::InFlight),
            LoadFigure::RunningMean => mean_of(SeriesKind::Running),
            LoadFigure::RunningMax => max_of(SeriesKind::Running),
            LoadFigure::WaitingMean => mean_of(SeriesKind::Waiting),
            LoadFigure::WaitingMax => max_of(SeriesKind::Waiting),
            LoadFigure::KvUsedMean => mean_of(SeriesKind::KvUsedPercent),
            LoadFigure::KvUsedMax => max_of(SeriesKind::KvUsedPercent),
            LoadFigure::PromptTokens | LoadFigure::UncachedTokens | LoadFigure::OutputTokens => {
                mean(self.tokens(figure).into_iter().map(|tokens| tokens as f64))
            }
        }
    }

    /// Returns the token counts of all requests that have them, or nothing if the figure does not count tokens.
    pub(super) fn tokens(self, figure: LoadFigure) -> Vec<i64> {
        let tokens = |request: &Request| match figure {
            LoadFigure::PromptTokens => request.prompt_tokens,
            LoadFigure::UncachedTokens => {
                let cached = request.cached_tokens?;
                Some(request.prompt_tokens?.saturating_sub(cached))
            }
            LoadFigure::OutputTokens => request.output_tokens,
            _ => None,
        };
        let requests = self.0.iter().flat_map(|run| &run.request);
        let tokens = requests.filter_map(tokens);
        tokens.filter_map(|n| i64::try_from(n).ok()).collect()
    }

    /// Returns true if clients kept the number of requests in flight constant: it hardly changed, and each request
    /// arrived right after another one ended.
    pub(super) fn is_closed_loop(self) -> bool {
        let is_level = |run: &RunReport| {
            let mut in_flight = levels(run, SeriesKind::InFlight);
            in_flight.all(|level| level.p50 >= 0.75 * level.max)
        };
        !self.0.is_empty() && self.0.iter().all(|run| is_level(run) && follow_ends(run))
    }

    /// Returns a figure of each answered request.
    pub(super) fn values(self, metric: Metric) -> Vec<i64> {
        let requests = self.0.iter().flat_map(|run| &run.request);
        let answered = requests.filter(|request| request.is_ok());
        answered
            .filter_map(|request| metric.value(request))
            .collect()
    }

    /// Returns the mean duration of each part of a request, in ns.
    pub(super) fn parts(self) -> Vec<(&'a str, f64)> {
        let runs = self.0.iter().map(|run| &run.request_parts);
        let n: u64 = runs.clone().map(|run| run.n).sum();
        let mut parts: Vec<(&str, f64)> = Vec::new();
        for run in runs {
            for part in &run.parts {
                let ns = part.mean_ns * run.n as f64 / n as f64;
                match parts.iter_mut().find(|(name, _)| *name == part.name) {
                    Some((_, sum_ns)) => *sum_ns += ns,
                    None => parts.push((&part.name, ns)),
                }
            }
        }
        parts
    }

    /// Returns the share of the devices' time in which they were busy, or `None` without devices.
    pub(super) fn busy(self) -> Option<f64> {
        self.mean(|run| {
            let sum = |time: fn(&crate::DeviceTime) -> i64| -> f64 {
                run.timed().map(|device| time(device) as f64).sum()
            };
            let wall_ns = sum(|device| device.wall_ns);
            (wall_ns > 0.0).then(|| sum(|device| device.busy_ns) / wall_ns)
        })
    }

    /// Returns the mean share of the devices' time that is due to an idle cause.
    pub(super) fn idle_share(self, cause: IdleCause) -> f64 {
        self.mean(|run| Some(run.idle_share(cause))).unwrap_or(0.0)
    }

    /// Returns the times between tokens. For several runs, the percentiles are means over the runs, weighted by the
    /// number of tokens.
    pub(super) fn between_tokens(self) -> Quantiles {
        let itl = self.0.iter().map(|run| &run.requests.itl);
        Quantiles::joined(itl.filter(|figures| figures.n > 0))
    }

    /// Returns the figures of each name, as means over the runs.
    pub(super) fn names(self) -> BTreeMap<NameKey<'a>, NameFigures> {
        let mut all: BTreeMap<NameKey<'_>, Vec<&NameTime>> = BTreeMap::new();
        for name in self.0.iter().flat_map(|run| &run.names) {
            let key = (name.row_kind, name.category.as_str(), name.name.as_str());
            all.entry(key).or_default().push(name);
        }
        let runs = self.0.len();
        let figures = |(key, times): (_, Vec<&NameTime>)| (key, figures(&times, runs));
        all.into_iter().map(figures).collect()
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (n, sum) = values.fold((0_u64, 0.0), |(n, sum), value| (n + 1, sum + value));
    (n > 0).then(|| sum / n as f64)
}

fn levels(run: &RunReport, kind: SeriesKind) -> impl Iterator<Item = &LoadLevel> {
    run.load.iter().filter(move |level| level.of == kind)
}

/// Returns the arrival rate in requests per second, from the first arrival to the last, not counting pauses between
/// them.
fn arrivals_per_s(run: &RunReport) -> Option<f64> {
    let arrivals = run.request.iter().filter_map(Request::begin_ns);
    let n = arrivals.clone().count();
    let (first_ns, last_ns) = (arrivals.clone().min()?, arrivals.max()?);
    let pauses = run.serving.pauses.iter();
    let pauses = pauses.filter(|pause| first_ns <= pause.from_ns && pause.to_ns <= last_ns);
    let pauses_ns: i64 = pauses.map(|pause| pause.to_ns - pause.from_ns).sum();
    let wall_ns = last_ns - first_ns - pauses_ns;
    (wall_ns > 0).then(|| (n - 1) as f64 / (wall_ns as f64 / 1e9))
}

/// Returns true if most requests arrived right after another one ended: within 30 % of the mean time between two
/// arrivals. Requests before the first end do not count.
fn follow_ends(run: &RunReport) -> bool {
    let requests = run.request.iter();
    let arrivals: Vec<i64> = requests.clone().filter_map(Request::begin_ns).collect();
    let mut ends: Vec<i64> = requests.filter_map(|request| request.finished_ns).collect();
    ends.sort_unstable();
    let Some(rate) = arrivals_per_s(run) else {
        return false;
    };
    let since_end = |ns: &i64| {
        let before = ends.partition_point(|end_ns| end_ns <= ns);
        before.checked_sub(1).map(|nth| *ns - ends[nth])
    };
    let since_end: Vec<i64> = arrivals.iter().filter_map(since_end).collect();
    let follow = since_end.iter().filter(|ns| **ns as f64 <= 3e8 / rate);
    follow.count() * 2 > since_end.len()
}

/// Returns the figures of a name as means over `runs` runs. A run without the name counts as 0.
fn figures(names: &[&NameTime], runs: usize) -> NameFigures {
    let calls: u64 = names.iter().map(|name| name.ncall).sum();
    let runs = i64::try_from(runs.max(1)).unwrap_or(i64::MAX);
    let mean = |value: fn(&NameTime) -> i64| {
        let sum = names
            .iter()
            .map(|name| value(name))
            .fold(0, i64::saturating_add);
        sum / runs
    };
    let by_calls = |value: fn(&NameTime) -> f64| {
        let sum: f64 = names
            .iter()
            .map(|name| value(name) * name.ncall as f64)
            .sum();
        sum / calls.max(1) as f64
    };
    NameFigures {
        ncall: calls / runs.unsigned_abs(),
        tsub_ns: mean(|name| name.tsub_ns),
        ttot_ns: mean(|name| name.ttot_ns),
        mean_ns: by_calls(|name| name.duration.mean_ns),
        p95_ns: by_calls(|name| name.duration.p95_ns),
    }
}
