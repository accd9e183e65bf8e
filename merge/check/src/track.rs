//! The tracks of async events, given out as Perfetto does.
//!
//! Events of one key, which is their category and id, are on one track. But a track on which as many have ended as have begun is free: the next
//! key takes it, if the first event of either key has the same name. An end without a name can so end another key's span.

use std::collections::{BTreeSet, HashMap};

/// What puts async events on one track.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    /// A hash of category, id and scope.
    pub(super) hash: u64,
    /// Among whose keys it is: those of one process, or without it of all.
    pub(super) process: Option<u64>,
}

/// What an async event does to its track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Begin,
    End,
    /// It leaves the track as it is.
    Stay,
}

/// The keys of a trace.
#[derive(Default)]
pub(super) struct Keys {
    numbers: HashMap<u64, u32>,
    firsts: Vec<First>,
}

/// The first event of a key.
struct First {
    /// Its time, and its number among those of that time.
    order: (i64, u64),
    name: u64,
    process: Option<u64>,
}

impl Keys {
    /// Adds an event; `order` is its time and number. The number of its key.
    pub(super) fn add(&mut self, key: Key, name: u64, order: (i64, u64)) -> u32 {
        let next = u32::try_from(self.firsts.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(key.hash).or_insert(next);
        let process = key.process;
        let first = First {
            order,
            name,
            process,
        };
        match self.firsts.get_mut(number as usize) {
            Some(known) if order < known.order => *known = first,
            Some(_) => {}
            None => self.firsts.push(first),
        }
        number
    }

    /// The tracks when all events are known.
    pub(super) fn tracks(self) -> Tracks {
        drop(self.numbers);
        let mut pools = HashMap::new();
        let pool = |first: First| {
            let next = pools.len();
            *pools.entry((first.process, first.name)).or_insert(next)
        };
        let pool_of: Vec<usize> = self.firsts.into_iter().map(pool).collect();
        Tracks {
            pools: pools.iter().map(|_| Pool::default()).collect(),
            pool_of,
            count: 0,
        }
    }
}

/// The tracks at a time.
#[derive(Default)]
pub(super) struct Tracks {
    /// The pool of each key.
    pool_of: Vec<usize>,
    pools: Vec<Pool>,
    count: usize,
}

/// Tracks of one name.
#[derive(Default)]
struct Pool {
    tracks: Vec<Track>,
    by_key: HashMap<u32, usize>,
    free: BTreeSet<usize>,
}

struct Track {
    key: u32,
    open: u32,
    number: usize,
}

impl Tracks {
    /// The number of the track of `key`, on which an event takes this turn. To be asked in the order of time.
    pub(super) fn at(&mut self, key: u32, turn: Turn) -> usize {
        let pool = &mut self.pools[self.pool_of[key as usize]];
        let at = pool.find(key, &mut self.count);
        let track = &mut pool.tracks[at];
        match turn {
            Turn::Begin => track.open += 1,
            Turn::End => track.open = track.open.saturating_sub(1),
            Turn::Stay => {}
        }
        match track.open {
            0 => pool.free.insert(at),
            _ => pool.free.remove(&at),
        };
        track.number
    }
}

impl Pool {
    /// The track of a key; if it has none, the first that is free, or a new one.
    fn find(&mut self, key: u32, count: &mut usize) -> usize {
        if let Some(at) = self.by_key.get(&key) {
            return *at;
        }
        let at = match self.free.first() {
            Some(at) => {
                let track = &mut self.tracks[*at];
                self.by_key.remove(&track.key);
                track.key = key;
                *at
            }
            None => {
                self.tracks.push(Track {
                    key,
                    open: 0,
                    number: *count,
                });
                *count += 1;
                self.tracks.len() - 1
            }
        };
        self.by_key.insert(key, at);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(hash: u64) -> Key {
        Key {
            hash,
            process: None,
        }
    }

    #[test]
    fn a_free_track_is_taken_by_the_next_key_of_its_name() {
        let mut keys = Keys::default();
        let [one, two] = [1, 2].map(|hash| keys.add(key(hash), 7, (5, hash)));
        let other = keys.add(key(3), 8, (5, 3));
        let mut tracks = keys.tracks();
        let first = tracks.at(one, Turn::Begin);
        assert_eq!(tracks.at(one, Turn::Stay), first);
        let second = tracks.at(two, Turn::Begin);
        assert_ne!(second, first);
        assert_eq!(tracks.at(one, Turn::End), first);
        assert_ne!(tracks.at(other, Turn::Begin), first);
        assert_eq!(tracks.at(two, Turn::End), second);
        // It has a track, if only until another takes it.
        assert_eq!(tracks.at(one, Turn::Begin), first);
        assert_eq!(tracks.at(two, Turn::Begin), second);
    }

    #[test]
    fn the_first_in_time_names_the_track() {
        let mut keys = Keys::default();
        let one = keys.add(key(1), 7, (5, 0));
        assert_eq!(keys.add(key(1), 8, (4, 1)), one);
        let two = keys.add(key(2), 8, (9, 2));
        let mut tracks = keys.tracks();
        let first = tracks.at(one, Turn::Stay);
        assert_eq!(tracks.at(two, Turn::Begin), first);
    }
}
