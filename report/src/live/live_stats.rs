//! Figures of a run at one moment, as data.

use super::figures::Figures;
use super::histogram::LiveQuantiles;
use super::last_seconds::LastSeconds;
use super::live_fold::{BusyTime, LiveFold};
use super::live_names::LiveName;
use super::live_requests::RequestSums;
use super::past::LivePast;
use crate::table::{Batching, Request, RequestStatus};
use serde::Serialize;
use std::collections::BTreeMap;

/// Version of the JSON format.
const SCHEMA: u32 = 1;
/// State of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LiveState {
    /// The directory contains no run yet.
    #[default]
    Waiting,
    /// The run is being recorded.
    Live,
    /// All processes of the run have ended or died.
    Ended,
}

/// All figures of a run. Times are in ns.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LiveStats {
    /// Version of the JSON format: 1.
    pub schema: u32,
    /// State of the run.
    pub state: LiveState,
    /// True if the run is over and was read again as a whole. Its figures are then the same as in its report. Figures
    /// that a report does not have keep their last values: the last seconds, and the counters of engines.
    pub is_final: bool,
    /// Reason why the whole run could not be read, if that failed.
    pub not_final: Option<String>,
    /// Id of the run.
    pub run: String,
    /// Wall-clock time at which these figures were computed, in ns since the Unix epoch.
    pub realtime_ns: u64,
    /// Wall-clock time at which the newest event ended, in ns since the Unix epoch.
    pub last_event_realtime_ns: Option<u64>,
    /// Time since the newest event ended. `None` unless the run is live and was read to its end.
    pub no_event_for_ns: Option<u64>,
    /// Counts of what was recorded.
    pub recorded: LiveRecorded,
    /// How much of the run these figures do not cover yet, and what they lack.
    pub behind: LiveLag,
    /// Requests since the start of the run.
    pub requests: Figures,
    /// Number of requests without an end in the trace: requests in flight, and requests that were aborted without a
    /// record of it.
    pub unfinished: u64,
    /// Number of requests that started under an id that another request was still using. They are counted as part of
    /// that request.
    pub mixed: u64,
    /// Figures of the last ten seconds. If the run has ended, these are the seconds before its last event.
    pub last_10_s: LiveWindow,
    /// Figures of the last minute, in the same way.
    pub last_60_s: LiveWindow,
    /// Figures over time, from the first request until now. The page draws them.
    pub past: LivePast,
    /// Counters of the engines.
    pub engine: Vec<LiveEngine>,
    /// Devices, and workers without a recorded device, whose steps are used instead.
    pub device: Vec<LiveDevice>,
    /// The requests that ended last.
    pub latest: Vec<LiveRequest>,
    /// The ended requests that took longest.
    pub slowest: Vec<LiveRequest>,
    /// The names with the most time.
    pub names: Vec<LiveName>,
    /// Number of distinct names.
    pub names_of: usize,
    /// Number of slices of names beyond the maximum.
    pub other_slices: u64,
    /// The processes of the run.
    pub process: Vec<LiveProcess>,
}

/// Counts of what was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LiveRecorded {
    /// Number of processes that are running.
    pub alive: u64,
    /// Number of processes that ended normally.
    pub ended: u64,
    /// Number of processes that died.
    pub died: u64,
    /// Number of events, including the names that processes recorded.
    pub events: u64,
    /// Number of bytes that were read.
    pub bytes: u64,
    /// Number of events that recorders lost, by cause. For `children_refused` it is a number of processes.
    pub lost: BTreeMap<String, u64>,
}

/// How much of the run the figures do not cover yet, and what they lack.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LiveLag {
    /// Number of bytes that are written but not read yet.
    pub unread_bytes: u64,
    /// Time since the fragment that lags most was last read to its end.
    pub behind_ns: u64,
    /// Number of blocks that do not match their checksums.
    pub damaged_blocks: u64,
    /// Number of lines that are not events.
    pub damaged_lines: u64,
    /// Number of events on tracks that no record describes.
    pub skipped_events: u64,
    /// Number of segments that were removed before they were read completely, or that became shorter.
    pub skipped_segments: u64,
    /// Number of bytes that recorders wrote but that are missing without a record of the loss. Bytes of damaged blocks
    /// are included.
    pub missing_bytes: u64,
    /// Number of events whose time cannot belong to this run. They are not in any figure.
    pub out_of_time: u64,
    /// Number of files that cannot be opened.
    pub unreadable_files: u64,
    /// Number of events that came after their request was counted.
    pub late_moments: u64,
}

