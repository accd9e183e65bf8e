//! Which arrows are left out where arrows contradict each other, be it in two hosts or in a ring of many.

use super::slack::Slacks;
use super::solve::{Known, OPEN_NS, Ring};
use std::collections::{BTreeMap, BTreeSet};

/// How many times before and behind one it is held against.
const NEAR: usize = 8;
/// After so many times of one pair are left out, twice as many go at once.
const AT_ONCE: usize = 8;

type Hosts = (usize, usize);

/// After so many searches for contradictions, too.
const SEARCHES: usize = 64;

#[derive(Debug, Default)]
pub(super) struct LeftOut {
    /// How often times of each pair had to be left out, and how many had room before.
    pairs: BTreeMap<Hosts, (usize, usize)>,
    searches: usize,
}

impl LeftOut {
    /// Leaves out an arrow of each ring: one of a host that is not `trusted`, else the one that is the least like those before and behind it.
    pub(super) fn leave_out(
        &mut self,
        rings: &[Ring],
        known: &mut Known,
        slacks: &mut Slacks,
        is_trusted: impl Fn(usize) -> bool,
    ) {
        self.searches += 1;
        let worst: BTreeSet<(usize, usize)> = rings
            .iter()
            .filter_map(|ring| {
                let room = |(arrow, time): &(usize, usize)| known.arrows[*arrow].2[*time];
                let lack_ns = ring.iter().map(room).fold(0, i64::saturating_sub);
                let arrows = ring.iter().copied();
                arrows.max_by_key(|(arrow, time)| {
                    let (from, to, rooms) = &known.arrows[*arrow];
                    let doubt = !is_trusted(*from) || !is_trusted(*to);
                    let excess_ns = excess(rooms, *time);
                    // One that is alone may be right, if another one by itself explains what is wrong.
                    let explains = excess_ns < OPEN_NS && excess_ns >= lack_ns;
                    (doubt, explains, excess_ns, -rooms[*time])
                })
            })
            .collect();
        for (arrow, time) in worst {
            self.take(arrow, time, known, slacks);
        }
    }

    /// Takes the room at one time, and more if the pair has often contradicted; all of the two hosts if most of it is gone.
    fn take(&mut self, arrow: usize, time: usize, known: &mut Known, slacks: &mut Slacks) {
        let (from, to, rooms) = &known.arrows[arrow];
        let (from, to) = (*from, *to);
        let filled = rooms.iter().filter(|room| **room < OPEN_NS).count();
        let of_search = self.searches / SEARCHES;
        let (often, before) = self.pairs.entry((from, to)).or_insert((0, filled));
        *often += 1;
        let many = 1 << (*often / AT_ONCE).max(of_search).min(16);
        let is_lost = filled > 1 && (filled - 1) * 2 < *before && *before > 2 * NEAR;
        let mut times = vec![time];
        if many > 1 {
            let open = (0..rooms.len()).filter(|time| rooms[*time] < OPEN_NS);
            let mut worst: Vec<_> = open.map(|time| (excess(rooms, time), time)).collect();
            worst.sort_unstable();
            times.extend(worst.iter().rev().take(many - 1).map(|(_, time)| *time));
        }
        for (one, other, rooms) in &mut known.arrows {
            let is_same = (*one, *other) == (from, to);
            if !is_same && (!is_lost || (*one, *other) != (to, from)) {
                continue;
            }
            match is_lost {
                true => rooms.fill(OPEN_NS),
                false => times.iter().for_each(|time| rooms[*time] = OPEN_NS),
            }
            if let Some(pair) = slacks.pairs.get_mut(&(*one, *other)) {
                pair.at.copy_from_slice(rooms);
            }
        }
    }
}

/// By how much less it takes than those before and behind it do.
fn excess(rooms: &[i64], time: usize) -> i64 {
    let has_room = |room: &&i64| **room < OPEN_NS;
    let before = rooms[..time].iter().rev().filter(has_room).take(NEAR);
    let behind = rooms[time + 1..].iter().filter(has_room).take(NEAR);
    let mut near: Vec<i64> = before.chain(behind).copied().collect();
    near.sort_unstable();
    let usual = near.get(near.len() / 4);
    usual.map_or(OPEN_NS, |usual| usual.saturating_sub(rooms[time]))
}
