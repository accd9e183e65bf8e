//! Learns from the kernel's coarse clock, while a thread works, when the kernel ticks.
//!
//! The coarse clock changes with each tick. It lags the exact clock by a constant distance, apart from clock corrections of a few
//! microseconds per second. If a thread sees it change between two readings and ran all the time in between, it has measured an upper
//! bound of that distance.
//!
//! Ticks may come late, for example on a virtual machine that has lost a core. The coarse clock is then older than the length of a
//! tick.

use super::clock::Clocks;

/// Number of observed changes after which the smallest distance is used.
const ENOUGH: i64 = 8;
/// Divisor of a tick's length. A tick that is late by less than the result is on time.
const PUNCTUAL: i64 = 16;
/// Length of a period of observations. The observations of the previous period are used too.
const FRESH_NS: i64 = 5_000_000_000;

/// An estimate of when the kernel ticks, and of how late ticks are.
pub(crate) struct Ticks<C> {
    clocks: C,
    length_ns: i64,
    began_ns: i64,
    current: Observed,
    /// Observations in the period before the current one.
    previous: Observed,
    /// Sum of the observed ages of the coarse clock, and their number.
    ages_ns: i64,
    ages: i64,
}

/// Distances between the two clocks that were observed in one period.
#[derive(Clone, Copy)]
struct Observed {
    min_distance_ns: i64,
    max_age_ns: i64,
    changes: i64,
}

impl Observed {
    fn none(length_ns: i64) -> Observed {
        Observed {
            min_distance_ns: length_ns,
            max_age_ns: 0,
            changes: 0,
        }
    }
}

impl<C: Clocks> Ticks<C> {
    /// Creates an estimate of when the Linux kernel's timer ticks. `length_ns` is the length of a tick, or 0 on a machine without a coarse clock.
    pub(crate) fn new(length_ns: i64, clocks: C) -> Ticks<C> {
        Ticks {
            length_ns,
            began_ns: clocks.now_ns(),
            clocks,
            current: Observed::none(length_ns),
            previous: Observed::none(length_ns),
            ages_ns: 0,
            ages: 0,
        }
    }

    /// Returns the length of a timer tick in ns.
    pub(crate) fn length_ns(&self) -> i64 {
        self.length_ns
    }

    /// Reads the kernel's coarse clock, in ns, at the beginning of a period of work.
    pub(crate) fn coarse_ns(&self) -> i64 {
        self.clocks.coarse_ns()
    }

    /// Ends a period in which the thread worked, and learns from it when the kernel's timer ticks. `since` is what `coarse_ns` returned at its beginning.
    pub(crate) fn end_work(&mut self, since: i64) {
        let (coarse_ns, now_ns) = (self.coarse_ns(), self.clocks.now_ns());
        self.observe(since, coarse_ns, now_ns);
        self.observe_age(coarse_ns, now_ns);
    }

    /// Ends a period of work like `end_work`, but at less cost, for frequent periods. It does not measure the age of the coarse clock, because
    /// that would only happen right after ticks.
    pub(crate) fn end_frequent_work(&mut self, since: i64) {
        let coarse_ns = self.coarse_ns();
        if coarse_ns != since {
            self.observe(since, coarse_ns, self.clocks.now_ns());
        }
    }

    fn observe(&mut self, since: i64, coarse_ns: i64, now_ns: i64) {
        self.expire(now_ns);
        if coarse_ns != since {
            self.current.min_distance_ns = self.current.min_distance_ns.min(now_ns - coarse_ns);
            self.current.changes += 1;
        }
    }

    /// Records how old the coarse clock's value `coarse_ns` was at the time `now_ns`, unless the clock has ticked since.
    pub(crate) fn observe_age(&mut self, coarse_ns: i64, now_ns: i64) {
        if self.coarse_ns() == coarse_ns {
            let age_ns = now_ns - coarse_ns;
            self.current.max_age_ns = self.current.max_age_ns.max(age_ns);
            self.ages_ns += age_ns;
            self.ages += 1;
        }
    }

