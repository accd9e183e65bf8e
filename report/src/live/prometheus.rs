//! The figures in Prometheus' text format, version 0.0.4.

use super::histogram::Histogram;
use super::live_names::LiveName;
use super::live_stats::{LiveEngine, LiveState, LiveStats};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};

/// The name of each metric, and what it is.
const HELP: &str = "
run_info: The run that is followed.
run_live: Whether a process of the run lives.
processes: Processes of the run, by what has become of them.
events_total: Events that were read.
read_bytes_total: Bytes that were read of fragments.
lost_events_total: Events that recorders lost, by cause.
unread_bytes: Bytes that are written and were not read.
behind_seconds: For how long the most belated fragment has not been read to its end.
skipped: What could not be read, by kind; less of it where it was written again.
requests_arrived_total: Requests that arrived, counted when they have ended.
requests_ended_total: Requests that ended, by how.
requests_finished_reason_total: Requests that ended, by the reason that they gave.
requests_unfinished: Requests without an end so far.
preemptions_total: Preemptions of requests that ended.
prompt_tokens_total: Tokens of the prompts of requests that ended.
cached_tokens_total: Those of them that the cache had.
output_tokens_total: Tokens of the answers of requests that ended.
time_to_first_token_seconds: From arrival until the first part of the answer left; for an answer in one piece, until its first token.
engine_time_to_first_token_seconds: From the queue to the first token in the engine.
inter_token_latency_seconds: Time between two tokens of a request, or between two outputs where a frontend lists those of each step.
request_time_per_output_token_seconds: Time per output token behind the first, of a request.
e2e_request_latency_seconds: From arrival to the end.
request_queue_time_seconds: From the queue to the first schedule.
request_prefill_time_seconds: From the first schedule to the first token.
request_decode_time_seconds: From the first token to the last one.
num_requests_running: Requests in the batch of an engine.
num_requests_waiting: Requests that wait for one.
kv_cache_usage_ratio: Share of the room for keys and values that is used.
engine_steps_total: Steps of an engine.
engine_prefill_tokens_total: Tokens of prompts in its steps.
engine_decode_tokens_total: Tokens of answers in its steps.
device_busy_seconds_total: Time in which anything ran on a device, or in a step of a worker without one.
slices_total: Slices of the names with the most time.
slice_seconds_total: Time of the slices of the names with the most time.
";

/// Returns what a metric is.
fn help(name: &str) -> &'static str {
    let mut lines = HELP.lines().filter_map(|line| line.split_once(": "));
    lines
        .find(|(of, _)| *of == name)
        .map_or("", |(_, help)| help)
}

