//! Slices → the time of each name.

use crate::gather::name_keys::NameKey;
use crate::gather::slice_record::SliceRecord;
use crate::gather::value_record::ValueRecord;
use crate::nest::nest;
use crate::quantiles::{Ascending, Quantiles};
use crate::table::name_time::NameTime;
use std::io;
use trace_store::sorter::{Sorted, Sorter};

/// The time of each key; `durations` sorts those of all slices.
pub(crate) fn name_times(
    keys: Vec<NameKey>,
    unfinished: &[u64],
    slices: &Sorted<SliceRecord>,
    mut durations: Sorter<'_, ValueRecord>,
) -> io::Result<Vec<NameTime>> {
    let of_key = |(key, unfinished): (NameKey, &u64)| NameTime {
        process: key.process,
        row_kind: key.row_kind,
        category: key.category,
        name: key.name,
        ncall: 0,
        ncall_outermost: 0,
        ttot_ns: 0,
        tsub_ns: 0,
        tavg_ns: 0.0,
        duration: Quantiles::default(),
        unfinished: *unfinished,
        crossing: 0,
    };
    let mut times: Vec<NameTime> = keys.into_iter().zip(unfinished).map(of_key).collect();
    nest(slices, |slice| {
        let time = &mut times[slice.key as usize];
        time.ncall += 1;
        time.tsub_ns = time.tsub_ns.saturating_add(slice.self_ns);
        time.crossing += u64::from(slice.is_crossing);
        if slice.is_outermost {
            time.ncall_outermost += 1;
            time.ttot_ns = time.ttot_ns.saturating_add(slice.dur_ns);
        }
        durations.push(ValueRecord {
            of: slice.key.into(),
            ns: slice.dur_ns,
        })
    })?;
    let durations = durations.finish()?;
    let mut numbers = 0..times.len();
    let mut current: Option<(usize, Ascending)> = None;
    durations.each(|ValueRecord { of, ns }| {
        while current
            .as_ref()
            .is_none_or(|(number, _)| *number as u64 != of)
        {
            let Some(number) = numbers.next() else {
                return Ok(());
            };
            let of_next = Ascending::new(times[number].ncall);
            if let Some((number, done)) = current.replace((number, of_next)) {
                times[number].duration = done.finish();
            }
        }
        if let Some((_, of_key)) = &mut current {
            of_key.take(ns);
        }
        Ok(())
    })?;
    if let Some((number, done)) = current {
        times[number].duration = done.finish();
    }
    for time in &mut times {
        time.tavg_ns = time.ttot_ns as f64 / time.ncall.max(1) as f64;
    }
    times.sort_by(|one, other| {
        let of = |time: &NameTime| {
            (
                std::cmp::Reverse(time.tsub_ns),
                std::cmp::Reverse(time.ttot_ns),
            )
        };
        of(one).cmp(&of(other)).then_with(|| {
            (&one.category, &one.name, one.process).cmp(&(
                &other.category,
                &other.name,
                other.process,
            ))
        })
    });
    Ok(times)
}
