//! What the wall clock of a boot showed, as a function of its monotonic clock: from all anchors of all its processes.
//!
//! The kernel disciplines both clocks together, so what lies between them changes little but where somebody sets the wall clock. That is a step: the wall clock
//! jumps and the monotonic one does not. What a host's wall clock showed last is believed, so what it showed before a step is moved by it.

use super::curve::{Curve, LIMIT_NS, clamp};
use sa_recorder::format::Anchor;

/// How fast a clock may gain or lose on true time, in parts per million.
pub(crate) const DRIFT_PPM: i64 = 100;
/// How fast the two clocks of a host may drift apart without anybody having set one, in parts per million.
const APART_PPM: i64 = 2 * DRIFT_PPM;
/// What readings are off at least.
const SLACK_NS: i64 = 1_000;
/// The anchors of so much time are one: the most certain of them.
const WINDOW_NS: i64 = 10_000_000_000;
/// Most of such stretches.
const WINDOWS: i64 = 1024;

/// A reading of both clocks in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Of the monotonic clock of the host.
    pub(crate) at_ns: i64,
    /// How far the wall clock is ahead of it.
    pub(crate) ahead_ns: i64,
    pub(crate) uncertainty_ns: i64,
}

impl Reading {
    /// An anchor of a process whose monotonic clock is ahead of its host's.
    pub(crate) fn of(anchor: &Anchor, offset_ns: i64) -> Reading {
        let time = |ns: u64| i64::try_from(ns).map_or(LIMIT_NS, clamp);
        let at_ns = clamp(time(anchor.monotonic_ns).saturating_sub(clamp(offset_ns)));
        Reading {
            at_ns,
            ahead_ns: time(anchor.realtime_ns).saturating_sub(at_ns),
            uncertainty_ns: time(anchor.uncertainty_ns),
        }
    }
}

/// The wall clock of a boot.
#[derive(Clone, Debug)]
pub(crate) struct Wall {
    /// From its monotonic clock.
    pub(crate) curve: Curve,
    /// How often it was set.
    pub(crate) steps: usize,
    /// What the readings leave open.
    reading_ns: i64,
    /// The first and the last one.
    read_ns: (i64, i64),
    /// Where it was set last, and what is not known of by how much.
    set: Option<(i64, i64)>,
}

