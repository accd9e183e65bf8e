//! Which of many readings are kept, and which of them nobody can believe.

use super::curve::Curve;
use super::readings::{Reading, SLACK_NS, pieces};

/// Readings so far from all events and other readings are damage, if they are alone there.
const ALONE_NS: i64 = 60_000_000_000;
/// The least stretch of which one reading is kept.
const STRETCH_NS: i64 = 1 << 30;

/// Keeps at most `most` readings: the most certain one of each of equal stretches of time, and those around each moment at which somebody set the wall clock.
/// They must be in the order of time.
///
/// Stretches lie within those that are twice as long, so that it makes no difference whether all are known at once.
pub fn thin<T: Copy>(all: &mut Vec<T>, most: usize, reading: impl Fn(&T) -> Reading) {
    if all.len() <= most {
        return;
    }
    let readings: Vec<Reading> = all.iter().map(reading).collect();
    let mut stretch_ns = STRETCH_NS;
    let kept = loop {
        // Where a clock seems to be set at all times, nothing can be kept of each.
        let is_long = stretch_ns > i64::MAX / 4;
        let kept = match is_long {
            true => (0..most).map(|n| n * readings.len() / most).collect(),
            false => best_of(&readings, stretch_ns),
        };
        if kept.len() <= most {
            break kept;
        }
        stretch_ns *= 2;
    };
    *all = kept.into_iter().map(|number| all[number]).collect();
}

/// The numbers of the most certain reading of each stretch between two steps, and of the ends of what is between them.
fn best_of(readings: &[Reading], stretch_ns: i64) -> Vec<usize> {
    let (mut kept, mut start) = (Vec::new(), 0);
    for piece in pieces(readings) {
        let stretch = |one: &Reading| one.at_ns.div_euclid(stretch_ns);
        kept.push(start);
        let mut from = start;
        for stretch in piece.chunk_by(|one, next| stretch(one) == stretch(next)) {
            let numbers = from..from + stretch.len();
            kept.extend(numbers.min_by_key(|number| readings[*number].uncertainty_ns));
            from += stretch.len();
        }
        start += piece.len();
        kept.push(start - 1);
    }
    kept.dedup();
    kept
}

/// Leaves out as few as possible so that the rest is in the order of time. No checksum vouches for the first lines of a segment, and whoever reads a clock
/// twice reads the earlier time first.
pub fn drop_disordered<T: Copy>(all: &mut Vec<T>, at_ns: impl Fn(&T) -> i64) {
    if all.is_sorted_by_key(&at_ns) {
        return;
    }
    // The last one of the best row of each length, and the one before each in its row.
    let (mut lasts, mut before) = (Vec::<usize>::new(), Vec::with_capacity(all.len()));
    for (number, one) in all.iter().enumerate() {
        let length = lasts.partition_point(|last| at_ns(&all[*last]) <= at_ns(one));
        before.push(length.checked_sub(1).map(|shorter| lasts[shorter]));
        match lasts.get_mut(length) {
            Some(last) => *last = number,
            None => lasts.push(number),
        }
    }
    let row = std::iter::successors(lasts.last().copied(), |number| before[*number]);
    let mut row: Vec<T> = row.map(|number| all[number]).collect();
    row.reverse();
    *all = row;
}

/// Leaves out each reading whose neighbours agree with each other and not with it: a damaged one, or a clock that was set and set back, which is the same to all others.
/// They must be in the order of time.
pub fn drop_odd(readings: &mut Vec<Reading>) {
    let parts = |one: Reading, next: Reading| pieces(&[one, next]).count() > 1;
    let odd = |three: &[Reading]| {
        parts(three[0], three[1]) && parts(three[1], three[2]) && !parts(three[0], three[2])
    };
    let inner = readings.windows(3).map(odd);
    let is_odd: Vec<bool> = std::iter::once(false).chain(inner).collect();
    let mut number = 0;
    readings.retain(|_| {
        number += 1;
        !is_odd.get(number - 1).copied().unwrap_or(false)
    });
}

