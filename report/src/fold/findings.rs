//! A report → what stands out in it.

use crate::table::{
    Activity, CostOf, DeviceTime, Finding, IdleCause, RunReport, SeriesKind, StackTime,
    Unrecognized,
};
use std::collections::BTreeMap;

/// Thresholds of the rules, as shares. Where each comes from is in docs/time.md.
const IDLE: f64 = 0.05;
const NO_REQUEST: f64 = 0.50;
const EXPOSED_COMMUNICATION: f64 = 0.10;
/// A rank that is last to this share of collectives, and costs this share of time.
const LAST: f64 = 0.60;
const LATE: f64 = 0.02;
/// Devices of one engine whose busy time differs by more of their time.
const UNEVEN: f64 = 0.05;
/// Engines of which the least loaded has so many fewer requests than the most loaded one.
const UNEVEN_ENGINES: f64 = 0.20;
const QUEUE: f64 = 0.10;
const PREEMPTED: f64 = 0.01;
const NOT_ANSWERED: f64 = 0.05;
/// Prompts in steps cost this share of the time of answers.
const STALLED: f64 = 0.10;
/// A collection of garbage that is longer than this stands out.
const GC_NS: i64 = 1_000_000;

/// Returns the evidence and the advice for a cause of idle devices; `None` if the cause is unknown or is not a bottleneck.
fn evidence_and_advice(cause: IdleCause) -> Option<(&'static str, &'static str)> {
    Some(match cause {
        IdleCause::LaunchGap => (
            "in a step, the devices waited for the next launch: the host is slower than they are",
            "graph mode (ACL graphs); fewer and larger kernels; cores of its own for each worker",
        ),
        IdleCause::LaunchDelay => (
            "kernels were launched and did not begin, with nothing else on the device",
            "look at what the streams wait for: events, copies, the device's own scheduler",
        ),
        IdleCause::Preparing => (
            "the devices waited for the first launch of a step",
            "asynchronous scheduling, which prepares a step while the one before runs",
        ),
        IdleCause::Sampling => (
            "the devices waited while workers sampled, or brought tokens back",
            "sampling on the device; asynchronous output",
        ),
        IdleCause::Scheduling => (
            "the devices waited while the engine scheduled",
            "asynchronous scheduling; fewer requests in a batch; fewer engines on a core",
        ),
        IdleCause::Output => (
            "the devices waited while the engine took in the output of the last step",
            "asynchronous scheduling; less to do for each token (logprobs, stop texts)",
        ),
        IdleCause::Ipc => (
            "the engine waited for its workers, which were done",
            "free cores: look whether the processes waited for one; shared memory instead of sockets",
        ),
        IdleCause::Worker => (
            "a worker had been given a step, or the sampling after it, and had not begun",
            "look at what kept the worker: no free core, a process that was stopped or swapped out, other threads that hold the interpreter's lock",
        ),
        IdleCause::OtherRank => (
            "devices waited for another worker, which was still in its step",
            "the worker that is waited for: its cores, its share of the work, its device",
        ),
        IdleCause::Gc => (
            "the devices waited while Python collected garbage",
            "gc.freeze() after the start, or a higher gc.set_threshold()",
        ),
        IdleCause::KvTransfer => (
            "the devices waited for keys and values",
            "loading them layer by layer; a faster way between the hosts",
        ),
        IdleCause::Frontend => (
            "the devices waited while requests had not reached the engine",
            "more API servers; look at tokenising and templates",
        ),
        IdleCause::NotSchedulable => (
            "requests waited in the engine, and none could run",
            "more room for keys and values, a larger token budget; look at preemptions and grammars",
        ),
        IdleCause::Engine => (
            "the engine had requests, and no span says what it did",
            "level verbose, or spans of your own around what the engine does between steps",
        ),
        IdleCause::NoRequest | IdleCause::NotRecorded | IdleCause::Unknown => return None,
    })
}

/// Returns the rule of a cause that devices wait for.
fn rule(cause: IdleCause) -> &'static str {
    match cause {
        IdleCause::LaunchGap => "host_bound",
        IdleCause::OtherRank => "slow_rank",
        other => other.name(),
    }
}

