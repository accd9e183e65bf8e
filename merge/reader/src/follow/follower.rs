//! Polls the files of a run and reads what was added.

use super::followed_fragment::{FollowedFragment, Sink, Skipped};
use super::followed_run::{FollowedEnd, FollowedRun};
use crate::base::file_status::{FileId, FileStatus};
use crate::base::folder::{FileLocation, Folder};
use crate::fragment::file::{header_at, read_header};
use crate::fragment::input::{self, Runs};
use crate::fragment::liveness::is_alive_here;
use crate::fragment::load::{list_stems, recorder_key};
use crate::placed_event::PlacedEvent;
use sa_format::{FRAGMENTS_DIR, FragmentHeader, NEXT_RUN_FILE, RUN_FILE, stem_and_segment};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

/// Number of bytes that are read of one fragment before the next one has its turn.
const TURN_BYTES: usize = 2 << 20;
/// Interval between checks that processes are alive.
const LIVENESS_INTERVAL: Duration = Duration::from_secs(1);

/// Path of a file's folder, and the file's name in it.
type Name = (PathBuf, OsString);
/// Path of a fragment's folder, and the key of its recorder.
type Recorder = (PathBuf, String);

/// Follows the newest run of a directory, and then the next one when it begins. No file stays open between two polls, and each poll opens the
/// directory by its path again. Thus files that were removed, moved or created in between are found in their current state.
#[derive(Debug, Default)]
pub struct Follower {
    directory: PathBuf,
    run: FollowedRun,
    /// Run ids of its fragments. There are two while the main process has not yet begun the next run.
    ids: BTreeSet<String>,
    /// State of the directory when the run was found in it.
    state: Option<DirectoryState>,
    /// Folders that contain its fragments.
    folders: Vec<PathBuf>,
    examined: HashMap<Name, ExaminedFile>,
    fragments: BTreeMap<Recorder, FollowedFragment>,
    /// Index of the fragment that is read next.
    next_fragment: usize,
    buffer: Vec<u8>,
    /// Last time when processes were checked.
    checked_at: Option<Instant>,
    /// Number of files in the folders that cannot be opened.
    unreadable: u64,
}

/// A file that was examined.
#[derive(Debug)]
struct ExaminedFile {
    id: FileId,
    /// Fragment and number of the segment; `None` if it belongs to another run or another program.
    segment: Option<(Recorder, u32)>,
}

impl ExaminedFile {
    /// Returns the fragment that this file is a segment of, and the number of that segment; `None` if the file belongs to another run or program.
    fn segment_in<'a>(
        &self,
        fragments: &'a mut BTreeMap<Recorder, FollowedFragment>,
    ) -> Option<(&'a mut FollowedFragment, u32)> {
        let (fragment, number) = self.segment.as_ref()?;
        Some((fragments.get_mut(fragment)?, *number))
    }
}

/// Current state of a file.
struct Listed {
    place: FileLocation,
    id: FileId,
    len: u64,
}

/// The files that exist.
struct Listing {
    files: Vec<Listed>,
    /// True if the list is complete.
    is_whole: bool,
}

/// Result of a poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Poll {
    /// True if another run has begun. Then everything is new, and processes and threads are numbered from 0 again.
    pub is_new_run: bool,
    /// Number of bytes that were read.
    pub bytes: u64,
    /// Number of bytes that exist and were not read.
    pub unread: u64,
    /// Time since the fragment that is furthest behind had been read completely.
    pub behind: Duration,
    /// Counts of data that could not be read so far.
    pub skipped: Skipped,
    /// Number of files that cannot be opened now.
    pub unreadable: u64,
}

impl Follower {
    /// Creates a follower for the newest run in `directory`, which may not exist yet. Reads nothing until the first poll.
    pub fn new(directory: &Path) -> Follower {
        Follower {
            directory: directory.to_owned(),
            ..Follower::default()
        }
    }

    /// Returns the processes, threads and clocks of the followed run, as far as they were read.
    pub fn run(&self) -> &FollowedRun {
        &self.run
    }

    /// Returns the run id of the followed run, which its fragments share; empty until a run was found.
    pub fn id(&self) -> &str {
        self.ids.last().map_or("", String::as_str)
    }

    /// Returns true if the run is over: it has at least one process, and none of them records any more.
    pub fn is_over(&self) -> bool {
        let processes = &self.run.processes;
        !processes.is_empty()
            && processes
                .iter()
                .all(|process| process.is_tracks || process.end != FollowedEnd::Alive)
    }

