//! The figures in Prometheus' text format, version 0.0.4.

use super::histogram::Histogram;
use super::live_stats::{LiveState, LiveStats};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};

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

/// The labels of a sample.
type Labels<'a> = &'a [(&'a str, &'a str)];

impl Exposition {
    /// Begins a metric.
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP sa_profile_{name} {help}"); // a string takes everything
        let _ = writeln!(self.0, "# TYPE sa_profile_{name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl Display) {
        let _ = write!(self.0, "sa_profile_{name}");
        for (number, (label, text)) in labels.iter().enumerate() {
            let before = if number == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{before}{label}=\"{}\"", escaped(text));
        }
        let _ = writeln!(
            self.0,
            "{} {value}",
            if labels.is_empty() { "" } else { "}" }
        );
    }

    /// A metric of one sample.
    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.head(name, kind, help);
        self.sample(name, &[], value);
    }

    /// A metric of a sample for each value of one label.
    fn by<'a>(
        &mut self,
        head: [&str; 3],
        label: &str,
        values: impl IntoIterator<Item = (&'a str, u64)>,
    ) {
        let [name, kind, help] = head;
        self.head(name, kind, help);
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
        self.sample(&format!("{name}_sum"), &[], seconds(of.sum_ns));
        self.sample(&format!("{name}_count"), &[], of.n);
    }

    fn recorded(&mut self, stats: &LiveStats) {
        let recorded = &stats.recorded;
        self.head("run_info", "gauge", "The run that is followed.");
        if !stats.run.is_empty() {
            self.sample("run_info", &[("run", &stats.run)], 1);
        }
        let is_live = u8::from(stats.state == LiveState::Live);
        self.one(
            "run_live",
            "gauge",
            "Whether a process of the run lives.",
            is_live,
        );
        self.by(
            [
                "processes",
                "gauge",
                "Processes of the run, by what has become of them.",
            ],
            "state",
            [
                ("alive", recorded.alive),
                ("ended", recorded.ended),
                ("died", recorded.died),
            ],
        );
        self.one(
            "events_total",
            "counter",
            "Events that were read.",
            recorded.events,
        );
        self.one(
            "read_bytes_total",
            "counter",
            "Bytes that were read of fragments.",
            recorded.bytes,
        );
        self.by(
            [
                "lost_events_total",
                "counter",
                "Events that recorders lost, by cause.",
            ],
            "cause",
            by_text(&recorded.lost),
        );
        let behind = &stats.behind;
        self.one(
            "unread_bytes",
            "gauge",
            "Bytes that are written and were not read.",
            behind.unread_bytes,
        );
        self.one(
            "behind_seconds",
            "gauge",
            "For how long the most belated fragment has not been read to its end.",
            behind.behind_ns as f64 / 1e9,
        );
        self.by(
            [
                "skipped",
                "gauge",
                "What could not be read, by kind; less of it where it was written again.",
            ],
            "kind",
            [
                ("block", behind.damaged_blocks),
                ("line", behind.damaged_lines),
                ("event", behind.skipped_events),
                ("segment", behind.skipped_segments),
                ("byte", behind.missing_bytes),
                ("time", behind.out_of_time),
                ("file", behind.unreadable_files),
                ("late", behind.late_moments),
            ],
        );
    }

    fn requests(&mut self, stats: &LiveStats) {
        let requests = &stats.requests;
        self.one(
            "requests_arrived_total",
            "counter",
            "Requests that arrived, counted when they have ended.",
            requests.arrived,
        );
        self.by(
            [
                "requests_ended_total",
                "counter",
                "Requests that ended, by how.",
            ],
            "status",
            [
                ("ok", requests.ok),
                ("aborted", requests.aborted),
                ("failed", requests.failed),
            ],
        );
        self.by(
            [
                "requests_finished_reason_total",
                "counter",
                "Requests that ended, by the reason that they gave.",
            ],
            "reason",
            by_text(&requests.reasons),
        );
        self.one(
            "requests_unfinished",
            "gauge",
            "Requests without an end so far.",
            stats.unfinished,
        );
        let sums = [
            (
                "preemptions_total",
                "Preemptions of requests that ended.",
                requests.preemptions,
            ),
            (
                "prompt_tokens_total",
                "Tokens of the prompts of requests that ended.",
                requests.prompt_tokens,
            ),
            (
                "cached_tokens_total",
                "Those of them that the cache had.",
                requests.cached_tokens,
            ),
            (
                "output_tokens_total",
                "Tokens of the answers of requests that ended.",
                requests.output_tokens,
            ),
        ];
        for (name, help, value) in sums {
            self.one(name, "counter", help, value);
        }
    }

    fn durations(&mut self, stats: &LiveStats) {
        let requests = &stats.requests;
        let histograms = [
            (
                "time_to_first_token_seconds",
                "From arrival until the first part of the answer left; for an answer in one piece, until its first token.",
                &requests.ttft,
            ),
            (
                "engine_time_to_first_token_seconds",
                "From the queue to the first token in the engine.",
                &requests.engine_ttft,
            ),
            (
                "inter_token_latency_seconds",
                "Time between two tokens of a request, or between two outputs where a frontend lists those of each step.",
                &requests.itl,
            ),
            (
                "request_time_per_output_token_seconds",
                "Time per output token behind the first, of a request.",
                &requests.tpot,
            ),
            (
                "e2e_request_latency_seconds",
                "From arrival to the end.",
                &requests.e2e,
            ),
            (
                "request_queue_time_seconds",
                "From the queue to the first schedule.",
                &requests.queue,
            ),
            (
                "request_prefill_time_seconds",
                "From the first schedule to the first token.",
                &requests.prefill,
            ),
            (
                "request_decode_time_seconds",
                "From the first token to the last one.",
                &requests.decode,
            ),
        ];
        for (name, help, of) in histograms {
            self.histogram(name, help, of);
        }
    }

    fn engines(&mut self, stats: &LiveStats) {
        type Value = fn(&super::live_stats::LiveEngine) -> Option<f64>;
        let metrics: [(&str, &str, &str, Value); 6] = [
            (
                "num_requests_running",
                "gauge",
                "Requests in the batch of an engine.",
                |of| of.running.map(f64::from),
            ),
            (
                "num_requests_waiting",
                "gauge",
                "Requests that wait for one.",
                |of| of.waiting.map(f64::from),
            ),
            (
                "kv_cache_usage_ratio",
                "gauge",
                "Share of the room for keys and values that is used.",
                |of| of.kv_used,
            ),
            (
                "engine_steps_total",
                "counter",
                "Steps of an engine.",
                |of| Some(of.steps as f64),
            ),
            (
                "engine_prefill_tokens_total",
                "counter",
                "Tokens of prompts in its steps.",
                |of| Some(of.prefill_tokens as f64),
            ),
            (
                "engine_decode_tokens_total",
                "counter",
                "Tokens of answers in its steps.",
                |of| Some(of.decode_tokens as f64),
            ),
        ];
        for (name, kind, help, value) in metrics {
            self.head(name, kind, help);
            let mut rows = Rows::new("engine");
            for engine in &stats.engine {
                // A row without this value has its place among those of its name as well.
                let labels = rows.labels(&engine.name, engine.pid, &engine.host);
                if let Some(value) = value(engine) {
                    self.sample(name, &as_labels(&labels), value);
                }
            }
        }
    }

    fn devices(&mut self, stats: &LiveStats) {
        self.head(
            "device_busy_seconds_total",
            "counter",
            "Time in which anything ran on a device, or in a step of a worker without one.",
        );
        let mut rows = Rows::new("device");
        for device in &stats.device {
            let labels = rows.labels(&device.name, device.pid, &device.host);
            self.sample(
                "device_busy_seconds_total",
                &as_labels(&labels),
                seconds(device.busy_ns),
            );
        }
    }

    fn names(&mut self, stats: &LiveStats) {
        let metrics = [
            ("slices_total", "Slices of the names with the most time."),
            (
                "slice_seconds_total",
                "Time of the slices of the names with the most time.",
            ),
        ];
        for (name, help) in metrics {
            // Which names these are changes while the run goes on.
            self.head(name, "counter", help);
            for slice in &stats.names {
                let row = match slice.row {
                    crate::table::row_kind::RowKind::Thread => "thread",
                    crate::table::row_kind::RowKind::Async => "async",
                    crate::table::row_kind::RowKind::Track => "track",
                    crate::table::row_kind::RowKind::Region => "region",
                };
                let labels = [
                    ("row", row),
                    ("category", &slice.category),
                    ("name", &slice.name),
                ];
                match name {
                    "slices_total" => self.sample(name, &labels, slice.ncall),
                    _ => self.sample(name, &labels, seconds(slice.total_ns)),
                }
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

fn as_labels<'a>(labels: &'a [(&'a str, String)]) -> Vec<(&'a str, &'a str)> {
    let labels = labels.iter();
    labels
        .map(|(label, text)| (*label, text.as_str()))
        .collect()
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
        for ms in [5, 20, 30] {
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
sa_profile_h_seconds_sum 0.055
sa_profile_h_seconds_count 3
";
        assert_eq!(text.0, expected);
    }
}
