//! The shortest paths from what is known at first to every host and time, and rings that have none.

use super::{Known, OPEN_NS, Ring};

/// How many rounds lie between two looks for rings.
const ROUNDS: usize = 4;

/// What lowered a bound.
#[derive(Clone, Copy, Debug)]
enum Came {
    Known,
    Earlier,
    Later,
    Arrow(usize),
}

/// A host and a time.
type Node = (usize, usize);

/// Bounds of one side, which are lowered until nothing lowers them any more.
pub(super) struct Search<'a> {
    known: &'a Known,
    /// Whether it is the lower side, where arrows lead back.
    is_back: bool,
    pub(super) bounds: Vec<Vec<i64>>,
    came: Vec<Vec<Came>>,
}

impl<'a> Search<'a> {
    pub(super) fn new(known: &'a Known, is_back: bool) -> Search<'a> {
        let side = |range: &(i64, i64)| if is_back { -range.0 } else { range.1 };
        let bounds = |host: &Vec<(i64, i64)>| host.iter().map(side).collect();
        let came = |host: &Vec<(i64, i64)>| vec![Came::Known; host.len()];
        Search {
            known,
            is_back,
            bounds: known.hosts.iter().map(bounds).collect(),
            came: known.hosts.iter().map(came).collect(),
        }
    }

    /// All bounds, or rings along which they would fall forever.
    pub(super) fn run(mut self) -> Result<Search<'a>, Vec<Ring>> {
        for round in 1_usize.. {
            let mut changed = false;
            for host in 0..self.bounds.len() {
                changed |= self.spread(host);
            }
            for number in 0..self.known.arrows.len() {
                changed |= self.follow(number);
            }
            // Bounds that have fallen as far as numbers go fall no more, and lower themselves all the same.
            if !changed || round.is_multiple_of(ROUNDS) {
                let rings = self.rings();
                if !rings.is_empty() {
                    return Err(rings);
                }
            }
            if !changed {
                break;
            }
        }
        Ok(self)
    }

    fn hosts(&self, arrow: usize) -> (usize, usize) {
        let (from, to, _) = self.known.arrows[arrow];
        if self.is_back { (to, from) } else { (from, to) }
    }

    fn follow(&mut self, number: usize) -> bool {
        let (from, to) = self.hosts(number);
        let mut changed = false;
        let most = self.known.arrows[number].2.iter().enumerate();
        for (time, most) in most.filter(|(_, most)| **most < OPEN_NS) {
            let bound = self.bounds[from][time];
            if bound < OPEN_NS && bound.saturating_add(*most) < self.bounds[to][time] {
                self.bounds[to][time] = bound.saturating_add(*most);
                self.came[to][time] = Came::Arrow(number);
                changed = true;
            }
        }
        changed
    }

    /// What holds at one time holds at the next, and at the one before, but for what may have changed.
    fn spread(&mut self, host: usize) -> bool {
        let (bounds, came) = (&mut self.bounds[host], &mut self.came[host]);
        let change_ns = self.known.change_ns;
        let mut changed = false;
        let mut lower = |time: usize, by: usize, how: Came| {
            let most = bounds[by].saturating_add(change_ns);
            if bounds[by] < OPEN_NS && most < bounds[time] {
                (bounds[time], came[time]) = (most, how);
                changed = true;
            }
        };
        let times = self.known.hosts[host].len();
        (1..times).for_each(|time| lower(time, time - 1, Came::Earlier));
        (1..times)
            .rev()
            .for_each(|time| lower(time - 1, time, Came::Later));
        changed
    }

    /// What lowered it, and the arrow by which it did.
    fn before(&self, (host, time): Node) -> Option<(Node, Option<usize>)> {
        match self.came[host][time] {
            Came::Known => None,
            Came::Earlier => Some(((host, time - 1), None)),
            Came::Later => Some(((host, time + 1), None)),
            Came::Arrow(arrow) => Some(((self.hosts(arrow).0, time), Some(arrow))),
        }
    }

    /// Bounds that lower themselves.
    fn rings(&self) -> Vec<Ring> {
        let mut seen: Vec<Vec<usize>> = self.came.iter().map(|came| vec![0; came.len()]).collect();
        let mut rings = Vec::new();
        let times = |host: usize| (0..self.came[host].len()).map(move |time| (host, time));
        let nodes = (0..self.came.len()).flat_map(times);
        for (number, start) in (1..).zip(nodes) {
            let mut node = start;
            while seen[node.0][node.1] == 0 {
                seen[node.0][node.1] = number;
                let Some((before, _)) = self.before(node) else {
                    break;
                };
                node = before;
                if seen[node.0][node.1] == number {
                    rings.push(self.ring(node));
                }
            }
        }
        rings
    }

    /// The arrows that lead to a bound, or once around if it lowers itself.
    pub(super) fn ring(&self, start: Node) -> Ring {
        let (mut ring, mut node) = (Ring::new(), start);
        while let Some((before, arrow)) = self.before(node) {
            ring.extend(arrow.map(|arrow| (arrow, node.1)));
            node = before;
            if node == start {
                break;
            }
        }
        ring
    }
}
