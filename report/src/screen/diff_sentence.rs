//! The first sentence of a comparison.

use super::amount::{counted, duration, grouped, share};
use super::diff::{load_amount, metric_name, values};
use super::idle;
use crate::table::{
    Change, ChangeCause, CrashedSide, FigureChange, Headline, HeadlineStatistic, LoadDiff,
    LoadFigure, Metric, RunDiff, SettingDiff, VerdictRule, setting,
};

/// Returns the first sentence of a comparison: the most important difference between the two runs.
pub(super) fn sentence(diff: &RunDiff) -> String {
    match &diff.headline {
        Headline::Crash(side) => crash(side),
        Headline::Answered => answered(diff),
        Headline::Figure(change) => {
            let figure = figure(change).replacen("the mean", "The mean", 1);
            figure + &cause(change, diff) + "."
        }
        Headline::SmallChange(change) => format!("Little changed: {}.", figure(change)),
        Headline::NoChange => {
            "No figure of the requests changed beyond what chance explains".to_owned()
                + &although(diff)
                + "."
        }
        Headline::FewRequests => few_requests(diff),
        Headline::NoRequests => no_requests(diff),
    }
}

fn crash(side: &CrashedSide) -> String {
    let run = if side.is_second { "second" } else { "first" };
    let exit = side.exit.as_ref();
    let exit = exit.map_or_else(String::new, |exit| format!(" {}", exit.text()));
    let step = side.step.as_ref();
    let step = step.map_or_else(String::new, |step| format!(" in step {step}"));
    let requests = match side.requests {
        0 => String::new(),
        n => format!(", with {}", counted(n, "request", "requests")),
    };
    let process = &side.process;
    format!("Only the {run} run crashed: {process} was killed{exit}{step}{requests}.")
}

fn answered(diff: &RunDiff) -> String {
    let missing = |n: u64, answered: u64| format!("{} of {}", grouped(n - answered), grouped(n));
    let one = missing(diff.requests.0, diff.answered.0);
    let other = missing(diff.requests.1, diff.answered.1);
    format!("In the second run, {other} requests were not answered, and in the first run {one}.")
}

fn few_requests(diff: &RunDiff) -> String {
    let (one, other) = diff.answered;
    match one.min(other) {
        0..8 => format!(
            "Too few requests to tell: {} and {} were answered, and a comparison needs eight from each run.",
            grouped(one),
            grouped(other)
        ),
        _ => "Nothing to compare: no figure of the requests is in both runs.".to_owned(),
    }
}

fn no_requests(diff: &RunDiff) -> String {
    match diff.requests {
        (0, 0) => {
            let (one, other) = diff.wall_ns;
            let (one, other) = (duration(one), duration(other));
            format!("The runs have no requests to compare: they took {one} and {other}.")
        }
        (0, _) => {
            "The first run has no requests, so there is nothing to compare them with.".to_owned()
        }
        _ => "The second run has no requests, so there is nothing to compare.".to_owned(),
    }
}

/// Returns a clause for runs whose requests were equally fast: it names a verdict that changed, or settings that had no
/// effect.
fn although(diff: &RunDiff) -> String {
    if let ([one], [other]) = (&diff.verdicts.0[..], &diff.verdicts.1[..])
        && one != other
        && ![one, other].contains(&&VerdictRule::Unknown)
    {
        return format!(", but {}", verdict_words(*one, *other));
    }
    let settings = diff.settings.iter().flat_map(|diffs| &diffs.different);
    let settings: Vec<&SettingDiff> = settings.collect();
    match settings[..] {
        [] => String::new(),
        [setting] => format!(", although {}", other_setting(setting, "is")),
        _ => format!(", although {} settings differ", settings.len()),
    }
}

/// Returns a clause on a latency that changed, such as `p50 TTFT rose from 20.0 ms to 30.0 ms`.
fn figure(change: &FigureChange) -> String {
    let verb = if change.other_ns > change.one_ns {
        "rose"
    } else {
        "fell"
    };
    let statistic = match change.statistic {
        HeadlineStatistic::P50 => "p50",
        HeadlineStatistic::Mean => "the mean",
    };
    let (one, other) = (duration(change.one_ns), duration(change.other_ns));
    let name = metric_name(change.metric);
    format!("{statistic} {name} {verb} from {one} to {other}")
}

