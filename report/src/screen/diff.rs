//! The screen of a comparison of two runs.

use super::amount::{aligned, cells, duration, grouped, share};
use super::diff_sentence::{rule_words, sentence};
use super::idle;
use super::width::{cut, shortened, wrapped};
use crate::formats::change;
use crate::table::{
    LoadDiff, LoadFigure, Metric, MetricDiff, NameDiff, NameFigures, RowKind, RunDiff, SettingDiff,
    VerdictRule,
};
use serde_json::Value;

/// Width of the screen in columns.
const WIDTH: usize = 100;
/// Maximum number of lines. The table of names gets the lines that the other tables leave.
const LINES: usize = 40;
/// Maximum numbers of rows of each table.
const SETTINGS: usize = 4;
const LOAD: usize = 9;
const METRICS: usize = 5;
const PARTS: usize = 3;
const DEVICES: usize = 3;
const NAMES: usize = 8;
/// Maximum width of a name, in columns.
const NAME: usize = 36;
/// Maximum width of a value of a setting, in columns.
const VALUE: usize = 30;
/// Minimum change of a part or of a load figure to be shown, as a share.
const SAME: f64 = 0.01;
/// Minimum change of an idle cause to be shown, as a share of the devices' time.
const SAME_IDLE: f64 = 0.001;

/// Returns the screen of a comparison of two runs: a sentence, and tables of what changed.
pub fn diff_text(diff: &RunDiff) -> String {
    let mut lines = wrapped(&sentence(diff), WIDTH, 4);
    if diff.runs != (1, 1) {
        let (one, other) = diff.runs;
        lines.push(format!(
            "{one} and {other} runs: requests are counted together, other figures are means over the runs"
        ));
    }
    let mut tables = vec![(settings(diff), SETTINGS), (load(diff), LOAD)];
    if diff.requests.0 > 0 && diff.requests.1 > 0 {
        tables.extend([(requests(diff), METRICS), (parts(diff), PARTS)]);
    }
    tables.push((devices(diff), DEVICES));
    let names = names(diff);
    let all = tables.iter().map(|(table, _)| table).chain([&names]);
    let unchanged: Vec<&str> = all.filter_map(Table::unchanged).collect();
    let tables = tables.iter().flat_map(|(table, most)| table.lines(*most));
    lines.extend(tables);
    let left = LINES.saturating_sub(lines.len() + 4);
    if left > 0 {
        lines.extend(names.lines(left.min(NAMES)));
    }
    if !unchanged.is_empty() {
        lines.extend([
            String::new(),
            format!("unchanged: {}", unchanged.join(", ")),
        ]);
    }
    let lines = lines.iter().map(|line| cut(line, WIDTH) + "\n");
    lines.collect()
}

/// A table of changes.
struct Table {
    /// Cells of the head. The first one is the title, the last one is above a column of text.
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Number of rows that are left out because they hardly changed.
    same: usize,
}

impl Table {
    fn new(head: &str, rows: Vec<Vec<String>>, same: usize) -> Table {
        Table {
            head: cells(head),
            rows,
            same,
        }
    }

    /// Returns the title of the table, up to its first comma, if all of its rows are left out as unchanged.
    fn unchanged(&self) -> Option<&str> {
        let title = self.head.first()?.split(',').next();
        title.filter(|_| self.rows.is_empty() && self.same > 0)
    }

    /// Returns an empty line, the head and the first `most` rows, or nothing if there are no rows. The head says how
    /// many rows are left out.
    fn lines(&self, most: usize) -> Vec<String> {
        if self.rows.is_empty() {
            return Vec::new();
        }
        let notes = [
            (self.rows.len().saturating_sub(most), "more"),
            (self.same, "unchanged"),
        ];
        let notes = notes.iter().filter(|(n, _)| *n > 0);
        let notes = notes.map(|(n, what)| format!("{} {what}", grouped(*n as u64)));
        let mut rows = vec![self.head.clone()];
        let figures = self.head.len() - 1;
        rows[0][figures] = notes.collect::<Vec<_>>().join(", ");
        rows.extend(self.rows.iter().take(most).cloned().map(|mut row| {
            row[0].insert_str(0, "  ");
            row
        }));
        let text = aligned(&rows, "", |column| (1..figures).contains(&column));
        let lines = text.lines().map(str::to_owned);
        [String::new()].into_iter().chain(lines).collect()
    }
}

/// Returns a table cell with the values of both runs, such as `3 → 5`, with `–` for a missing value.
fn pair(one: Option<String>, other: Option<String>) -> String {
    let [one, other] = [one, other].map(|side| side.unwrap_or_else(|| "–".to_owned()));
    format!("{one} → {other}")
}

