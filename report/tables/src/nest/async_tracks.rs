//! Assigns tracks to async slices as Perfetto does. A track without open slices is reused for the next id that begins with the same name. So there are no more
//! tracks than ids that were open at the same time.

use std::collections::BTreeSet;
use trace_store::hashed_map::HashedMap;

/// Effect of an event on the number of open slices of its track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Begin,
    End,
    None,
}

/// Async tracks of one process.
#[derive(Debug, Default)]
pub(crate) struct AsyncTracks {
    /// Last track of each id.
    by_id: HashedMap<usize>,
    /// Tracks without open slices, by the hash of their name.
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
    /// Returns the number of the track for an event with this id. Must be called for all events in the order of their times.
    pub(crate) fn track(&mut self, id: u64, name: u64, change: Change) -> usize {
        let current = self.by_id.get(&id).copied();
        let at = current.unwrap_or_else(|| self.assign(id, name));
        let track = &mut self.tracks[at];
        match change {
            Change::Begin => track.open += 1,
            Change::End => track.open = track.open.saturating_sub(1),
            Change::None => {}
        }
        let free = self.free.entry(track.name).or_default();
        match track.open {
            0 => free.insert(at),
            _ => free.remove(&at),
        };
        at
    }

    /// Assigns the first free track with this name to an id, or a new track.
    fn assign(&mut self, id: u64, name: u64) -> usize {
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
    fn a_free_track_is_reused_for_the_next_id_with_its_name() {
        let mut tracks = AsyncTracks::default();
        assert_eq!(tracks.track(1, 7, Change::Begin), 0);
        assert_eq!(tracks.track(2, 7, Change::Begin), 1);
        assert_eq!(tracks.track(1, 9, Change::None), 0);
        assert_eq!(tracks.track(1, 9, Change::End), 0);
        assert_eq!(tracks.track(3, 8, Change::Begin), 2);
        assert_eq!(tracks.track(4, 7, Change::Begin), 0);
        assert_eq!(tracks.track(1, 7, Change::Begin), 3);
    }
}
