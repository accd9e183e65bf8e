//! Writes the live figures in Prometheus' text format, version 0.0.4.

use super::histogram::Histogram;
use super::live_names::LiveName;
use super::live_stats::{LiveEngine, LiveState, LiveStats};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};

/// Name and help text of each metric.
const HELP: &str = "
run_info: The run that is followed.
run_live: 1 while a process of the run is alive, otherwise 0.
processes: Processes of the run, by state.
events_total: Events that were read.
read_bytes_total: Bytes of fragments that were read.
lost_events_total: Events that recorders lost, by cause.
unread_bytes: Bytes that are written but not read yet.
behind_seconds: Time for which the fragment that lags most has not been read to its end.
skipped: Data that could not be read, by kind. It decreases if the data is written again.
requests_arrived_total: Requests that arrived, counted when they end.
requests_ended_total: Requests that ended, by status.
requests_finished_reason_total: Requests that ended, by finish reason.
requests_unfinished: Requests without an end so far.
preemptions_total: Preemptions of requests that ended.
prompt_tokens_total: Prompt tokens of requests that ended.
cached_tokens_total: Prompt tokens of requests that ended which were in the cache.
output_tokens_total: Output tokens of requests that ended.
time_to_first_token_seconds: Time from arrival until the first part of the response left, or until the first token if the response is sent in one piece.
engine_time_to_first_token_seconds: Time from the queue to the first token in the engine.
inter_token_latency_seconds: Time between two tokens of a request, or between two of its outputs if a frontend lists the outputs of each step.
request_time_per_output_token_seconds: Time per output token after the first, for each request.
e2e_request_latency_seconds: Time from arrival to the end.
request_queue_time_seconds: Time from the queue to the first schedule.
request_prefill_time_seconds: Time from the first schedule to the first token.
request_decode_time_seconds: Time from the first token to the last one.
num_requests_running: Running requests of an engine.
num_requests_waiting: Queued requests of an engine.
kv_cache_usage_ratio: Share of the KV cache that is used.
engine_steps_total: Steps of an engine.
engine_prefill_tokens_total: Prompt tokens in the engine's steps.
engine_decode_tokens_total: Output tokens in the engine's steps.
device_busy_seconds_total: Time in which anything ran on a device, or in which a worker without a recorded device was in a step.
slices_total: Slices of the names with the most time.
slice_seconds_total: Time of the slices of the names with the most time.
";

/// Returns the text that explains a metric in its `HELP` line.
fn help(name: &str) -> &'static str {
    let mut lines = HELP.lines().filter_map(|line| line.split_once(": "));
    lines
        .find(|(metric, _)| *metric == name)
        .map_or("", |(_, help)| help)
}

/// Formats the figures as metrics. Use the figures of
/// [`LiveReader::counters`](super::live_reader::LiveReader::counters), whose sums never decrease. All names start with
/// `sa_profile_`; histograms continue with vLLM's names, and have vLLM's buckets.
pub fn prometheus(stats: &LiveStats) -> String {
    let mut text = Exposition::default();
    text.recorded(stats);
    text.requests(stats);
    text.durations(stats);
    text.engines(stats);
    text.devices(stats);
    text.names(stats);
    text.0
}

#[derive(Default)]
struct Exposition(String);

impl Exposition {
    /// Writes the comment lines `HELP` and `TYPE` of a metric.
    fn header(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP sa_profile_{name} {help}"); // writing to a string cannot fail
        let _ = writeln!(self.0, "# TYPE sa_profile_{name} {kind}");
    }

