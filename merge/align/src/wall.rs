//! What the wall clock of a boot showed, as a function of its monotonic clock: from all anchors of all its processes.
//!
//! The kernel disciplines both clocks together, so what lies between them changes little but where somebody sets the wall clock. That is a step: the wall clock
//! jumps and the monotonic one does not. What a host's wall clock showed last is believed, so what it showed before a step is moved by it.

use super::curve::{BEYOND_NS, Curve, clamp};
use super::keep::simplify;
use super::readings::{Reading, pieces};

pub(crate) use super::readings::drift_ns;

/// The anchors of so much time are one: the most certain of them.
const WINDOW_NS: i64 = 5_000_000_000;
/// Most of such stretches.
const WINDOWS: i64 = 1024;
/// From how much time it is concluded how fast a clock drifts.
const MINUTE_NS: i64 = 60_000_000_000;

/// The wall clock of a boot.
#[derive(Clone, Debug)]
pub struct Wall {
    /// From its monotonic clock.
    pub curve: Curve,
    /// How often it was set.
    pub steps: usize,
    /// What the readings leave open.
    reading_ns: i64,
    /// The first and the last one.
    read_ns: (i64, i64),
    /// Where it was set last, and what is not known of by how much.
    set: Option<(i64, i64)>,
}

impl Wall {
    /// `None` if nobody ever read it.
    pub fn of(mut readings: Vec<Reading>) -> Option<Wall> {
        readings.sort_by_key(|reading| (reading.at_ns, reading.uncertainty_ns, reading.ahead_ns));
        let pieces: Vec<Piece> = pieces(&readings).filter_map(Piece::of).collect();
        let (first, last) = (pieces.first()?, pieces.last()?);
        let read_ns = (first.begin().0, last.end().0);
        let (mut later, mut points) = (last, last.points.clone());
        let (mut moved_ns, mut open_ns) = (0_i64, 0_i64);
        for piece in pieces.iter().rev().skip(1) {
            // Nobody knows when it was set in between.
            let (end, begin) = (piece.end().0, later.begin().0);
            let middle_ns = end + (begin - end) / 2;
            let step_ns = later
                .beyond(middle_ns)
                .saturating_sub(piece.beyond(middle_ns));
            moved_ns = clamp(step_ns.saturating_add(moved_ns));
            let read_ns = piece.reading_ns.saturating_add(later.reading_ns);
            open_ns = clamp(read_ns.saturating_add(2 * drift_ns(begin - end) + open_ns));
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
            set: (pieces.len() > 1).then_some((last.begin().0, open_ns)),
        })
    }

    /// How far it may have been from what [`curve`](Wall::curve) says at a time of the monotonic clock, if the wall clock was never wrong after it was set.
    ///
    /// Before the first reading and behind the last one the clocks may drift apart. Before it was set it may have drifted away from the truth.
    pub(crate) fn doubt_ns(&self, at_ns: i64) -> i64 {
        let (first, last) = self.read_ns;
        let outside = (first - at_ns).max(at_ns - last).max(0);
        let before = self
            .set
            .map_or(0, |(set_ns, open_ns)| match at_ns < set_ns {
                true => open_ns.saturating_add(drift_ns(set_ns - at_ns)),
                false => 0,
            });
        clamp(
            self.reading_ns
                .saturating_add(drift_ns(outside))
                .saturating_add(before),
        )
    }
}

/// The clock that was so far ahead when. Where nobody read it, it goes on as fast as the monotonic one.
fn curve(points: &[(i64, i64)]) -> Curve {
    let beyond = |ns: i64| move |(at, ahead): &(i64, i64)| (at.saturating_add(ns), *ahead);
    let before = points.first().map(beyond(-BEYOND_NS));
    let behind = points.last().map(beyond(BEYOND_NS));
    let all = before.iter().chain(points).chain(&behind);
    Curve::through(all.map(|(at, ahead)| (*at, at.saturating_add(*ahead))))
}

