//! One request from its arrival to its end, built from the events of all processes.

use crate::fold::requests::phases::{PhaseChange, PhaseChanges};
use crate::fold::serving::InFlight;
use crate::gather::reasons::Reasons;
use crate::gather::request_moment::{MomentKind, RequestArgs, RequestMoment, RequestToken};
use crate::table::{Request, RequestStatus};

/// All events of one request. They must be added in order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life {
    http: Option<SpanTimes>,
    preprocess: Option<SpanTimes>,
    args: RequestArgs,
    first_chunk_ns: Option<i64>,
    answered_ns: Option<i64>,
    preemptions: u64,
    /// Start of the current preemption, and total time of earlier ones in ns.
    preempted_since_ns: Option<i64>,
    preempted_ns: i64,
    changes: PhaseChanges,
    /// Kinds of starts so far, each with its process and the hash of its name.
    begins: Vec<(MomentKind, u32, u32)>,
    /// Number of other requests with this id, by kind of start, followed by the end of their last span.
    others: [u64; 3],
    others_end_ns: i64,
    /// Processes that recorded any event of the request, usually two or three.
    processes: Vec<(u32, InProcess)>,
    /// Numbers of the request's prompts whose blocks have hashes, each with its process.
    prompts: Vec<(u32, u32)>,
}

/// Events of the request that one process recorded.
#[derive(Clone, Debug, Default)]
struct InProcess {
    span: Option<SpanTimes>,
    queued_ns: Option<i64>,
    scheduled_ns: Option<i64>,
    /// Time of the first preemption.
    preempted_ns: Option<i64>,
    first_token_ns: Option<i64>,
    finished_ns: Option<i64>,
    /// Times of tokens.
    tokens: Vec<i64>,
}

/// Time in which an engine decoded a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoding {
    /// Number of the engine's process.
    pub(crate) engine: usize,
    pub(crate) from_ns: i64,
    pub(crate) to_ns: i64,
}

#[derive(Clone, Copy, Debug)]
struct SpanTimes {
    process: u32,
    start_ns: i64,
    end_ns: Option<i64>,
    /// Time before the application received the request.
    waited_ns: i64,
}

/// Sets `earliest` to `ns` if that is earlier.
fn keep_earliest(earliest: &mut Option<i64>, ns: i64) {
    *earliest = Some(earliest.map_or(ns, |before| before.min(ns)));
}

impl SpanTimes {
    /// Creates the times of the span that a moment represents.
    fn from_moment(moment: &RequestMoment) -> SpanTimes {
        SpanTimes {
            process: moment.process,
            start_ns: moment.ts_ns,
            end_ns: moment.end_ns(),
            waited_ns: moment.args.waited_ns,
        }
    }

    /// Returns the time at which the application received the request.
    fn received_ns(self) -> i64 {
        self.start_ns.saturating_add(self.waited_ns)
    }
}

impl Life {
    /// Adds an event of the request.
    pub(super) fn add(&mut self, moment: &RequestMoment) {
        let (ts_ns, mut args) = (moment.ts_ns, moment.args);
        let process = Life::process(&mut self.processes, moment.process);
        match moment.kind {
            MomentKind::Http => drop(self.http.get_or_insert(SpanTimes::from_moment(moment))),
            MomentKind::Request => drop(process.span.get_or_insert(SpanTimes::from_moment(moment))),
            MomentKind::Preprocess => drop(
                self.preprocess
                    .get_or_insert(SpanTimes::from_moment(moment)),
            ),
            MomentKind::Queued => keep_earliest(&mut process.queued_ns, ts_ns),
            MomentKind::Prompt => self.prompts.push((moment.tag, moment.process)),
            MomentKind::Scheduled => {
                keep_earliest(&mut process.scheduled_ns, ts_ns);
                // Recorders without `resumed` schedule a preempted request again. Its cached tokens are then its own.
                let is_preempted = process.preempted_ns.is_some_and(|ns| ns < ts_ns);
                if is_preempted {
                    args.cached_tokens = None;
                }
                self.runs(ts_ns);
            }
            MomentKind::FirstToken => keep_earliest(&mut process.first_token_ns, ts_ns),
            MomentKind::FirstChunk => {
                // A chunk from before the request was received belongs to the previous request with this id.
                let is_own =
                    |http: SpanTimes| http.process == moment.process && http.received_ns() <= ts_ns;
                if self.http.is_some_and(is_own) {
                    keep_earliest(&mut self.first_chunk_ns, ts_ns);
                }
            }
            MomentKind::Preempted => {
                keep_earliest(&mut process.preempted_ns, ts_ns);
                self.preemptions += 1;
                self.changes.add(ts_ns, PhaseChange::Preempted);
                self.preempted_since_ns = Some(ts_ns);
            }
            MomentKind::Resumed => {
                self.runs(ts_ns);
                // The cached tokens of a resumed request are the ones that it computed itself.
                args.cached_tokens = None;
            }
            MomentKind::SpanEnd => {}
            MomentKind::Finished => {
                process.finished_ns = process.finished_ns.max(Some(ts_ns));
            }
            MomentKind::Answered => self.answered_ns = self.answered_ns.max(Some(ts_ns)),
        }
        self.args.add(&args);
        if moment.kind.is_begin() {
            self.begin(moment);
        }
    }