/// Formats a difference of two durations, in ns, with its sign.
fn signed(ns: f64) -> String {
    let sign = if ns > 0.0 { "+" } else { "" };
    format!("{sign}{}", duration(ns))
}

fn settings(diff: &RunDiff) -> Table {
    let settings = diff.settings.clone().unwrap_or_default();
    let row = |setting: &SettingDiff| {
        let both = [&setting.one, &setting.other];
        let [one, other] = both.map(|side| Some(shortened(&values(side), VALUE)));
        vec![setting.name.clone(), pair(one, other), String::new()]
    };
    let rows = settings.different.iter().map(row).collect();
    Table::new("settings|before → after|", rows, settings.same)
}

/// Formats the values that a setting has in the engines of a run, or `not set` if no engine recorded it.
pub(super) fn values(values: &[Value]) -> String {
    let words = |value: &Value| match (value.as_u64(), value.as_str()) {
        (Some(number), _) => grouped(number),
        (_, Some(text)) => text.to_owned(),
        _ => value.to_string(),
    };
    match values {
        [] => "not set".to_owned(),
        values => values.iter().map(words).collect::<Vec<_>>().join(", "),
    }
}

/// Formats a number with three significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        below if below < 9.995 => format!("{value:.2}"),
        below if below < 99.95 => format!("{value:.1}"),
        below if value < 0.0 => format!("-{}", whole(below)),
        _ => whole(value),
    }
}

/// Formats a positive number without its fraction.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a conversion of floats saturates"
)]
fn whole(value: f64) -> String {
    grouped(value.round() as u64)
}

/// Formats the value of a load figure with the digits and the unit of its kind.
pub(super) fn load_amount(figure: LoadFigure, value: f64) -> String {
    match figure {
        LoadFigure::InFlightMax | LoadFigure::RunningMax | LoadFigure::WaitingMax => whole(value),
        LoadFigure::KvUsedMean | LoadFigure::KvUsedMax => share(value, 100.0),
        _ => number(value),
    }
}

/// A row of the load table: a figure or the mean of a level, and the maximum of a level.
struct LoadRow {
    name: &'static str,
    mean: LoadDiff,
    max: Option<LoadDiff>,
}

fn load(diff: &RunDiff) -> Table {
    const LEVELS: [(&str, LoadFigure, LoadFigure); 4] = [
        (
            "in flight",
            LoadFigure::InFlightMean,
            LoadFigure::InFlightMax,
        ),
        ("running", LoadFigure::RunningMean, LoadFigure::RunningMax),
        ("queued", LoadFigure::WaitingMean, LoadFigure::WaitingMax),
        (
            "KV cache use",
            LoadFigure::KvUsedMean,
            LoadFigure::KvUsedMax,
        ),
    ];
    const LENGTHS: [(&str, LoadFigure); 3] = [
        ("prompt tokens", LoadFigure::PromptTokens),
        ("not in the prefix cache", LoadFigure::UncachedTokens),
        ("output tokens", LoadFigure::OutputTokens),
    ];
    let find = |figure| diff.load.iter().find(|load| load.of == figure).copied();
    let figure = |name: &'static str, figure, max: Option<LoadFigure>| {
        find(figure).map(|mean| LoadRow {
            name,
            mean,
            max: max.and_then(find),
        })
    };
    let mut rows = whole_run(diff);
    let fixed = rows.len();
    let arrivals = figure("arrivals per second", LoadFigure::ArrivalsPerS, None);
    let levels = LEVELS
        .into_iter()
        .filter_map(|(name, mean, max)| figure(name, mean, Some(max)));
    let lengths = LENGTHS
        .into_iter()
        .filter_map(|(name, length)| figure(name, length, None));
    let figures: Vec<LoadRow> = arrivals.into_iter().chain(levels).chain(lengths).collect();
    let changed = figures.iter().filter(|row| {
        let mean = [row.mean.one, row.mean.other];
        let words = mean.map(|side| side.map(|value| load_amount(row.mean.of, value)));
        let is_shown = is_changed(mean[0], mean[1]) && words[0] != words[1];
        is_shown || row.max.is_some_and(|max| max.one != max.other)
    });
    rows.extend(changed.map(load_row));
    let same = figures.len() - (rows.len() - fixed);
    let head = "load|before → after|change|max|change|";
    Table::new(head, rows, same)
}

