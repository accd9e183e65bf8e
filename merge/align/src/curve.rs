//! A piecewise linear function from one time to another that never decreases. Both times are whole ns.

/// Maximum absolute value of a time, so that the sum of two times does not overflow. Today's wall times are less.
pub(crate) const LIMIT_NS: i64 = i64::MAX / 4;
/// Distance beyond the last knot at which the slope of a composed curve is evaluated.
pub(super) const BEYOND_NS: i64 = 1_000_000_000_000;

/// Straight lines between knots. The first and the last line continue beyond them. A single knot has slope 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    /// Points in ascending order of both times.
    knots: Vec<(i64, i64)>,
}

impl Default for Curve {
    /// Returns the identity.
    fn default() -> Curve {
        Curve::shift(0)
    }
}

impl Curve {
    /// Creates a curve that adds a constant to every time.
    pub fn shift(ns: i64) -> Curve {
        Curve {
            knots: vec![(0, clamp(ns))],
        }
    }

    /// Creates lines through these points. Points whose first time does not increase are ignored. A point that is lower than the previous one is raised to its
    /// height.
    pub(crate) fn through(points: impl IntoIterator<Item = (i64, i64)>) -> Curve {
        let mut knots: Vec<(i64, i64)> = Vec::new();
        for (x, y) in points {
            match knots.last() {
                Some((last, _)) if x <= *last => {}
                Some((_, low)) => knots.push((x, y.max(*low))),
                None => knots.push((x, y)),
            }
        }
        if knots.is_empty() {
            knots.push((0, 0));
        }
        let is_shift = |knot: &(i64, i64)| knot.1 - knot.0 == knots[0].1 - knots[0].0;
        if knots.iter().all(is_shift) {
            return Curve::shift(knots[0].1 - knots[0].0);
        }
        Curve { knots }
    }

    /// Returns the constant that the curve adds to every time, if it does.
    pub fn as_shift(&self) -> Option<i64> {
        match self.knots.as_slice() {
            [(x, y)] => Some(y - x),
            _ => None,
        }
    }

    /// Returns the value at `x`.
    pub fn at(&self, x: i64) -> i64 {
        let [from, to] = self.line(|knot| knot.0 <= x);
        clamp(line(x, from, to))
    }

    /// Returns the time with value `y`, accurate to 1 ns.
    pub fn back(&self, y: i64) -> i64 {
        let [(x0, y0), (x1, y1)] = self.line(|knot| knot.1 <= y);
        if y0 == y1 {
            return x0;
        }
        clamp(line(y, (y0, x0), (y1, x1)))
    }

    /// Returns two points of the line after the last knot for which `is_before` is true.
    fn line(&self, is_before: impl Fn(&(i64, i64)) -> bool) -> [(i64, i64); 2] {
        if let [(x, y)] = *self.knots.as_slice() {
            return [(x, y), (x + 1, y + 1)];
        }
        let after = self.knots.partition_point(is_before);
        let first = after.clamp(1, self.knots.len() - 1) - 1;
        [self.knots[first], self.knots[first + 1]]
    }

    /// Returns the composition of this curve and then `next`.
    pub(crate) fn then(&self, next: &Curve) -> Curve {
        let own = self.knots.iter().map(|knot| knot.0);
        let from_next = next.knots.iter().map(|knot| self.back(knot.0));
        Curve::sampled(own.chain(from_next), |x| next.at(self.at(x)))
    }

    /// Returns the composition of this curve and then the inverse of `next`.
    pub(crate) fn then_inverse(&self, next: &Curve) -> Curve {
        if let (Some(one), Some(other)) = (self.as_shift(), next.as_shift()) {
            return Curve::shift(one.saturating_sub(other));
        }
        let own = self.knots.iter().map(|knot| knot.0);
        let from_next = next.knots.iter().map(|knot| self.back(knot.1));
        Curve::sampled(own.chain(from_next), |x| next.back(self.at(x)))
    }

