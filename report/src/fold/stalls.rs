//! Finds stalls: times in which a process recorded nothing while requests waited for it.
//!
//! A process that was stopped, or that had no core, records nothing. But neither does a process that waits for its next
//! work. So a silence counts as a stall only with a sign of pending work: an open step that takes far longer than its
//! tokens explain, outputs that a frontend did not read, or a device that waited for the process.

use crate::gather::edge::{Edge, EdgeKind};
use crate::gather::event_times::Silence;
use crate::gather::step_record::StepRecord;
use crate::table::{Activity, DeviceIdle, IdleCause, Request, RunReport, Stall};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use trace_store::sorter::Sorted;

/// Minimum length of a stall, in ns.
pub(crate) const LEAST_NS: i64 = 100_000_000;
/// Maximum number of silences to check. The longest ones are chosen.
const JUDGED: usize = 64;
/// Factor by which a silence must exceed the expected step to be a stall.
const TIMES: f64 = 5.0;
/// Number of engine outputs during a frontend's silence that make it a stall.
const OUTPUTS: u32 = 3;
/// Share of a silence in which a device must have waited for the process.
const WAITED: f64 = 0.8;

/// Data that decides whether a silence is a stall.
struct Silences<'a> {
    report: &'a RunReport,
    edges: &'a Sorted<Edge>,
    steps: &'a Sorted<StepRecord>,
    /// Times in which any request was in flight, in order.
    in_flight: Vec<(i64, i64)>,
}

/// A silence while requests were in flight, and the signs of work in it.
#[derive(Debug)]
struct Candidate {
    process: usize,
    from_ns: i64,
    to_ns: i64,
    in_step: bool,
    in_gc: bool,
    /// Number of outputs that frontends should have received meanwhile.
    outputs: u32,
    /// Number of prompt tokens in the engine's step, if the engine recorded it.
    prompt_tokens: Option<u64>,
}

/// Returns the stalls among the silences, in order of time.
pub(crate) fn stalls(
    report: &RunReport,
    silences: &[Silence],
    edges: &Sorted<Edge>,
    steps: &Sorted<StepRecord>,
) -> Vec<Stall> {
    let context = Silences {
        report,
        edges,
        steps,
        in_flight: in_flight(&report.request, report.serving.to_ns),
    };
    // The process of a request without an arrival is its engine, not a frontend.
    let arrived = report
        .request
        .iter()
        .filter(|request| request.arrival_ns.is_some());
    let frontends: BTreeSet<usize> = arrived.filter_map(|request| request.process).collect();
    let mut candidates = context.candidates(silences);
    context.add_activities(&mut candidates, &frontends);
    let step_ns = context.add_steps(&mut candidates);
    let prompts = PromptTimes::from_requests(&report.request);
    candidates.retain(|candidate| {
        !candidate.in_gc
            && match candidate.in_step {
                true => {
                    let step_ns = step_ns.get(&candidate.process).copied().unwrap_or_default();
                    let longest_ns = TIMES * (step_ns + prompts.ns(candidate)) + LEAST_NS as f64;
                    candidate.dur_ns() as f64 > longest_ns
                }
                false if frontends.contains(&candidate.process) => {
                    candidate.outputs >= OUTPUTS && !context.is_preprocessing(candidate)
                }
                false => context.has_waiting_device(candidate),
            }
    });
    let mut found: Vec<Stall> = Vec::new();
    for candidate in candidates {
        // Later silences may be processes that waited for the one that stalled first.
        let is_covered = |stall: &Stall| {
            let end_ns = candidate.to_ns.min(stall.from_ns + stall.dur_ns);
            2 * (end_ns - candidate.from_ns) > candidate.dur_ns()
        };
        if !found.iter().any(is_covered) {
            found.push(context.stall(&candidate));
        }
    }
    found
}

impl Candidate {
    fn dur_ns(&self) -> i64 {
        self.to_ns - self.from_ns
    }
}