/// Returns the rows of the load table that describe the whole run, for figures that differ between the two runs:
/// verdict, length, requests and throughput.
fn whole_run(diff: &RunDiff) -> Vec<Vec<String>> {
    let row = |name: &str, values: String, change: String| {
        let empty = String::new;
        vec![name.to_owned(), values, change, empty(), empty(), empty()]
    };
    let mut rows = Vec::new();
    let verdict = |rules: &[VerdictRule]| {
        let rules: Vec<String> = rules.iter().map(|rule| rule_words(*rule)).collect();
        Some(rules.join(", "))
    };
    let (one, other) = (&diff.verdicts.0, &diff.verdicts.1);
    if one != other {
        rows.push(row(
            "verdict",
            pair(verdict(one), verdict(other)),
            String::new(),
        ));
    }
    let (one, other) = diff.wall_ns;
    let name = match diff.requests {
        (0, 0) => "length",
        _ => "serving time",
    };
    if is_changed(Some(one), Some(other)) {
        let both = pair(Some(duration(one)), Some(duration(other)));
        rows.push(row(name, both, signed(other - one)));
    }
    let missing = (
        diff.requests.0 - diff.answered.0,
        diff.requests.1 - diff.answered.1,
    );
    for (name, (one, other)) in [("requests", diff.requests), ("not answered", missing)] {
        if one != other {
            let more = other as f64 - one as f64;
            let sign = if more > 0.0 { "+" } else { "-" };
            let both = pair(Some(grouped(one)), Some(grouped(other)));
            rows.push(row(name, both, format!("{sign}{}", whole(more.abs()))));
        }
    }
    let rates = [
        ("answers per second", diff.requests_per_s),
        ("output tokens per second", diff.output_tokens_per_s),
    ];
    for (name, (one, other)) in rates {
        if is_changed(one, other) {
            let both = pair(one.map(number), other.map(number));
            rows.push(row(name, both, signed_number(one, other, number)));
        }
    }
    rows
}

/// Returns true if only one run has a figure, or if the figure changed by at least 1 %.
fn is_changed(one: Option<f64>, other: Option<f64>) -> bool {
    match one.zip(other) {
        Some((one, other)) => {
            (other - one).abs() >= SAME * one.abs().max(other.abs()) && one != other
        }
        None => one.is_some() || other.is_some(),
    }
}

/// Formats the change of a figure from one run to the other with its sign. It is empty if a run lacks the figure, or if
/// `words` rounds the change to 0.
fn signed_number(one: Option<f64>, other: Option<f64>, words: impl Fn(f64) -> String) -> String {
    let more = one.zip(other).map(|(one, other)| other - one);
    let more = more.map(|more| (if more < 0.0 { "-" } else { "+" }, words(more.abs())));
    let more = more.filter(|(_, words)| words.contains(|digit| matches!(digit, '1'..='9')));
    more.map_or_else(String::new, |(sign, words)| format!("{sign}{words}"))
}

fn load_row(row: &LoadRow) -> Vec<String> {
    let cells = |diff: &LoadDiff| {
        let amount = |value: f64| load_amount(diff.of, value);
        let is_share = matches!(diff.of, LoadFigure::KvUsedMean | LoadFigure::KvUsedMax);
        let more = signed_number(diff.one, diff.other, |more| match is_share {
            true => format!("{more:.1} points"),
            false => amount(more),
        });
        [pair(diff.one.map(amount), diff.other.map(amount)), more]
    };
    let [mean, more] = cells(&row.mean);
    let [max, max_more] = row.max.as_ref().map(cells).unwrap_or_default();
    vec![
        row.name.to_owned(),
        mean,
        more,
        max,
        max_more,
        String::new(),
    ]
}

/// Returns the name of a metric, as on the report's screen.
pub(super) fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Queue => "queue",
        Metric::Prefill => "prefill",
        Metric::Decode => "decode",
        Metric::EngineTtft => "engine TTFT",
        Metric::Ttft => "TTFT",
        Metric::Tpot => "TPOT",
        Metric::Itl => "ITL",
        Metric::E2e => "E2E",
    }
}

fn requests(diff: &RunDiff) -> Table {
    // The times in the engine are in the table of parts, unless there is no frontend.
    let is_shown = |metric: &&MetricDiff| match metric.metric {
        Metric::Ttft | Metric::Tpot | Metric::Itl | Metric::E2e => true,
        _ => diff.parts.is_empty(),
    };
    let shown: Vec<&MetricDiff> = diff.metrics.iter().filter(is_shown).collect();
    let changed = shown.iter().filter(|metric| metric.one != metric.other);
    let rows: Vec<Vec<String>> = changed.map(|metric| metric_row(metric)).collect();
    let same = shown.len() - rows.len();
    let head = "requests|mean|change|p50|p99|";
    Table::new(head, rows, same)
}

