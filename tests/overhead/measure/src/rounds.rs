//! Rounds: floor, case, floor, in as many threads as the case has.

use std::sync::Barrier;

use crate::clock::{floor_ns, process_cpu_ns, thread_cpu_ns, wall_ns};
use crate::quantile::median;

/// How a child runs its case.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Threads that do the same at the same time.
    pub threads: usize,
    /// Events per round and thread.
    pub events: u64,
    /// Rounds before the measured ones.
    pub warm_rounds: u32,
    /// Measured rounds.
    pub rounds: u32,
}

impl Plan {
    /// Returns the number of events that it records in all.
    pub fn total_events(&self) -> u64 {
        self.events * self.threads as u64 * u64::from(self.rounds + self.warm_rounds)
    }
}

/// One thread's part of a round.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Wall time of one event in ns.
    ns: f64,
    /// Two clock reads in ns, mean of before and after.
    floor_ns: f64,
    /// CPU time of the whole process from the case until everything is written.
    process_ns: u64,
    /// CPU time of this thread's second floor, which is part of `process_ns`.
    floor_cpu_ns: u64,
}

/// The loop of a case and what makes the next round start from rest.
#[derive(Clone, Copy)]
pub struct Body<'a> {
    /// Records as many events as it is given.
    pub record: &'a (dyn Fn(u64) + Sync),
    /// Runs between the rounds, in one thread and outside of the timing.
    pub settle: &'a (dyn Fn() + Sync),
}

/// Runs the rounds of a plan and prints a line `ROUND <ns> <floor_ns> <cpu_ns>` for each: wall time of one event and of two clock reads, means
/// over the threads, and the CPU time of the whole process for an event until everything is written.
#[expect(clippy::print_stdout, reason = "a child prints its figures")]
pub fn run(plan: Plan, body: Body<'_>) {
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
    let threads = plan.threads as f64;
    for round in 0..plan.rounds as usize {
        let sum = |field: fn(&Part) -> f64| -> f64 {
            per_thread.iter().map(|parts| field(&parts[round])).sum()
        };
        let process_ns = sum(|part| part.process_ns as f64) / threads;
        let cpu_ns = process_ns - sum(|part| part.floor_cpu_ns as f64);
        println!(
            "ROUND {} {} {}",
            sum(|part| part.ns) / threads,
            sum(|part| part.floor_ns) / threads,
            cpu_ns / (plan.events as f64 * threads)
        );
    }
}

fn in_thread(plan: Plan, body: Body<'_>, barrier: &Barrier) -> Vec<Part> {
    for _ in 0..plan.warm_rounds {
        barrier.wait();
        (body.record)(plan.events);
        rest(body, barrier);
    }
    (0..plan.rounds)
        .map(|_| one_round(plan, body, barrier))
        .collect()
}

fn one_round(plan: Plan, body: Body<'_>, barrier: &Barrier) -> Part {
    // As long as the case itself, so that time slicing of more threads than cores weighs on both alike.
    let pairs = plan.events.min(100_000);
    barrier.wait();
    let before = floor_ns(pairs);
    barrier.wait();
    let (process, wall) = (process_cpu_ns(), wall_ns());
    (body.record)(plan.events);
    let case_ns = wall_ns() - wall;
    barrier.wait();
    let cpu = thread_cpu_ns();
    let after = floor_ns(pairs);
    let floor_cpu_ns = thread_cpu_ns() - cpu;
    rest(body, barrier);
    Part {
        ns: case_ns as f64 / plan.events as f64,
        floor_ns: f64::midpoint(before, after),
        process_ns: process_cpu_ns() - process,
        floor_cpu_ns,
    }
}

fn rest(body: Body<'_>, barrier: &Barrier) {
    if barrier.wait().is_leader() {
        (body.settle)();
    }
    barrier.wait();
}

/// The figures of a case, round by round.
#[derive(Clone, Debug, Default)]
pub struct Rounds {
    /// ns of an event.
    pub ns: Vec<f64>,
    /// ns of two clock reads in the same round.
    pub floor_ns: Vec<f64>,
    /// ns of an event as a multiple of two clock reads.
    pub ratio: Vec<f64>,
    /// CPU ns of an event until everything is written.
    pub cpu_ns: Vec<f64>,
}

impl Rounds {
    /// Adds the `ROUND` lines of a child.
    ///
    /// # Errors
    ///
    /// If there is no such line, or one without three numbers.
    pub fn add(&mut self, lines: &[String]) -> Result<(), String> {
        let before = self.ns.len();
        for line in lines.iter().filter(|line| line.starts_with("ROUND ")) {
            let [ns, floor_ns, cpu_ns] = crate::figures(std::slice::from_ref(line), "ROUND")?;
            self.ns.push(ns);
            self.floor_ns.push(floor_ns);
            self.ratio.push(ns / floor_ns);
            self.cpu_ns.push(cpu_ns);
        }
        match self.ns.len() > before {
            true => Ok(()),
            false => Err(format!("expected rounds, found {lines:?}")),
        }
    }

    /// Returns the line `RESULT <name> <ns> <ratio_to_two_clock_reads>`, medians over the rounds.
    pub fn result(&self, name: &str) -> String {
        let (ns, ratio) = (median(&self.ns), median(&self.ratio));
        format!("RESULT {name} {ns:.2} {ratio:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_collected_from_lines() {
        let mut rounds = Rounds::default();
        let lines = ["ROUND 30 20 40", "DISK 1 2", "ROUND 50 20 60"].map(str::to_owned);
        rounds.add(&lines).unwrap();
        assert_eq!(rounds.ratio, [1.5, 2.5]);
        assert_eq!(rounds.result("span"), "RESULT span 50.00 2.500");
        assert!(rounds.add(&["ROUND 1 2".to_owned()]).is_err());
        assert!(rounds.add(&[]).is_err());
    }
}
