//! A time as a function of another one that never falls, in straight lines between knots. Whole ns in, whole ns out.

/// Times beyond this are cut off: no sum of two of them may overflow. Wall times of today are below it.
pub(crate) const LIMIT_NS: i64 = i64::MAX / 4;
/// How far beyond the last knot the slope of what is put together is looked for.
pub(super) const BEYOND_NS: i64 = 1_000_000_000_000;

/// Straight lines between knots; beyond them the first and the last line go on. One knot alone has slope 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    /// In their order; neither part ever falls.
    knots: Vec<(i64, i64)>,
}

impl Default for Curve {
    /// Adds nothing.
    fn default() -> Curve {
        Curve::shift(0)
    }
}

impl Curve {
    /// Adds the same to every time.
    pub fn shift(ns: i64) -> Curve {
        Curve {
            knots: vec![(0, clamp(ns))],
        }
    }

    /// The lines through these points, of which the first parts must rise. A point that is lower than the one before is raised to it.
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

    /// What it adds, if that is always the same.
    pub fn as_shift(&self) -> Option<i64> {
        match self.knots.as_slice() {
            [(x, y)] => Some(y - x),
            _ => None,
        }
    }

    /// Its value.
    pub fn at(&self, x: i64) -> i64 {
        let [from, to] = self.line(|knot| knot.0 <= x);
        clamp(line(x, from, to))
    }

    /// Where its value is `y`, to a ns.
    pub fn back(&self, y: i64) -> i64 {
        let [(x0, y0), (x1, y1)] = self.line(|knot| knot.1 <= y);
        if y0 == y1 {
            return x0;
        }
        clamp(line(y, (y0, x0), (y1, x1)))
    }

    /// Two points of the line that holds, if the knots for which `is_before` are those before it.
    fn line(&self, is_before: impl Fn(&(i64, i64)) -> bool) -> [(i64, i64); 2] {
        if let [(x, y)] = *self.knots.as_slice() {
            return [(x, y), (x + 1, y + 1)];
        }
        let behind = self.knots.partition_point(is_before);
        let first = behind.clamp(1, self.knots.len() - 1) - 1;
        [self.knots[first], self.knots[first + 1]]
    }

    /// This, and another one of what it gives.
    pub(crate) fn then(&self, next: &Curve) -> Curve {
        let own = self.knots.iter().map(|knot| knot.0);
        let of_next = next.knots.iter().map(|knot| self.back(knot.0));
        self.with_knots(own.chain(of_next), |x| next.at(self.at(x)))
    }

    /// This, and then back on another one.
    pub(crate) fn then_back(&self, next: &Curve) -> Curve {
        if let (Some(one), Some(other)) = (self.as_shift(), next.as_shift()) {
            return Curve::shift(one.saturating_sub(other));
        }
        let own = self.knots.iter().map(|knot| knot.0);
        let of_next = next.knots.iter().map(|knot| self.back(knot.1));
        self.with_knots(own.chain(of_next), |x| next.back(self.at(x)))
    }

    /// What `value` gives, which bends nowhere but at these.
    fn with_knots(&self, knots: impl Iterator<Item = i64>, value: impl Fn(i64) -> i64) -> Curve {
        let mut xs: Vec<i64> = knots.collect();
        xs.sort_unstable();
        if let (Some(first), Some(last)) = (xs.first().copied(), xs.last().copied()) {
            xs.insert(0, first.saturating_sub(BEYOND_NS));
            xs.push(last.saturating_add(BEYOND_NS));
        }
        Curve::through(xs.into_iter().map(|x| (x, value(x))))
    }

    /// The same of times that are ahead of its own by `ns`.
    pub fn of_ahead(&self, ns: i64) -> Curve {
        let knots = self.knots.iter();
        let ahead = knots.map(|(x, y)| (clamp(x.saturating_add(ns)), *y));
        Curve {
            knots: ahead.collect(),
        }
    }
}

/// The time, kept within what sums of several cannot leave 64 bits with.
pub fn clamp(ns: i64) -> i64 {
    ns.clamp(-LIMIT_NS, LIMIT_NS)
}

/// The line through two points at `x`. It is rounded down, so that it never falls and meets both points.
fn line(x: i64, from: (i64, i64), to: (i64, i64)) -> i64 {
    near_line(x, from, to).unwrap_or_else(|| any_line(x, from, to))
}

/// The same where nothing is too large for it: lines are almost as steep as clocks are fast, so that by how much they are not is little.
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
    fn a_curve_never_falls_and_comes_back() {
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
    fn curves_are_put_together() {
        let one = Curve::through([(0, 10), (1_000_000, 1_000_110)]);
        let other = Curve::through([(500_000, 400_000), (3_000_000, 2_900_400)]);
        let (then, back) = (one.then(&other), one.then_back(&other));
        for x in (-5_000_000..5_000_000).step_by(7_919) {
            assert!(then.at(x).abs_diff(other.at(one.at(x))) <= 2, "{x}");
            assert!(back.at(x).abs_diff(other.back(one.at(x))) <= 2, "{x}");
        }
        assert!(one.of_ahead(77).at(78) == one.at(1));
    }
}