    fn sample<T: AsRef<str>>(&mut self, name: &str, labels: &[(&str, T)], value: impl Display) {
        let _ = write!(self.0, "sa_profile_{name}");
        for (number, (label, text)) in labels.iter().enumerate() {
            let before = if number == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{before}{label}=\"{}\"", escaped(text.as_ref()));
        }
        let _ = writeln!(
            self.0,
            "{} {value}",
            if labels.is_empty() { "" } else { "}" }
        );
    }

    /// Writes the header of a metric other than a histogram. The names of sums that never decrease end in `_total`.
    fn begin(&mut self, name: &str) {
        let kind = match name.ends_with("_total") {
            true => "counter",
            false => "gauge",
        };
        self.header(name, kind, help(name));
    }

    /// Writes a metric that has a single value and no labels.
    fn single(&mut self, name: &str, value: impl Display) {
        self.begin(name);
        self.sample::<&str>(name, &[], value);
    }

    /// Writes a metric with one sample for each value of a label.
    fn labelled<'a>(
        &mut self,
        name: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'a str, u64)>,
    ) {
        self.begin(name);
        for (text, value) in values {
            self.sample(name, &[(label, text)], value);
        }
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.header(name, "histogram", help);
        let (bucket, mut below) = (format!("{name}_bucket"), 0);
        for (bound, count) in histogram.bounds_ns.iter().zip(&histogram.counts) {
            below += count;
            self.sample(&bucket, &[("le", &seconds(*bound).to_string())], below);
        }
        self.sample(&bucket, &[("le", "+Inf")], histogram.n);
        self.sample::<&str>(&format!("{name}_sum"), &[], seconds(histogram.sum_ns));
        self.sample::<&str>(&format!("{name}_count"), &[], histogram.n);
    }

    fn recorded(&mut self, stats: &LiveStats) {
        let (recorded, lag) = (&stats.recorded, &stats.behind);
        self.begin("run_info");
        if !stats.run.is_empty() {
            self.sample("run_info", &[("run", &stats.run)], 1);
        }
        self.single("run_live", u8::from(stats.state == LiveState::Live));
        let states = [
            ("alive", recorded.alive),
            ("ended", recorded.ended),
            ("died", recorded.died),
        ];
        self.labelled("processes", "state", states);
        self.single("events_total", recorded.events);
        self.single("read_bytes_total", recorded.bytes);
        self.labelled("lost_events_total", "cause", by_text(&recorded.lost));
        self.single("unread_bytes", lag.unread_bytes);
        self.single("behind_seconds", lag.behind_ns as f64 / 1e9);
        let skipped = [
            ("block", lag.damaged_blocks),
            ("line", lag.damaged_lines),
            ("event", lag.skipped_events),
            ("segment", lag.skipped_segments),
            ("byte", lag.missing_bytes),
            ("time", lag.out_of_time),
            ("file", lag.unreadable_files),
            ("late", lag.late_moments),
        ];
        self.labelled("skipped", "kind", skipped);
    }

    fn requests(&mut self, stats: &LiveStats) {
        let requests = &stats.requests;
        self.single("requests_arrived_total", requests.arrived);
        let statuses = [
            ("ok", requests.ok),
            ("aborted", requests.aborted),
            ("failed", requests.failed),
        ];
        self.labelled("requests_ended_total", "status", statuses);
        let reasons = by_text(&requests.reasons);
        self.labelled("requests_finished_reason_total", "reason", reasons);
        self.single("requests_unfinished", stats.unfinished);
        self.single("preemptions_total", requests.preemptions);
        self.single("prompt_tokens_total", requests.prompt_tokens);
        self.single("cached_tokens_total", requests.cached_tokens);
        self.single("output_tokens_total", requests.output_tokens);
    }

    fn durations(&mut self, stats: &LiveStats) {
        let requests = &stats.requests;
        let histograms = [
            ("time_to_first_token_seconds", &requests.ttft),
            ("engine_time_to_first_token_seconds", &requests.engine_ttft),
            ("inter_token_latency_seconds", &requests.itl),
            ("request_time_per_output_token_seconds", &requests.tpot),
            ("e2e_request_latency_seconds", &requests.e2e),
            ("request_queue_time_seconds", &requests.queue),
            ("request_prefill_time_seconds", &requests.prefill),
            ("request_decode_time_seconds", &requests.decode),
        ];
        for (name, histogram) in histograms {
            self.histogram(name, help(name), histogram);
        }
    }

    fn engines(&mut self, stats: &LiveStats) {
        type Value = fn(&LiveEngine) -> Option<f64>;
        let metrics: [(&str, Value); 6] = [
            ("num_requests_running", |engine| {
                engine.running.map(f64::from)
            }),
            ("num_requests_waiting", |engine| {
                engine.waiting.map(f64::from)
            }),
            ("kv_cache_usage_ratio", |engine| engine.kv_used),
            ("engine_steps_total", |engine| Some(engine.steps as f64)),
            ("engine_prefill_tokens_total", |engine| {
                Some(engine.prefill_tokens as f64)
            }),
            ("engine_decode_tokens_total", |engine| {
                Some(engine.decode_tokens as f64)
            }),
        ];
        for (name, value) in metrics {
            self.begin(name);
            let mut labels = SampleLabels::new("engine");
            for engine in &stats.engine {
                // An engine without this value still takes part in the numbering of equal labels.
                let labels = labels.next(&engine.name, engine.pid, &engine.host);
                if let Some(value) = value(engine) {
                    self.sample(name, &labels, value);
                }
            }
        }
    }

    fn devices(&mut self, stats: &LiveStats) {
        let (name, mut labels) = ("device_busy_seconds_total", SampleLabels::new("device"));
        self.begin(name);
        for device in &stats.device {
            let labels = labels.next(&device.name, device.pid, &device.host);
            self.sample(name, &labels, seconds(device.busy_ns));
        }
    }

    fn names(&mut self, stats: &LiveStats) {
        type Value = fn(&LiveName) -> f64;
        let metrics: [(&str, Value); 2] = [
            ("slices_total", |name| name.ncall as f64),
            ("slice_seconds_total", |name| seconds(name.total_ns)),
        ];
        for (name, value) in metrics {
            // The set of names changes during the run.
            self.begin(name);
            for slice in &stats.names {
                let labels = [
                    ("row", slice.row.name()),
                    ("category", &slice.category),
                    ("name", &slice.name),
                ];
                self.sample(name, &labels, value(slice));
            }
        }
    }
}