/// What stands out, the costliest first; what touches the figures themselves comes before all.
pub(crate) fn findings(report: &RunReport) -> Vec<Finding> {
    let mut found = idle(report);
    found.extend(load(report));
    found.extend(communication(report));
    found.extend(late_rank(report));
    found.extend(uneven_devices(report));
    found.extend(uneven_engines(report));
    found.extend(requests(report));
    found.extend(stalled(report));
    found.extend(gc(report));
    found.sort_by(|one, other| other.cost.total_cmp(&one.cost));
    found.splice(0..0, losses(report));
    found.splice(0..0, crash(report));
    found
}

/// Returns the kinds of events that the report looks for by name, and that the run has none of. A run without any span has none.
pub(crate) fn unrecognized(report: &RunReport) -> Vec<Unrecognized> {
    let kinds = [
        (
            has_steps(report),
            "step",
            "a slow worker and the causes of idle devices go unseen",
        ),
        (
            report.requests.n > 0,
            "request",
            "no figure of a request is there",
        ),
    ];
    let missing = kinds
        .into_iter()
        .filter(|(is_there, ..)| !is_there && !report.names.is_empty());
    missing
        .map(|(_, what, consequence)| Unrecognized {
            what,
            consequence,
            see: "docs/time.md#names-that-the-report-knows",
        })
        .collect()
}

/// Returns true if a step is known by its name.
fn has_steps(report: &RunReport) -> bool {
    let is_step = |name: &crate::NameTime| Activity::of(&name.name) == Some(Activity::Step);
    report.names.iter().any(is_step)
}

/// Returns what devices wait for.
fn idle(report: &RunReport) -> Vec<Finding> {
    let (has_steps, recorded) = (has_steps(report), &report.recorded);
    let finding = |cause: IdleCause| {
        let (seen, advice) = evidence_and_advice(cause)?;
        // Traces of other profilers show launches, and may show no steps.
        let seen = match has_steps {
            true => seen,
            false => seen.trim_start_matches("in a step, "),
        };
        let mut evidence = match report.device.is_empty() {
            true => seen.replace("devices", "workers"),
            false => seen.to_owned(),
        };
        match (cause, report.longest_wait()) {
            (IdleCause::OtherRank, Some((device, wait))) => evidence.push_str(&format!(
                ": {} waited {:.1} ms for {}{}",
                report.process_name(device.process),
                wait.ns as f64 / 1e6,
                report.process_name(wait.process),
                clock_words(recorded.greatest_uncertainty_ns([device.worker, wait.process]))
            )),
            (IdleCause::Gc, _) => evidence.extend(most_gc(report)),
            _ => {
                let most = report
                    .most_idle(cause)
                    .map(|device| report.process_name(device.process));
                evidence.extend(most.map(|name| format!("; {name} most of all")));
            }
        }
        Some(Finding {
            rule: rule(cause),
            evidence,
            cost: report.idle_share(cause),
            of: CostOf::DeviceTime,
            advice,
            waited: 0.0,
            place: None,
        })
    };
    let found = IdleCause::ALL.into_iter().filter_map(finding);
    found.filter(|finding| finding.cost >= IDLE).collect()
}

/// Too little load is no bottleneck, and explains why nothing else is one.
fn load(report: &RunReport) -> Option<Finding> {
    let cost = report.idle_share(IdleCause::NoRequest);
    (cost >= NO_REQUEST).then(|| Finding {
        rule: "little_load",
        evidence: "no request was under way: the devices had nothing to do".to_owned(),
        cost,
        of: CostOf::DeviceTime,
        advice: "nothing: this is no bottleneck; --from and --to leave such times out",
        waited: 0.0,
        place: None,
    })
}

fn communication(report: &RunReport) -> Option<Finding> {
    let sum = |of: fn(&DeviceTime) -> i64| -> f64 {
        report.device.iter().map(|device| of(device) as f64).sum()
    };
    let wall_ns = sum(|device| device.wall_ns);
    let cost = sum(|device| device.exposed_communication_ns) / wall_ns.max(1.0);
    (cost >= EXPOSED_COMMUNICATION).then(|| Finding {
        rule: "exposed_communication",
        evidence: "devices communicated, and computed nothing meanwhile".to_owned(),
        cost,
        of: CostOf::DeviceTime,
        advice: "overlap of communication and computing, a smaller parallel group, a slow rank that others wait for",
        waited: 0.0,
        place: None,
    })
}