/// The figures as metrics: those of [`LiveReader::counters`](super::live_reader::LiveReader::counters), whose sums never become smaller. Each begins with `sa_profile_`;
/// histograms have vLLM's names and buckets behind that.
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
    /// Begins a metric.
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP sa_profile_{name} {help}"); // a string takes everything
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

    /// Begins a metric other than a histogram. The name of a sum that never becomes smaller ends in `_total`.
    fn begin(&mut self, name: &str) {
        let kind = match name.ends_with("_total") {
            true => "counter",
            false => "gauge",
        };
        self.head(name, kind, help(name));
    }

    /// A metric of one sample.
    fn one(&mut self, name: &str, value: impl Display) {
        self.begin(name);
        self.sample::<&str>(name, &[], value);
    }

    /// A metric of a sample for each value of one label.
    fn by<'a>(
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

    fn histogram(&mut self, name: &str, help: &str, of: &Histogram) {
        self.head(name, "histogram", help);
        let (bucket, mut below) = (format!("{name}_bucket"), 0);
        for (bound, count) in of.bounds_ns.iter().zip(&of.counts) {
            below += count;
            self.sample(&bucket, &[("le", &seconds(*bound).to_string())], below);
        }
        self.sample(&bucket, &[("le", "+Inf")], of.n);
        self.sample::<&str>(&format!("{name}_sum"), &[], seconds(of.sum_ns));
        self.sample::<&str>(&format!("{name}_count"), &[], of.n);
    }

    fn recorded(&mut self, stats: &LiveStats) {
        let (recorded, behind) = (&stats.recorded, &stats.behind);
        self.begin("run_info");
        if !stats.run.is_empty() {
            self.sample("run_info", &[("run", &stats.run)], 1);
        }
        self.one("run_live", u8::from(stats.state == LiveState::Live));
        let states = [
            ("alive", recorded.alive),
            ("ended", recorded.ended),
            ("died", recorded.died),
        ];
        self.by("processes", "state", states);
        self.one("events_total", recorded.events);
        self.one("read_bytes_total", recorded.bytes);
        self.by("lost_events_total", "cause", by_text(&recorded.lost));
        self.one("unread_bytes", behind.unread_bytes);
        self.one("behind_seconds", behind.behind_ns as f64 / 1e9);
        let skipped = [
            ("block", behind.damaged_blocks),
            ("line", behind.damaged_lines),
            ("event", behind.skipped_events),
            ("segment", behind.skipped_segments),
            ("byte", behind.missing_bytes),
            ("time", behind.out_of_time),
            ("file", behind.unreadable_files),
            ("late", behind.late_moments),
        ];
        self.by("skipped", "kind", skipped);
    }

    fn requests(&mut self, stats: &LiveStats) {
        let requests = &stats.requests;
        self.one("requests_arrived_total", requests.arrived);
        let statuses = [
            ("ok", requests.ok),
            ("aborted", requests.aborted),
            ("failed", requests.failed),
        ];
        self.by("requests_ended_total", "status", statuses);
        let reasons = by_text(&requests.reasons);
        self.by("requests_finished_reason_total", "reason", reasons);
        self.one("requests_unfinished", stats.unfinished);
        self.one("preemptions_total", requests.preemptions);
        self.one("prompt_tokens_total", requests.prompt_tokens);
        self.one("cached_tokens_total", requests.cached_tokens);
        self.one("output_tokens_total", requests.output_tokens);
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
        for (name, of) in histograms {
            self.histogram(name, help(name), of);
        }
    }

    fn engines(&mut self, stats: &LiveStats) {
        type Value = fn(&LiveEngine) -> Option<f64>;
        let metrics: [(&str, Value); 6] = [
            ("num_requests_running", |of| of.running.map(f64::from)),
            ("num_requests_waiting", |of| of.waiting.map(f64::from)),
            ("kv_cache_usage_ratio", |of| of.kv_used),
            ("engine_steps_total", |of| Some(of.steps as f64)),
            ("engine_prefill_tokens_total", |of| {
                Some(of.prefill_tokens as f64)
            }),
            ("engine_decode_tokens_total", |of| {
                Some(of.decode_tokens as f64)
            }),
        ];
        for (name, value) in metrics {
            self.begin(name);
            let mut rows = Rows::new("engine");
            for engine in &stats.engine {
                // A row without this value has its place among those of its name as well.
                let labels = rows.labels(&engine.name, engine.pid, &engine.host);
                if let Some(value) = value(engine) {
                    self.sample(name, &labels, value);
                }
            }
        }
    }

    fn devices(&mut self, stats: &LiveStats) {
        let (name, mut rows) = ("device_busy_seconds_total", Rows::new("device"));
        self.begin(name);
        for device in &stats.device {
            let labels = rows.labels(&device.name, device.pid, &device.host);
            self.sample(name, &labels, seconds(device.busy_ns));
        }
    }

    fn names(&mut self, stats: &LiveStats) {
        type Value = fn(&LiveName) -> f64;
        let metrics: [(&str, Value); 2] = [
            ("slices_total", |of| of.ncall as f64),
            ("slice_seconds_total", |of| seconds(of.total_ns)),
        ];
        for (name, value) in metrics {
            // Which names these are changes while the run goes on.
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

/// Tells the processes of a metric apart.
struct Rows {
    label: &'static str,
    seen: BTreeMap<(String, u32, String), usize>,
}

impl Rows {
    fn new(label: &'static str) -> Rows {
        let seen = BTreeMap::new();
        Rows { label, seen }
    }

    /// The labels of the next one. Of several that are called the same, on one host and with one id, each later one has a number.
    fn labels(&mut self, name: &str, pid: u32, host: &str) -> Vec<(&'static str, String)> {
        let key = (name.to_owned(), pid, host.to_owned());
        let seen = self.seen.entry(key).or_default();
        *seen += 1;
        let mut labels = vec![
            (self.label, name.to_owned()),
            ("pid", pid.to_string()),
            ("host", host.to_owned()),
        ];
        if *seen > 1 {
            labels.push(("number", seen.to_string()));
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

/// The value of a label: a backslash, a quote and a line's end are escaped.
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
    fn no_two_rows_have_the_same_labels() {
        let mut rows = Rows::new("engine");
        let mut all: Vec<_> = [("core", 7, "a"), ("core", 7, "b"), ("core", 7, "a")]
            .into_iter()
            .map(|(name, pid, host)| rows.labels(name, pid, host))
            .collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn buckets_are_cumulative() {
        let mut histogram = Histogram::new(&super::super::histogram::TOKEN_BOUNDS[..2]);
        // A bound belongs to its bucket.
        for ms in [10, 20, 30] {
            histogram.take(ms * 1_000_000);
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