/// Labels that distinguish the processes of a metric.
struct SampleLabels {
    label: &'static str,
    counts: BTreeMap<(String, u32, String), usize>,
}

impl SampleLabels {
    fn new(label: &'static str) -> SampleLabels {
        let counts = BTreeMap::new();
        SampleLabels { label, counts }
    }

    /// Returns the labels of the next sample. If several processes have the same name, host and pid, the later ones get
    /// a number.
    fn next(&mut self, name: &str, pid: u32, host: &str) -> Vec<(&'static str, String)> {
        let key = (name.to_owned(), pid, host.to_owned());
        let count = self.counts.entry(key).or_default();
        *count += 1;
        let mut labels = vec![
            (self.label, name.to_owned()),
            ("pid", pid.to_string()),
            ("host", host.to_owned()),
        ];
        if *count > 1 {
            labels.push(("number", count.to_string()));
        }
        labels
    }
}

fn by_text(values: &BTreeMap<String, u64>) -> impl Iterator<Item = (&str, u64)> {
    values.iter().map(|(text, value)| (text.as_str(), *value))
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// Escapes a label value: backslashes, quotes and line breaks.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_end_its_line() {
        let mut text = Exposition::default();
        text.sample("x", &[("name", "a\"b\\c\nd é"), ("le", "0.1")], 2);
        assert_eq!(
            text.0,
            "sa_profile_x{name=\"a\\\"b\\\\c\\nd é\",le=\"0.1\"} 2\n"
        );
    }

    #[test]
    fn no_two_samples_have_the_same_labels() {
        let mut labels = SampleLabels::new("engine");
        let mut all: Vec<_> = [("core", 7, "a"), ("core", 7, "b"), ("core", 7, "a")]
            .into_iter()
            .map(|(name, pid, host)| labels.next(name, pid, host))
            .collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn buckets_are_cumulative() {
        let mut histogram = Histogram::new(&super::super::histogram::TOKEN_BOUNDS[..2]);
        // A value equal to a bound belongs to the bucket of that bound.
        for ms in [10, 20, 30] {
            histogram.add_value(ms * 1_000_000);
        }
        let mut text = Exposition::default();
        text.histogram("h_seconds", "Help.", &histogram);
        let expected = "\
# HELP sa_profile_h_seconds Help.
# TYPE sa_profile_h_seconds histogram
sa_profile_h_seconds_bucket{le=\"0.01\"} 1
sa_profile_h_seconds_bucket{le=\"0.025\"} 2
sa_profile_h_seconds_bucket{le=\"+Inf\"} 3
sa_profile_h_seconds_sum 0.06
sa_profile_h_seconds_count 3
";
        assert_eq!(text.0, expected);
    }
}
