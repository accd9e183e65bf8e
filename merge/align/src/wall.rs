//! The wall clock of a boot as a function of its monotonic clock, from all anchors of all its processes.
//!
//! The kernel disciplines both clocks together, so their difference changes little, except at a step. There, somebody sets the wall clock, so it jumps and the
//! monotonic clock does not. The last state of a host's wall clock is considered right, so the times before a step are moved by it.

use super::curve::{BEYOND_NS, Curve, clamp};
use super::filter::simplify;
use super::readings::{Reading, split_at_steps};

pub(crate) use super::readings::drift_ns;

/// Length of a window in which only the most certain reading is used.
const WINDOW_NS: i64 = 5_000_000_000;
/// Maximum number of windows.
const MAX_WINDOWS: i64 = 1024;
/// Length of the time from which the drift of a clock is extrapolated.
const MINUTE_NS: i64 = 60_000_000_000;

/// The wall clock of a boot.
#[derive(Clone, Debug)]
pub struct Wall {
    /// Curve from the monotonic clock to the wall clock.
    pub curve: Curve,
    /// Number of times that the clock was set.
    pub steps: usize,
    /// Maximum error of the curve due to the readings.
    reading_ns: i64,
    /// Times of the first and the last reading.
    read_ns: (i64, i64),
    /// Time at which the clock was set last, and the uncertainty of all steps together.
    set: Option<(i64, i64)>,
}

impl Wall {
    /// Derives the wall clock from readings. Returns `None` if there are none.
    pub fn from_readings(mut readings: Vec<Reading>) -> Option<Wall> {
        readings.sort_by_key(|reading| (reading.at_ns, reading.uncertainty_ns, reading.ahead_ns));
        let pieces: Vec<Piece> = split_at_steps(&readings).filter_map(Piece::new).collect();
        let (first, last) = (pieces.first()?, pieces.last()?);
        let read_ns = (first.begin().0, last.end().0);
        let (mut later, mut points) = (last, last.points.clone());
        let (mut moved_ns, mut step_error_ns) = (0_i64, 0_i64);
        for piece in pieces.iter().rev().skip(1) {
            // The exact time of the step is unknown.
            let (end, begin) = (piece.end().0, later.begin().0);
            let middle_ns = end + (begin - end) / 2;
            let step_ns = later
                .extrapolated(middle_ns)
                .saturating_sub(piece.extrapolated(middle_ns));
            moved_ns = clamp(step_ns.saturating_add(moved_ns));
            let readings_ns = piece.reading_ns.saturating_add(later.reading_ns);
            let drifts_ns = 2 * drift_ns(begin - end);
            step_error_ns = clamp(readings_ns.saturating_add(drifts_ns + step_error_ns));
            let ahead_ns = |ahead: i64| clamp(ahead.saturating_add(moved_ns));
            let moved = piece.points.iter();
            points.splice(0..0, moved.map(|(at, ahead)| (*at, ahead_ns(*ahead))));
            later = piece;
        }
        Some(Wall {
            curve: curve(&points),
            steps: pieces.len() - 1,
            reading_ns: pieces.iter().map(|piece| piece.reading_ns).max()?,
            read_ns,
            set: (pieces.len() > 1).then_some((last.begin().0, step_error_ns)),
        })
    }

    /// Returns the maximum error of [`curve`](Wall::curve) at a time of the monotonic clock, if the wall clock was right after it was last set.
    ///
    /// Before the first reading and after the last one, the clocks may drift apart. Before it was set, the wall clock may have drifted away from the true time.
    pub(crate) fn uncertainty_ns(&self, at_ns: i64) -> i64 {
        let (first, last) = self.read_ns;
        let outside = (first - at_ns).max(at_ns - last).max(0);
        let before = self
            .set
            .map_or(0, |(set_ns, step_error_ns)| match at_ns < set_ns {
                true => step_error_ns.saturating_add(drift_ns(set_ns - at_ns)),
                false => 0,
            });
        clamp(
            self.reading_ns
                .saturating_add(drift_ns(outside))
                .saturating_add(before),
        )
    }
}

