//! Writes the files of [NeMo Agent Toolkit](https://github.com/NVIDIA/NeMo-Agent-Toolkit)'s profiler (NAT 1.9.0) from
//! the requests of a report and from spans of agents.

mod calls;

use super::ExportFile;
use crate::formats::{csv, pretty_json, text_cell};
use crate::intervals::{nat_mean_intervals, nat_rate_intervals};
use crate::options::ReportOptions;
use crate::read::read_and;
use crate::statistics::quantiles::Quantiles;
use calls::{Call, CallKind, CallTokens, agent_spans, calls_of_requests};
use serde_json::{Value, json};
use std::collections::HashMap;
use trace_merge::events::TraceEvents;
use trace_merge::{Error, Options, Progress};

/// The columns of NAT 1.9.0 with `compute_llm_metrics` and `csv_exclude_io_text`.
const COLUMNS: &str = "event_type,event_timestamp,example_number,prompt_tokens,completion_tokens,total_tokens,llm_name,tool_name,\
    function_name,function_id,parent_function_name,parent_function_id,UUID,framework,\
    NOVA-Event-ID,NOVA-Requests-Remaining-In-Event,NOVA-Time-To-Next-Event,NOVA-Time-To-Event-End,NOVA-Predicted-OSL,NOVA-Time-To-Session-End";

/// Name and id that NAT uses for the function around a call if there is none.
const ROOT: (&str, &str) = ("root", "root");

/// Reads a run as [`read`](crate::read()) does, and returns its NAT files.
///
/// # Errors
/// The errors of [`read`](crate::read()).
pub fn export_nat(options: &Options, progress: &Progress) -> Result<Vec<ExportFile>, Error> {
    let also = |events: &TraceEvents<'_>| {
        let begin_ns = events.base_unix_ns();
        let begin_ns = begin_ns.unwrap_or(events.report().clocks.base_ns);
        Ok((agent_spans(events)?, begin_ns))
    };
    let (report, (spans, begin_ns)) = read_and(options, &ReportOptions::default(), progress, also)?;
    let requests = calls_of_requests(&report.request, spans);
    let steps: Vec<Vec<Step<'_>>> = requests.iter().map(|calls| steps(calls)).collect();
    let seconds = |ns: i64| (i128::from(begin_ns) + i128::from(ns)) as f64 / 1e9;
    Ok(vec![
        ExportFile {
            name: "standardized_data_all.csv",
            text: table(&steps, seconds)?,
        },
        json_file(
            "all_requests_profiler_traces.json",
            &traces(&steps, seconds),
        )?,
        json_file("inference_optimization.json", &optimization(&requests))?,
    ])
}

/// Creates the export file `name` with `value` as indented JSON.
fn json_file(name: &'static str, value: &Value) -> Result<ExportFile, Error> {
    let text = pretty_json(value)?;
    Ok(ExportFile { name, text })
}

/// The start or the end of a call.
struct Step<'a> {
    call: &'a Call,
    at_ns: i64,
    is_end: bool,
    /// Id of the call that contains this one.
    parent: &'a str,
    /// Name and id of the innermost function that contains the call. A function contains itself.
    function: (&'a str, &'a str),
    /// Name and id of the function that contains `function`.
    outer: (&'a str, &'a str),
}

impl Step<'_> {
    /// Returns the event type in NAT's tables, such as `LLM_START`.
    fn event_type(&self) -> String {
        let end = if self.is_end { "END" } else { "START" };
        format!("{}_{end}", self.call.kind.name().to_uppercase())
    }

    /// Returns true for the start of a model call.
    fn is_llm_start(&self) -> bool {
        self.call.kind == CallKind::Llm && !self.is_end
    }

    /// Returns the token counts of the prompt, of its cached part, and of the completion. They are 0 for a start.
    fn tokens(&self) -> [u64; 3] {
        let CallTokens {
            prompt,
            cached,
            completion,
        } = self.call.tokens;
        [prompt, cached, completion].map(|n| n.filter(|_| self.is_end).unwrap_or(0))
    }
}