/// Returns a clause on why a latency changed. If the cause is not known, it names the part of the requests' time that
/// changed most, and another change between the runs.
fn cause(figure: &FigureChange, diff: &RunDiff) -> String {
    let (explained, other) = match &figure.cause {
        Some(cause) if cause.explains => (Some(cause), None),
        cause => (None, cause.as_ref()),
    };
    if let Some(cause) = explained {
        return format!(", because {}", change_words(cause, diff));
    }
    let part = figure
        .part
        .as_ref()
        .filter(|_| figure.metric != Metric::Tpot);
    let mut text = part.map_or_else(String::new, |part| {
        let more_ns = part.more_ns().unwrap_or(0.0);
        let sign = if more_ns > 0.0 { "+" } else { "" };
        format!(", mostly in {} ({sign}{})", part.name, duration(more_ns))
    });
    if let Some(cause) = other {
        text.push_str(&format!(", while {}", change_words(cause, diff)));
    }
    text
}

fn change_words(cause: &ChangeCause, diff: &RunDiff) -> String {
    match &cause.change {
        Change::Setting(setting) if cause.explains => setting_words(setting),
        Change::Setting(setting) => {
            let n = diff
                .settings
                .as_ref()
                .map_or(0, |diffs| diffs.different.len());
            let more = match n.saturating_sub(1) {
                0 => String::new(),
                1 => " and another setting differs".to_owned(),
                more => format!(" and {more} other settings differ"),
            };
            other_setting(setting, "was") + &more
        }
        Change::Load(load) => load_words(load),
        Change::Verdict { one, other } => verdict_words(*one, *other),
        Change::Idle(idle) => {
            let (name, _) = idle::words(idle.cause);
            let (one, other) = (share(idle.one, 1.0), share(idle.other, 1.0));
            format!(
                "devices were idle for {other} of their time instead of {one} because of {name}"
            )
        }
        Change::Name {
            name,
            one_ns,
            other_ns,
        } => {
            let (one, other) = (duration(*one_ns), duration(*other_ns));
            format!("{name} took {other} instead of {one} on a device")
        }
    }
}

fn verdict_words(one: VerdictRule, other: VerdictRule) -> String {
    let (one, other) = (rule_words(one), rule_words(other));
    format!("the verdict changed from “{one}” to “{other}”")
}

/// Returns the rule of a verdict with spaces in place of underscores.
pub(super) fn rule_words(rule: VerdictRule) -> String {
    rule.name().replace('_', " ")
}

fn setting_words(setting: &SettingDiff) -> String {
    let (one, other) = (values(&setting.one), values(&setting.other));
    let name = &setting.name;
    match name.as_str() {
        setting::MAX_NUM_SEQS => {
            format!("running requests were capped at {other} instead of {one} ({name})")
        }
        setting::MAX_NUM_BATCHED_TOKENS => {
            format!("a step had at most {other} tokens instead of {one} ({name})")
        }
        setting::NUM_KV_BLOCKS => {
            format!("the KV cache had {other} blocks instead of {one} ({name})")
        }
        _ => other_setting(setting, "was"),
    }
}

fn other_setting(setting: &SettingDiff, verb: &str) -> String {
    let (one, other) = (values(&setting.one), values(&setting.other));
    format!("{} {verb} {other} instead of {one}", setting.name)
}

fn load_words(diff: &LoadDiff) -> String {
    let amount = |value: Option<f64>| load_amount(diff.of, value.unwrap_or(0.0));
    let (one, other) = (amount(diff.one), amount(diff.other));
    match diff.of {
        LoadFigure::ArrivalsPerS => {
            format!("{other} requests arrived per second instead of {one}")
        }
        LoadFigure::InFlightMax => format!("{other} requests were in flight instead of {one}"),
        LoadFigure::PromptTokens => {
            format!("the mean prompt had {other} tokens instead of {one}")
        }
        LoadFigure::UncachedTokens => format!(
            "{other} tokens of the mean prompt were not in the prefix cache, instead of {one}"
        ),
        _ => format!("the mean answer had {other} tokens instead of {one}"),
    }
}
