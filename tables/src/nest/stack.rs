//! The slices of one track that may contain the next one, as Perfetto's importer keeps them.

/// Slices on one stack; further ones do not go on it.
const MOST: usize = 1 << 16;

/// A slice on a stack. Without an end it is open.
#[derive(Clone, Copy, Debug)]
struct Open {
    id: i64,
    start_ns: i64,
    end_ns: Option<i64>,
}

/// Where a slice lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) depth: i32,
    pub(crate) parent: Option<i64>,
}

/// The slices of a track at a time. Events are to come in the order of [`Item`](crate::gather::item::Item).
#[derive(Debug, Default)]
pub(crate) struct Stack {
    slices: Vec<Open>,
}

impl Stack {
    /// Puts a slice on the stack; an `X` and an instant have a duration. One that crosses another one, which Perfetto drops, lies in what contains it,
    /// and nothing lies in it.
    pub(crate) fn begin(&mut self, id: i64, start_ns: i64, dur_ns: Option<i64>) -> Place {
        let crossed = self.close(start_ns, dur_ns);
        let end_ns = dur_ns.map(|dur_ns| start_ns.saturating_add(dur_ns));
        let around = match crossed {
            None => self.slices.len(),
            Some(at) => {
                let contains = |open: &Open| open.end_ns.is_none_or(|end| Some(end) >= end_ns);
                let around = self.slices[..at].iter().rposition(contains);
                around.map_or(0, |at| at + 1)
            }
        };
        let place = Place {
            depth: i32::try_from(around).unwrap_or(i32::MAX),
            parent: around.checked_sub(1).map(|at| self.slices[at].id),
        };
        if crossed.is_none() && self.slices.len() < MOST {
            self.slices.push(Open {
                id,
                start_ns,
                end_ns,
            });
        }
        place
    }

    /// Ends an open slice that began at `start_ns`.
    pub(crate) fn end(&mut self, ts_ns: i64, start_ns: Option<i64>) {
        self.close(ts_ns, None);
        let is_its = |open: &Open| open.end_ns.is_none() && Some(open.start_ns) == start_ns;
        let Some(at) = self.slices.iter().rposition(is_its) else {
            return;
        };
        self.slices[at].end_ns = Some(ts_ns);
        if at + 1 == self.slices.len() {
            self.slices.pop();
        }
    }

    /// The slice that an arrow binds to: the one that began last, even if it has ended, unless another event has taken it off. Its id, and when
    /// it began.
    pub(crate) fn top(&self) -> Option<(i64, i64)> {
        self.slices.last().map(|open| (open.id, open.start_ns))
    }

    /// Takes off what has ended, for something that begins at `ts_ns`; which slice that crosses, if it has a duration and does. Open slices on one that has ended
    /// go with it.
    fn close(&mut self, ts_ns: i64, dur_ns: Option<i64>) -> Option<usize> {
        let mut is_open_above = false;
        for at in (0..self.slices.len()).rev() {
            let open = self.slices[at];
            let Some(end_ns) = open.end_ns else {
                is_open_above = true;
                continue;
            };
            if is_open_above {
                if ts_ns > end_ns {
                    self.slices.truncate(at);
                    is_open_above = false;
                }
                continue;
            }
            // Instants of one time lie on each other.
            let are_instants = open.start_ns == end_ns && dur_ns == Some(0);
            if end_ns < ts_ns || end_ns == ts_ns && !are_instants {
                self.slices.pop();
            } else if dur_ns.is_some_and(|dur| ts_ns < end_ns && ts_ns.saturating_add(dur) > end_ns)
            {
                return Some(at);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(depth: i32, parent: Option<i64>) -> Place {
        Place { depth, parent }
    }

    #[test]
    fn spans_lie_in_what_contains_them() {
        let mut stack = Stack::default();
        assert_eq!(stack.begin(1, 0, Some(100)), place(0, None));
        assert_eq!(stack.begin(2, 0, Some(50)), place(1, Some(1)));
        assert_eq!(stack.begin(3, 50, Some(50)), place(1, Some(1)));
        assert_eq!(stack.top(), Some((3, 50)));
        assert_eq!(stack.begin(4, 100, Some(1)), place(0, None));
        // It crosses the one before, and the next one does not lie in it.
        assert_eq!(stack.begin(5, 100, Some(7)), place(0, None));
        assert_eq!(stack.begin(6, 102, Some(1)), place(0, None));
    }

    #[test]
    fn instants_of_one_time_lie_on_each_other() {
        let mut stack = Stack::default();
        stack.begin(1, 0, Some(10));
        assert_eq!(stack.begin(2, 10, Some(0)), place(0, None));
        assert_eq!(stack.begin(3, 10, Some(0)), place(1, Some(2)));
        assert_eq!(stack.begin(4, 11, Some(0)), place(0, None));
    }

    #[test]
    fn begins_lie_in_what_has_no_end_yet() {
        let mut stack = Stack::default();
        assert_eq!(stack.begin(1, 0, None), place(0, None));
        assert_eq!(stack.begin(2, 5, None), place(1, Some(1)));
        stack.end(9, Some(5));
        assert_eq!(stack.top(), Some((1, 0)));
        assert_eq!(stack.begin(3, 9, Some(3)), place(1, Some(1)));
        stack.end(20, Some(0));
        assert_eq!(stack.top(), None);
        // Without an end it ends with the one around it.
        stack.begin(4, 30, Some(10));
        assert_eq!(stack.begin(5, 31, None), place(1, Some(4)));
        assert_eq!(stack.begin(6, 41, Some(1)), place(0, None));
    }
}
