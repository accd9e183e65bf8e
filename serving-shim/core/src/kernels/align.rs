//! Which offset makes the records those of the launches: the one by which most of them fall between events. One that is off by a kernel leaves some outside, for streams are idle now and then.

use super::records::Records;
use super::sought::{Offset, Sought};
use crate::mspti::Kernel;

/// MSPTI's clock is not further off than this.
const REACH_NS: i64 = 2_000_000;
/// Of two offsets that do as well, one that takes it to be so much further off is not taken.
const SURELY_WORSE_NS: i64 = 100_000;
/// Offsets that are tried, those nearest to MSPTI's own first.
const MAX_TRIED: usize = 256;
/// Kernels that are looked at for each of them.
const MAX_KERNELS: usize = 2048;
/// From the last kernel of a launch to the event behind it.
const LAST_NS: i64 = 5_000;
/// Records whose names fit are no chance if there are so many.
const TELLING: usize = 3;
/// Launches whose records are tried on.
const ANCHORS: usize = 6;

/// The offset, unless several do as well or none does.
///
/// Names of records tell which of several is right, if they fit some. If they fit one or two it may be chance: a record was lost, and that of another
/// kernel has a name that is new. Where another offset explains far more, they were learnt wrongly.
pub(super) fn align(launches: &[&Sought], records: &Records) -> Option<Offset> {
    let launches = &launches[..enough(launches, records)];
    let tried = candidates(launches, records).into_iter();
    let tried = tried.filter_map(|offset| Trial::of(launches, records, offset));
    let mut tried: Vec<Trial> = tried.collect();
    let by_names = best(&mut tried, |trial| trial.kernels);
    let of_names = by_names.map_or(0, |index| tried[index].kernels);
    let named = by_names.map(|index| tried[index].offset);
    let by_times = best(&mut tried, |trial| trial.kernels + trial.others);
    let of_times = by_times.map_or(0, |index| {
        let trial = &tried[index];
        trial.kernels + trial.others
    });
    match of_names >= TELLING && of_names * 2 >= of_times {
        true => named,
        false => by_times.map(|index| tried[index].offset),
    }
}

/// The one by which most records fall between events, if no other does as well.
fn best(tried: &mut [Trial], kernels: impl Fn(&Trial) -> usize) -> Option<usize> {
    tried.sort_by_key(|trial| (std::cmp::Reverse(kernels(trial)), trial.wrong_ns));
    let best = tried.first()?;
    let near_ns = best.wrong_ns + SURELY_WORSE_NS;
    let as_good = tried
        .iter()
        .filter(|one| kernels(one) == kernels(best) && one.wrong_ns < near_ns);
    let contradict =
        |other: &Trial| !other.offset.and(best.offset).is_possible() && best.explains_one_of(other);
    let is_alone = kernels(best) > 0 && !as_good.into_iter().any(contradict);
    is_alone.then_some(0)
}

/// What an offset makes of launches.
struct Trial {
    /// As it is known by their kernels.
    offset: Offset,
    /// How far off it takes MSPTI's clock to be.
    wrong_ns: i64,
    /// How many records fall between events.
    kernels: usize,
    /// Those beside them that do so, too, and have another kernel's name.
    others: usize,
    /// Those of which some do, in order.
    launches: Vec<usize>,
}

impl Trial {
    fn of(launches: &[&Sought], records: &Records, mut offset: Offset) -> Option<Trial> {
        let (mut kernels, mut others, mut explained) = (0, 0, Vec::new());
        for (index, launch) in launches.iter().enumerate() {
            let found = records.of(launch, offset);
            let narrowed = launch.offset_of(found.iter().map(|(_, kernel)| *kernel));
            let narrowed = narrowed.and(offset);
            let is_too_much = records.is_too_much(launch, found.len());
            if found.is_empty() || is_too_much || !narrowed.is_possible() {
                continue;
            }
            explained.push(index);
            if records.are_others(launch, found.iter().map(|(_, kernel)| *kernel)) {
                others += found.len();
            } else {
                kernels += found.len();
                offset = narrowed;
            }
        }
        let first = launches.get(*explained.first()?)?;
        Some(Trial {
            offset,
            wrong_ns: (offset.middle_ns() - first.prior_ns).abs(),
            kernels,
            others,
            launches: explained,
        })
    }

    /// Whether both have kernels of the same launch. Else the offset was another one for the launches of each.
    fn explains_one_of(&self, other: &Trial) -> bool {
        let is_there = |index| other.launches.binary_search(index).is_ok();
        self.launches.iter().any(is_there)
    }
}

