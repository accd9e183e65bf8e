//! Places the kernels of a launch on the host's axis: within the slice of its pair, with an uncertainty that holds.

use super::bracket::Search;
use crate::clock::DeviceClock;
use crate::mspti::Kernel;
use crate::place::Placed;
use crate::runtime::Bounds;

/// Places the kernels of a launch, by the device's clock and by the offset, which the kernels themselves bound. Within these bounds it takes the offset
/// `known` from earlier launches.
pub(super) fn place_all(
    search: &Search,
    clock: &DeviceClock,
    pair: &Placed,
    kernels: &[Kernel],
    known: Option<Bounds>,
) -> Option<Vec<Placed>> {
    let offset = search.offset_of(kernels.iter());
    // Rounding alone may contradict it.
    let Bounds { low_ns, high_ns } = offset;
    let offset = Bounds::new(low_ns.min(high_ns), high_ns.max(low_ns));
    let taken_ns = known.unwrap_or(offset).middle_ns();
    let taken_ns = taken_ns.clamp(offset.low_ns, offset.high_ns);
    let kernels = kernels.iter();
    let placed = kernels.map(|kernel| place(clock, offset, taken_ns, kernel));
    let mut placed: Vec<Placed> = placed.collect::<Option<_>>()?;
    fit(&mut placed, pair);
    Some(placed)
}

fn place(clock: &DeviceClock, offset: Bounds, taken_ns: i64, kernel: &Kernel) -> Option<Placed> {
    let width = offset.high_ns - offset.low_ns;
    let bounds = clock.host(kernel.start_ns - offset.high_ns, width)?;
    let start = clock.host(kernel.start_ns - taken_ns, 0)?.middle_ns();
    let length = clock.length(kernel.end_ns - kernel.start_ns);
    Some(Placed {
        start_ns: u64::try_from(start).ok()?,
        dur_ns: u64::try_from(length).ok()?,
        uncertainty_ns: bounds.uncertainty_ns(start),
    })
}

/// Moves all of them into the slice of the pair, and adds the shift to the uncertainty.
fn fit(placed: &mut [Placed], pair: &Placed) {
    let pair_end = pair.start_ns + pair.dur_ns;
    let first = placed.iter().map(|one| one.start_ns).min();
    let last = placed.iter().map(|one| one.start_ns + one.dur_ns).max();
    let (Some(first), Some(last)) = (first, last) else {
        return;
    };
    let later = pair.start_ns.cast_signed() - first.cast_signed();
    let earlier = pair_end.cast_signed() - last.cast_signed();
    let by = match later > 0 {
        true => later,
        false => earlier.min(0).max(later),
    };
    for one in placed {
        one.start_ns = one.start_ns.saturating_add_signed(by);
        let trimmed = (one.start_ns + one.dur_ns).saturating_sub(pair_end);
        one.dur_ns = one.dur_ns.saturating_sub(trimmed);
        one.uncertainty_ns += by.unsigned_abs() + trimmed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::RecordCount;

    const SEARCH: Search = Search {
        start_ns: 1_000_000_000,
        end_ns: 1_000_050_000,
        stream: 1,
        name: None,
        graph: Some(1),
        expected: None,
        at_least: RecordCount {
            kernels: 0,
            collectives: 0,
        },
        has_collectives: false,
        prior_ns: 7_000_000,
    };

    const PAIR: Placed = Placed {
        start_ns: 1_001_000_000,
        dur_ns: 50_000,
        uncertainty_ns: 1_000,
    };

    /// Makes kernels that begin and end this long after the start of the pair, by a clock that is ahead.
    fn kernels(times: &[(i64, i64)]) -> Vec<Kernel> {
        let kernel = |(start, end): &(i64, i64)| Kernel {
            device: 0,
            stream: 1,
            start_ns: SEARCH.start_ns + 7_000_000 + start,
            end_ns: SEARCH.start_ns + 7_000_000 + end,
            correlation: 0,
            number: 0,
            name: "k".into(),
            comm: None,
        };
        times.iter().map(kernel).collect()
    }

    #[test]
    fn kernels_are_as_sure_as_the_room_beside_them() {
        let kernels = kernels(&[(2_000, 20_000), (21_000, 47_000)]);
        let placed = place_all(&SEARCH, &DeviceClock::steady(), &PAIR, &kernels, None).unwrap();
        for (placed, truth) in placed.iter().zip([1_001_002_000u64, 1_001_021_000]) {
            let off = placed.start_ns.abs_diff(truth);
            assert!(off <= placed.uncertainty_ns, "{placed:?}");
            assert!(
                (2_500..9_000).contains(&placed.uncertainty_ns),
                "{placed:?}"
            );
        }
        assert_eq!(placed[1].start_ns - placed[0].start_ns, 19_000);
    }

    #[test]
    fn what_is_known_of_the_offset_makes_no_bound_but_a_better_guess() {
        let kernels = kernels(&[(40_000, 49_000)]);
        let known = Bounds::new(7_000_000, 7_000_100);
        let placed = place_all(
            &SEARCH,
            &DeviceClock::steady(),
            &PAIR,
            &kernels,
            Some(known),
        )
        .unwrap()[0];
        assert!(
            placed.start_ns.abs_diff(1_001_040_000) < 1_500,
            "{placed:?}"
        );
        assert!(placed.uncertainty_ns >= 40_000, "{placed:?}");
    }

    #[test]
    fn all_of_them_lie_in_their_pair() {
        // By rounding the kernels are a little longer than it.
        for times in [
            [(-30, 20_000), (30_000, 50_030)],
            [(0, 10), (49_000, 50_000)],
        ] {
            let placed = place_all(
                &SEARCH,
                &DeviceClock::steady(),
                &PAIR,
                &kernels(&times),
                None,
            )
            .unwrap();
            let end = PAIR.start_ns + PAIR.dur_ns;
            let is_inside =
                |one: &Placed| one.start_ns >= PAIR.start_ns && one.start_ns + one.dur_ns <= end;
            assert!(placed.iter().all(is_inside), "{placed:?}");
        }
    }

    #[test]
    fn without_a_clock_there_is_no_place() {
        let kernels = kernels(&[(0, 10)]);
        assert_eq!(
            place_all(&SEARCH, &DeviceClock::default(), &PAIR, &kernels, None),
            None
        );
    }
}
