//! A search over the offsets of a file for something that comes in an order, such as times.

use std::ops::Range;

/// How near a search comes: what lies between is gone through.
const NEAR_BYTES: usize = 1 << 20;

/// The first thing in a stretch that `is_reached`, as all behind it are. `next` gives the first thing of a stretch and where it starts. Each offset is
/// passed over twice at most, however few things there are.
pub fn first<T>(
    stretch: Range<usize>,
    next: impl Fn(Range<usize>) -> Option<(usize, T)>,
    is_reached: impl Fn(&T) -> bool,
) -> Option<T> {
    let (mut low, mut high, mut found) = (stretch.start, stretch.end, None);
    while low < high {
        let middle = if high - low > NEAR_BYTES {
            low + (high - low) / 2
        } else {
            low
        };
        match next(middle..high) {
            Some((at, thing)) if !is_reached(&thing) => low = at + 1,
            reached => {
                found = reached.map(|(_, thing)| thing).or(found);
                high = middle;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn it_finds_what_going_through_all_does() {
        for gap in [1, 1_000, 3_000_000, 70_000_000] {
            let things: Vec<usize> = (gap..64_000_000).step_by(gap.max(977)).collect();
            let passed = Cell::new(0);
            let next = |stretch: Range<usize>| {
                let at = things.partition_point(|thing| *thing < stretch.start);
                let thing = things.get(at).copied().filter(|at| *at < stretch.end);
                passed.set(passed.get() + thing.unwrap_or(stretch.end) - stretch.start);
                thing.map(|thing| (thing, thing))
            };
            for wanted in [0, 1, 5_000_000, 33_333_333, 63_999_999, 80_000_000] {
                passed.set(0);
                let expected = things.iter().copied().find(|thing| *thing >= wanted);
                let found = first(0..64_000_000, next, |thing| *thing >= wanted);
                assert_eq!(found, expected, "{gap} {wanted}");
                assert!(
                    passed.get() <= 128_000_000,
                    "{gap} {wanted}: {}",
                    passed.get()
                );
            }
        }
    }
}
