//! The figures of a run at one moment, as data.

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

/// The version of what is written as JSON.
const SCHEMA: u32 = 1;
/// Whether a run goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LiveState {
    /// There is no run in the directory yet.
    #[default]
    Waiting,
    /// It goes on.
    Live,
    /// All its processes have ended or died.
    Ended,
}

/// All figures of a run. Times are ns.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LiveStats {
    /// 1.
    pub schema: u32,
    /// Whether the run goes on.
    pub state: LiveState,
    /// Whether the run is over and was read once more as a whole: then the figures are those of its report. What a report does not have stays as it was last: the last
    /// seconds, and what counters of engines said.
    pub is_final: bool,
    /// Why it was not, if that was tried.
    pub not_final: Option<String>,
    /// The run's id.
    pub run: String,
    /// When these figures were made, in wall time.
    pub realtime_ns: u64,
    /// When the newest event ended, in wall time.
    pub last_event_realtime_ns: Option<u64>,
    /// Time since the newest event ended; `None` unless the run is live and was read to its end.
    pub no_event_for_ns: Option<u64>,
    /// What was recorded.
    pub recorded: LiveRecorded,
    /// How far these figures are behind the run, and what they lack.
    pub behind: LiveBehind,
    /// Requests since the run began.
    pub requests: Figures,
    /// Requests without an end in the trace: requests in flight, and requests that were aborted without a record of it.
    pub unfinished: u64,
    /// Number of requests that began under an id which another request was still using. They are counted as part of that request.
    pub mixed: u64,
    /// The last ten seconds; those before its last event in a run that has ended.
    pub last_10_s: LiveWindow,
    /// The last minute, likewise.
    pub last_60_s: LiveWindow,
    /// The run from its first request until now. The page draws it.
    pub past: LivePast,
    /// What the counters of engines say.
    pub engine: Vec<LiveEngine>,
    /// Devices, and workers without one, whose steps stand for it.
    pub device: Vec<LiveDevice>,
    /// The requests that ended last.
    pub latest: Vec<LiveRequest>,
    /// The ended requests that took longest.
    pub slowest: Vec<LiveRequest>,
    /// The names with the most time.
    pub names: Vec<LiveName>,
    /// How many names there are.
    pub names_of: usize,
    /// Slices of names for which there was no room.
    pub other_slices: u64,
    /// The processes.
    pub process: Vec<LiveProcess>,
}

/// What was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LiveRecorded {
    /// Processes that live, ended by themselves, and died.
    pub alive: u64,
    /// See there.
    pub ended: u64,
    /// See there.
    pub died: u64,
    /// Events, names that processes told among them.
    pub events: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Events that recorders lost, by cause; of `children_refused` processes.
    pub lost: BTreeMap<String, u64>,
}

/// How far the figures are behind the run, and what they lack.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LiveBehind {
    /// Bytes that are written and were not read.
    pub unread_bytes: u64,
    /// For how long the most belated fragment has not been read to its end.
    pub behind_ns: u64,
    /// Blocks that do not match their checksum.
    pub damaged_blocks: u64,
    /// Lines that are no events.
    pub damaged_lines: u64,
    /// Events on tracks that nothing describes.
    pub skipped_events: u64,
    /// Segments that were removed before they were read to their end, or became shorter.
    pub skipped_segments: u64,
    /// Bytes of what recorders wrote that are nowhere, without a record that tells of a loss: damaged blocks have them too.
    pub missing_bytes: u64,
    /// Events with a time that is no time of this run: they are in no figure.
    pub out_of_time: u64,
    /// Files that cannot be opened.
    pub unreadable_files: u64,
    /// What was said of requests that counted already.
    pub late_moments: u64,
}

/// The figures of some seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LiveWindow {
    /// How many.
    pub seconds: u64,
    /// Requests that arrived, of which that is known by now.
    pub arrived: u64,
    /// Requests that were answered, given up, and failed.
    pub ok: u64,
    /// See there.
    pub aborted: u64,
    /// See there.
    pub failed: u64,
    /// Requests that were answered per second.
    pub requests_per_s: f64,
    /// Tokens of the prompts and answers of requests that ended.
    pub prompt_tokens_per_s: f64,
    /// See there.
    pub output_tokens_per_s: f64,
    /// Tokens that engines put into their steps.
    pub prefill_tokens_per_s: f64,
    /// See there.
    pub decode_tokens_per_s: f64,
    /// As those of the whole run.
    pub ttft: LiveQuantiles,
    /// See there.
    pub tpot: LiveQuantiles,
    /// See there.
    pub itl: LiveQuantiles,
    /// See there.
    pub e2e: LiveQuantiles,
    /// See there.
    pub queue: LiveQuantiles,
}

