//! Finds the offset that matches records with launches: the one by which most records fall between events. An offset that is wrong by one kernel leaves
//! some outside, because streams are idle now and then.

use super::bracket::Search;
use super::records::Records;
use crate::mspti::Kernel;
use crate::runtime::Bounds;

/// Largest error of MSPTI's clock.
const MAX_ERROR_NS: i64 = 2_000_000;
/// Of two equally good offsets, the one that needs a larger error of MSPTI's clock by this much is not taken.
const SURELY_WORSE_NS: i64 = 100_000;
/// Maximum number of offsets that are tried, the nearest to MSPTI's own first.
const MAX_TRIED: usize = 256;
/// Maximum number of kernels that each of them is tried on.
const MAX_KERNELS: usize = 2048;
/// Time from the last kernel of a launch to the event after it.
const LAST_NS: i64 = 5_000;
/// From this many on, records whose names fit are not a coincidence.
const TELLING: usize = 3;
/// Maximum number of launches that give offsets to try.
const ANCHORS: usize = 6;

/// Returns the offset, unless several are equally good or none fits.
///
/// If several fit, the names of records decide, if enough of them match. One or two matches may be a coincidence: a record was lost, and the record of
/// another kernel has a new name. If another offset explains far more records, the names were learned wrongly.
pub(super) fn align(launches: &[&Search], records: &Records) -> Option<Bounds> {
    let launches = &launches[..enough(launches, records)];
    let step = launches.len().div_ceil(ANCHORS).max(1);
    let anchors = launches.iter().step_by(step);
    let candidates = anchors.flat_map(|one| candidates_of(one, records));
    let tried = candidates.filter_map(|offset| Trial::of(launches, records, offset));
    let mut tried: Vec<Trial> = tried.collect();
    let by_names = best(&mut tried, |trial| trial.kernels);
    let by_times = best(&mut tried, |trial| trial.kernels + trial.others);
    let of_times = by_times.map_or(0, |(kernels, _)| kernels);
    let by_names = by_names.filter(|(kernels, _)| *kernels >= TELLING && kernels * 2 >= of_times);
    by_names.or(by_times).map(|(_, offset)| offset)
}

/// Returns the offset by which most records fall between events, and their number, if no other offset is as good.
fn best(tried: &mut [Trial], kernels: impl Fn(&Trial) -> usize) -> Option<(usize, Bounds)> {
    tried.sort_by_key(|trial| (std::cmp::Reverse(kernels(trial)), trial.wrong_ns));
    let best = tried.first()?;
    let near_ns = best.wrong_ns + SURELY_WORSE_NS;
    let is_as_good = |one: &&Trial| kernels(one) == kernels(best) && one.wrong_ns < near_ns;
    let contradict =
        |other: &Trial| !other.offset.and(best.offset).is_possible() && best.explains_one_of(other);
    let is_alone = kernels(best) > 0 && !tried.iter().filter(is_as_good).any(contradict);
    is_alone.then(|| (kernels(best), best.offset))
}

/// An offset, tried on launches.
struct Trial {
    /// The offset, as narrowed by the kernels of the launches.
    offset: Bounds,
    /// Error of MSPTI's clock if it is right.
    wrong_ns: i64,
    /// Number of records that fall between events.
    kernels: usize,
    /// Number of further records that do so, and have the name of another kernel.
    others: usize,
    /// Indexes of the launches with such records, in order.
    launches: Vec<usize>,
}