    /// Records a moment with which a request may start. A second HTTP span, request span or entry into the queue in the
    /// same process belongs to another request with this id, unless a preempted request is queued again.
    fn begin(&mut self, moment: &RequestMoment) {
        let nth = match moment.kind {
            MomentKind::Http => Some(0),
            MomentKind::Request => Some(1),
            MomentKind::Queued => Some(2),
            _ => None,
        };
        let begin = (moment.kind, moment.process, nth.map_or(0, |_| moment.tag));
        if !self.begins.contains(&begin) {
            self.begins.push(begin);
            return;
        }
        let is_again = moment.kind == MomentKind::Queued && self.preempted_since_ns.is_some();
        if let Some(nth) = nth.filter(|_| !is_again) {
            self.others[nth] += 1;
            self.others_end_ns = self.others_end_ns.max(moment.end_ns().unwrap_or(i64::MIN));
        }
    }

    /// Returns the number of other requests with the same id that started before this one ended. They are counted as
    /// part of it.
    pub(crate) fn mixed(&self) -> u64 {
        self.others.into_iter().max().unwrap_or(0)
    }

    /// Returns the time at which the id is free again: at the end of this request, or of the others with its id if that
    /// is later. Returns `None` if the end is unknown.
    pub(super) fn free_ns(&self) -> Option<i64> {
        let end_ns = self.end_ns()?;
        Some(match self.mixed() {
            0 => end_ns,
            _ => end_ns.max(self.others_end_ns),
        })
    }

    /// Adds a token that a process recorded for this request.
    pub(super) fn token(&mut self, token: &RequestToken) {
        let process = Life::process(&mut self.processes, token.process);
        keep_earliest(&mut process.first_token_ns, token.ns);
        process.tokens.push(token.ns);
    }

    /// Returns what `process` recorded of the request. A new process gets an empty entry.
    fn process(processes: &mut Vec<(u32, InProcess)>, process: u32) -> &mut InProcess {
        let known = processes.iter().position(|(other, _)| *other == process);
        let number = known.unwrap_or(processes.len());
        if known.is_none() {
            processes.push((process, InProcess::default()));
        }
        &mut processes[number].1
    }

    /// Notes that the request runs from `ts_ns` on. If it was preempted, the preemption ends.
    fn runs(&mut self, ts_ns: i64) {
        self.changes.add(ts_ns, PhaseChange::Runs);
        if let Some(since_ns) = self.preempted_since_ns.take() {
            let ns = ts_ns.saturating_sub(since_ns).max(0);
            self.preempted_ns = self.preempted_ns.saturating_add(ns);
        }
    }

    /// Returns true if a start of this kind was added.
    pub(super) fn has(&self, kind: MomentKind) -> bool {
        self.begins.iter().any(|(other, ..)| *other == kind)
    }

    /// Returns the times at which the request started and ended, or `None` if it neither arrived nor was queued.
    pub(crate) fn in_flight(&self) -> Option<InFlight> {
        let processes = self.processes.iter();
        let queued_ns = || processes.filter_map(|(_, part)| part.queued_ns).min();
        let arrival_ns = self.arrival().map(|span| span.start_ns);
        Some(InFlight {
            from_ns: arrival_ns.or_else(queued_ns)?,
            to_ns: self.end_ns(),
        })
    }

    /// Returns the time in ns at which the request ended, or `None` if its end is not in the trace.
    pub(crate) fn end_ns(&self) -> Option<i64> {
        match self.arrival() {
            Some(span) => span.end_ns,
            None => {
                let processes = self.processes.iter();
                processes.filter_map(|(_, part)| part.finished_ns).max()
            }
        }
    }

    /// Returns the span that starts when the request arrives: its HTTP span, or else its first request span, together
    /// with the preprocessing before it. Returns `None` if the request has neither.
    fn arrival(&self) -> Option<SpanTimes> {
        let spans = self.processes.iter().filter_map(|(_, part)| part.span);
        let first = || spans.min_by_key(|span| span.start_ns);
        // Without an HTTP span, preprocessing before the request's own span counts as part of it.
        let since_ns = |span: SpanTimes| {
            let before_ns = self
                .preprocess
                .map_or(span.start_ns, |before| before.start_ns);
            SpanTimes {
                start_ns: span.start_ns.min(before_ns),
                ..span
            }
        };
        self.http.or_else(|| first().map(since_ns))
    }

    /// Returns one of the processes that recorded the request. All of them belong to the same run.
    pub(super) fn any_process(&self) -> Option<u32> {
        self.processes.first().map(|(process, _)| *process)
    }

    /// Returns the times of the request's tokens in ns. The frontend's tokens are preferred, then the tokens of the
    /// process with the most. Returns nothing if none were recorded.
    pub(crate) fn tokens(&self) -> &[i64] {
        let frontend = self.arrival().map(|span| span.process);
        let processes = self.processes.iter();
        let recorded = processes.filter(|(_, part)| !part.tokens.is_empty());
        let rank =
            |(process, part): &&(u32, InProcess)| (Some(*process) == frontend, part.tokens.len());
        recorded
            .max_by_key(rank)
            .map_or(&[], |(_, part)| &part.tokens)
    }