/// What the counters of an engine say.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LiveEngine {
    /// Its name, process id and host.
    pub name: String,
    /// See there.
    pub pid: u32,
    /// See there.
    pub host: String,
    /// Requests in its batch, at the last count.
    pub running: Option<u32>,
    /// Requests that wait for one.
    pub waiting: Option<u32>,
    /// The share of the room for keys and values that is used.
    pub kv_used: Option<f64>,
    /// Steps, and the tokens of prompts and answers in them.
    pub steps: u64,
    /// See there.
    pub prefill_tokens: u64,
    /// See there.
    pub decode_tokens: u64,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveDevice {
    /// Its name, and the id and the host of the process that recorded it.
    pub name: String,
    /// See there.
    pub pid: u32,
    /// See there.
    pub host: String,
    /// Whether it is a worker without a device.
    pub is_runner: bool,
    /// Slices on it.
    pub slices: u64,
    /// How long it was busy, from its first slice to its last one.
    pub busy_ns: i64,
    /// How long that is.
    pub wall_ns: i64,
    /// The share of the last ten seconds, and of the last minute, in which it was busy.
    pub busy_10_s: f64,
    /// See there.
    pub busy_60_s: f64,
}

/// A request that has ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveRequest {
    /// Its id.
    pub request_id: String,
    /// How it ended.
    pub status: RequestStatus,
    /// Why, as vLLM calls it.
    pub reason: Option<String>,
    /// Time since it ended; in a run that has ended, the time from there to its last event.
    pub ended_ago_ns: Option<i64>,
    /// Its figures.
    pub queue_ns: Option<i64>,
    /// See there.
    pub ttft_ns: Option<i64>,
    /// See there.
    pub tpot_ns: Option<i64>,
    /// See there.
    pub e2e_ns: Option<i64>,
    /// Tokens of its prompt and its answer.
    pub prompt_tokens: Option<u64>,
    /// See there.
    pub output_tokens: Option<u64>,
}

/// A process, or a group of tracks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveProcess {
    /// What it is called.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    /// Its host.
    pub host: String,
    /// Whether it is a group of tracks.
    pub is_tracks: bool,
    /// True if it recorded tracks.
    #[serde(skip)]
    pub(super) has_tracks: bool,
    /// `alive`, `ended` or `died`.
    pub state: &'static str,
    /// Events that were read.
    pub events: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Time since its newest event ended; in a run that has ended, the time from there to the last event of all.
    pub idle_ns: Option<i64>,
    /// What its times may be off against those of the first host.
    pub clock_uncertainty_ns: Option<u64>,
    /// Events that it says it lost, by cause.
    pub lost: BTreeMap<String, u64>,
}

/// The moments on the axis that figures count back from.
#[derive(Clone, Copy, Debug)]
pub(super) struct LiveMoments {
    /// Now, or the last event of a run that has ended.
    pub(super) now_ns: i64,
    /// The end of the last seconds.
    pub(super) windows_end_ns: i64,
}

/// Name, id and host of a process.
pub(super) type Called = (String, u32, String);

impl LiveProcess {
    fn called(&self) -> Called {
        (self.name.clone(), self.pid, self.host.clone())
    }
}

impl LiveStats {
    /// Those of what was folded. What only the reader knows is left open.
    pub(super) fn of(
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
            last_10_s: LiveWindow::of(&sums.last, end_ns, 10),
            last_60_s: LiveWindow::of(&sums.last, end_ns, 60),
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

    /// One line of JSON.
    ///
    /// # Errors
    /// None that is known of: it is written to memory.
    pub fn json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}

impl LiveWindow {
    fn of(last: &LastSeconds, end_ns: i64, seconds: u32) -> LiveWindow {
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

/// Returns an engine, and the steps that it counted.
pub(super) fn live_engine((name, pid, host): Called, of: &Batching) -> LiveEngine {
    LiveEngine {
        name,
        pid,
        host,
        steps: of.steps,
        prefill_tokens: of.prefill_tokens,
        decode_tokens: of.decode_tokens,
        ..LiveEngine::default()
    }
}

fn engines(fold: &LiveFold, processes: &[LiveProcess]) -> Vec<LiveEngine> {
    let counted = fold.batchings.clone().finish().into_iter();
    let mut steps: BTreeMap<usize, Batching> = counted.map(|of| (of.process, of)).collect();
    for process in fold.levels.keys() {
        steps.entry(*process as usize).or_default();
    }
    let engine = |(number, steps): (usize, Batching)| {
        let levels = fold.levels.get(&u32::try_from(number).ok()?);
        let levels = levels.copied().unwrap_or_default();
        let level = |known: Option<(i64, u32)>| known.map(|(_, value)| value);
        Some(LiveEngine {
            running: level(levels.running),
            waiting: level(levels.waiting),
            kv_used: level(levels.kv_used).map(|share| f64::from(share) / 1e3),
            ..live_engine(processes.get(number)?.called(), &steps)
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
        let of = sums.last.before(end_ns, seconds);
        let busy = of.flat_map(|second| &second.busy_ns);
        let busy = busy.filter(|(of, _)| *of == device).map(|(_, ns)| ns);
        busy.sum::<i64>() as f64 / (seconds as f64 * 1e9)
    };
    let of = |(number, time): (&u32, &BusyTime)| {
        let process = processes.get(*number as usize)?;
        // The steps of a worker say nothing any more once its device is known.
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
    fold.devices.of.iter().filter_map(of).collect()
}