/// One rank that is last to most collectives.
fn late_rank(report: &RunReport) -> Option<Finding> {
    let rank = report.rank.iter().max_by_key(|rank| rank.late_ns)?;
    let mut devices = report.device.iter();
    let device = devices.find(|device| device.process == rank.process)?;
    // The others waited on devices that may have been there for longer.
    let cost = (rank.late_ns as f64 / device.wall_ns.max(1) as f64).min(1.0);
    let last = rank.last as f64 / rank.collectives.max(1) as f64;
    (last >= LAST && cost >= LATE).then(|| Finding {
        rule: "late_rank",
        evidence: format!(
            "{} began {} of {} collectives last, and the others waited in them{}",
            report.process_name(rank.process),
            rank.last,
            rank.collectives,
            clock_words(rank.uncertainty_ns)
        ),
        cost,
        of: CostOf::DeviceTime,
        advice: "its worker's cores, its share of the work, its device's frequency and temperature",
        waited: 0.0,
        place: None,
    })
}

/// Returns the uncertainty of clocks in words; empty if only one clock is compared.
fn clock_words(uncertainty_ns: Option<u64>) -> String {
    match uncertainty_ns {
        Some(0) => String::new(),
        Some(ns) => format!(" (their clocks may be {:.3} ms off)", ns as f64 / 1e6),
        None => " (their clocks may be off by any time)".to_owned(),
    }
}

/// Devices of one engine that do not have the same to do.
fn uneven_devices(report: &RunReport) -> Option<Finding> {
    let mut engines: BTreeMap<usize, Vec<&DeviceTime>> = BTreeMap::new();
    for (device, idle) in report.device.iter().zip(&report.idle) {
        if let Some(engine) = idle.engine {
            engines.entry(engine).or_default().push(device);
        }
    }
    let spread = |devices: &Vec<&DeviceTime>| {
        let most = devices.iter().max_by_key(|device| device.busy_ns)?;
        let least = devices.iter().min_by_key(|device| device.busy_ns)?;
        let wall_ns = most.wall_ns.max(least.wall_ns).max(1) as f64;
        let cost = (most.busy_ns - least.busy_ns) as f64 / wall_ns;
        Some((cost, most.process, least.process))
    };
    let spreads = engines.values().filter_map(spread);
    let (cost, most, least) = spreads.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (cost > UNEVEN).then(|| Finding {
        rule: "uneven_devices",
        evidence: format!(
            "{} worked clearly more than {}",
            report.process_name(most),
            report.process_name(least)
        ),
        cost,
        of: CostOf::DeviceTime,
        advice: "the split of the model or of the experts over the devices",
        waited: 0.0,
        place: None,
    })
}

/// Engines that do not have the same number of requests.
fn uneven_engines(report: &RunReport) -> Option<Finding> {
    let mut loads: BTreeMap<usize, f64> = BTreeMap::new();
    for level in &report.load {
        let is_load = matches!(level.of, SeriesKind::Running | SeriesKind::Waiting);
        if let Some(engine) = level.process.filter(|_| is_load) {
            // An engine counts only while it has steps; the rest of the run it has nothing.
            let share = level.wall_ns as f64 / report.recorded.wall_ns.max(1) as f64;
            *loads.entry(engine).or_default() += level.mean * share;
        }
    }
    let by_load = |one: &(&usize, &f64), other: &(&usize, &f64)| one.1.total_cmp(other.1);
    let (most, least) = (loads.iter().max_by(by_load)?, loads.iter().min_by(by_load)?);
    let fewer = (most.1 - least.1) / most.1.max(f64::MIN_POSITIVE);
    // What would have to be elsewhere for all to have as many.
    let all: f64 = loads.values().sum();
    let mean = all / loads.len() as f64;
    let over: f64 = loads.values().map(|load| (load - mean).max(0.0)).sum();
    let cost = over / all.max(f64::MIN_POSITIVE);
    (fewer > UNEVEN_ENGINES && *most.1 >= 1.0).then(|| Finding {
        rule: "uneven_engines",
        evidence: format!(
            "{} had {:.1} requests on average, {} had {:.1}",
            report.process_name(*most.0),
            most.1,
            report.process_name(*least.0),
            least.1
        ),
        cost,
        of: CostOf::Requests,
        advice: "how requests are given to the engines: by load instead of in turn",
        waited: 0.0,
        place: None,
    })
}

