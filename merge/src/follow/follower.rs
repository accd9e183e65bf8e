//! Finds what there is of a run, again and again, and reads on.

use super::followed_fragment::{FollowedFragment, Skipped};
use super::followed_process::FollowedEnd;
use super::followed_run::FollowedRun;
use crate::Runs;
use crate::base::folder::{Folder, Place};
use crate::events::PlacedEvent;
use crate::fragment::file::read_header;
use crate::fragment::input;
use crate::fragment::liveness::is_alive_here;
use crate::fragment::load::list_stems;
use sa_recorder::format::{FragmentHeader, stem_and_segment};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes that are read of one fragment before the next one has its turn.
const TURN_BYTES: usize = 2 << 20;
/// How often it is asked whether processes live.
const LIVENESS: Duration = Duration::from_secs(1);

/// Follows the newest run of a directory, and the next one when that begins.
#[derive(Debug)]
pub struct Follower {
    directory: PathBuf,
    run: FollowedRun,
    /// The ids that fragments of the run name: two while its main process has not said yet which it is.
    ids: BTreeSet<String>,
    folders: Vec<Folder>,
    known: HashSet<(PathBuf, OsString)>,
    /// By folder and stem.
    fragments: BTreeMap<(PathBuf, String), FollowedFragment>,
    /// Which fragment is read first.
    turn: usize,
    buffer: Vec<u8>,
    looked: Option<Instant>,
    /// Files of the folder that could not be opened.
    unreadable: u64,
}

/// What a poll found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Poll {
    /// Whether another run has begun: everything is new, and numbers of processes and threads begin again.
    pub is_new_run: bool,
    /// Bytes that were read.
    pub bytes: u64,
    /// Bytes that are there and were not read.
    pub unread: u64,
    /// Since when the most belated fragment was not read to its end.
    pub behind: Duration,
    /// What could not be read, so far.
    pub skipped: Skipped,
    /// Files that could not be opened.
    pub unreadable: u64,
}

impl Follower {
    /// Follows the newest run of a directory, which need not be there yet.
    pub fn new(directory: &Path) -> Follower {
        Follower {
            directory: directory.to_owned(),
            run: FollowedRun::default(),
            ids: BTreeSet::new(),
            folders: Vec::new(),
            known: HashSet::new(),
            fragments: BTreeMap::new(),
            turn: 0,
            buffer: Vec::new(),
            looked: None,
            unreadable: 0,
        }
    }

    /// What is known of the run.
    pub fn run(&self) -> &FollowedRun {
        &self.run
    }

    /// The id of the run, empty until there is one.
    pub fn id(&self) -> &str {
        self.ids.last().map_or("", String::as_str)
    }

    /// Whether there was a process, and all have ended or died.
    pub fn is_over(&self) -> bool {
        let processes = self.run.processes();
        !processes.is_empty()
            && processes
                .iter()
                .all(|process| process.is_tracks || process.end != FollowedEnd::Alive)
    }

