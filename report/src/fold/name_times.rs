//! Sums up the time of each name from its slices.

use super::value_sorter::ValueSorter;
use crate::fold::value_sorter::ValueRecord;
use crate::gather::name_keys::NameKey;
use crate::gather::slice_record::SliceRecord;
use crate::nest::NestedSlice;
use crate::table::NameTime;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use trace_store::sorter::{Sorted, Sorter};

/// Times of all names while slices are read.
pub(crate) struct NameTimes<'a> {
    times: Vec<NameTime>,
    durations: ValueSorter<'a>,
    /// The slices in order of time, with their key in place of the track. Only set if concurrency is requested.
    by_time: Option<Sorter<'a, SliceRecord>>,
}

impl<'a> NameTimes<'a> {
    /// Creates empty times. `durations` sorts the durations of all slices, `by_time` the slices themselves.
    pub(crate) fn new(
        keys: &[NameKey],
        unfinished: &[u64],
        durations: Sorter<'a, ValueRecord>,
        by_time: Option<Sorter<'a, SliceRecord>>,
    ) -> NameTimes<'a> {
        let empty = |(key, unfinished): (&NameKey, &u64)| NameTime {
            process: key.place.process,
            group: key.group.clone(),
            row_kind: key.row_kind,
            category: key.category.clone(),
            name: key.name.clone(),
            unfinished: *unfinished,
            ..NameTime::default()
        };
        NameTimes {
            times: keys.iter().zip(unfinished).map(empty).collect(),
            durations: ValueSorter::new(durations),
            by_time,
        }
    }

    /// Adds a slice.
    pub(crate) fn add(&mut self, slice: &NestedSlice) -> io::Result<()> {
        let time = &mut self.times[slice.key as usize];
        time.ncall += 1;
        time.tsub_ns = time.tsub_ns.saturating_add(slice.self_ns);
        time.crossing += u64::from(slice.is_crossing);
        let add = |sum: &mut Option<i64>, ns| *sum = Some(sum.unwrap_or(0).saturating_add(ns));
        if let Some((cpu_ns, self_cpu_ns)) = slice.cpu_ns {
            add(&mut time.tsub_cpu_ns, self_cpu_ns);
            let outermost_cpu_ns = if slice.is_outermost { cpu_ns } else { 0 };
            add(&mut time.ttot_cpu_ns, outermost_cpu_ns);
        }
        if slice.is_outermost {
            time.ncall_outermost += 1;
            time.ttot_ns = time.ttot_ns.saturating_add(slice.dur_ns);
        }
        if let Some(by_time) = &mut self.by_time {
            by_time.push(SliceRecord {
                track: slice.key.into(),
                start_ns: slice.start_ns,
                end_ns: Reverse(slice.start_ns.saturating_add(slice.dur_ns)),
                key: slice.key,
                cpu_ns: -1,
            })?;
        }
        self.durations.push(slice.key, slice.dur_ns)
    }

    /// Returns the times of all names, highest self time first.
    pub(crate) fn finish(mut self) -> io::Result<Vec<NameTime>> {
        let durations = self.durations.finish()?;
        for (time, duration) in self.times.iter_mut().zip(durations) {
            time.duration = duration;
        }
        if let Some(by_time) = self.by_time {
            set_concurrency(&mut self.times, &by_time.finish()?);
        }
        let mut times = self.times;
        for time in &mut times {
            time.tavg_ns = time.ttot_ns as f64 / time.ncall.max(1) as f64;
        }
        times.retain(|time| time.ncall > 0 || time.unfinished > 0);
        times.sort_by(|one, other| order(one).cmp(&order(other)));
        Ok(times)
    }
}

fn order(time: &NameTime) -> impl Ord {
    let longest = (Reverse(time.tsub_ns), Reverse(time.ttot_ns));
    (
        longest,
        &time.category,
        &time.name,
        time.process,
        &time.group,
    )
}

/// Computes how many slices of each name ran at once. A slice that starts when another ends does not overlap it.
fn set_concurrency(times: &mut [NameTime], by_time: &Sorted<SliceRecord>) {
    for slices in by_time.chunk_by(|one, next| one.track == next.track) {
        let mut ends = BinaryHeap::new();
        for slice in slices {
            let has_ended = |Reverse(end_ns): &Reverse<i64>| *end_ns <= slice.start_ns;
            while ends.peek().is_some_and(has_ended) {
                ends.pop();
            }
            ends.push(slice.end_ns);
            let most = &mut times[slice.key as usize].max_concurrency;
            *most = (*most).max(Some(ends.len() as u64));
        }
    }
}