/// Returns the starts and ends of a request's calls in time order. Steps at the same time are ordered so that calls
/// nest: ends before starts, inner ends before outer ends, and outer starts before inner starts.
fn steps(calls: &[Call]) -> Vec<Step<'_>> {
    let (mut depths, mut functions) = (Vec::<i64>::new(), Vec::<Option<usize>>::new());
    let name = |at: Option<usize>| at.map_or(ROOT, |at| (&calls[at].name, &calls[at].uuid));
    let mut steps = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        let depth = call.parent.map_or(0, |parent| depths[parent] + 1);
        let around = call.parent.and_then(|parent| functions[parent]);
        let (function, outer) = match call.kind {
            CallKind::Function => (Some(at), around),
            CallKind::Llm | CallKind::Tool => {
                let parent = around.and_then(|function| calls[function].parent);
                (around, parent.and_then(|parent| functions[parent]))
            }
        };
        depths.push(depth);
        functions.push(function);
        let step = |at_ns, is_end| Step {
            call,
            at_ns,
            is_end,
            parent: name(call.parent).1,
            function: name(function),
            outer: name(outer),
        };
        steps.push(((call.start_ns, 1, depth), step(call.start_ns, false)));
        if let Some((from_ns, to_ns)) = call.time() {
            let rank = if from_ns == to_ns { 2 } else { 0 };
            steps.push(((to_ns, rank, -depth), step(to_ns, true)));
        }
    }
    steps.sort_by_key(|(order, _)| *order);
    steps.into_iter().map(|(_, step)| step).collect()
}