/// Creates the curve of a clock from times and how far it was ahead at each. Before and after them, it is as fast as the monotonic clock.
fn curve(points: &[(i64, i64)]) -> Curve {
    let beyond = |ns: i64| move |(at, ahead): &(i64, i64)| (at.saturating_add(ns), *ahead);
    let before = points.first().map(beyond(-BEYOND_NS));
    let after = points.last().map(beyond(BEYOND_NS));
    let all = before.iter().chain(points).chain(&after);
    Curve::through(all.map(|(at, ahead)| (*at, at.saturating_add(*ahead))))
}

/// Returns the first reading, the most certain reading of each window, and the last reading, without the ones that others imply.
fn most_certain(readings: &[Reading]) -> Vec<Reading> {
    let (Some(first), Some(last)) = (readings.first(), readings.last()) else {
        return Vec::new();
    };
    let window_ns = ((last.at_ns - first.at_ns) / MAX_WINDOWS).max(WINDOW_NS);
    let window = |reading: &Reading| (reading.at_ns - first.at_ns) / window_ns;
    let best = |some: &[Reading]| some.iter().min_by_key(|one| one.uncertainty_ns).copied();
    let windows = readings.chunk_by(|one, next| window(one) == window(next));
    let mut kept = vec![*first];
    kept.extend(windows.filter_map(best));
    kept.push(*last);
    kept.dedup();
    // Each pass compares readings with their neighbours on one side, and reverses the order.
    for _ in 0..2 {
        let mut passed: Vec<Reading> = Vec::with_capacity(kept.len());
        for reading in kept.into_iter().rev() {
            let last = passed.last();
            if last.is_none_or(|other| !reading.is_implied_by(other)) {
                passed.push(reading);
            }
        }
        kept = passed;
    }
    kept
}

/// The wall clock between two steps.
#[derive(Clone, Debug)]
struct Piece {
    /// Times and how far the wall clock was ahead at each. Never empty.
    points: Vec<(i64, i64)>,
    /// Maximum error due to the readings.
    reading_ns: i64,
}

impl Piece {
    /// Derives a piece from its readings. Returns `None` if there are none.
    fn new(readings: &[Reading]) -> Option<Piece> {
        let lows = readings.iter().map(|one| one.range().0);
        let highs = readings.iter().map(|one| one.range().1);
        if lows.max()? > highs.min()? {
            return Piece::drifting(&most_certain(readings));
        }
        // The kernel disciplines both clocks together, so their difference is constant until somebody sets the wall clock, even where there are no readings.
        let best = readings.iter().min_by_key(|one| one.uncertainty_ns)?;
        let ends = [readings.first()?, readings.last()?];
        Some(Piece {
            points: ends.map(|end| (end.at_ns, best.ahead_ns)).to_vec(),
            reading_ns: best.uncertainty_ns,
        })
    }

    /// Derives a piece from readings of clocks that drift apart. Between two readings, they may drift with any speed up to the maximum.
    fn drifting(readings: &[Reading]) -> Option<Piece> {
        let mut points = vec![readings.first()?.point()];
        simplify(readings, &mut points);
        let line = curve(&points);
        let off = |one: &Reading| {
            let on_line = line.at(one.at_ns) - one.at_ns;
            let off = on_line.abs_diff(one.ahead_ns).cast_signed();
            off.saturating_add(one.uncertainty_ns)
        };
        let gaps = readings.windows(2).map(|two| two[1].at_ns - two[0].at_ns);
        let between_ns = drift_ns(gaps.max().unwrap_or(0) / 2);
        let reading_ns = readings.iter().map(off).max()?.saturating_add(between_ns);
        Some(Piece { points, reading_ns })
    }