fn requests(report: &RunReport) -> Vec<Finding> {
    let (summary, mut found) = (&report.requests, Vec::new());
    let n = summary.n.max(1) as f64;
    let queue = summary.queue.mean_ns / summary.e2e.mean_ns.max(1.0);
    if summary.e2e.n > 0 && queue >= QUEUE {
        found.push(Finding {
            rule: "queue",
            evidence: format!(
                "the mean request waited {:.1} ms in the engine's queue",
                summary.queue.mean_ns / 1e6
            ),
            cost: queue,
            of: CostOf::RequestTime,
            advice: "more sequences in a batch if keys and values have room; else more replicas",
            waited: 0.0,
            place: None,
        });
    }
    let all = report.request.iter();
    let preempted = all.clone().filter(|of| of.preemptions > 0).count() as f64;
    let preempted_ns: f64 = all.clone().map(|of| of.preempted_ns as f64).sum();
    // Of those whose whole time is known.
    let ended = all.filter(|of| of.e2e_ns().is_some());
    let ended_ns: f64 = ended.map(|of| of.preempted_ns as f64).sum();
    let (cost, of) = match summary.e2e.n {
        0 => (preempted / n, CostOf::Requests),
        of => (
            ended_ns / (summary.e2e.mean_ns * of as f64).max(1.0),
            CostOf::RequestTime,
        ),
    };
    if preempted / n >= PREEMPTED {
        found.push(Finding {
            rule: "preemptions",
            evidence: format!(
                "{preempted} of {n} requests were preempted, lay for {:.1} ms on average, and were computed again",
                preempted_ns / preempted / 1e6
            ),
            cost,
            of,
            advice: "more memory for keys and values, fewer sequences in a batch",
            waited: 0.0,
            place: None,
        });
    }
    let lost = (summary.aborted + summary.failed) as f64;
    let advice = match (&report.crash, summary.failed > summary.aborted) {
        (Some(_), _) => "the crash first: these requests were under way, or came after it",
        (None, true) => "the server's log at the time of these requests: --json has them",
        (None, false) => "the slowest requests first: clients give up what takes too long",
    };
    if lost / n >= NOT_ANSWERED {
        found.push(Finding {
            rule: "not_answered",
            evidence: format!(
                "{} of {n} requests were given up, {} failed",
                summary.aborted, summary.failed
            ),
            cost: lost / n,
            of: CostOf::Requests,
            advice,
            waited: 0.0,
            place: None,
        });
    }
    found
}

/// The process that collected garbage for longest, in words.
fn most_gc(report: &RunReport) -> Option<String> {
    let is_gc = |stack: &&StackTime| Activity::of(&stack.name) == Some(Activity::Gc);
    let mut times: BTreeMap<usize, (i64, u64)> = BTreeMap::new();
    for stack in report.stacks.iter().filter(is_gc) {
        let (ns, n) = times.entry(stack.process).or_default();
        *ns = ns.saturating_add(stack.ttot_ns);
        *n += stack.ncall;
    }
    let (process, (ns, n)) = times.into_iter().max_by_key(|(_, (ns, _))| *ns)?;
    Some(format!(
        "; {} most of all, {n} times and {:.1} ms",
        report.process_name(process),
        ns as f64 / 1e6
    ))
}

/// Long collections of garbage, whether devices waited for them or not.
fn gc(report: &RunReport) -> Option<Finding> {
    let of_gc = |name: &&crate::NameTime| Activity::of(&name.name) == Some(Activity::Gc);
    let names = || report.names.iter().filter(of_gc);
    let longest_ns = names().map(|name| name.duration.max_ns).max()?;
    let ncall: u64 = names().map(|name| name.ncall).sum();
    let all_ns: f64 = names().map(|name| name.ttot_ns as f64).sum();
    let cost = all_ns / report.recorded.wall_ns.max(1) as f64;
    let is_known = report.idle_share(IdleCause::Gc) >= IDLE;
    (longest_ns > GC_NS && !is_known).then(|| Finding {
        rule: "gc",
        evidence: format!(
            "Python collected garbage {} times, up to {:.1} ms{}",
            ncall,
            longest_ns as f64 / 1e6,
            most_gc(report).unwrap_or_default()
        ),
        cost,
        of: CostOf::WallTime,
        advice: "gc.freeze() after the start, or a higher gc.set_threshold()",
        waited: 0.0,
        place: None,
    })
}

