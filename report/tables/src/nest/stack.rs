//! The slices of one track that may contain the next one, as Perfetto's importer keeps them.

use trace_base::span_stack::{OpenSpan, SpanStack, UNFINISHED};

/// Slices on one stack.
pub(crate) const MOST: usize = 1 << 16;

/// Where a slice lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) depth: i32,
    pub(crate) parent: Option<i64>,
    /// Whether the stack has no room for it.
    pub(crate) is_left_out: bool,
}

/// The slices of a track at a time, by their ids. Events are to come in the order of [`Item`](crate::gather::item::Item).
#[derive(Debug, Default)]
pub(crate) struct Stack {
    slices: SpanStack<i64>,
    /// The depths of slices with an end.
    ended: Vec<usize>,
}

impl Stack {
    pub(crate) fn len(&self) -> usize {
        self.slices.len()
    }

    /// Puts a slice on the stack, unless so many are there; an `X` and an instant have a duration. One that crosses another one, which Perfetto drops, lies in what
    /// contains it, and nothing lies in it.
    pub(crate) fn begin(
        &mut self,
        id: i64,
        start_ns: i64,
        dur_ns: Option<i64>,
        most: usize,
    ) -> Place {
        let crossed = self.close(start_ns, dur_ns);
        let end_ns = dur_ns.map_or(UNFINISHED, |dur_ns| start_ns.saturating_add(dur_ns));
        let around = match crossed {
            None => self.slices.len(),
            Some(at) => {
                let contains = |open: &OpenSpan<i64>| open.end_ns >= end_ns;
                let around = self.slices.iter().take(at).rposition(contains);
                around.map_or(0, |at| at + 1)
            }
        };
        let parent = around.checked_sub(1).and_then(|at| self.slices.get(at));
        let place = Place {
            depth: i32::try_from(around).unwrap_or(i32::MAX),
            parent: parent.map(|parent| parent.value),
            is_left_out: crossed.is_none() && self.slices.len() >= most,
        };
        if crossed.is_none() && !place.is_left_out {
            if dur_ns.is_some() {
                self.ended.push(self.slices.len());
            }
            self.slices.push(OpenSpan {
                start_ns,
                end_ns,
                value: id,
            });
        }
        place
    }

    /// Ends an open slice that began at `start_ns`.
    pub(crate) fn end(&mut self, ts_ns: i64, start_ns: Option<i64>) {
        self.close(ts_ns, None);
        let Some(at) = start_ns.and_then(|start_ns| self.slices.end(start_ns, ts_ns)) else {
            return;
        };
        if at + 1 == self.slices.len() {
            self.slices.truncate(at);
            return;
        }
        let place = self.ended.partition_point(|ended| *ended < at);
        self.ended.insert(place, at);
    }

    /// The slice that an arrow binds to: the one that began last, even if it has ended, unless another event has taken it off. Its id, and when
    /// it began.
    pub(crate) fn top(&self) -> Option<(i64, i64)> {
        let top = self.slices.innermost();
        top.map(|open| (open.value, open.start_ns))
    }

    /// Takes off what has ended, for something that begins at `ts_ns`; which slice that crosses, if it has a duration and does. Open slices on one that has ended
    /// go with it.
    fn close(&mut self, ts_ns: i64, dur_ns: Option<i64>) -> Option<usize> {
        // Slices without an end have no say, and there may be very many: only those with one are looked at.
        for nth in (0..self.ended.len()).rev() {
            let at = self.ended[nth];
            let Some(open) = self.slices.get(at).copied() else {
                continue;
            };
            let ended_above = self.ended.len() - nth - 1;
            let is_open_above = self.slices.len() - at - 1 > ended_above;
            if is_open_above {
                if ts_ns > open.end_ns {
                    self.truncate(at);
                }
                continue;
            }
            // Instants of one time lie on each other.
            let are_instants = open.start_ns == open.end_ns && dur_ns == Some(0);
            if open.end_ns < ts_ns || open.end_ns == ts_ns && !are_instants {
                self.truncate(self.slices.len() - 1);
            } else if dur_ns
                .is_some_and(|dur| ts_ns < open.end_ns && ts_ns.saturating_add(dur) > open.end_ns)
            {
                return Some(at);
            }
        }
        None
    }

    fn truncate(&mut self, len: usize) {
        self.slices.truncate(len);
        let ended = self.ended.partition_point(|at| *at < len);
        self.ended.truncate(ended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each event used to go over all of them: an hour of it.
    #[test]
    fn many_begins_without_an_end_cost_little() {
        let mut stack = Stack::default();
        let many = i32::try_from(MOST).unwrap() - 2;
        for nth in 0..many.into() {
            stack.begin(nth, nth, None, MOST);
        }
        for nth in 1 << 20..1 << 22 {
            let place = stack.begin(nth, nth, Some(1), MOST);
            assert_eq!(place.depth, many);
            stack.end(nth, Some(1 << 19));
        }
    }
}