    /// Returns how far the clock would have been ahead outside of the piece. The drift of the first or the last minute continues, limited to the maximum.
    fn extrapolated(&self, at_ns: i64) -> i64 {
        let line = curve(&self.points);
        let ahead = |at: i64| line.at(at) - at;
        let (begin, end) = (self.begin().0, self.end().0);
        let edge = at_ns.clamp(begin, end);
        let inner = if at_ns < begin {
            begin + MINUTE_NS
        } else {
            end - MINUTE_NS
        };
        if end - begin < MINUTE_NS {
            return ahead(edge);
        }
        let (one, other) = (edge.min(inner), edge.max(inner));
        let line = Curve::through([one, other].map(|at| (at, line.at(at))));
        let most = drift_ns((at_ns - edge).abs());
        ahead(edge) + (line.at(at_ns) - at_ns - ahead(edge)).clamp(-most, most)
    }

    fn begin(&self) -> (i64, i64) {
        self.points[0]
    }

    fn end(&self) -> (i64, i64) {
        self.points[self.points.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(at_s: i64, ahead_ns: i64) -> Reading {
        Reading {
            at_ns: at_s * 1_000_000_000,
            ahead_ns,
            uncertainty_ns: 100,
        }
    }

    #[test]
    fn the_last_state_of_the_wall_clock_is_right() {
        let ahead = |at: i64| 7_000 + if at < 300 { -2_000_000_000 } else { 0 };
        let wall = Wall::from_readings((0..600).map(|at| read(at, ahead(at))).collect()).unwrap();
        assert_eq!((wall.steps, wall.curve.as_shift()), (1, Some(7_000)));
        let errors = [0, 200, 300, 400].map(|at: i64| wall.uncertainty_ns(at * 1_000_000_000));
        assert!(
            errors[0] > 30_000_000 && errors[1] > 10_000_000,
            "{errors:?}"
        );
        assert_eq!(errors[3], 101, "{errors:?}");
    }

    /// The slope between two close readings is due to their errors.
    #[test]
    fn no_drift_is_extrapolated_from_close_readings() {
        let uncertain = |at_ns: i64, ahead_ns: i64| Reading {
            at_ns,
            ahead_ns,
            uncertainty_ns: 200_000,
        };
        let drifting = |at: i64| read(at, at * 50_000);
        let end_ns = 100_000_000_000;
        let mut readings: Vec<Reading> = (0..=100).step_by(5).map(drifting).collect();
        readings.insert(0, uncertain(-1_000_000, 190_000));
        readings.push(uncertain(end_ns + 1_000_000, 5_190_000));
        let wall = Wall::from_readings(readings).unwrap();
        assert_eq!(wall.steps, 0);
        for out_ns in [0, 1_000_000, 5_000_000_000, 3_600_000_000_000] {
            for at_ns in [-out_ns, end_ns + out_ns] {
                let ahead = i64::try_from(i128::from(at_ns) * 50_000 / 1_000_000_000).unwrap();
                let off = wall.curve.at(at_ns).abs_diff(at_ns + ahead).cast_signed();
                let error_ns = wall.uncertainty_ns(at_ns);
                assert!(off <= error_ns, "{at_ns}: {off} {error_ns}");
                assert!(error_ns < 400_000 + drift_ns(out_ns), "{at_ns}: {error_ns}");
            }
        }
    }

    /// An uncertain reading just before a step, from a thread that was preempted, does not determine the size of the step.
    #[test]
    fn the_size_of_a_step_follows_from_the_certain_readings_around_it() {
        let ahead = |at: i64| at * 30_000 + if at < 300 { -2_000_000_000 } else { 0 };
        let mut readings: Vec<Reading> = (0..600).map(|at| read(at, ahead(at))).collect();
        readings.push(Reading {
            at_ns: 299_001_000_000,
            ahead_ns: ahead(299) + 190_000,
            uncertainty_ns: 200_000,
        });
        let wall = Wall::from_readings(readings).unwrap();
        assert_eq!(wall.steps, 1);
        let off = wall.curve.at(0).abs_diff(0);
        assert!(off < 200_000, "{off}");
        assert!(off.cast_signed() <= wall.uncertainty_ns(0));
    }
}