/// How many of the launches have kernels enough to tell.
fn enough(launches: &[&Sought], records: &Records) -> usize {
    let mut kernels = 0;
    let mut is_less = |one: &&&Sought| {
        let expected = records.expected(one);
        let expected = expected.unwrap_or_else(|| records.near(one, 0).len());
        kernels += expected;
        kernels <= MAX_KERNELS
    };
    let more = launches.iter().skip(1).take_while(|one| is_less(one));
    more.count() + launches.len().min(1)
}

/// Offsets by which records near a launch would be its own.
fn candidates(launches: &[&Sought], records: &Records) -> Vec<Offset> {
    let step = launches.len().div_ceil(ANCHORS).max(1);
    let anchors = launches.iter().step_by(step);
    anchors
        .flat_map(|one| candidates_of(one, records))
        .collect()
}

fn candidates_of(launch: &Sought, records: &Records) -> Vec<Offset> {
    let near = records.near(launch, REACH_NS);
    let mut offsets = match records.expected(launch) {
        Some(expected) => by_count(launch, expected, &near),
        None => near.iter().map(|last| by_last(launch, last)).collect(),
    };
    offsets.retain(|one| one.is_possible());
    offsets.sort_by_key(|one| (one.middle_ns() - launch.prior_ns).abs());
    offsets.truncate(MAX_TRIED / ANCHORS);
    offsets
}

/// Offsets by which as many records in a row are the launch's. Also a few less: some may be lost.
fn by_count(launch: &Sought, expected: usize, near: &[&Kernel]) -> Vec<Offset> {
    let less = [0, 1, 2].map(|lost| expected.saturating_sub(lost));
    let mut counts: Vec<usize> = less.into_iter().chain([expected / 2]).collect();
    counts.dedup();
    counts.retain(|count| *count > 0);
    let in_a_row = counts.iter().flat_map(|count| near.windows(*count));
    in_a_row
        .map(|kernels| launch.offset_of(kernels.iter().copied()))
        .collect()
}

