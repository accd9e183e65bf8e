//! Reduces the number of readings, and removes implausible ones.

use super::curve::Curve;
use super::readings::{Reading, SLACK_NS, split_at_steps};

/// Minimum distance of a lone reading from all events and other readings. A reading that is farther away is damaged.
const ALONE_NS: i64 = 60_000_000_000;
/// Minimum length of a window in which only one reading is kept.
const MIN_WINDOW_NS: i64 = 1 << 30;

/// Keeps at most `most` readings: the most certain one of each time window, and the ones around each step of the wall clock. They must be sorted by time.
///
/// Windows are parts of windows of twice the length, so the result is the same if readings are added and thinned repeatedly.
pub fn thin<T: Copy>(all: &mut Vec<T>, most: usize, reading: impl Fn(&T) -> Reading) {
    if all.len() <= most {
        return;
    }
    let readings: Vec<Reading> = all.iter().map(reading).collect();
    let mut window_ns = MIN_WINDOW_NS;
    let kept = loop {
        // If the clock has too many steps, readings are kept at regular intervals instead.
        let is_too_long = window_ns > i64::MAX / 4;
        let kept = match is_too_long {
            true => (0..most).map(|n| n * readings.len() / most).collect(),
            false => most_certain(&readings, window_ns),
        };
        if kept.len() <= most {
            break kept;
        }
        window_ns *= 2;
    };
    *all = kept.into_iter().map(|number| all[number]).collect();
}

/// Returns the numbers of the most certain reading of each window, and of the first and last reading between two steps.
fn most_certain(readings: &[Reading], window_ns: i64) -> Vec<usize> {
    let (mut kept, mut start) = (Vec::new(), 0);
    for piece in split_at_steps(readings) {
        let window = |one: &Reading| one.at_ns.div_euclid(window_ns);
        kept.push(start);
        let mut from = start;
        for in_window in piece.chunk_by(|one, next| window(one) == window(next)) {
            let numbers = from..from + in_window.len();
            kept.extend(numbers.min_by_key(|number| readings[*number].uncertainty_ns));
            from += in_window.len();
        }
        start += piece.len();
        kept.push(start - 1);
    }
    kept.dedup();
    kept
}

/// Removes as few elements as possible, so that the others are sorted by time. Times are recorded in ascending order, but a time may be damaged, because no
/// checksum covers the first lines of a segment.
pub fn drop_disordered<T: Copy>(all: &mut Vec<T>, at_ns: impl Fn(&T) -> i64) {
    if all.is_sorted_by_key(&at_ns) {
        return;
    }
    // This finds the longest sorted subsequence: the last element of the best one of each length, and the predecessor of each element.
    let (mut lasts, mut predecessors) = (Vec::<usize>::new(), Vec::with_capacity(all.len()));
    for (number, one) in all.iter().enumerate() {
        let length = lasts.partition_point(|last| at_ns(&all[*last]) <= at_ns(one));
        predecessors.push(length.checked_sub(1).map(|shorter| lasts[shorter]));
        match lasts.get_mut(length) {
            Some(last) => *last = number,
            None => lasts.push(number),
        }
    }
    let numbers = std::iter::successors(lasts.last().copied(), |number| predecessors[*number]);
    let mut sorted: Vec<T> = numbers.map(|number| all[number]).collect();
    sorted.reverse();
    *all = sorted;
}

/// Removes each reading that contradicts both of its neighbours while these agree. It is damaged, or the clock was set and set back, which makes no difference
/// for the other readings. They must be sorted by time.
pub fn drop_odd(readings: &mut Vec<Reading>) {
    let is_step = |one: Reading, next: Reading| split_at_steps(&[one, next]).count() > 1;
    let odd = |three: &[Reading]| {
        is_step(three[0], three[1]) && is_step(three[1], three[2]) && !is_step(three[0], three[2])
    };
    let inner = readings.windows(3).map(odd);
    let is_odd: Vec<bool> = std::iter::once(false).chain(inner).collect();
    let mut number = 0;
    readings.retain(|_| {
        number += 1;
        !is_odd.get(number - 1).copied().unwrap_or(false)
    });
}

/// Removes and returns lone readings that are far from the events of their host, and from other readings. They must be sorted by time.
pub fn remove_lone_readings(
    readings: &mut Vec<Reading>,
    (first, last): (i64, i64),
) -> Vec<Reading> {
    let gaps = readings.windows(2).map(|two| gap_ns(&two[0], &two[1]));
    let mut gaps: Vec<i64> = gaps.collect();
    let mut sorted = gaps.clone();
    sorted.sort_unstable();
    sorted.pop();
    // In long runs, readings have larger distances, because only some of them are kept.
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

/// Approximates readings by straight lines that are as close to each reading as its uncertainty. Adds the ends of all lines to `points`, but not the begin of
/// the first line.
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
    fn readings_are_kept_at_even_distances_and_around_steps() {
        let all: Vec<Reading> = (0..20_000).map(|n| read(n * 5)).collect();
        let mut once = all.clone();
        thin(&mut once, 512, |one| *one);
        let mut repeatedly = Vec::new();
        for some in all.chunks(37) {
            repeatedly.extend_from_slice(some);
            if repeatedly.len() > 1024 {
                thin(&mut repeatedly, 512, |one| *one);
            }
        }
        thin(&mut repeatedly, 512, |one| *one);
        for kept in [once, repeatedly] {
            let seconds = seconds(&kept);
            assert!((256..=512).contains(&kept.len()), "{}", kept.len());
            assert!(seconds.contains(&30_010) && seconds.contains(&30_015));
            let gaps = seconds.windows(2).map(|two| two[1] - two[0]);
            assert!(gaps.max() < Some(700), "{seconds:?}");
        }
    }

    #[test]
    fn damage_does_not_displace_good_readings() {
        let mut all: Vec<Reading> = (0..2_000).map(|n| read(n * 5)).collect();
        all.push(read(i64::MAX));
        thin(&mut all, 512, |one| *one);
        assert!(all.len() > 256, "{}", all.len());
        // A clock that seems to be set all the time.
        let mut all: Vec<Reading> = (0..2_000).map(|n| read((n % 2) * 40_000)).collect();
        thin(&mut all, 512, |one| *one);
        assert_eq!(all.len(), 512);
    }
}