    /// Creates the curve of a function that changes its slope only at these knots.
    fn sampled(knots: impl Iterator<Item = i64>, value: impl Fn(i64) -> i64) -> Curve {
        let mut xs: Vec<i64> = knots.collect();
        xs.sort_unstable();
        if let (Some(first), Some(last)) = (xs.first().copied(), xs.last().copied()) {
            xs.insert(0, first.saturating_sub(BEYOND_NS));
            xs.push(last.saturating_add(BEYOND_NS));
        }
        Curve::through(xs.into_iter().map(|x| (x, value(x))))
    }

    /// Returns the curve from a clock that is ahead of this curve's clock by `ns`.
    pub fn from_ahead(&self, ns: i64) -> Curve {
        let knots = self.knots.iter();
        let ahead = knots.map(|(x, y)| (clamp(x.saturating_add(ns)), *y));
        Curve {
            knots: ahead.collect(),
        }
    }
}

/// Limits a time so that sums of several do not exceed 64 bits.
pub fn clamp(ns: i64) -> i64 {
    ns.clamp(-LIMIT_NS, LIMIT_NS)
}

/// Returns the value at `x` of the line through two points. It is rounded down, so that it never decreases and passes through both points.
fn line(x: i64, from: (i64, i64), to: (i64, i64)) -> i64 {
    near_line(x, from, to).unwrap_or_else(|| any_line(x, from, to))
}

/// Evaluates a line in 64 bits, or returns `None` if a number is too large. Most lines have a slope close to 1, so the product with the difference is small.
fn near_line(x: i64, (x0, y0): (i64, i64), (x1, y1): (i64, i64)) -> Option<i64> {
    let (run, rise) = (x1.checked_sub(x0)?, y1.checked_sub(y0)?);
    let beyond = x.checked_sub(x0)?;
    let bent = beyond.checked_mul(rise.checked_sub(run)?)?;
    let bent = bent.checked_div_euclid(run)?;
    y0.checked_add(beyond)?.checked_add(bent)
}

fn any_line(x: i64, (x0, y0): (i64, i64), (x1, y1): (i64, i64)) -> i64 {
    let (run, rise) = (
        i128::from(x1) - i128::from(x0),
        i128::from(y1) - i128::from(y0),
    );
    let beyond = (i128::from(x) - i128::from(x0)) * rise;
    let y = i128::from(y0) + beyond.div_euclid(run.max(1));
    let most = if y < 0 { i64::MIN } else { i64::MAX };
    i64::try_from(y).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_never_decreases_and_has_an_inverse() {
        let curve = Curve::through([(0, 100), (1_000_000, 1_000_050), (2_000_000, 2_000_300)]);
        let mut last = i64::MIN;
        for x in (-3_000..3_000)
            .chain(990_000..1_010_000)
            .chain(1_999_000..2_100_000)
        {
            let y = curve.at(x);
            assert!(y >= last, "{x}");
            assert!(curve.back(y).abs_diff(x) <= 1, "{x}");
            last = y;
        }
        assert_eq!(
            [0, 1_000_000, 2_000_000].map(|x| curve.at(x)),
            [100, 1_000_050, 2_000_300]
        );
    }

    #[test]
    fn curves_are_composed() {
        let one = Curve::through([(0, 10), (1_000_000, 1_000_110)]);
        let other = Curve::through([(500_000, 400_000), (3_000_000, 2_900_400)]);
        let (then, back) = (one.then(&other), one.then_inverse(&other));
        for x in (-5_000_000..5_000_000).step_by(7_919) {
            assert!(then.at(x).abs_diff(other.at(one.at(x))) <= 2, "{x}");
            assert!(back.at(x).abs_diff(other.back(one.at(x))) <= 2, "{x}");
        }
        assert!(one.from_ahead(77).at(78) == one.at(1));
    }
}