/// The offset by which a record is the last one of the launch.
fn by_last(launch: &Sought, last: &Kernel) -> Offset {
    let low_ns = launch.offset(last).low_ns;
    Offset {
        low_ns,
        high_ns: low_ns + LAST_NS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::RecordCount;

    /// What MSPTI's times are more than the device's, and what is thought of that.
    const OFFSET_NS: i64 = 1_700_000_000_000_000_000;

    fn launch(start_ns: i64, end_ns: i64, expected: Option<usize>) -> Sought {
        Sought {
            start_ns,
            end_ns,
            stream: 1,
            name: None,
            graph: expected.is_none_or(|count| count > 1).then_some(7),
            expected,
            at_least: RecordCount::default(),
            has_collectives: false,
            prior_ns: OFFSET_NS,
        }
    }

    fn kernel(start_ns: i64, off_ns: i64) -> Kernel {
        Kernel {
            device: 0,
            stream: 1,
            start_ns: start_ns + OFFSET_NS + off_ns,
            end_ns: start_ns + 5_000 + OFFSET_NS + off_ns,
            correlation: 0,
            name: "k".into(),
            comm: None,
        }
    }

    fn aligned(launches: &[Sought], kernels: Vec<Kernel>) -> Option<i64> {
        let mut records = Records::default();
        records.take(kernels, 0);
        let launches: Vec<&Sought> = launches.iter().collect();
        let offset = align(&launches, &records)?;
        Some(offset.middle_ns() - OFFSET_NS)
    }

    /// Kernels of 5 µs, 2 µs behind the event before them and 1 µs before the one behind, every 10 µs.
    fn even(count: i64, off_ns: i64) -> (Vec<Sought>, Vec<Kernel>) {
        let at = |index: i64| index * 10_000;
        let launches = (0..count).map(|index| launch(at(index), at(index) + 8_000, Some(1)));
        let kernels = (0..count).map(|index| kernel(at(index) + 2_000, off_ns));
        (launches.collect(), kernels.collect())
    }

    #[test]
    fn even_launches_are_not_taken_for_their_neighbours() {
        for off_ns in [0, 15_000, -70_000, 333_000] {
            let (launches, kernels) = even(50, off_ns);
            let found = aligned(&launches, kernels).unwrap();
            assert!((found - off_ns).abs() <= 2_000, "{found} of {off_ns}");
        }
    }

    #[test]
    fn lost_records_do_not_mislead() {
        let (launches, mut kernels) = even(60, 23_000);
        let mut index = 0;
        kernels.retain(|_| {
            index += 1;
            index % 7 != 3
        });
        let found = aligned(&launches, kernels).unwrap();
        assert!((found - 23_000).abs() <= 2_000, "{found}");
    }

    #[test]
    fn two_that_do_as_well_are_none() {
        let kernels = vec![kernel(2_000, 0), kernel(12_000, 0)];
        assert_eq!(aligned(&[launch(0, 8_000, Some(1))], kernels), None);
        assert_eq!(aligned(&[launch(0, 8_000, Some(1))], Vec::new()), None);
        assert_eq!(aligned(&[], vec![kernel(0, 0)]), None);
    }

    /// Even launches of two kernels in turn; the records of the first ones came before the clock stepped by the distance of two.
    fn stepped(taught: bool) -> Option<i64> {
        let names = ["one", "two"];
        let (mut launches, mut kernels) = even(20, 0);
        for (index, (launch, kernel)) in launches.iter_mut().zip(&mut kernels).enumerate() {
            launch.name = Some(names[index % 2].into());
            kernel.name = format!("record of {}", names[index % 2]).into();
        }
        let mut records = Records::default();
        for (launch, kernel) in launches.iter().zip(&kernels).filter(|_| taught) {
            records.learn_name(launch, kernel);
        }
        // The last one is lost, so that the offset before explains as many as the one after.
        kernels.pop();
        for kernel in &mut kernels {
            kernel.start_ns += 10_000;
            kernel.end_ns += 10_000;
        }
        records.take(kernels, 0);
        let launches: Vec<&Sought> = launches.iter().collect();
        Some(align(&launches, &records)?.middle_ns() - OFFSET_NS)
    }

    #[test]
    fn of_two_that_do_as_well_names_tell_the_right_one() {
        assert_eq!(stepped(false), None);
        let found = stepped(true).unwrap();
        assert!((found - 10_000).abs() <= 2_000, "{found}");
    }

    #[test]
    fn a_lost_record_is_not_found_in_one_of_a_new_name() {
        let mut records = Records::default();
        let (mut launches, mut kernels) = even(20, 0);
        for (launch, kernel) in launches.iter_mut().zip(&mut kernels) {
            (launch.name, kernel.name) = (Some("usual".into()), "record of usual".into());
            records.learn_name(launch, kernel);
        }
        kernels[15].name = "seen for the first time".into();
        records.take(kernels, 0);
        let lacks = Sought {
            name: Some("lacks".into()),
            ..launches[8].clone()
        };
        assert_eq!(align(&[&lacks], &records), None);
    }

    #[test]
    fn names_that_were_learnt_wrongly_do_not_mislead() {
        let (mut launches, kernels) = even(20, 0);
        let mut records = Records::default();
        for launch in &mut launches {
            launch.name = Some("another".into());
            records.learn_name(launch, &kernels[0]);
        }
        launches
            .iter_mut()
            .for_each(|one| one.name = Some("own".into()));
        records.take(kernels, 0);
        let launches: Vec<&Sought> = launches.iter().collect();
        let found = align(&launches, &records).unwrap().middle_ns() - OFFSET_NS;
        assert!(found.abs() <= 2_000, "{found}");
    }

    #[test]
    fn launches_of_two_offsets_do_not_contradict_each_other() {
        let (mut launches, mut kernels) = even(20, 0);
        // The stream was idle when it changed.
        for later in &mut launches[10..] {
            later.start_ns += 400_000;
            later.end_ns += 400_000;
        }
        for later in &mut kernels[10..] {
            later.start_ns += 700_000;
            later.end_ns += 700_000;
        }
        let found = aligned(&launches, kernels).unwrap();
        let is_one = |off_ns: i64| (found - off_ns).abs() <= 2_000;
        assert!(is_one(0) || is_one(300_000), "{found}");
    }

    #[test]
    fn replays_are_found_with_and_without_the_number_of_their_kernels() {
        for expected in [Some(20), None] {
            let launches: Vec<Sought> = (0..10)
                .map(|index| launch(index * 200_000, index * 200_000 + 130_000, expected))
                .collect();
            let kernels = (0..10).flat_map(|replay| {
                let start = move |index: i64| replay * 200_000 + 4_000 + index * 6_250;
                (0..20).map(move |index| kernel(start(index), -41_000))
            });
            let found = aligned(&launches, kernels.collect()).unwrap();
            assert!((found + 41_000).abs() <= 4_000, "{expected:?}: {found}");
        }
    }
}