/// Steps with a prompt that make others wait for their next token.
fn stalled(report: &RunReport) -> Option<Finding> {
    let batchings = report.batching.iter();
    let stalls = batchings.filter_map(|of| Some((of, of.stall()?)));
    let worst = stalls.max_by(|one, other| one.1.1.total_cmp(&other.1.1));
    let (batching, (more_ns, stalled)) = worst?;
    // A share of the time in which tokens come, which is a share of the whole.
    let (decode, e2e) = (&report.requests.decode, &report.requests.e2e);
    let cost = match decode.n > 0 && e2e.n > 0 {
        true => stalled * (decode.mean_ns / e2e.mean_ns.max(1.0)).min(1.0),
        false => stalled,
    };
    (stalled >= STALLED).then(|| Finding {
        rule: "stalled_decodes",
        evidence: format!(
            "a step of {} with a prompt in it takes {:.1} ms longer, and the answers in it wait ({} of {} steps)",
            report.process_name(batching.process),
            more_ns / 1e6,
            batching.mixed_steps,
            batching.steps
        ),
        cost,
        of: CostOf::RequestTime,
        advice: "smaller chunks of prompts (--max-num-batched-tokens); prefill on other devices",
        waited: 0.0,
        place: None,
    })
}

/// Which process died first, in what, and which were killed after it.
fn crash(report: &RunReport) -> Option<Finding> {
    const NAMED: usize = 3;
    let crash = report.crash.as_ref()?;
    let name = |process: usize| {
        let known = report.recorded.processes.get(process);
        let pid = known.map_or(0, |of| of.pid);
        format!("{} (pid {pid})", report.process_name(process))
    };
    let mut evidence = format!("{} died first", name(crash.process));
    evidence += &match &crash.exit {
        Some(exit) => format!(", {}", exit.words()),
        None => ", by a signal that is not known".to_owned(),
    };
    if let Some(at_ns) = crash.last_ns {
        evidence += &format!(", at {:.3} s", at_ns as f64 / 1e9);
    }
    if let Some(step) = &crash.step {
        evidence += &format!(", in step {step}");
    }
    if let Some(span) = crash.spans.last() {
        evidence += &format!(", in {}", span.name);
    }
    if crash.requests > 0 {
        let ids = crash.request_ids.iter().take(NAMED).map(String::as_str);
        let ids: Vec<&str> = ids.collect();
        let is_more = crash.requests > ids.len() as u64;
        let more = if is_more { ", …" } else { "" };
        let plural = if crash.requests == 1 { "" } else { "s" };
        let (requests, ids) = (crash.requests, ids.join(", "));
        evidence += &format!(", with {requests} request{plural} ({ids}{more})");
    }
    for (nth, next) in crash.followed_by.iter().take(NAMED).enumerate() {
        evidence += if nth == 0 { "; then " } else { ", " };
        evidence += &name(next.process);
        if let Some(ns) = next.after_ns {
            evidence += &format!(" {:.3} s later", ns as f64 / 1e9);
        }
    }
    for before in crash.maybe_before.iter().take(NAMED) {
        let seconds = before.before_ns as f64 / 1e9;
        let name = name(before.process);
        evidence += &format!(
            "; {name} may have died before: {seconds:.3} s earlier it stopped recording, with no span open"
        );
    }
    let summary = &report.requests;
    let unanswered = summary.n - summary.ok;
    Some(Finding {
        rule: "crash",
        evidence,
        cost: unanswered as f64 / summary.n.max(1) as f64,
        of: CostOf::Requests,
        advice: "the kernel's log and the core dump say why; docs/crash.md",
        waited: 0.0,
        place: None,
    })
}

fn losses(report: &RunReport) -> Option<Finding> {
    let lost = report.recorded.lost_events;
    let all = lost.saturating_add(report.recorded.events);
    (lost > 0).then(|| Finding {
        rule: "losses",
        evidence: format!("{lost} events are lost, and missing in what follows"),
        cost: lost as f64 / all.max(1) as f64,
        of: CostOf::Figures,
        advice: "docs/troubleshooting.md#losses",
        waited: 0.0,
        place: None,
    })
}