impl Trial {
    fn of(launches: &[&Search], records: &Records, mut offset: Bounds) -> Option<Trial> {
        let (mut kernels, mut others, mut explained) = (0, 0, Vec::new());
        for (index, launch) in launches.iter().enumerate() {
            let found = records.of(launch, offset);
            let narrowed = launch.offset_of(found.iter().copied()).and(offset);
            let is_too_much = records.is_too_much(launch, found.len());
            if found.is_empty() || is_too_much || !narrowed.is_possible() {
                continue;
            }
            explained.push(index);
            if records.are_others(launch, found.iter().copied()) {
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

    /// Returns true if both explain kernels of the same launch. Otherwise the offset has changed between the launches of the two.
    fn explains_one_of(&self, other: &Trial) -> bool {
        let is_there = |index| other.launches.binary_search(index).is_ok();
        self.launches.iter().any(is_there)
    }
}

/// Returns how many of the launches have enough kernels to decide.
fn enough(launches: &[&Search], records: &Records) -> usize {
    let mut kernels = 0;
    let mut is_less = |one: &&&Search| {
        let expected = records.expected(one);
        let expected = expected.unwrap_or_else(|| records.near(one, 0).len());
        kernels += expected;
        kernels <= MAX_KERNELS
    };
    let more = launches.iter().skip(1).take_while(|one| is_less(one));
    more.count() + launches.len().min(1)
}

/// Returns offsets by which records near a launch would be its own.
fn candidates_of(launch: &Search, records: &Records) -> Vec<Bounds> {
    let near = records.near(launch, MAX_ERROR_NS);
    let mut offsets = match records.expected(launch) {
        Some(expected) => by_count(launch, expected, &near),
        None => {
            // Each record may be the last one of the launch.
            let earliest = near.iter().map(|last| launch.offset(last).low_ns);
            earliest
                .map(|low| Bounds::new(low, low + LAST_NS))
                .collect()
        }
    };
    offsets.retain(|one| one.is_possible());
    offsets.sort_by_key(|one| (one.middle_ns() - launch.prior_ns).abs());
    offsets.truncate(MAX_TRIED / ANCHORS);
    offsets
}

/// Returns the offsets by which `expected` successive records are the launch's. Also tries a few less, because some may be lost.
fn by_count(launch: &Search, expected: usize, near: &[&Kernel]) -> Vec<Bounds> {
    let less = [0, 1, 2].map(|lost| expected.saturating_sub(lost));
    let mut counts: Vec<usize> = less.into_iter().chain([expected / 2]).collect();
    counts.dedup();
    counts.retain(|count| *count > 0);
    let in_a_row = counts.iter().flat_map(|count| near.windows(*count));
    in_a_row
        .map(|kernels| launch.offset_of(kernels.iter().copied()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::RecordCount;

    /// MSPTI's time minus the device's, and the expectation of it.
    const OFFSET_NS: i64 = 1_700_000_000_000_000_000;

    fn launch(start_ns: i64, end_ns: i64, expected: Option<usize>) -> Search {
        Search {
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
            number: 0,
            name: "k".into(),
            comm: None,
        }
    }

    fn aligned(launches: &[Search], kernels: Vec<Kernel>) -> Option<i64> {
        let mut records = Records::default();
        records.take(kernels, 0);
        let launches: Vec<&Search> = launches.iter().collect();
        let offset = align(&launches, &records)?;
        Some(offset.middle_ns() - OFFSET_NS)
    }

    /// Makes kernels of 5 µs every 10 µs, each 2 µs after its first event and 1 µs before its second.
    fn even(count: i64, off_ns: i64) -> (Vec<Search>, Vec<Kernel>) {
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

    /// Aligns even launches of two kernels in turn, after the clock stepped by the distance of two launches.
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
        // The last record is lost, so that the old offset explains as many as the new one.
        kernels.pop();
        for kernel in &mut kernels {
            kernel.start_ns += 10_000;
            kernel.end_ns += 10_000;
        }
        records.take(kernels, 0);
        let launches: Vec<&Search> = launches.iter().collect();
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
        let lacks = Search {
            name: Some("lacks".into()),
            ..launches[8].clone()
        };
        assert_eq!(align(&[&lacks], &records), None);
    }

    #[test]
    fn names_that_were_learned_wrongly_do_not_mislead() {
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
        let launches: Vec<&Search> = launches.iter().collect();
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
            let launches: Vec<Search> = (0..10)
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