impl Silences<'_> {
    /// Returns the longest silences while requests were in flight, in order of time.
    fn candidates(&self, silences: &[Silence]) -> Vec<Candidate> {
        let in_flight = &self.in_flight;
        let is_process = |process: usize| {
            let processes = &self.report.recorded.processes;
            processes
                .get(process)
                .is_some_and(|process| !process.is_tracks)
        };
        let candidate = |silence: &Silence| {
            let process = silence.process as usize;
            let first = in_flight.partition_point(|(_, to_ns)| *to_ns <= silence.from_ns);
            let times = in_flight[first..].iter();
            let times = times.take_while(|(from_ns, _)| *from_ns < silence.to_ns);
            let inside = times
                .map(|(from_ns, to_ns)| (silence.from_ns.max(*from_ns), silence.to_ns.min(*to_ns)));
            let (from_ns, to_ns) = inside.max_by_key(|(from_ns, to_ns)| to_ns - from_ns)?;
            (is_process(process) && to_ns - from_ns >= LEAST_NS).then_some(Candidate {
                process,
                from_ns,
                to_ns,
                in_step: false,
                in_gc: false,
                outputs: 0,
                prompt_tokens: None,
            })
        };
        let mut found: Vec<Candidate> = silences.iter().filter_map(candidate).collect();
        found.sort_by_key(|candidate| Reverse(candidate.dur_ns()));
        found.truncate(JUDGED);
        found.sort_by_key(|candidate| (candidate.from_ns, candidate.process));
        found
    }

    /// Adds what the processes did when each silence began, and the outputs that frontends should have received during
    /// it.
    fn add_activities(&self, candidates: &mut [Candidate], frontends: &BTreeSet<usize>) {
        let senders = self.senders(frontends);
        let mut open: BTreeMap<(usize, Activity), u32> = BTreeMap::new();
        let mut next = 0;
        for edge in self.edges.iter() {
            while let Some(candidate) = candidates.get_mut(next)
                && candidate.from_ns < edge.ns
            {
                let is_in = |activity| open.get(&(candidate.process, activity)).copied() > Some(0);
                (candidate.in_step, candidate.in_gc) = (is_in(Activity::Step), is_in(Activity::Gc));
                next += 1;
            }
            let process = edge.process as usize;
            match edge.kind {
                EdgeKind::Begin(activity) => *open.entry((process, activity)).or_default() += 1,
                EdgeKind::End(activity) => {
                    let open = open.entry((process, activity)).or_default();
                    *open = open.saturating_sub(1);
                    if activity == Activity::Output && senders.contains(&process) {
                        let begun = candidates[..next].iter_mut();
                        let is_in = |candidate: &&mut Candidate| edge.ns < candidate.to_ns;
                        begun
                            .filter(is_in)
                            .for_each(|candidate| candidate.outputs += 1);
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns the processes whose outputs go to frontends: the detokenizers, or else the engines. A detokenizer may
    /// keep the outputs of several steps.
    fn senders(&self, frontends: &BTreeSet<usize>) -> BTreeSet<usize> {
        let (mut outputs, mut engines) = (BTreeSet::new(), BTreeSet::new());
        for edge in self.edges.iter() {
            match edge.kind {
                EdgeKind::Begin(Activity::Output) => outputs.insert(edge.process as usize),
                EdgeKind::Begin(Activity::Schedule | Activity::Step) | EdgeKind::Running => {
                    engines.insert(edge.process as usize)
                }
                _ => false,
            };
        }
        outputs.retain(|process| !frontends.contains(process));
        match outputs.is_subset(&engines) {
            true => outputs,
            false => &outputs - &engines,
        }
    }

    /// Adds the prompt tokens in the step that each silence is in. Returns the mean duration of each worker's steps.
    fn add_steps(&self, candidates: &mut [Candidate]) -> BTreeMap<usize, f64> {
        let mut steps: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for step in self.steps.iter() {
            if !step.is_engine {
                let (total_ns, n) = steps.entry(step.process as usize).or_default();
                (*total_ns, *n) = (*total_ns + step.dur_ns() as f64, *n + 1.0);
                continue;
            }
            let is_in = |candidate: &&mut Candidate| {
                step.start_ns < candidate.to_ns && candidate.from_ns < step.end_ns.0
            };
            for candidate in candidates.iter_mut().filter(is_in) {
                let tokens = Some(step.prefill_tokens);
                candidate.prompt_tokens = candidate.prompt_tokens.max(tokens);
            }
        }
        let steps = steps.into_iter();
        steps.map(|(process, (ns, n))| (process, ns / n)).collect()
    }

    /// Returns true if a frontend was preprocessing a request during the whole silence. A tokenizer that blocks the
    /// frontend is not a stall.
    fn is_preprocessing(&self, candidate: &Candidate) -> bool {
        self.report.request.iter().any(|request| {
            let times = request.read_ns.zip(request.preprocessed_ns);
            let is_around = |(from_ns, to_ns): (i64, i64)| {
                from_ns <= candidate.from_ns + LEAST_NS / 2
                    && candidate.to_ns - LEAST_NS / 2 <= to_ns
            };
            request.process == Some(candidate.process) && times.is_some_and(is_around)
        })
    }

    /// Returns true if a device waited for the process during most of the silence.
    fn has_waiting_device(&self, candidate: &Candidate) -> bool {
        self.report.long_gaps.iter().any(|gap| {
            let mut idle = self.report.idle.iter();
            let waits = idle.find(|idle| idle.process == gap.process);
            let is_for = |idle: &DeviceIdle| match gap.cause {
                IdleCause::Worker => idle.worker == candidate.process,
                IdleCause::Engine | IdleCause::Ipc => idle.engine == Some(candidate.process),
                _ => false,
            };
            let from_ns = candidate.from_ns.max(gap.start_ns);
            let to_ns = candidate.to_ns.min(gap.end_ns);
            let share = (to_ns - from_ns) as f64 / candidate.dur_ns() as f64;
            waits.is_some_and(is_for) && share >= WAITED
        })
    }

    fn stall(&self, candidate: &Candidate) -> Stall {
        let times = self.report.request.iter();
        let times = times.filter_map(|request| request.in_flight_ns(self.report.serving.to_ns));
        let is_in = |(from_ns, to_ns): &(i64, i64)| {
            *from_ns < candidate.to_ns && candidate.from_ns < *to_ns
        };
        Stall {
            process: candidate.process,
            from_ns: candidate.from_ns,
            dur_ns: candidate.dur_ns(),
            requests: times.filter(is_in).count() as u64,
        }
    }
}

/// Returns the times in which any request was in flight, in order.
fn in_flight(requests: &[Request], last_ns: i64) -> Vec<(i64, i64)> {
    let times = requests
        .iter()
        .filter_map(|request| request.in_flight_ns(last_ns));
    let mut times: Vec<(i64, i64)> = times.collect();
    times.sort_unstable();
    times.dedup_by(|next, before| {
        let is_joined = next.0 <= before.1;
        if is_joined {
            before.1 = before.1.max(next.1);
        }
        is_joined
    });
    times
}

/// Computation times of prompts.
#[derive(Default)]
struct PromptTimes {
    /// Median time per token, in ns.
    token_ns: f64,
    /// Number of tokens of the longest prompt.
    most_tokens: u64,
}

impl PromptTimes {
    /// Computes the times from the first schedule to the first token of the requests.
    fn from_requests(requests: &[Request]) -> PromptTimes {
        let time_and_tokens = |request: &Request| {
            let cached = request.cached_tokens.unwrap_or(0);
            let tokens = request.prompt_tokens?.saturating_sub(cached).max(1);
            Some((request.prefill_ns()? as f64 / tokens as f64, tokens))
        };
        let prompts: Vec<(f64, u64)> = requests.iter().filter_map(time_and_tokens).collect();
        let mut times: Vec<f64> = prompts.iter().map(|(ns, _)| *ns).collect();
        times.sort_unstable_by(f64::total_cmp);
        PromptTimes {
            token_ns: times.get(times.len() / 2).copied().unwrap_or_default(),
            most_tokens: prompts.iter().map(|prompt| prompt.1).max().unwrap_or(0),
        }
    }

    /// Returns the time that the prompts in a step should take, in ns. If the step's tokens are unknown, it may contain
    /// the longest prompt.
    fn ns(&self, candidate: &Candidate) -> f64 {
        let tokens = candidate.prompt_tokens.unwrap_or(self.most_tokens);
        self.token_ns * tokens as f64
    }
}
