//! Shortest paths from the initial bounds to every host and time (Bellman-Ford), and the negative cycles that make them impossible.

use super::{Constraints, Cycle, UNBOUNDED_NS};

/// Number of rounds between two searches for cycles.
const ROUNDS: usize = 4;

/// Origin of a bound.
#[derive(Clone, Copy, Debug)]
enum Origin {
    Initial,
    EarlierTime,
    LaterTime,
    Arrow(usize),
}

/// A host and a time.
type Node = (usize, usize);

/// Bounds of one side. They are lowered until no constraint lowers them any more.
pub(super) struct Search<'a> {
    constraints: &'a Constraints,
    /// True for lower bounds. They are negated, and arrows have the opposite direction.
    is_lower: bool,
    pub(super) bounds: Vec<Vec<i64>>,
    origins: Vec<Vec<Origin>>,
}

impl<'a> Search<'a> {
    pub(super) fn new(constraints: &'a Constraints, is_lower: bool) -> Search<'a> {
        let side = |range: &(i64, i64)| if is_lower { -range.0 } else { range.1 };
        let bounds = |host: &Vec<(i64, i64)>| host.iter().map(side).collect();
        let origins = |host: &Vec<(i64, i64)>| vec![Origin::Initial; host.len()];
        Search {
            constraints,
            is_lower,
            bounds: constraints.hosts.iter().map(bounds).collect(),
            origins: constraints.hosts.iter().map(origins).collect(),
        }
    }

    /// Finds all bounds.
    ///
    /// # Errors
    /// Returns cycles of arrows along which the bounds would be lowered forever.
    pub(super) fn run(mut self) -> Result<Search<'a>, Vec<Cycle>> {
        for round in 1_usize.. {
            let mut changed = false;
            for host in 0..self.bounds.len() {
                changed |= self.apply_drift(host);
            }
            for number in 0..self.constraints.arrows.len() {
                changed |= self.apply_arrow(number);
            }
            // If nothing has changed, there may still be cycles, because bounds stop at the minimum integer.
            if !changed || round.is_multiple_of(ROUNDS) {
                let cycles = self.cycles();
                if !cycles.is_empty() {
                    return Err(cycles);
                }
            }
            if !changed {
                break;
            }
        }
        Ok(self)
    }

    fn hosts(&self, arrow: usize) -> (usize, usize) {
        let (from, to, _) = self.constraints.arrows[arrow];
        if self.is_lower {
            (to, from)
        } else {
            (from, to)
        }
    }

    fn apply_arrow(&mut self, number: usize) -> bool {
        let (from, to) = self.hosts(number);
        let mut changed = false;
        let slacks = self.constraints.arrows[number].2.iter().enumerate();
        for (time, slack) in slacks.filter(|(_, slack)| **slack < UNBOUNDED_NS) {
            let bound = self.bounds[from][time];
            if bound < UNBOUNDED_NS && bound.saturating_add(*slack) < self.bounds[to][time] {
                self.bounds[to][time] = bound.saturating_add(*slack);
                self.origins[to][time] = Origin::Arrow(number);
                changed = true;
            }
        }
        changed
    }

    /// Lowers the bounds of a host where a neighbor's bound allows it: between neighboring times,
    /// the error changes by at most `change_ns`. Returns true if any bound changed.
    fn apply_drift(&mut self, host: usize) -> bool {
        let (bounds, origins) = (&mut self.bounds[host], &mut self.origins[host]);
        let change_ns = self.constraints.change_ns;
        let mut changed = false;
        let mut lower = |time: usize, by: usize, origin: Origin| {
            let most = bounds[by].saturating_add(change_ns);
            if bounds[by] < UNBOUNDED_NS && most < bounds[time] {
                (bounds[time], origins[time]) = (most, origin);
                changed = true;
            }
        };
        let times = self.constraints.hosts[host].len();
        (1..times).for_each(|time| lower(time, time - 1, Origin::EarlierTime));
        (1..times)
            .rev()
            .for_each(|time| lower(time - 1, time, Origin::LaterTime));
        changed
    }

    /// Returns the node that lowered this node's bound, and the arrow between them, if it was an arrow.
    fn predecessor(&self, (host, time): Node) -> Option<(Node, Option<usize>)> {
        match self.origins[host][time] {
            Origin::Initial => None,
            Origin::EarlierTime => Some(((host, time - 1), None)),
            Origin::LaterTime => Some(((host, time + 1), None)),
            Origin::Arrow(arrow) => Some(((self.hosts(arrow).0, time), Some(arrow))),
        }
    }

    /// Finds the cycles of predecessors.
    fn cycles(&self) -> Vec<Cycle> {
        let unvisited = |origins: &Vec<Origin>| vec![0; origins.len()];
        let mut visited: Vec<Vec<usize>> = self.origins.iter().map(unvisited).collect();
        let mut cycles = Vec::new();
        let times = |host: usize| (0..self.origins[host].len()).map(move |time| (host, time));
        let nodes = (0..self.origins.len()).flat_map(times);
        for (number, first) in (1..).zip(nodes) {
            let mut node = first;
            while visited[node.0][node.1] == 0 {
                visited[node.0][node.1] = number;
                let Some((predecessor, _)) = self.predecessor(node) else {
                    break;
                };
                node = predecessor;
                if visited[node.0][node.1] == number {
                    cycles.push(self.path(node));
                }
            }
        }
        cycles
    }

    /// Returns the arrows on the path of predecessors from a node, or once around if it leads back to the node.
    pub(super) fn path(&self, start: Node) -> Cycle {
        let (mut path, mut node) = (Cycle::new(), start);
        while let Some((predecessor, arrow)) = self.predecessor(node) {
            path.extend(arrow.map(|arrow| (arrow, node.1)));
            node = predecessor;
            if node == start {
                break;
            }
        }
        path
    }
}
