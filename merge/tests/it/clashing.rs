//! Events of one thread, so close to each other that many spans overlap.

use crate::random::Rng;
use format_oracle::writer::line::micros;
use std::cmp::Reverse;

/// Order of the lines.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    None,
    ByBegin,
    ByEnd,
}

pub(crate) const ORDERS: [Order; 3] = [Order::None, Order::ByBegin, Order::ByEnd];

/// Writer of overlapping events, by default for process 900.
pub(crate) struct Clashing<'a> {
    pub(crate) rng: &'a mut Rng,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) category: &'static str,
    /// Length in ns of the period of all times, which begins at 1 s.
    pub(crate) range_ns: usize,
    lines: Vec<(u64, u64, String)>,
}

impl Clashing<'_> {
    pub(crate) fn new(rng: &mut Rng, tid: u32, range_ns: usize) -> Clashing<'_> {
        Clashing {
            rng,
            pid: 900,
            tid,
            category: "e2e",
            range_ns,
            lines: Vec::new(),
        }
    }

    pub(crate) fn time(&mut self) -> u64 {
        1_000_000_000 + self.rng.below(self.range_ns) as u64
    }

    pub(crate) fn add(&mut self, phase: &str, name: &str, (start, end): (u64, u64), more: &str) {
        let (ts, thread) = (
            micros(start),
            format!(r#""pid":{},"tid":{}"#, self.pid, self.tid),
        );
        let named = format!(r#""name":"{name}","cat":"{}""#, self.category);
        let line = match self.rng.one_in(2) {
            true => format!(r#"{{{named},"ph":"{phase}","ts":{ts},{thread}{more}}}"#),
            false => format!(r#"{{"ph":"{phase}",{thread},"ts":{ts},{named}{more}}}"#),
        };
        self.lines.push((start, end, line));
    }

    pub(crate) fn span(&mut self, name: &str, start: u64, dur: u64) {
        self.span_with(name, start, dur, "");
    }

    /// Adds a span with further members, each after a comma.
    pub(crate) fn span_with(&mut self, name: &str, start: u64, dur: u64, more: &str) {
        let more = format!(r#","dur":{}{more}"#, micros(dur));
        self.add("X", name, (start, start + dur), &more);
    }

    /// Adds a random event; `longest` is the maximum length of a span.
    pub(crate) fn add_random(&mut self, serial: usize, longest: usize) {
        let (start, dur) = (self.time(), self.rng.below(longest) as u64);
        let nth = self.rng.below(3);
        let (named, spelled) = (["a", "b", ""][nth], [r"\u0061", "b", ""][nth]);
        let (at, flow) = ((start, start), format!("flow {serial}"));
        let args = format!(r#","args":{{"serial":{serial}}}"#);
        let id = format!(r#","id":{serial}"#);
        match self.rng.below(12) {
            0 => self.add("B", named, at, &args),
            1 => self.add("E", spelled, at, &args),
            2 => self.add("i", &format!("tick {serial}"), at, r#","s":"t""#),
            3 => self.add("i", &format!("of all {serial}"), at, r#","s":"g""#),
            4 => self.add("s", &flow, at, &id),
            5 => self.add("f", &flow, at, &(id + r#","bp":"e""#)),
            6 => self.add("f", &flow, at, &id),
            7 => self.add("C", "count", at, &args),
            _ => self.span(&format!("span {serial}"), start, dur),
        }
    }

    pub(crate) fn lines(mut self, order: Order) -> Vec<String> {
        match order {
            Order::None => {}
            Order::ByBegin => self.lines.sort_by_key(|line| (line.0, Reverse(line.1))),
            Order::ByEnd => self.lines.sort_by_key(|line| (line.1, Reverse(line.0))),
        }
        self.lines.into_iter().map(|line| line.2).collect()
    }
}