    /// Reads on, some `most` bytes, and calls `of_event` with each event: those of one thread in the order in which it recorded them. A fragment that has much
    /// keeps no other one waiting. Metadata, such as names, is told by the run.
    pub fn poll(
        &mut self,
        most: u64,
        mut of_event: impl FnMut(&FollowedRun, &PlacedEvent<'_>),
    ) -> Poll {
        let is_new_run = self.discover();
        // Before the fragments are looked at: then nothing that a dead process wrote is missing.
        self.look_who_lives();
        for fragment in self.fragments.values_mut() {
            fragment.look();
        }
        let bytes = self.read(most, &mut of_event);
        self.note_ends();
        let mut found = Poll {
            is_new_run,
            bytes,
            unreadable: self.unreadable,
            ..Poll::default()
        };
        for fragment in self.fragments.values_mut() {
            let unread = fragment.unread();
            found.unread += unread;
            found.skipped.add(fragment.skipped);
            if unread > 0 {
                found.behind = found.behind.max(fragment.caught_up.elapsed());
            } else {
                fragment.caught_up = Instant::now();
            }
        }
        found
    }

    fn read(&mut self, most: u64, of_event: &mut dyn FnMut(&FollowedRun, &PlacedEvent<'_>)) -> u64 {
        let mut bytes = 0;
        let keys: Vec<_> = self.fragments.keys().cloned().collect();
        let mut idle = 0;
        while bytes < most && idle < keys.len() {
            let key = &keys[self.turn % keys.len()];
            self.turn += 1;
            idle += 1;
            let Some(fragment) = self.fragments.get_mut(key) else {
                continue;
            };
            if fragment.unread() == 0 {
                continue;
            }
            let is_over = self.run.processes()[fragment.process].end != FollowedEnd::Alive;
            let read = fragment.read(
                &mut self.buffer,
                TURN_BYTES,
                is_over,
                &mut self.run,
                of_event,
            );
            if read > 0 {
                bytes += read;
                idle = 0;
            }
        }
        bytes
    }

    /// A process has ended when all its recorders have.
    fn note_ends(&mut self) {
        let mut ends: BTreeMap<usize, Option<FollowedEnd>> = BTreeMap::new();
        for fragment in self.fragments.values() {
            let end = ends.entry(fragment.process).or_insert(fragment.end);
            *end = end.and(fragment.end);
        }
        for (process, end) in ends {
            let known = &mut self.run.process_mut(process).end;
            match end {
                Some(end) => *known = end,
                // Another one began since.
                None if *known == FollowedEnd::Ended => *known = FollowedEnd::Alive,
                None => {}
            }
        }
    }

    fn look_who_lives(&mut self) {
        if self
            .looked
            .is_some_and(|looked| looked.elapsed() < LIVENESS)
        {
            return;
        }
        self.looked = Some(Instant::now());
        for process in self.run.processes_mut() {
            // A process of another host counts as alive until it says that it ended: a look at its lock would be in its way.
            let asks = process.end == FollowedEnd::Alive && !process.is_tracks;
            if asks && is_alive_here(&process.header) == Some(false) {
                process.end = FollowedEnd::Died;
            }
        }
    }

    /// Looks for new files; whether they are of another run.
    fn discover(&mut self) -> bool {
        let mut is_new_run = false;
        if self.folders.is_empty() {
            is_new_run = self.find();
        }
        let mut found = Vec::new();
        for folder in &self.folders {
            // A folder that was moved is found again with the next run.
            let Ok(files) = list_stems(folder) else {
                continue;
            };
            found.extend(files.into_iter().map(|file| file.place));
        }
        found.retain(|place| !self.known.contains(&key(place)));
        found.retain(|place| self.add(place) == Added::OtherRun);
        if found.is_empty() {
            return is_new_run;
        }
        if self.find() {
            self.discover();
            return true;
        }
        for place in found {
            if self.add(&place) == Added::OtherRun {
                self.known.insert(key(&place));
            }
        }
        is_new_run
    }

    /// Finds the newest run; whether it is another one than so far.
    fn find(&mut self) -> bool {
        let found = input::find(std::slice::from_ref(&self.directory), &Runs::Newest);
        let mut ids = BTreeSet::new();
        let mut folders: BTreeMap<PathBuf, Folder> = BTreeMap::new();
        for file in &found.files {
            let front = file.place.read_front(false).unwrap_or_default();
            if let Some(header) = read_header(&front) {
                ids.insert(header.run);
                let folder = file.place.folder();
                folders.insert(folder.path().to_owned(), folder.clone());
            }
        }
        if ids.is_empty() || ids == self.ids {
            return false;
        }
        let goes_on = !ids.is_disjoint(&self.ids);
        if !goes_on {
            let begun = !self.ids.is_empty();
            let number = self.run.number + u64::from(begun);
            *self = Follower::new(&self.directory);
            self.run.number = number;
            self.ids = ids;
            self.folders = folders.into_values().collect();
            return begun;
        }
        self.ids.extend(ids);
        self.folders = folders.into_values().collect();
        false
    }

    fn add(&mut self, place: &Place) -> Added {
        let Ok(front) = place.read_front(false) else {
            self.known.insert(key(place));
            self.unreadable += 1;
            return Added::Not;
        };
        let Some(header) = read_header(&front) else {
            // Its first line may not be whole yet. A file of somebody else stays without a header.
            if front.contains(&b'\n') {
                self.known.insert(key(place));
            }
            return Added::Not;
        };
        if !self.ids.contains(&header.run) {
            return Added::OtherRun;
        }
        self.known.insert(key(place));
        let name = place.name().to_str().and_then(stem_and_segment);
        let Some((stem, number)) = name else {
            return Added::Not;
        };
        let stem = (place.folder().path().to_owned(), stem.to_owned());
        match self.fragment(stem, header).add(number, place) {
            Ok(()) => Added::Segment,
            Err(_) => {
                self.unreadable += 1;
                Added::Not
            }
        }
    }

    fn fragment(
        &mut self,
        stem: (PathBuf, String),
        header: FragmentHeader,
    ) -> &mut FollowedFragment {
        let process = self.run.process_of(&header);
        let new = || FollowedFragment::new(process, header);
        self.fragments.entry(stem).or_insert_with(new)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Added {
    Segment,
    OtherRun,
    Not,
}

fn key(place: &Place) -> (PathBuf, OsString) {
    (place.folder().path().to_owned(), place.name().to_owned())
}