/// Figures of the last seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LiveWindow {
    /// Number of seconds.
    pub seconds: u64,
    /// Number of requests that are known to have arrived.
    pub arrived: u64,
    /// Number of requests that were answered.
    pub ok: u64,
    /// Number of requests that were aborted.
    pub aborted: u64,
    /// Number of requests that failed.
    pub failed: u64,
    /// Answered requests per second.
    pub requests_per_s: f64,
    /// Prompt tokens per second of the requests that ended.
    pub prompt_tokens_per_s: f64,
    /// Output tokens per second of the requests that ended.
    pub output_tokens_per_s: f64,
    /// Prefill tokens per second that engines put into their steps.
    pub prefill_tokens_per_s: f64,
    /// Decode tokens per second that engines put into their steps.
    pub decode_tokens_per_s: f64,
    /// See [`Figures::ttft`].
    pub ttft: LiveQuantiles,
    /// See [`Figures::tpot`].
    pub tpot: LiveQuantiles,
    /// See [`Figures::itl`].
    pub itl: LiveQuantiles,
    /// See [`Figures::e2e`].
    pub e2e: LiveQuantiles,
    /// See [`Figures::queue`].
    pub queue: LiveQuantiles,
}

/// Counters of an engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LiveEngine {
    /// Name of the engine's process.
    pub name: String,
    /// Process id.
    pub pid: u32,
    /// Host of the process.
    pub host: String,
    /// Number of running requests, at the last count.
    pub running: Option<u32>,
    /// Number of queued requests, at the last count.
    pub waiting: Option<u32>,
    /// Share of the KV cache that is used.
    pub kv_used: Option<f64>,
    /// Number of steps.
    pub steps: u64,
    /// Number of prompt tokens in these steps.
    pub prefill_tokens: u64,
    /// Number of output tokens in these steps.
    pub decode_tokens: u64,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveDevice {
    /// Name of the device.
    pub name: String,
    /// Id of the process that recorded it.
    pub pid: u32,
    /// Host of that process.
    pub host: String,
    /// True for a worker without a recorded device.
    pub is_runner: bool,
    /// Number of slices on the device.
    pub slices: u64,
    /// Busy time between its first and its last slice.
    pub busy_ns: i64,
    /// Time between its first and its last slice.
    pub wall_ns: i64,
    /// Share of the last ten seconds in which it was busy.
    pub busy_10_s: f64,
    /// Share of the last minute in which it was busy.
    pub busy_60_s: f64,
}

/// A request that has ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveRequest {
    /// Id of the request.
    pub request_id: String,
    /// Outcome of the request.
    pub status: RequestStatus,
    /// Finish reason, in vLLM's terms.
    pub reason: Option<String>,
    /// Time since the request ended. If the run has ended, the time from there to its last event.
    pub ended_ago_ns: Option<i64>,
    /// Time in the queue.
    pub queue_ns: Option<i64>,
    /// Time to first token.
    pub ttft_ns: Option<i64>,
    /// Time per output token after the first.
    pub tpot_ns: Option<i64>,
    /// Time from the arrival to the end.
    pub e2e_ns: Option<i64>,
    /// Number of prompt tokens.
    pub prompt_tokens: Option<u64>,
    /// Number of output tokens.
    pub output_tokens: Option<u64>,
}

/// A process, or a group of tracks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveProcess {
    /// Name of the process or group.
    pub name: String,
    /// Process id.
    pub pid: u32,
    /// Host of the process.
    pub host: String,
    /// True for a group of tracks.
    pub is_tracks: bool,
    /// True if the process recorded tracks.
    #[serde(skip)]
    pub(super) has_tracks: bool,
    /// `alive`, `ended` or `died`.
    pub state: &'static str,
    /// Number of events that were read.
    pub events: u64,
    /// Number of bytes that were read.
    pub bytes: u64,
    /// Time since the newest event of the process ended. If the run has ended, the time from there to the last event of
    /// the run.
    pub idle_ns: Option<i64>,
    /// Maximum error of its times relative to the first host, in ns. `None` if it is unknown.
    pub clock_uncertainty_ns: Option<u64>,
    /// Number of events that the process reports as lost, by cause.
    pub lost: BTreeMap<String, u64>,
}

/// Times on the trace's clock up to which figures are computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct LiveMoments {
    /// Current time, or the last event of a run that has ended.
    pub(super) now_ns: i64,
    /// End of the windows of last seconds.
    pub(super) windows_end_ns: i64,
}

/// Name, id and host of a process.
pub(super) type ProcessLabel = (String, u32, String);

impl LiveProcess {
    fn label(&self) -> ProcessLabel {
        (self.name.clone(), self.pid, self.host.clone())
    }
}

impl LiveStats {
    /// Computes the figures of folded events. Fields that only the reader knows keep their defaults.
    pub(super) fn from_fold(
        fold: &LiveFold,
        processes: Vec<LiveProcess>,
        moments: LiveMoments,
    ) -> LiveStats {
        let sums = fold.requests.sums();
        let request = |one: &Request| live_request(one, moments.now_ns);
        let end_ns = moments.windows_end_ns;
        LiveStats {
            schema: SCHEMA,
            unfinished: sums.unfinished,
            mixed: sums.mixed,
            last_10_s: LiveWindow::new(&sums.last, end_ns, 10),
            last_60_s: LiveWindow::new(&sums.last, end_ns, 60),
            engine: engines(fold, &processes),
            device: devices(fold, &sums, &processes, end_ns),
            past: sums.past.series(end_ns),
            process: processes,
            latest: sums.latest.iter().map(request).collect(),
            slowest: sums.slowest.iter().map(request).collect(),
            names: fold.names.top(),
            names_of: fold.names.len(),
            other_slices: fold.names.others.ncall,
            requests: sums.all,
            ..LiveStats::default()
        }
    }

