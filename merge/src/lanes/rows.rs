//! The rows on which a viewer shows a thread whose spans overlap: on each of them any two spans nest.

use crate::pass::nesting::Span;
use crate::span::lane_event::UNFINISHED;
use std::collections::VecDeque;

/// Rows of a thread, its own one included. What fits on none of them stays on its own one, and is told.
const ROWS: usize = 256;
/// Spans that may be open on all rows. With more of them the outermost of a row is forgotten: what outlasts it is not seen to.
const OPEN: usize = 1 << 17;

struct LaneSpan {
    end: i64,
    /// How many spans were placed before it, on all rows.
    nth: u64,
}

impl LaneSpan {
    /// When it began, among all spans; `None` if it never ends. What comes after such a one is hardly part of it: it only seems so for
    /// as long as the trace lasts.
    fn rank(&self) -> Option<u64> {
        (self.end != UNFINISHED).then_some(self.nth)
    }
}

/// The rows of one thread, each with the spans that are open on it.
pub(crate) struct LaneRows {
    rows: Vec<VecDeque<LaneSpan>>,
    /// Open spans on all of them.
    open: usize,
    placed: u64,
    /// The row of the span that was placed last.
    last: usize,
}

impl Default for LaneRows {
    fn default() -> Self {
        LaneRows {
            rows: vec![VecDeque::new()],
            open: 0,
            placed: 0,
            last: 0,
        }
    }
}

impl LaneRows {
    /// The row for a span: of those on which it nests the one whose innermost open span began last, for that is most likely what it
    /// is part of; a row on which only unfinished spans are open counts as empty, and of empty ones the first is taken. `None` if it nests on
    /// none. Spans come as viewers take them: by their begin, of those that begin together the longest first.
    pub(crate) fn place(&mut self, (start, end): Span) -> Option<usize> {
        let mut best: Option<(Option<u64>, usize)> = None;
        for (number, row) in self.rows.iter_mut().enumerate() {
            while row.back().is_some_and(|open| open.end <= start) {
                row.pop_back();
                self.open -= 1;
            }
            let began = match row.back() {
                Some(open) if end <= open.end => open.rank(),
                Some(_) => continue,
                None => None,
            };
            if best.is_none_or(|(best, _)| began > best) {
                best = Some((began, number));
            }
        }
        let row = match best {
            Some((_, row)) => row,
            None if self.rows.len() < ROWS => {
                self.rows.push(VecDeque::new());
                self.rows.len() - 1
            }
            None => return None,
        };
        let (nth, open) = (self.placed, &mut self.rows[row]);
        open.push_back(LaneSpan { end, nth });
        self.open += 1;
        if self.open > OPEN {
            open.pop_front();
            self.open -= 1;
        }
        (self.placed, self.last) = (nth + 1, row);
        Some(row)
    }

    /// The row for what happens at a time, after all spans that begin by then: that of the open span that began last and
    /// will end, else of the one that never ends and began last, else of the last one that began.
    pub(crate) fn at(&mut self, time: i64) -> usize {
        let mut best = None;
        for (number, row) in self.rows.iter_mut().enumerate() {
            while row.back().is_some_and(|open| open.end < time) {
                row.pop_back();
                self.open -= 1;
            }
            let open = row.back().map(|open| (open.rank(), open.nth, number));
            best = best.max(open);
        }
        best.map_or(self.last, |(_, _, row)| row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_follows_the_span_that_moved() {
        let mut rows = LaneRows::default();
        let placed =
            [(0, 10), (5, 15), (6, 9), (11, 14), (12, 16), (20, 21)].map(|span| rows.place(span));
        assert_eq!(placed, [0, 1, 1, 1, 0, 0].map(Some));
    }

    #[test]
    fn any_two_spans_of_a_row_nest() {
        for seed in 1..300_u64 {
            let mut number = seed;
            let mut below = |bound: u64| {
                number = number
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(99);
                ((number >> 33) % bound).cast_signed()
            };
            let span = |_| (below(50), below(20));
            let mut spans: Vec<Span> = (0..40)
                .map(span)
                .map(|(start, dur)| (start, start + dur))
                .collect();
            spans.sort_by_key(|span| (span.0, std::cmp::Reverse(span.1)));
            let (mut rows, mut placed) = (LaneRows::default(), vec![Vec::new(); ROWS]);
            for span in spans {
                let row = rows.place(span).unwrap();
                let clashes =
                    |other: &Span| other.0 < span.0 && span.0 < other.1 && other.1 < span.1;
                assert!(
                    !placed[row].iter().any(clashes),
                    "{seed}: {span:?} on {row}"
                );
                placed[row].push(span);
            }
        }
    }

    #[test]
    fn what_happens_in_a_span_is_on_its_row() {
        let mut rows = LaneRows::default();
        assert_eq!(rows.at(-5), 0);
        rows.place((0, 10));
        rows.place((5, 15));
        assert_eq!([5, 10, 15].map(|time| rows.at(time)), [1, 1, 1]);
        assert_eq!(rows.at(16), 1, "where the last one was");
        rows.place((20, 30));
        assert_eq!(rows.at(20), 0);
    }

    #[test]
    fn an_unfinished_span_takes_nothing_along() {
        let mut rows = LaneRows::default();
        let placed = [(0, 10), (5, UNFINISHED), (6, 8)].map(|span| rows.place(span));
        assert_eq!(placed, [0, 1, 0].map(Some));
        assert_eq!(rows.at(9), 0, "in the span that ends");
        let placed = [(20, 30), (21, UNFINISHED), (22, 24), (40, 50)].map(|span| rows.place(span));
        assert_eq!(placed, [0, 1, 0, 0].map(Some));
        assert_eq!(rows.at(60), 1, "in the one that never ends");
        assert_eq!(rows.place((70, UNFINISHED)), Some(0));
        assert_eq!(rows.place((80, 90)), Some(0));
        assert_eq!(rows.at(95), 0, "in the later one that never ends");
    }

    #[test]
    fn there_are_only_so_many_rows() {
        let mut rows = LaneRows::default();
        for number in 0..400 {
            let row = rows.place((number, 1000 + number));
            let expected = usize::try_from(number).ok().filter(|number| *number < ROWS);
            assert_eq!(row, expected);
        }
    }

    #[test]
    fn what_is_open_is_bounded() {
        let mut rows = LaneRows::default();
        for number in 0..200_000 {
            assert_eq!(rows.place((number, 900_000 - number)), Some(0));
        }
        assert_eq!((rows.open, rows.rows[0].len()), (OPEN, OPEN));
        assert_eq!(rows.place((900_001, 900_002)), Some(0));
        assert_eq!((rows.open, rows.rows[0].len()), (1, 1));
    }
}