    /// Reads about `most` bytes that were added since the last poll and calls `on_event` for each event in them. Events of one thread come in the
    /// order in which they were recorded. A large fragment does not delay the others. Names of processes and threads are not events; the callback
    /// finds them in the run.
    pub fn poll(
        &mut self,
        most: u64,
        mut on_event: impl FnMut(&FollowedRun, &PlacedEvent<'_>),
    ) -> Poll {
        let is_new_run = self.discover();
        if self.check_processes() {
            // After this, everything that a dead process wrote is listed.
            let listed = self.list();
            self.examine_files(listed);
        }
        self.update_ends();
        let bytes = self.read(most, &mut on_event);
        self.update_ends();
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

    /// Reads about `most` unread bytes of the fragments, which take turns, and calls `on_event` for each event. Returns the number of bytes that
    /// were read.
    fn read(&mut self, most: u64, on_event: &mut dyn FnMut(&FollowedRun, &PlacedEvent<'_>)) -> u64 {
        let mut bytes = 0;
        let keys: Vec<_> = self.fragments.keys().cloned().collect();
        let mut idle = 0;
        while bytes < most && idle < keys.len() {
            let key = &keys[self.next_fragment % keys.len()];
            self.next_fragment += 1;
            idle += 1;
            let Some(fragment) = self.fragments.get_mut(key) else {
                continue;
            };
            if fragment.unread() == 0 {
                continue;
            }
            let run = &mut self.run;
            let read = fragment.read(&mut self.buffer, TURN_BYTES, &mut Sink { run, on_event });
            if read > 0 {
                bytes += read;
                idle = 0;
            }
        }
        bytes
    }

    /// Updates the state of each process from the end records of its fragments. A process has ended when all its recorders have.
    fn update_ends(&mut self) {
        let mut ends: BTreeMap<usize, Option<FollowedEnd>> = BTreeMap::new();
        for fragment in self.fragments.values() {
            let end = ends.entry(fragment.process).or_insert(fragment.end);
            *end = end.and(fragment.end);
        }
        for (process, end) in ends {
            let state = &mut self.run.processes[process].end;
            match end {
                Some(end) => *state = end,
                // Another recorder of the process began since.
                None if *state == FollowedEnd::Ended => *state = FollowedEnd::Alive,
                None => {}
            }
        }
        for fragment in self.fragments.values_mut() {
            fragment.is_over = self.run.processes[fragment.process].end != FollowedEnd::Alive;
        }
    }

    /// Checks that the run's processes on this host are alive, at most once a second. Returns true if one has died since the last check.
    fn check_processes(&mut self) -> bool {
        if self
            .checked_at
            .is_some_and(|checked_at| checked_at.elapsed() < LIVENESS_INTERVAL)
        {
            return false;
        }
        self.checked_at = Some(Instant::now());
        let mut has_died = false;
        for process in &mut self.run.processes {
            // A process on another host counts as alive until it records its end. Checking its lock would disturb its recorder.
            let needs_check = process.end == FollowedEnd::Alive && !process.is_tracks;
            if needs_check && is_alive_here(&process.header) == Some(false) {
                process.end = FollowedEnd::Died;
                has_died = true;
            }
        }
        has_died
    }

    /// Updates the list of fragment files, and looks for the newest run if the directory has changed. Returns true if following has switched to
    /// another run.
    fn discover(&mut self) -> bool {
        let state = DirectoryState::read(&self.directory);
        let mut is_new_run = false;
        if self.state.as_ref() != Some(&state) {
            is_new_run = self.find_newest_run();
            self.state = Some(state);
        }
        let mut listed = self.list();
        if listed.files.is_empty() {
            is_new_run |= self.find_newest_run();
            listed = self.list();
        }
        if self.examine_files(listed) {
            is_new_run |= self.find_newest_run();
            let listed = self.list();
            self.examine_files(listed);
        }
        is_new_run
    }

    /// Finds the newest run of the directory and starts to follow it. Returns true if it replaces another run that was followed.
    fn find_newest_run(&mut self) -> bool {
        let found = input::find(std::slice::from_ref(&self.directory), &Runs::Newest);
        let mut ids = BTreeSet::new();
        let mut folders = BTreeSet::new();
        for file in &found.files {
            if let Some(header) = header_at(&file.place, false) {
                ids.insert(header.run);
                folders.insert(file.place.folder().path().to_owned());
            }
        }
        if ids.is_empty() {
            return false;
        }
        let begun = !self.ids.is_empty();
        // If two runs were followed as one and only one of them continues, following begins anew, because the other's events do not belong to it.
        let is_same = begun && self.ids.is_subset(&ids);
        if !is_same {
            let number = self.run.number + u64::from(begun);
            *self = Follower::new(&self.directory);
            self.run.number = number;
        } else if ids != self.ids {
            // Files that belonged to another run may now belong to this one.
            self.examined.retain(|_, file| file.segment.is_some());
        }
        self.ids = ids;
        self.folders = folders.into_iter().collect();
        begun && !is_same
    }

    /// Lists the files in the run's folders that have names of fragments, with their current lengths.
    fn list(&self) -> Listing {
        let mut listing = Listing {
            files: Vec::new(),
            is_whole: true,
        };
        for path in &self.folders {
            // Another folder may have this path by now.
            let folder = Folder::open_below(&self.directory, path);
            let files = folder.and_then(|folder| list_stems(&folder));
            // A folder that does not exist any more has no files.
            listing.is_whole &= files.as_ref().err().is_none_or(is_gone);
            for file in files.unwrap_or_default() {
                match file.place.status() {
                    Ok(status) => listing.files.push(Listed {
                        place: file.place,
                        id: FileId::from_stat(&status),
                        len: u64::try_from(status.st_size).unwrap_or(0),
                    }),
                    Err(error) => listing.is_whole &= is_gone(&error),
                }
            }
        }
        listing
    }

    /// Updates the fragments from a list of the existing files: removes segments that are gone, and adds new and longer ones. Returns true if a
    /// new file belongs to another run.
    fn examine_files(&mut self, listing: Listing) -> bool {
        let Listing { files, is_whole } = listing;
        let names: HashSet<Name> = files.iter().map(|file| name(&file.place)).collect();
        // A file that could not be listed now may be listed the next time.
        let is_over = |name: &Name| is_whole && !names.contains(name);
        let gone = self.examined.extract_if(|name, _| is_over(name));
        for (_, file) in gone {
            if let Some((fragment, number)) = file.segment_in(&mut self.fragments) {
                fragment.remove_segment(number);
            }
        }
        self.unreadable = 0;
        let mut is_other = false;
        for file in files {
            is_other |= self.examine_file(file);
        }
        is_other
    }

    /// Adds a listed file as a segment of its fragment, or updates the length of the segment. Returns true if the file is new and belongs to
    /// another run.
    fn examine_file(&mut self, Listed { place, id, len }: Listed) -> bool {
        let name = name(&place);
        let file = self.examined.get(&name);
        let segment = file.and_then(|file| file.segment_in(&mut self.fragments));
        let is_known = file.is_some_and(|file| file.id == id);
        match segment {
            Some((fragment, number)) if is_known => {
                fragment.update_segment(number, place, id, len);
                return false;
            }
            None if is_known => return false,
            // Another file has this name by now.
            Some((fragment, number)) => fragment.remove_segment(number),
            None => {}
        }
        self.examined.remove(&name);
        let front = match place.read_front(false) {
            Ok(front) => front,
            Err(error) => {
                self.unreadable += u64::from(error.kind() != io::ErrorKind::NotFound);
                return false;
            }
        };
        let header = read_header(&front);
        // The first line may still be incomplete. A file of another program never has a header.
        if header.is_none() && !front.contains(&b'\n') {
            return false;
        }
        let is_other = |header: &FragmentHeader| !self.ids.contains(&header.run);
        let is_other = header.as_ref().is_some_and(is_other);
        let number = place.name().to_str().and_then(stem_and_segment);
        let header = header.filter(|_| !is_other);
        let segment = header.zip(number).map(|(header, (_, number))| {
            let recorder = (place.folder().path().to_owned(), recorder_key(&header));
            let process = self.run.process_number(&header);
            let new = || FollowedFragment::new(process, header);
            let fragment = self.fragments.entry(recorder.clone()).or_insert_with(new);
            fragment.update_segment(number, place.clone(), id, len);
            (recorder, number)
        });
        self.examined.insert(name, ExaminedFile { id, segment });
        is_other
    }
}

/// Returns true if an I/O error means that the file or folder does not exist any more.
fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Returns the key under which a file is remembered: the path of its folder, and its file name.
fn name(place: &FileLocation) -> Name {
    (place.folder().path().to_owned(), place.name().to_owned())
}

/// Identity of a directory and its folder of fragments, and the status of the files that describe the run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DirectoryState {
    folders: [Option<FileId>; 2],
    files: [Option<FileStatus>; 2],
}

impl DirectoryState {
    /// Reads the current state of an output directory. If it differs from the state before, a new run may have begun.
    pub(super) fn read(directory: &Path) -> DirectoryState {
        let folder = |path: &Path| {
            fs::metadata(path)
                .ok()
                .map(|found| FileId::from_metadata(&found))
        };
        let file = |name: &str| {
            let found = fs::metadata(directory.join(name)).ok()?;
            Some(FileStatus::from_metadata(&found))
        };
        DirectoryState {
            folders: [folder(directory), folder(&directory.join(FRAGMENTS_DIR))],
            files: [file(RUN_FILE), file(NEXT_RUN_FILE)],
        }
    }
}