    /// Formats the live figures as one line of JSON.
    ///
    /// # Errors
    /// Returns the serializer's error. None is expected, because the text is written to memory.
    pub fn json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}

impl LiveWindow {
    fn new(last: &LastSeconds, end_ns: i64, seconds: u32) -> LiveWindow {
        let (mut figures, mut prefill, mut decode) = (Figures::default(), 0_u64, 0_u64);
        for second in last.before(end_ns, seconds.into()) {
            figures.add(&second.figures);
            prefill += second.prefill_tokens;
            decode += second.decode_tokens;
        }
        let per_s = |number: u64| number as f64 / f64::from(seconds);
        LiveWindow {
            seconds: seconds.into(),
            arrived: figures.arrived,
            ok: figures.ok,
            aborted: figures.aborted,
            failed: figures.failed,
            requests_per_s: per_s(figures.ok),
            prompt_tokens_per_s: per_s(figures.prompt_tokens),
            output_tokens_per_s: per_s(figures.output_tokens),
            prefill_tokens_per_s: per_s(prefill),
            decode_tokens_per_s: per_s(decode),
            ttft: figures.ttft.quantiles(),
            tpot: figures.tpot.quantiles(),
            itl: figures.itl.quantiles(),
            e2e: figures.e2e.quantiles(),
            queue: figures.queue.quantiles(),
        }
    }
}

pub(super) fn live_request(request: &Request, now_ns: i64) -> LiveRequest {
    LiveRequest {
        request_id: request.request_id.to_string(),
        status: request.status,
        reason: request.reason.as_deref().map(str::to_owned),
        ended_ago_ns: request.finished_ns.map(|ns| now_ns - ns),
        queue_ns: request.queue_ns(),
        ttft_ns: request.ttft_ns(),
        tpot_ns: request.tpot_ns(),
        e2e_ns: request.e2e_ns(),
        prompt_tokens: request.prompt_tokens,
        output_tokens: request.output_tokens,
    }
}

/// Creates the row that live views show for an engine: its label, and the figures of its steps. The caller adds the
/// levels of its counters, if they are known.
pub(super) fn live_engine((name, pid, host): ProcessLabel, batching: &Batching) -> LiveEngine {
    LiveEngine {
        name,
        pid,
        host,
        steps: batching.steps,
        prefill_tokens: batching.prefill_tokens,
        decode_tokens: batching.decode_tokens,
        ..LiveEngine::default()
    }
}

fn engines(fold: &LiveFold, processes: &[LiveProcess]) -> Vec<LiveEngine> {
    let counted = fold.batchings.clone().finish().into_iter();
    let mut steps: BTreeMap<usize, Batching> = counted
        .map(|batching| (batching.process, batching))
        .collect();
    for process in fold.levels.keys() {
        steps.entry(*process as usize).or_default();
    }
    let engine = |(number, steps): (usize, Batching)| {
        let levels = fold.levels.get(&u32::try_from(number).ok()?);
        let levels = levels.copied().unwrap_or_default();
        let level = |last: Option<(i64, u32)>| last.map(|(_, value)| value);
        Some(LiveEngine {
            running: level(levels.running),
            waiting: level(levels.waiting),
            kv_used: level(levels.kv_used).map(|share| f64::from(share) / 1e3),
            ..live_engine(processes.get(number)?.label(), &steps)
        })
    };
    steps.into_iter().filter_map(engine).collect()
}

fn devices(
    fold: &LiveFold,
    sums: &RequestSums,
    processes: &[LiveProcess],
    end_ns: i64,
) -> Vec<LiveDevice> {
    let busy = |device: u32, seconds: i64| {
        let seconds_before = sums.last.before(end_ns, seconds);
        let busy = seconds_before.flat_map(|second| &second.busy_ns);
        let busy = busy.filter(|(other, _)| *other == device).map(|(_, ns)| ns);
        busy.sum::<i64>() as f64 / (seconds as f64 * 1e9)
    };
    let live_device = |(number, time): (&u32, &BusyTime)| {
        let process = processes.get(*number as usize)?;
        // A worker's steps are no longer shown once its device is known.
        let is_shown = process.is_tracks || !process.has_tracks;
        is_shown.then(|| LiveDevice {
            name: process.name.clone(),
            pid: process.pid,
            host: process.host.clone(),
            is_runner: !process.is_tracks,
            slices: time.slices,
            busy_ns: time.busy_ns,
            wall_ns: time.last_ns - time.first_ns.unwrap_or(time.last_ns),
            busy_10_s: busy(*number, 10),
            busy_60_s: busy(*number, 60),
        })
    };
    fold.devices.times.iter().filter_map(live_device).collect()
}