fn metric_row(metric: &MetricDiff) -> Vec<String> {
    let ns = |n: u64, ns: f64| (n > 0).then(|| duration(ns));
    let (one, other) = (&metric.one, &metric.other);
    let cell = |first: f64, second: f64| pair(ns(one.n, first), ns(other.n, second));
    let ratio = metric.ratio.map_or_else(String::new, change);
    let words = match verdict(metric) {
        "" => ratio,
        words => format!("{ratio}, {words}"),
    };
    vec![
        metric_name(metric.metric).to_owned(),
        cell(one.mean_ns, other.mean_ns),
        metric.more_ns().map_or_else(String::new, signed),
        cell(one.p50_ns, other.p50_ns),
        cell(one.p99_ns, other.p99_ns),
        words,
    ]
}

/// Returns a word on how sure it is that a latency changed, such as `slower`, `maybe faster` or `unclear`. It is empty
/// if there are too few requests to test this.
fn verdict(metric: &MetricDiff) -> &'static str {
    let is_slower = metric.ratio.is_some_and(|ratio| ratio > 1.0);
    match (metric.is_certain(), metric.is_clear()) {
        (true, _) if is_slower => "slower",
        (true, _) => "faster",
        (_, true) if is_slower => "maybe slower",
        (_, true) => "maybe faster",
        _ if metric.p_value.is_none() => "",
        _ => "unclear",
    }
}

fn parts(diff: &RunDiff) -> Table {
    let all = diff.parts.iter();
    let ns = all.flat_map(|part| [part.one_ns, part.other_ns]).flatten();
    let least = SAME * ns.fold(0.0, f64::max);
    let changed = diff.parts.iter().filter(|part| {
        let more = part.more_ns().or(part.one_ns).or(part.other_ns);
        more.is_some_and(|ns| ns.abs() >= least && ns != 0.0)
    });
    let mut changed: Vec<_> = changed.collect();
    let same = diff.parts.len() - changed.len();
    changed.sort_by(|one, other| {
        let size = |part: &crate::PartDiff| part.more_ns().map_or(f64::MAX, f64::abs);
        size(other).total_cmp(&size(one))
    });
    let rows = changed.into_iter().map(|part| {
        let both = pair(part.one_ns.map(duration), part.other_ns.map(duration));
        let more = part.more_ns().map_or_else(String::new, signed);
        vec![part.name.clone(), both, more, String::new()]
    });
    let head = "time of the mean request|before → after|change|";
    Table::new(head, rows.collect(), same)
}

fn devices(diff: &RunDiff) -> Table {
    let row = |name: &str, one: Option<f64>, other: Option<f64>, meaning: &str| {
        let cell = |part: Option<f64>| part.map(|part| share(part, 1.0));
        let more = signed_number(one, other, |more| format!("{:.1} points", 100.0 * more));
        vec![
            name.to_owned(),
            pair(cell(one), cell(other)),
            more,
            meaning.to_owned(),
        ]
    };
    let mut changed: Vec<_> = diff.idle.iter().collect();
    let all = changed.len();
    changed.retain(|idle| (idle.other - idle.one).abs() >= SAME_IDLE);
    changed.sort_by(|one, other| {
        let size = |idle: &crate::IdleDiff| (idle.other - idle.one).abs();
        size(other).total_cmp(&size(one))
    });
    let same = all - changed.len();
    let mut rows = Vec::new();
    let (one, other) = diff.busy;
    if one != other {
        rows.push(row("busy", one, other, ""));
    }
    rows.extend(changed.into_iter().map(|diff| {
        let (name, meaning) = idle::words(diff.cause);
        row(name, Some(diff.one), Some(diff.other), meaning)
    }));
    let head = "devices, share of time|before → after|change|";
    Table::new(head, rows, same)
}

fn names(diff: &RunDiff) -> Table {
    let mut changed: Vec<&NameDiff> = diff.names.iter().collect();
    changed.retain(|name| name.more_ns() != 0);
    let same = diff.names.len() - changed.len();
    let rows = changed.into_iter().map(name_row).collect();
    let head = "names|self time|change|calls|";
    Table::new(head, rows, same)
}

fn name_row(name: &NameDiff) -> Vec<String> {
    let both = |cell: fn(&NameFigures) -> String| {
        let [one, other] = [name.one, name.other].map(|figures| figures.as_ref().map(cell));
        pair(one, other)
    };
    let kind = match name.row_kind {
        RowKind::Thread => String::new(),
        kind => format!(" [{}]", kind.name()),
    };
    vec![
        shortened(&name.name, NAME - kind.len()) + &kind,
        both(|figures| duration(figures.tsub_ns as f64)),
        signed(name.more_ns() as f64),
        both(|figures| grouped(figures.ncall)),
        match (name.one, name.other) {
            (None, _) => "added".to_owned(),
            (_, None) => "gone".to_owned(),
            _ => String::new(),
        },
    ]
}