/// Returns `standardized_data_all.csv`, with one row per step.
fn table(requests: &[Vec<Step<'_>>], seconds: impl Fn(i64) -> f64) -> Result<String, Error> {
    let mut rows = Vec::new();
    for (number, steps) in requests.iter().enumerate() {
        let mut starts_ns: HashMap<&str, Vec<i64>> = HashMap::new();
        for step in steps.iter().filter(|step| step.is_llm_start()) {
            let of_function = starts_ns.entry(step.function.0).or_default();
            of_function.push(step.at_ns);
        }
        let end_ns = steps.last().map_or(0, |step| step.at_ns);
        for step in steps {
            let starts_ns = starts_ns
                .get(step.function.0)
                .map_or(&[][..], Vec::as_slice);
            let later = &starts_ns[starts_ns.partition_point(|ns| *ns <= step.at_ns)..];
            let until_ms = |ns: i64| float((ns - step.at_ns) as f64 / 1e6);
            let until = |ns: Option<&i64>| ns.map_or(float(-1.0), |ns| until_ms(*ns));
            let name_of = |kind| match step.call.kind == kind {
                true => step.call.name.clone(),
                false => String::new(),
            };
            let [prompt, _, completion] = step.tokens();
            let answer = step.call.tokens.completion.filter(|_| step.is_llm_start());
            let row = [
                step.event_type(),
                float(seconds(step.at_ns)),
                number.to_string(),
                prompt.to_string(),
                completion.to_string(),
                prompt.saturating_add(completion).to_string(),
                name_of(CallKind::Llm),
                name_of(CallKind::Tool),
                step.function.0.to_owned(),
                step.function.1.to_owned(),
                step.outer.0.to_owned(),
                step.outer.1.to_owned(),
                step.call.uuid.clone(),
                String::new(),
                step.function.0.to_owned(),
                float(later.len() as f64),
                until(later.first()),
                until(later.last()),
                answer.map_or_else(String::new, |tokens| float(tokens as f64)),
                until_ms(end_ns),
            ];
            rows.push(row.map(cell));
        }
    }
    csv(COLUMNS.split(','), rows)
}

/// Returns a number unchanged, and a text escaped so that spreadsheets do not read it as a formula.
fn cell(text: String) -> String {
    let is_of_number = |byte: u8| byte.is_ascii_digit() || b"+-.e".contains(&byte);
    match text.bytes().all(is_of_number) && text.parse::<f64>().is_ok() {
        true => text,
        false => text_cell(&text).into_owned(),
    }
}

/// Formats a number with a decimal point, as Python does.
fn float(value: f64) -> String {
    format!("{value:?}")
}

/// Returns `all_requests_profiler_traces.json`, with the steps of each request.
fn traces(requests: &[Vec<Step<'_>>], seconds: impl Fn(i64) -> f64) -> Value {
    let step_json = |step: &Step<'_>| {
        let [prompt, cached, completion] = step.tokens();
        json!({
            "parent_id": step.parent,
            "function_ancestry": {
                "function_id": step.function.1,
                "function_name": step.function.0,
                "parent_id": step.outer.1,
                "parent_name": step.outer.0,
            },
            "payload": {
                "event_type": step.event_type(),
                "event_timestamp": seconds(step.at_ns),
                "span_event_timestamp": step.is_end.then(|| seconds(step.call.start_ns)),
                "framework": null,
                "name": step.call.name,
                "tags": null,
                "metadata": step.is_end.then(|| json!({})),
                "data": {"input": null, "output": null, "chunk": null, "payload": null},
                "usage_info": {
                    "token_usage": {
                        "prompt_tokens": prompt,
                        "completion_tokens": completion,
                        "cached_tokens": cached,
                        "reasoning_tokens": 0,
                        "total_tokens": prompt.saturating_add(completion),
                    },
                    "num_llm_calls": 0,
                    "seconds_between_calls": 0,
                },
                "UUID": step.call.uuid,
            },
        })
    };
    let request_json = |(number, steps): (usize, &Vec<Step<'_>>)| {
        let steps: Vec<Value> = steps.iter().map(step_json).collect();
        json!({"request_number": number, "intermediate_steps": steps})
    };
    requests.iter().enumerate().map(request_json).collect()
}

/// Returns `inference_optimization.json`: run times, latencies and throughput, with the confidence intervals of their
/// means.
fn optimization(requests: &[Vec<Call>]) -> Value {
    // A request has ended if all of its calls have ended.
    let whole = requests.iter().filter_map(|calls| {
        let times: Option<Vec<(i64, i64)>> = calls.iter().map(Call::time).collect();
        let (starts, ends): (Vec<i64>, Vec<i64>) = times?.into_iter().unzip();
        Some((starts.into_iter().min()?, ends.into_iter().max()?))
    });
    let whole: Vec<(i64, i64)> = whole.collect();
    let run_times = durations(whole.iter().copied());
    let calls = requests.iter().flatten();
    let models = calls.filter(|call| call.kind == CallKind::Llm);
    let latencies = durations(models.filter_map(Call::time));
    json!({
        "confidence_intervals": {
            "workflow_run_time_confidence_intervals": time_figures(&run_times),
            "llm_latency_confidence_intervals": time_figures(&latencies),
            "throughput_estimate_confidence_interval": throughput(&whole),
        },
        // Prompts are not recorded.
        "common_prefixes": null,
        "token_uniqueness": null,
        "workflow_runtimes": (run_times.n > 0).then(|| percentiles(&run_times)),
        "dynamo_metrics": null,
    })
}

/// Returns the distribution of the durations of time ranges, each given by its start and end in ns.
fn durations(times: impl Iterator<Item = (i64, i64)>) -> Quantiles {
    let durations = times.map(|(from_ns, to_ns)| to_ns.saturating_sub(from_ns));
    Quantiles::from_values(durations.collect())
}

/// Returns the number, mean, confidence intervals and percentiles of durations as JSON, in seconds, or `None` if there
/// are no durations.
fn time_figures(times: &Quantiles) -> Option<Value> {
    let seconds = |within: [f64; 2]| within.map(|ns| ns / 1e9);
    let intervals = nat_mean_intervals(times).map(|all| all.map(seconds));
    let figures = with_intervals(times.n, times.mean_ns / 1e9, intervals, percentiles(times));
    (times.n > 0).then_some(figures)
}

/// Returns the number of ended requests per second between the first start and the last end as JSON, with confidence
/// intervals. `whole` contains the start and end of each ended request in ns. Returns `None` if there are none, or no
/// time between them.
fn throughput(whole: &[(i64, i64)]) -> Option<Value> {
    let from_ns = whole.iter().map(|(from_ns, _)| *from_ns).min()?;
    let to_ns = whole.iter().map(|(_, to_ns)| *to_ns).max()?;
    let n = whole.len() as u64;
    let rate = n as f64 / ((to_ns - from_ns) as f64 / 1e9);
    let none = json!({"p90": null, "p95": null, "p99": null});
    let figures = with_intervals(n, rate, nat_rate_intervals(rate, n), none);
    (to_ns > from_ns).then_some(figures)
}

/// Returns `figures` with the number of values, their mean and its 90, 95 and 99 % confidence intervals added. The
/// intervals are null if `within` is `None`.
fn with_intervals(n: u64, mean: f64, within: Option<[[f64; 2]; 3]>, mut figures: Value) -> Value {
    figures["n"] = json!(n);
    figures["mean"] = json!(mean);
    figures["ninetieth_interval"] = json!(within.map(|[p90, ..]| p90));
    figures["ninety_fifth_interval"] = json!(within.map(|[_, p95, _]| p95));
    figures["ninety_ninth_interval"] = json!(within.map(|[.., p99]| p99));
    figures
}

/// Returns the 90th, 95th and 99th percentiles of durations as JSON, in seconds.
fn percentiles(times: &Quantiles) -> Value {
    json!({"p90": times.p90_ns / 1e9, "p95": times.p95_ns / 1e9, "p99": times.p99_ns / 1e9})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_not_formulas_and_numbers_are_unchanged() {
        let cells = [
            "=HYPERLINK(1)",
            "+1+cmd",
            "-2+3",
            "@SUM(1)",
            "\t=1",
            "\r=1",
            "-",
            "-inf",
            "-1.5",
            "+1e5",
            "1=1",
            "'=1",
            "",
        ];
        let rows = cells.map(|text| [cell(text.to_owned())]);
        assert_eq!(
            csv(["a"], rows).unwrap(),
            "a\n'=HYPERLINK(1)\n'+1+cmd\n'-2+3\n'@SUM(1)\n'\t=1\n\"'\r=1\"\n'-\n'-inf\n-1.5\n+1e5\n1=1\n'=1\n\"\"\n"
        );
    }
}
