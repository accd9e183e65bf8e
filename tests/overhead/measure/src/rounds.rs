//! Rounds: floor, case, floor, in as many threads as the case has.

use std::sync::Barrier;

use crate::clock::{floor_ns, process_cpu_ns, thread_cpu_ns, wall_ns};

/// How a child runs its case.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Threads that do the same at the same time.
    pub threads: usize,
    /// Spans per round and thread.
    pub spans: u64,
    /// Rounds before the measured ones.
    pub warm_rounds: u32,
    /// Measured rounds.
    pub rounds: u32,
}

impl Plan {
    /// The events that it records in all.
    pub fn events(&self) -> u64 {
        self.spans * self.threads as u64 * u64::from(self.rounds + self.warm_rounds)
    }
}

/// What one round measured, in ns per span; means over the threads.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Wall time of one span.
    pub span_ns: f64,
    /// Two clock reads, mean of before and after.
    pub floor_ns: f64,
    /// CPU time of the recording threads.
    pub cpu_ns: f64,
    /// The floor in CPU time.
    pub floor_cpu_ns: f64,
    /// CPU time of the whole process until everything is written.
    pub total_cpu_ns: f64,
}

/// One thread's part of a round, in ns for all its spans.
#[derive(Clone, Copy, Debug)]
struct Part {
    wall_ns: u64,
    cpu_ns: u64,
    floor_ns: f64,
    /// CPU time of all threads from the case to the end of the rest, floors included.
    process_ns: u64,
    /// The CPU time of this thread's second floor, which lies within it.
    floor_cpu_ns: u64,
    floor_pairs: u64,
}

/// The loop of a case (it is given the number of spans) and what makes the next round start from rest.
#[derive(Clone, Copy)]
pub struct Body<'a> {
    /// Does as many spans as it is given.
    pub record: &'a (dyn Fn(u64) + Sync),
    /// Runs between the rounds.
    pub settle: &'a (dyn Fn() + Sync),
}

/// Runs the rounds of a plan; `settle` runs between them, in one thread and outside of the timing.
pub fn run(plan: Plan, body: Body<'_>) -> Vec<Round> {
    let barrier = Barrier::new(plan.threads);
    let per_thread: Vec<Vec<Part>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.threads)
            .map(|_| scope.spawn(|| in_thread(plan, body, &barrier)))
            .collect();
        let parts = threads.into_iter().map(|thread| thread.join());
        parts
            .map(|parts| parts.expect("a measuring thread does not panic"))
            .collect()
    });
    (0..plan.rounds as usize)
        .map(|round| {
            join(
                &per_thread
                    .iter()
                    .map(|parts| parts[round])
                    .collect::<Vec<_>>(),
                plan.spans,
            )
        })
        .collect()
}

fn in_thread(plan: Plan, body: Body<'_>, barrier: &Barrier) -> Vec<Part> {
    for _ in 0..plan.warm_rounds {
        barrier.wait();
        (body.record)(plan.spans);
        rest(body, barrier);
    }
    (0..plan.rounds)
        .map(|_| one_round(plan, body, barrier))
        .collect()
}

fn one_round(plan: Plan, body: Body<'_>, barrier: &Barrier) -> Part {
    // As long as the case itself, so that time slicing of more threads than cores weighs on both alike.
    let pairs = plan.spans.min(100_000);
    barrier.wait();
    let before = floor_ns(pairs);
    barrier.wait();
    let (process, cpu, wall) = (process_cpu_ns(), thread_cpu_ns(), wall_ns());
    (body.record)(plan.spans);
    let (wall_ns, cpu_ns) = (wall_ns() - wall, thread_cpu_ns() - cpu);
    barrier.wait();
    let cpu = thread_cpu_ns();
    let after = floor_ns(pairs);
    let floor_cpu_ns = thread_cpu_ns() - cpu;
    rest(body, barrier);
    let process_ns = process_cpu_ns() - process;
    let floor_ns = f64::midpoint(before, after);
    Part {
        wall_ns,
        cpu_ns,
        floor_ns,
        process_ns,
        floor_cpu_ns,
        floor_pairs: pairs,
    }
}

fn rest(body: Body<'_>, barrier: &Barrier) {
    if barrier.wait().is_leader() {
        (body.settle)();
    }
    barrier.wait();
}

/// Joins the threads' parts of one round, `spans` spans each.
fn join(parts: &[Part], spans: u64) -> Round {
    let threads = parts.len() as f64;
    let all_spans = spans as f64 * threads;
    let sum = |field: fn(&Part) -> f64| parts.iter().map(field).sum::<f64>();
    let process_ns = sum(|part| part.process_ns as f64) / threads;
    Round {
        span_ns: sum(|part| part.wall_ns as f64) / all_spans,
        floor_ns: sum(|part| part.floor_ns) / threads,
        cpu_ns: sum(|part| part.cpu_ns as f64) / all_spans,
        floor_cpu_ns: sum(|part| part.floor_cpu_ns as f64) / sum(|part| part.floor_pairs as f64),
        total_cpu_ns: (process_ns - sum(|part| part.floor_cpu_ns as f64)) / all_spans,
    }
}
