//! The slices of one track that may contain the next slice, as in Perfetto's importer.

use trace_base::span_stack::{OpenSpan, SpanStack, UNFINISHED};

/// Maximum number of slices on one stack.
pub(crate) const MAX_SLICES: usize = 1 << 16;

/// Position of a slice among the other slices of its track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) depth: i32,
    pub(crate) parent: Option<i64>,
    /// True if the stack was full, so that the slice cannot contain others.
    pub(crate) is_left_out: bool,
}

/// Ids of the slices of a track at a certain time. Events have to come in the order of [`EventRecord`](crate::gather::event_record::EventRecord).
#[derive(Debug, Default)]
pub(crate) struct Stack {
    slices: SpanStack<i64>,
    /// Depths of the slices whose end is known.
    with_end: Vec<usize>,
}

impl Stack {
    pub(crate) fn len(&self) -> usize {
        self.slices.len()
    }

    /// Pushes a slice, unless `most` slices are on the stack. Complete spans and instants have a duration. A slice that overlaps another one, which Perfetto
    /// drops, gets the innermost slice that contains it as its parent. It cannot contain others.
    pub(crate) fn begin(
        &mut self,
        id: i64,
        start_ns: i64,
        dur_ns: Option<i64>,
        most: usize,
    ) -> Position {
        let overlapped = self.close(start_ns, dur_ns);
        let end_ns = dur_ns.map_or(UNFINISHED, |dur_ns| start_ns.saturating_add(dur_ns));
        let depth = match overlapped {
            None => self.slices.len(),
            Some(at) => {
                let contains = |open: &OpenSpan<i64>| open.end_ns >= end_ns;
                let parent = self.slices.iter().take(at).rposition(contains);
                parent.map_or(0, |at| at + 1)
            }
        };
        let parent = depth.checked_sub(1).and_then(|at| self.slices.get(at));
        let position = Position {
            depth: i32::try_from(depth).unwrap_or(i32::MAX),
            parent: parent.map(|parent| parent.value),
            is_left_out: overlapped.is_none() && self.slices.len() >= most,
        };
        if overlapped.is_none() && !position.is_left_out {
            if dur_ns.is_some() {
                self.with_end.push(self.slices.len());
            }
            self.slices.push(OpenSpan {
                start_ns,
                end_ns,
                value: id,
            });
        }
        position
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
        let index = self.with_end.partition_point(|depth| *depth < at);
        self.with_end.insert(index, at);
    }

    /// Returns the id and the begin of the slice that an arrow binds to. This is the one that began last, even if it has ended, unless a later event has removed
    /// it.
    pub(crate) fn top(&self) -> Option<(i64, i64)> {
        let top = self.slices.innermost();
        top.map(|open| (open.value, open.start_ns))
    }

    /// Removes the slices that have ended before an event at `ts_ns`, together with the open slices above them. If the event has a duration and overlaps a
    /// slice, returns the depth of that slice.
    fn close(&mut self, ts_ns: i64, dur_ns: Option<i64>) -> Option<usize> {
        // Slices without an end do not matter here, and there may be very many of them, so only the others are examined.
        for nth in (0..self.with_end.len()).rev() {
            let at = self.with_end[nth];
            let Some(open) = self.slices.get(at).copied() else {
                continue;
            };
            let with_end_above = self.with_end.len() - nth - 1;
            let has_open_above = self.slices.len() - at - 1 > with_end_above;
            if has_open_above {
                if ts_ns > open.end_ns {
                    self.truncate(at);
                }
                continue;
            }
            // Instants at the same time are nested.
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
        let left = self.with_end.partition_point(|at| *at < len);
        self.with_end.truncate(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This took an hour when each event examined all open slices.
    #[test]
    fn many_begins_without_an_end_are_fast() {
        let mut stack = Stack::default();
        let many = i32::try_from(MAX_SLICES).unwrap() - 2;
        for nth in 0..many.into() {
            stack.begin(nth, nth, None, MAX_SLICES);
        }
        for nth in 1 << 20..1 << 22 {
            let position = stack.begin(nth, nth, Some(1), MAX_SLICES);
            assert_eq!(position.depth, many);
            stack.end(nth, Some(1 << 19));
        }
    }
}