impl Wall {
    /// `None` if nobody ever read it.
    pub(crate) fn of(mut readings: Vec<Reading>) -> Option<Wall> {
        readings.sort_by_key(|reading| (reading.at_ns, reading.uncertainty_ns, reading.ahead_ns));
        let readings = thin(&readings);
        let read_ns = (readings.first()?.at_ns, readings.last()?.at_ns);
        let pieces: Vec<Piece> = readings.chunk_by(is_unset).map(Piece::of).collect();
        let mut later = pieces.last()?.clone();
        let (mut points, mut moved_ns, mut open_ns) = (later.points.clone(), 0_i64, 0_i64);
        for piece in pieces.iter().rev().skip(1) {
            let (end, begin) = (piece.end_ns(), later.begin_ns());
            let middle_ns = end + (begin - end) / 2;
            let step_ns = later
                .ahead(middle_ns)
                .saturating_sub(piece.ahead(middle_ns));
            moved_ns = clamp(step_ns.saturating_add(moved_ns));
            let read_ns = piece.reading_ns.saturating_add(later.reading_ns);
            open_ns = clamp(read_ns.saturating_add(drift_ns(begin - end) + open_ns));
            let ahead_ns = |ahead: i64| clamp(ahead.saturating_add(moved_ns));
            let moved = piece
                .points
                .iter()
                .map(|(at, ahead)| (*at, ahead_ns(*ahead)));
            points.splice(0..0, moved);
            later = piece.clone();
        }
        let wall = |(at_ns, ahead_ns): (i64, i64)| (at_ns, at_ns.saturating_add(ahead_ns));
        let of_last = pieces.last().map(Piece::begin_ns);
        Some(Wall {
            curve: Curve::through(points.into_iter().map(wall)),
            steps: pieces.len() - 1,
            reading_ns: pieces.iter().map(|piece| piece.reading_ns).max()?,
            read_ns,
            set: of_last.filter(|_| pieces.len() > 1).map(|at| (at, open_ns)),
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

/// How far a clock may drift in so much time.
pub(crate) fn drift_ns(ns: i64) -> i64 {
    ns / (1_000_000 / DRIFT_PPM) + 1
}

/// The most certain reading of each stretch, the first and the last one.
fn thin(readings: &[Reading]) -> Vec<Reading> {
    let (Some(first), Some(last)) = (readings.first(), readings.last()) else {
        return Vec::new();
    };
    let window_ns = ((last.at_ns - first.at_ns) / WINDOWS).max(WINDOW_NS);
    let window = |reading: &Reading| (reading.at_ns - first.at_ns) / window_ns;
    let best = |some: &[Reading]| some.iter().min_by_key(|one| one.uncertainty_ns).copied();
    let stretches = readings.chunk_by(|one, next| window(one) == window(next));
    let mut kept: Vec<Reading> = stretches.filter_map(best).collect();
    // Beyond the ends nothing is known.
    if kept.first() != Some(first) {
        kept.insert(0, *first);
    }
    if kept.last() != Some(last) {
        kept.push(*last);
    }
    kept
}

/// Whether nobody set the wall clock between two readings.
fn is_unset(one: &Reading, next: &Reading) -> bool {
    let may_drift = (next.at_ns - one.at_ns) / (1_000_000 / APART_PPM);
    let uncertain = one.uncertainty_ns.saturating_add(next.uncertainty_ns);
    let apart = next.ahead_ns.saturating_sub(one.ahead_ns);
    apart.saturating_abs() <= uncertain.saturating_add(may_drift + SLACK_NS)
}

/// The time between two steps.
#[derive(Clone, Debug)]
struct Piece {
    /// How far the wall clock was ahead when.
    points: Vec<(i64, i64)>,
    reading_ns: i64,
}

impl Piece {
    fn of(readings: &[Reading]) -> Piece {
        let lows = readings.iter().map(|one| one.ahead_ns - one.uncertainty_ns);
        let highs = readings.iter().map(|one| one.ahead_ns + one.uncertainty_ns);
        let is_constant = lows.max() <= highs.min();
        let best = readings.iter().min_by_key(|one| one.uncertainty_ns);
        if let Some(best) = best.filter(|_| is_constant) {
            let ends = [readings.first(), readings.last()].into_iter().flatten();
            return Piece {
                points: ends.map(|end| (end.at_ns, best.ahead_ns)).collect(),
                reading_ns: best.uncertainty_ns,
            };
        }
        let mut points = Vec::new();
        points.extend(readings.first().map(Reading::point));
        simplify(readings, &mut points);
        let piece = Piece {
            points,
            reading_ns: 0,
        };
        let off = |one: &Reading| {
            piece
                .ahead(one.at_ns)
                .abs_diff(one.ahead_ns)
                .cast_signed()
                .saturating_add(one.uncertainty_ns)
        };
        let reading_ns = readings.iter().map(off).max().unwrap_or(0);
        Piece {
            reading_ns,
            ..piece
        }
    }

    fn begin_ns(&self) -> i64 {
        self.points.first().map_or(0, |point| point.0)
    }

    fn end_ns(&self) -> i64 {
        self.points.last().map_or(0, |point| point.0)
    }

    fn ahead(&self, at_ns: i64) -> i64 {
        let wall = self.points.iter().map(|(at, ahead)| (*at, at + ahead));
        Curve::through(wall).at(at_ns) - at_ns
    }
}

impl Reading {
    fn point(&self) -> (i64, i64) {
        (self.at_ns, self.ahead_ns)
    }
}

/// Adds the ends of lines through readings that leave none out by more than it is uncertain, all but the first one's begin.
fn simplify(readings: &[Reading], points: &mut Vec<(i64, i64)>) {
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
    fn clocks_that_stay_together_need_no_lines() {
        let wall = Wall::of((0..100).map(|at| read(at, 5_000 + at % 7)).collect()).unwrap();
        assert_eq!(wall.curve.as_shift(), Some(5_000));
        assert_eq!((wall.steps, wall.doubt_ns(0)), (0, 101));
    }

    #[test]
    fn a_drift_is_followed_where_it_changes() {
        let ahead = |at: i64| {
            if at < 500 {
                at * 40_000
            } else {
                20_000_000 - (at - 500) * 90_000
            }
        };
        let wall = Wall::of((0..1_000).map(|at| read(at, ahead(at))).collect()).unwrap();
        assert_eq!(wall.steps, 0);
        for at in 0..1_000 {
            let at_ns = at * 1_000_000_000;
            let off = wall
                .curve
                .at(at_ns)
                .abs_diff(at_ns + ahead(at))
                .cast_signed();
            assert!(off <= 450_000, "{at}: {off}"); // a window may hold the bend
            assert!(
                at > 480 && at < 520 || off <= wall.doubt_ns(at_ns),
                "{at}: {off}"
            );
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

    #[test]
    fn no_readings_say_nothing() {
        assert!(Wall::of(Vec::new()).is_none());
    }
}