    /// Returns the average delay of the kernel's timer ticks in ns: the average age of the coarse clock, beyond half a tick. Returns 0 if no tick was observed
    /// to be late.
    pub(crate) fn lag_ns(&self) -> i64 {
        if self.late_ns() < self.length_ns || self.ages < ENOUGH {
            return 0;
        }
        (self.ages_ns / self.ages - self.min_distance_ns() - self.length_ns / 2).max(0)
    }

    /// Returns the maximum delay of the kernel's timer ticks in ns. All ticks are slightly late. If some were observed to be later, unobserved ones may be
    /// later still: up to a tick beyond the next whole tick.
    pub(crate) fn late_ns(&self) -> i64 {
        let max_age_ns = self.current.max_age_ns.max(self.previous.max_age_ns);
        let seen_ns = max_age_ns - self.min_distance_ns() - self.length_ns;
        let little_ns = self.length_ns / PUNCTUAL;
        if self.length_ns == 0 || seen_ns <= little_ns {
            return little_ns;
        }
        let whole = (seen_ns + self.length_ns - 1) / self.length_ns;
        little_ns + (1 + whole) * self.length_ns
    }

    /// Returns the time of the kernel's last timer tick until `now_ns`. `coarse_ns` is the latest value of the coarse clock. Returns `None` while too few
    /// ticks have been observed.
    pub(crate) fn last_ns(&mut self, coarse_ns: i64, now_ns: i64) -> Option<i64> {
        self.expire(now_ns);
        let changes = self.current.changes + self.previous.changes;
        (changes >= ENOUGH).then(|| now_ns.min(coarse_ns + self.min_distance_ns()))
    }

    fn min_distance_ns(&self) -> i64 {
        self.current
            .min_distance_ns
            .min(self.previous.min_distance_ns)
    }

    /// Drops observations that are too old at the time `now_ns`. Those of the current and the previous period of 5 s remain.
    fn expire(&mut self, now_ns: i64) {
        let age_ns = now_ns - self.began_ns;
        if age_ns <= FRESH_NS {
            return;
        }
        let empty = Observed::none(self.length_ns);
        if age_ns <= 2 * FRESH_NS {
            self.previous = self.current;
            self.ages_ns /= 2;
            self.ages /= 2;
        } else {
            self.previous = empty;
            self.ages_ns = 0;
            self.ages = 0;
        }
        self.current = empty;
        self.began_ns = now_ns;
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "times of tests are small")]
mod tests {
    use std::cell::Cell;

    use super::super::arrival::{Reader, Unread, estimate_arrival};
    use super::*;

    const START_NS: i64 = 123_456_789;