/// Takes out the readings that are alone, far from the events of their host. They must be in the order of time.
pub fn take_lone(readings: &mut Vec<Reading>, (first, last): (i64, i64)) -> Vec<Reading> {
    let gaps = readings.windows(2).map(|two| gap_ns(&two[0], &two[1]));
    let mut gaps: Vec<i64> = gaps.collect();
    let mut sorted = gaps.clone();
    sorted.sort_unstable();
    sorted.pop();
    // Of long runs few are kept.
    let usual_ns = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
    let alone_ns = usual_ns.saturating_mul(4).max(ALONE_NS);
    gaps.insert(0, i64::MAX);
    gaps.push(i64::MAX);
    let is_lone = |number: usize, one: &Reading| {
        let outside = first.saturating_sub(one.at_ns);
        let outside = outside.max(one.at_ns.saturating_sub(last));
        outside > ALONE_NS && gaps[number] > alone_ns && gaps[number + 1] > alone_ns
    };
    let all = std::mem::take(readings).into_iter().enumerate();
    let (lone, kept): (Vec<_>, Vec<_>) = all.partition(|(number, one)| is_lone(*number, one));
    readings.extend(kept.into_iter().map(|(_, one)| one));
    lone.into_iter().map(|(_, one)| one).collect()
}

/// Adds the ends of lines through readings that leave none out by more than it is uncertain, all but the first one's begin.
pub(super) fn simplify(readings: &[Reading], points: &mut Vec<(i64, i64)>) {
    let mut stack = vec![readings];
    while let Some(readings) = stack.pop() {
        let (Some(first), Some(last)) = (readings.first(), readings.last()) else {
            continue;
        };
        let line = Curve::through([first, last].map(|end| (end.at_ns, end.at_ns + end.ahead_ns)));
        let off = |one: &Reading| {
            let on_line = line.at(one.at_ns) - one.at_ns;
            on_line.abs_diff(one.ahead_ns).cast_signed() - one.uncertainty_ns
        };
        let inner = 1..readings.len().saturating_sub(1);
        let worst = inner.max_by_key(|number| off(&readings[*number]));
        match worst.filter(|number| off(&readings[*number]) > SLACK_NS) {
            Some(number) => {
                stack.push(&readings[number..]);
                stack.push(&readings[..=number]);
            }
            None => points.push(last.point()),
        }
    }
}

fn gap_ns(one: &Reading, next: &Reading) -> i64 {
    next.at_ns.saturating_sub(one.at_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    fn read(at_s: i64) -> Reading {
        Reading {
            at_ns: at_s.saturating_mul(SECOND_NS),
            ahead_ns: if at_s < 30_011 { 5_000 } else { 7_000_000_000 },
            uncertainty_ns: 100 + at_s % 3,
        }
    }

    fn seconds(readings: &[Reading]) -> Vec<i64> {
        let seconds = readings.iter().map(|one| one.at_ns / SECOND_NS);
        seconds.collect()
    }

    #[test]
    fn what_is_kept_is_spread_evenly_and_stands_around_steps() {
        let all: Vec<Reading> = (0..20_000).map(|n| read(n * 5)).collect();
        let mut once = all.clone();
        thin(&mut once, 512, |one| *one);
        let mut bit_by_bit = Vec::new();
        for some in all.chunks(37) {
            bit_by_bit.extend_from_slice(some);
            if bit_by_bit.len() > 1024 {
                thin(&mut bit_by_bit, 512, |one| *one);
            }
        }
        thin(&mut bit_by_bit, 512, |one| *one);
        for kept in [once, bit_by_bit] {
            let seconds = seconds(&kept);
            assert!((256..=512).contains(&kept.len()), "{}", kept.len());
            assert!(seconds.contains(&30_010) && seconds.contains(&30_015));
            let gaps = seconds.windows(2).map(|two| two[1] - two[0]);
            assert!(gaps.max() < Some(700), "{seconds:?}");
        }
    }

    #[test]
    fn damage_takes_no_room_from_what_is_good() {
        let mut all: Vec<Reading> = (0..2_000).map(|n| read(n * 5)).collect();
        all.push(read(i64::MAX));
        thin(&mut all, 512, |one| *one);
        assert!(all.len() > 256, "{}", all.len());
        // However often a clock is set.
        let mut all: Vec<Reading> = (0..2_000).map(|n| read((n % 2) * 40_000)).collect();
        thin(&mut all, 512, |one| *one);
        assert_eq!(all.len(), 512);
    }
}