/// The most certain reading of each stretch, the first and the last one, but for those of which others tell as much.
fn thin(readings: &[Reading]) -> Vec<Reading> {
    let (Some(first), Some(last)) = (readings.first(), readings.last()) else {
        return Vec::new();
    };
    let window_ns = ((last.at_ns - first.at_ns) / WINDOWS).max(WINDOW_NS);
    let window = |reading: &Reading| (reading.at_ns - first.at_ns) / window_ns;
    let best = |some: &[Reading]| some.iter().min_by_key(|one| one.uncertainty_ns).copied();
    let stretches = readings.chunk_by(|one, next| window(one) == window(next));
    let mut kept = vec![*first];
    kept.extend(stretches.filter_map(best));
    kept.push(*last);
    kept.dedup();
    for _ in 0..2 {
        let mut told: Vec<Reading> = Vec::with_capacity(kept.len());
        for reading in kept.into_iter().rev() {
            if told.last().is_none_or(|other| !reading.is_told_by(other)) {
                told.push(reading);
            }
        }
        kept = told; // in the other direction
    }
    kept
}

/// The time between two steps.
#[derive(Clone, Debug)]
struct Piece {
    /// How far the wall clock was ahead when; never empty.
    points: Vec<(i64, i64)>,
    reading_ns: i64,
}

impl Piece {
    /// `None` of no readings.
    fn of(readings: &[Reading]) -> Option<Piece> {
        let lows = readings.iter().map(|one| one.range().0);
        let highs = readings.iter().map(|one| one.range().1);
        if lows.max()? > highs.min()? {
            return Piece::bent(&thin(readings));
        }
        // The kernel disciplines both clocks together: what lies between them stays what it is until somebody sets one, whether it is read or not.
        let best = readings.iter().min_by_key(|one| one.uncertainty_ns)?;
        let ends = [readings.first()?, readings.last()?];
        Some(Piece {
            points: ends.map(|end| (end.at_ns, best.ahead_ns)).to_vec(),
            reading_ns: best.uncertainty_ns,
        })
    }

    /// Of clocks that drift apart. Between two readings they may do so at any speed that a clock may have.
    fn bent(readings: &[Reading]) -> Option<Piece> {
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

    /// How far ahead it would have been before or behind all this: it goes on as in the minute beside it, but for what no clock drifts.
    fn beyond(&self, at_ns: i64) -> i64 {
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
    fn what_was_shown_last_is_believed() {
        let ahead = |at: i64| 7_000 + if at < 300 { -2_000_000_000 } else { 0 };
        let wall = Wall::of((0..600).map(|at| read(at, ahead(at))).collect()).unwrap();
        assert_eq!((wall.steps, wall.curve.as_shift()), (1, Some(7_000)));
        let doubts = [0, 200, 300, 400].map(|at: i64| wall.doubt_ns(at * 1_000_000_000));
        assert!(
            doubts[0] > 30_000_000 && doubts[1] > 10_000_000,
            "{doubts:?}"
        );
        assert_eq!(doubts[3], 101, "{doubts:?}");
    }

    /// The slope of two close readings is that of their errors.
    #[test]
    fn nothing_is_concluded_beyond_what_was_read() {
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
        let wall = Wall::of(readings).unwrap();
        assert_eq!(wall.steps, 0);
        for out_ns in [0, 1_000_000, 5_000_000_000, 3_600_000_000_000] {
            for at_ns in [-out_ns, end_ns + out_ns] {
                let ahead = i64::try_from(i128::from(at_ns) * 50_000 / 1_000_000_000).unwrap();
                let off = wall.curve.at(at_ns).abs_diff(at_ns + ahead).cast_signed();
                let doubt = wall.doubt_ns(at_ns);
                assert!(off <= doubt, "{at_ns}: {off} {doubt}");
                assert!(doubt < 400_000 + drift_ns(out_ns), "{at_ns}: {doubt}");
            }
        }
    }

    /// Whoever was preempted just before a step says nothing of by how much it was.
    #[test]
    fn a_step_is_as_large_as_what_lies_around_it() {
        let ahead = |at: i64| at * 30_000 + if at < 300 { -2_000_000_000 } else { 0 };
        let mut readings: Vec<Reading> = (0..600).map(|at| read(at, ahead(at))).collect();
        readings.push(Reading {
            at_ns: 299_001_000_000,
            ahead_ns: ahead(299) + 190_000,
            uncertainty_ns: 200_000,
        });
        let wall = Wall::of(readings).unwrap();
        assert_eq!(wall.steps, 1);
        let off = wall.curve.at(0).abs_diff(0);
        assert!(off < 200_000, "{off}");
        assert!(off.cast_signed() <= wall.doubt_ns(0));
    }
}
