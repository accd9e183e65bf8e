//! Slices → the time of each name.

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

/// The names while slices come.
pub(crate) struct NameTimes<'a> {
    times: Vec<NameTime>,
    durations: ValueSorter<'a>,
    /// Their slices in the order of time, with the key as the row, if it is asked how many there were at once.
    by_time: Option<Sorter<'a, SliceRecord>>,
}

impl<'a> NameTimes<'a> {
    /// `durations` sorts those of all slices, `by_time` the slices themselves.
    pub(crate) fn new(
        keys: &[NameKey],
        unfinished: &[u64],
        durations: Sorter<'a, ValueRecord>,
        by_time: Option<Sorter<'a, SliceRecord>>,
    ) -> NameTimes<'a> {
        let of_key = |(key, unfinished): (&NameKey, &u64)| NameTime {
            process: key.place.process,
            group: key.group.clone(),
            row_kind: key.row_kind,
            category: key.category.clone(),
            name: key.name.clone(),
            unfinished: *unfinished,
            ..NameTime::default()
        };
        NameTimes {
            times: keys.iter().zip(unfinished).map(of_key).collect(),
            durations: ValueSorter::new(durations),
            by_time,
        }
    }

    /// Takes a slice.
    pub(crate) fn take(&mut self, slice: &NestedSlice) -> io::Result<()> {
        let time = &mut self.times[slice.key as usize];
        time.ncall += 1;
        time.tsub_ns = time.tsub_ns.saturating_add(slice.self_ns);
        time.crossing += u64::from(slice.is_crossing);
        let add = |sum: &mut Option<i64>, ns| *sum = Some(sum.unwrap_or(0).saturating_add(ns));
        if let Some((cpu_ns, self_cpu_ns)) = slice.cpu_ns {
            add(&mut time.tsub_cpu_ns, self_cpu_ns);
            let of_outermost_ns = if slice.is_outermost { cpu_ns } else { 0 };
            add(&mut time.ttot_cpu_ns, of_outermost_ns);
        }
        if slice.is_outermost {
            time.ncall_outermost += 1;
            time.ttot_ns = time.ttot_ns.saturating_add(slice.dur_ns);
        }
        if let Some(by_time) = &mut self.by_time {
            by_time.push(SliceRecord {
                row: slice.key.into(),
                start_ns: slice.start_ns,
                end_ns: Reverse(slice.start_ns.saturating_add(slice.dur_ns)),
                key: slice.key,
                cpu_ns: -1,
            })?;
        }
        self.durations.push(slice.key, slice.dur_ns)
    }

    /// All names, that with the most time by itself first.
    pub(crate) fn finish(mut self) -> io::Result<Vec<NameTime>> {
        let durations = self.durations.finish()?;
        for (time, duration) in self.times.iter_mut().zip(durations) {
            time.duration = duration;
        }
        if let Some(by_time) = self.by_time {
            put_concurrency(&mut self.times, &by_time.finish()?);
        }
        let mut times = self.times;
        for time in &mut times {
            time.tavg_ns = time.ttot_ns as f64 / time.ncall.max(1) as f64;
        }
        times.retain(|of| of.ncall > 0 || of.unfinished > 0);
        times.sort_by(|one, other| order(one).cmp(&order(other)));
        Ok(times)
    }
}

fn order(of: &NameTime) -> impl Ord {
    let longest = (Reverse(of.tsub_ns), Reverse(of.ttot_ns));
    (longest, &of.category, &of.name, of.process, &of.group)
}

/// How many slices of each name there were at once. One that begins as another ends is not beside it.
fn put_concurrency(times: &mut [NameTime], by_time: &Sorted<SliceRecord>) {
    for slices in by_time.chunk_by(|one, next| one.row == next.row) {
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