    /// Returns a generator of reproducible pseudo-random numbers, from 0 up to but excluding its argument.
    fn random() -> impl FnMut(f64) -> i64 {
        let mut state: u64 = 5;
        move |below| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 / (1_u64 << 53) as f64 * below) as i64
        }
    }

    /// A clock that a test sets, and a coarse clock computed from it.
    struct Moved<'a, F> {
        now_ns: &'a Cell<i64>,
        coarse: F,
    }

    impl<F: Fn(i64) -> i64> Clocks for Moved<'_, F> {
        fn coarse_ns(&self) -> i64 {
            (self.coarse)(self.now_ns.get())
        }

        fn now_ns(&self) -> i64 {
            self.now_ns.get()
        }
    }

    /// Checks that ticks are learned if they are at multiples of their length and the coarse clock lags by a constant distance.
    fn check_learning(length_ns: i64, work_ticks: f64) {
        let (mut random, clock) = (random(), Cell::new(START_NS));
        let distance_ns = length_ns * 7 / 10;
        let coarse = |now_ns: i64| now_ns / length_ns * length_ns - distance_ns;
        let now_ns = &clock;
        let mut ticks = Ticks::new(length_ns, Moved { now_ns, coarse });
        let step = |ns: i64| clock.set(clock.get() + ns);
        assert_eq!(ticks.last_ns(ticks.coarse_ns(), clock.get()), None);
        let mut off = Vec::new();
        for number in 0..3000 {
            let since = ticks.coarse_ns();
            step(random(work_ticks * length_ns as f64));
            ticks.end_work(since);
            step(random(length_ns as f64));
            let last_ns = ticks.last_ns(ticks.coarse_ns(), clock.get());
            if let Some(last_ns) = last_ns.filter(|_| number > 1000) {
                off.push((last_ns - clock.get() / length_ns * length_ns).abs());
            }
        }
        off.sort_unstable();
        assert!(off.len() > 500, "{length_ns} {work_ticks}: {}", off.len());
        // One in a hundred may be off by a whole tick, if it is at the beginning of a tick.
        let most = off[off.len() * 99 / 100];
        assert!(most < length_ns / 8, "{length_ns} {work_ticks}: {most}");
        step(3 * FRESH_NS);
        assert_eq!(ticks.last_ns(ticks.coarse_ns(), clock.get()), None);
    }

    #[test]
    fn ticks_are_learned_from_periods_of_work() {
        for length_ns in [1_000_000, 4_000_000, 10_000_000] {
            for work_ticks in [0.02, 0.3, 1.2] {
                check_learning(length_ns, work_ticks);
            }
        }
    }

    /// Checks the delays if every seventh tick is late by this many ticks. Ticks that would come before it then come with it.
    fn check_delays(late: f64, whole: i64) {
        let length_ns = 4_000_000;
        let (mut random, clock) = (random(), Cell::new(START_NS));
        let coarse = |now_ns: i64| {
            let tick = now_ns / length_ns;
            let behind_ns = tick % 7 * length_ns + now_ns % length_ns;
            let is_late = (behind_ns as f64) < late * length_ns as f64;
            (if is_late { tick - 1 - tick % 7 } else { tick }) * length_ns
        };
        let now_ns = &clock;
        let mut ticks = Ticks::new(length_ns, Moved { now_ns, coarse });
        for _ in 0..500 {
            let since = ticks.coarse_ns();
            clock.set(clock.get() + random(length_ns as f64));
            ticks.end_work(since);
        }
        let punctual_ns = length_ns / PUNCTUAL;
        assert_eq!(ticks.late_ns(), whole * length_ns + punctual_ns, "{late}");
        // One tick in seven is late by the full delay, and the next ones by what is left of it.
        let shares = (0..7).map(|at| (late - f64::from(at)).max(0.0));
        let lag = if whole > 0 {
            shares.sum::<f64>() / 7.0
        } else {
            0.0
        };
        let found = ticks.lag_ns() as f64 / length_ns as f64;
        assert!((found - lag).abs() < 0.1, "{late}: {found} {lag}");
        clock.set(clock.get() + 3 * FRESH_NS);
        ticks.last_ns(ticks.coarse_ns(), clock.get());
        assert_eq!(ticks.late_ns(), punctual_ns);
    }

    #[test]
    fn late_ticks_are_reported_in_whole_ticks() {
        for (by, whole) in [(0.0, 0), (0.01, 0), (0.4, 2), (1.0, 2), (1.7, 3)] {
            check_delays(by, whole);
        }
    }

    #[test]
    fn without_a_coarse_clock_no_tick_is_known() {
        let clock = Cell::new(5);
        let coarse = |_| 0;
        let now_ns = &clock;
        let mut ticks = Ticks::new(0, Moved { now_ns, coarse });
        ticks.end_work(ticks.coarse_ns());
        ticks.observe_age(0, 5_000_000);
        assert_eq!(ticks.last_ns(0, 5), None);
        assert_eq!((ticks.late_ns(), ticks.lag_ns()), (0, 0));
        let unread = Unread {
            now_ns: 5,
            tick_ns: None,
            length_ns: 0,
            unread_ns: 40_000_000,
        };
        let found = estimate_arrival(&unread, &Reader::default());
        assert_eq!((found.ns, found.uncertainty_ns), (5, 0));
    }
}