    /// Returns the number of processes that scheduled the request.
    pub(super) fn scheduled(&self) -> u64 {
        let processes = self.processes.iter();
        processes
            .filter(|(_, part)| part.scheduled_ns.is_some())
            .count() as u64
    }

    /// Returns the number of each of the request's prompts, with true if the prompt's process scheduled the request.
    pub(super) fn prompts(&self) -> impl Iterator<Item = (usize, bool)> {
        let is_scheduled = |process: u32| {
            let mut processes = self.processes.iter();
            processes.any(|(other, part)| *other == process && part.scheduled_ns.is_some())
        };
        let prompts = self.prompts.iter();
        prompts.map(move |(prompt, process)| (*prompt as usize, is_scheduled(*process)))
    }

    /// Returns the number of the request's prompt tokens that were in the prefix cache, or `None` if it was not
    /// recorded.
    pub(super) fn cached_tokens(&self) -> Option<u64> {
        self.args.cached_tokens
    }

    /// Removes the changes of the request's phase and returns them.
    pub(super) fn take_changes(&mut self) -> PhaseChanges {
        std::mem::take(&mut self.changes)
    }

    /// Returns the engine of the request with the times of its first and its last token there. Returns `None` if it has
    /// no token. Without an end, the last token is far in the future.
    pub(super) fn decoding(&self) -> Option<Decoding> {
        let (engine, part) = self.engine()?;
        Some(Decoding {
            engine: *engine as usize,
            from_ns: part.first_token_ns?,
            to_ns: part.finished_ns.unwrap_or(i64::MAX),
        })
    }

    /// Returns the engine of the request: the process in which it was queued first.
    fn engine(&self) -> Option<&(u32, InProcess)> {
        let queues = self.processes.iter();
        let queues = queues.filter(|(_, part)| part.queued_ns.is_some());
        queues.min_by_key(|(_, part)| part.queued_ns)
    }

    /// Builds the report's entry for this request, with `id` as its id. Returns `None` if the request neither arrived
    /// nor was queued.
    pub(crate) fn request(&self, id: &str, reasons: &Reasons) -> Option<Request> {
        let processes = || self.processes.iter().map(|(_, part)| part);
        let arrival = self.arrival();
        // The frontend is the process at which the request arrived. It may also be the engine.
        let queue = self.engine();
        let engine = queue.map(|(_, part)| part);
        let frontend = arrival.and_then(|span| {
            let is_same_process = |(process, _): &&(u32, InProcess)| *process == span.process;
            Some(&self.processes.iter().find(is_same_process)?.1)
        });
        let queued_ns = engine.and_then(|part| part.queued_ns);
        if arrival.is_none() && queued_ns.is_none() {
            return None;
        }
        let finished_ns = self.end_ns();
        let last_token_ns = processes()
            .filter_map(|part| part.tokens.last().copied())
            .max();
        let tokens = processes().map(|part| part.tokens.len() as u64).max();
        let recorded_tokens = tokens.filter(|tokens| *tokens > 0);
        let reason = reasons.text(self.args.reason);
        let process = arrival.map(|span| span.process);
        let process = process.or(queue.map(|(process, _)| *process));
        Some(Request {
            request_id: id.into(),
            status: status(reason.as_deref(), finished_ns),
            reason,
            arrival_ns: arrival.map(|span| span.start_ns),
            received_ns: arrival.map(SpanTimes::received_ns),
            read_ns: self.preprocess.map(|span| span.start_ns),
            preprocessed_ns: self.preprocess.and_then(|span| span.end_ns),
            queued_ns,
            scheduled_ns: processes().filter_map(|part| part.scheduled_ns).min(),
            engine_first_token_ns: engine.and_then(|part| part.first_token_ns),
            first_token_ns: frontend.and_then(|part| part.first_token_ns),
            first_chunk_ns: self.first_chunk_ns,
            last_token_ns: last_token_ns.or(engine.and_then(|part| part.finished_ns)),
            answered_ns: self.answered_ns,
            finished_ns,
            prompt_tokens: self.args.prompt_tokens,
            cached_tokens: self.args.cached_tokens,
            output_tokens: self.args.output_tokens.or(recorded_tokens),
            preemptions: self.preemptions,
            process: process.map(|process| process as usize),
            preempted_ns: self.preempted_ns,
        })
    }
}

/// Returns how a request ended, from its finish reason and its end. A request without an end is unfinished unless the
/// reason shows that it failed or was aborted.
fn status(reason: Option<&str>, finished_ns: Option<i64>) -> RequestStatus {
    match reason {
        Some("abort" | "aborted" | "cancelled") => RequestStatus::Aborted,
        Some("error" | "failed" | "timeout" | "ignored") => RequestStatus::Failed,
        _ if finished_ns.is_none() => RequestStatus::Unfinished,
        _ => RequestStatus::Ok,
    }
}
