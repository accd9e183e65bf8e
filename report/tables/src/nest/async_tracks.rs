//! The tracks of async slices, given out as Perfetto does: a track on which as many have ended as have begun goes to the next id that begins with the same
//! name. So there are no more of them than were ever open at once.

use std::collections::BTreeSet;
use trace_store::hashed_map::HashedMap;

/// What an event does to its track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Begin,
    End,
    Stay,
}

/// Those of one process.
#[derive(Debug, Default)]
pub(crate) struct AsyncTracks {
    /// The track that an id had last.
    by_id: HashedMap<usize>,
    /// Free tracks by the hash of their name.
    free: HashedMap<BTreeSet<usize>>,
    tracks: Vec<Track>,
}

#[derive(Debug)]
struct Track {
    id: u64,
    name: u64,
    open: u32,
}

impl AsyncTracks {
    /// The track of an id by its number, in the order of time.
    pub(crate) fn at(&mut self, id: u64, name: u64, turn: Turn) -> usize {
        let known = self.by_id.get(&id).copied();
        let at = known.unwrap_or_else(|| self.take(id, name));
        let track = &mut self.tracks[at];
        match turn {
            Turn::Begin => track.open += 1,
            Turn::End => track.open = track.open.saturating_sub(1),
            Turn::Stay => {}
        }
        let free = self.free.entry(track.name).or_default();
        match track.open {
            0 => free.insert(at),
            _ => free.remove(&at),
        };
        at
    }

    /// The first track of the name that is free, or a new one.
    fn take(&mut self, id: u64, name: u64) -> usize {
        let free = self.free.get(&name).and_then(BTreeSet::first).copied();
        let at = free.unwrap_or(self.tracks.len());
        match self.tracks.get_mut(at) {
            Some(track) => {
                self.by_id.remove(&track.id);
                track.id = id;
            }
            None => self.tracks.push(Track { id, name, open: 0 }),
        }
        self.by_id.insert(id, at);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_track_is_taken_by_the_next_id_of_its_name() {
        let mut tracks = AsyncTracks::default();
        assert_eq!(tracks.at(1, 7, Turn::Begin), 0);
        assert_eq!(tracks.at(2, 7, Turn::Begin), 1);
        assert_eq!(tracks.at(1, 9, Turn::Stay), 0);
        assert_eq!(tracks.at(1, 9, Turn::End), 0);
        assert_eq!(tracks.at(3, 8, Turn::Begin), 2);
        assert_eq!(tracks.at(4, 7, Turn::Begin), 0);
        assert_eq!(tracks.at(1, 7, Turn::Begin), 3);
    }
}
