//! Where events go, by number.

use crate::event::patch::Target;
use crate::write::job::Job;
use std::collections::HashMap;

pub(super) fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Where events go, by number.
pub(super) struct Targets<'a> {
    pub(super) list: Vec<&'a Target>,
    /// For each recording.
    pub(super) of_threads: Vec<HashMap<(i64, i64), u32>>,
    /// The first of the rows beside threads.
    pub(super) first_row: u32,
}

impl<'a> Targets<'a> {
    pub(super) fn of(job: &Job<'a>) -> Targets<'a> {
        let mut list = Vec::new();
        let mut numbers = 0..;
        let mut of_thread = |(thread, target): (&(i64, i64), &'a Target)| {
            list.push(target);
            (*thread, numbers.next().unwrap_or(u32::MAX))
        };
        let of_recording =
            |targets: &'a HashMap<(i64, i64), Target>| targets.iter().map(&mut of_thread).collect();
        let of_threads = job.plan.targets.iter().map(of_recording).collect();
        let first_row = u32::try_from(list.len()).unwrap_or(u32::MAX);
        list.extend(job.overflow.rows());
        Targets {
            list,
            of_threads,
            first_row,
        }
    }
}
