//! Opens the files that were found, as recordings. Each ring is copied before its segments are opened, and segments may come and go meanwhile.

use crate::base::file_status::FileId;
use crate::base::folder::{FileLocation, Folder};
use crate::fragment::file::{Content, Fragment, RingFile, header_at, read_ring, ring_place};
use crate::fragment::input::{Input, Inputs};
use crate::fragment::liveness::is_dead_here;
use crate::fragment::recording::Recording;
use crate::store::spill_vec::{Spill, Together};
use sa_format::{FragmentHeader, segment_name, stem_and_segment};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// How often segments are listed again because one of them was removed meanwhile. A recorder at full speed removes them quickly.
const TRIES: u32 = 100;

/// Opened recordings, and the files that could not be read.
pub struct Loaded {
    /// One recording for each recorder.
    pub recordings: Vec<Recording>,
    /// Paths that could not be read, each with the reason.
    pub unreadable: Vec<(PathBuf, String)>,
}

/// Opens all inputs. Each ring is copied before its fragments are opened, because data that is flushed meanwhile is then in the fragment. Before a
/// ring is copied, its process is checked: a process that dies later may have recorded more than the copy contains.
///
/// `unpacked` are fragments that were compressed and have no ring. The content of small files goes to one temporary file, in the first of the
/// `folders` that accepts it.
///
/// # Errors
/// Returns an error if a temporary file cannot be read back.
pub fn open(inputs: &Inputs, unpacked: Vec<Fragment>, folders: &[PathBuf]) -> io::Result<Loaded> {
    let mut unreadable = inputs.unreadable.clone();
    let mut groups = Groups::new(folders);
    for (stem, files) in by_stem(&inputs.files) {
        let opened = Opened::open(&stem, &files);
        for (place, error) in &opened.failed {
            unreadable.push((place.path().to_owned(), error.to_string()));
        }
        groups.add(opened);
    }
    groups.add(Opened {
        fragments: unpacked,
        ..Opened::default()
    });
    Ok(Loaded {
        recordings: groups.recordings()?,
        unreadable,
    })
}

/// A fragment and its ring, opened.
#[derive(Default)]
pub struct Opened {
    /// Segments, sorted.
    pub fragments: Vec<Fragment>,
    /// Segments that could not be opened.
    pub failed: Vec<(FileLocation, io::Error)>,
    /// Location of the ring.
    pub ring_place: Option<FileLocation>,
    /// Copy of the ring, made before the segments were opened.
    pub ring: Option<RingFile>,
    /// Key of the recorder, if its process was dead before the ring was copied.
    pub dead: Option<String>,
    /// Number of the newest segment that existed before the ring was copied.
    pub live: Option<u32>,
}

impl Opened {
    /// Opens the files of one fragment. Opens them again if the recorder has meanwhile removed data that it wrote after its ring was copied.
    pub fn open(stem: &FileLocation, files: &[Input]) -> Opened {
        let mut opened = Opened::open_once(stem, files);
        for _ in 0..TRIES {
            if !opened.is_outlived() {
                break;
            }
            let Some(files) = list_segments(stem) else {
                break;
            };
            opened = Opened::open_once(stem, &files);
        }
        opened
    }

    fn open_once(stem: &FileLocation, files: &[Input]) -> Opened {
        let ring_place = ring_place(stem);
        let live = newest_segment(files);
        let header = |file: &Input| header_at(&file.place, file.named);
        let header = files.iter().find_map(header).filter(is_dead_here);
        let dead = header.as_ref().map(recorder_key);
        let ring = ring_place.as_ref().map(read_ring);
        Opened {
            ring_place,
            ring,
            dead,
            live,
            ..Opened::segments(stem, files.to_vec()).only_counted()
        }
    }

    /// Returns true if removed segments contain lines that were written after the ring was copied.
    fn is_outlived(&self) -> bool {
        let Some(RingFile::Read(ring, _)) = &self.ring else {
            return false;
        };
        let is_of_ring = |fragment: &&Fragment| {
            let header = fragment.header.as_ref();
            header.is_some_and(|header| ring.belongs_to(header))
        };
        let mut newest = self.fragments.iter().rev().filter(is_of_ring);
        let removal = newest.find_map(|fragment| fragment.removal.as_ref());
        removal.is_some_and(|removal| {
            let mut slots = ring.slots.iter();
            slots.any(|slot| removal.removed_to(slot.stream()) > slot.head)
        })
    }
}

/// Groups the files by fragment. The key is the location of the fragment's first segment.
pub fn by_stem(files: &[Input]) -> BTreeMap<FileLocation, Vec<Input>> {
    let mut groups: BTreeMap<FileLocation, Vec<Input>> = BTreeMap::new();
    for file in files {
        let first_place = |(stem, _): (&str, u32)| file.place.sibling(segment_name(stem, 0));
        let stem = stem_and_number(&file.place)
            .map(first_place)
            .unwrap_or_else(|| file.place.clone());
        groups.entry(stem).or_default().push(file.clone());
    }
    groups
}

/// Returns the recordings of one fragment. There are several if its name was reused. Small files share a temporary file in the first of the `folders`
/// that accepts it.
///
/// # Errors
/// Returns an error if a temporary file cannot be read back.
pub fn recordings(opened: Opened, folders: &[PathBuf]) -> io::Result<Vec<Recording>> {
    let mut groups = Groups::new(folders);
    groups.add(opened);
    groups.recordings()
}

/// Returns the stem and the segment number of a fragment's file name.
fn stem_and_number(place: &FileLocation) -> Option<(&str, u32)> {
    stem_and_segment(place.name().to_str()?)
}

/// Returns a key that is unique to a recorder. Fragments without a header have no key and are not grouped.
pub fn recorder_key(header: &FragmentHeader) -> String {
    let (host, boot, nonce) = (&header.host, &header.boot_id, &header.nonce);
    format!(
        "{host}\0{boot}\0{}\0{}\0{}\0{nonce}",
        header.pid_ns, header.pid, header.start_time
    )
}

impl Opened {
    /// Opens the files. If they were found in a directory, they are listed again when a newer segment exists by now, and as long as one has
    /// disappeared without a newer segment that records its removal: its recorder is still running.
    fn segments(stem: &FileLocation, mut files: Vec<Input>) -> Opened {
        let is_gone =
            |(_, error): &(FileLocation, io::Error)| error.kind() == io::ErrorKind::NotFound;
        let in_directory = files.iter().all(|file| file.in_directory);
        if in_directory && next_segment(stem, &files).is_some_and(|place| place.exists()) {
            files = list_segments(stem).unwrap_or(files);
        }
        let mut segments = Opened::files(&files);
        for _ in 0..TRIES {
            if !in_directory || !segments.failed.iter().any(is_gone) {
                break;
            }
            let Some(again) = list_segments(stem).filter(|again| !again.is_empty()) else {
                break;
            };
            segments = Opened::files(&again);
        }
        segments
    }

    fn files(files: &[Input]) -> Opened {
        let mut segments = Opened::default();
        for file in files {
            match Fragment::open(file) {
                Ok(fragment) => segments.fragments.push(fragment),
                Err(error) => segments.failed.push((file.place.clone(), error)),
            }
        }
        segments.fragments.sort_by_key(Fragment::segment);
        let first = segments.first_segments().into_values().max().unwrap_or(0);
        segments.failed.retain(|(place, error)| {
            let number = stem_and_number(place).map_or(u32::MAX, |(_, number)| number);
            error.kind() != io::ErrorKind::NotFound || number >= first
        });
        segments
    }

    /// Returns the first segment that counts for each recorder, according to its newest segment.
    fn first_segments(&self) -> HashMap<String, u32> {
        let firsts = self.fragments.iter().filter_map(|fragment| {
            let header = fragment.header.as_ref()?;
            Some((recorder_key(header), fragment.removal.as_ref()?.first))
        });
        firsts.collect() // the segments are sorted, so the newest one of a recorder wins
    }

    /// Drops the segments that do not count: older ones that the recorder has reported as removed, although they still exist, and new ones without a
    /// complete first line.
    fn only_counted(mut self) -> Opened {
        let firsts = self.first_segments();
        let first = |header: &FragmentHeader| firsts.get(&recorder_key(header)).copied();
        let is_fragment = self
            .fragments
            .iter()
            .any(|fragment| fragment.header.is_some());
        self.fragments.retain(|fragment| match &fragment.header {
            Some(header) => header.segment >= first(header).unwrap_or(0),
            None => !is_fragment || memchr::memchr(b'\n', fragment.content.bytes()).is_some(),
        });
        self
    }
}

/// Returns the highest segment number in the names of these fragment files, or `None` if no name contains one.
fn newest_segment(files: &[Input]) -> Option<u32> {
    let numbers = files.iter().filter_map(|file| stem_and_number(&file.place));
    numbers.map(|(_, number)| number).max()
}

/// Returns where the next segment after these files would be.
fn next_segment(stem: &FileLocation, files: &[Input]) -> Option<FileLocation> {
    let (stem_name, _) = stem_and_number(stem)?;
    let next = newest_segment(files)?.checked_add(1)?;
    Some(stem.sibling(segment_name(stem_name, next)))
}

/// Lists the segments that exist now.
pub fn list_segments(stem: &FileLocation) -> Option<Vec<Input>> {
    let (name, _) = stem_and_number(stem)?;
    let mut files = list_stems(stem.folder()).ok()?;
    files.retain(|file| stem_and_number(&file.place).is_some_and(|(other, _)| other == name));
    Some(files)
}

/// Lists the fragment files in a folder, sorted.
pub(crate) fn list_stems(folder: &Folder) -> io::Result<Vec<Input>> {
    let mut files = Vec::new();
    for entry in folder.entries()? {
        let place = folder.place(entry.name);
        if stem_and_number(&place).is_some() {
            files.push(Input::in_directory(place));
        }
    }
    files.sort();
    Ok(files)
}

/// Opened files, grouped by recorder.
struct Groups<'f> {
    /// One entry for each recorder, with all of its segments.
    groups: Vec<Opened>,
    small: Spill<'f, u8>,
    by_recorder: HashMap<String, usize>,
    added_files: BTreeSet<FileId>,
}

impl<'f> Groups<'f> {
    fn new(folders: &'f [PathBuf]) -> Groups<'f> {
        Groups {
            groups: Vec::new(),
            small: Spill::new(folders),
            by_recorder: HashMap::new(),
            added_files: BTreeSet::new(),
        }
    }

    /// Adds the segments and the ring of a fragment. The ring is ignored if its recorder already has an entry.
    fn add(&mut self, mut opened: Opened) {
        let ring_place = opened.ring_place.clone();
        for mut fragment in std::mem::take(&mut opened.fragments) {
            if !self.added_files.insert(fragment.id) {
                continue;
            }
            if let Content::Owned(bytes) = &fragment.content {
                fragment.content = Content::Pending(self.small.append(bytes));
            }
            let recorder = fragment.header.as_ref().map(recorder_key);
            let existing = recorder.as_ref().and_then(|key| self.by_recorder.get(key));
            let group = existing.copied().unwrap_or(self.groups.len());
            if group == self.groups.len() {
                self.by_recorder.extend(recorder.map(|key| (key, group)));
                let new = Opened {
                    ring_place: ring_place.clone(),
                    fragments: Vec::with_capacity(1), // most have only one segment, and there may be many of them
                    ..std::mem::take(&mut opened)
                };
                self.groups.push(new);
            }
            self.groups[group].fragments.push(fragment);
        }
    }

    fn recordings(self) -> io::Result<Vec<Recording>> {
        let small = Arc::new(self.small.finish()?);
        let recording = |mut group: Opened| {
            for fragment in &mut group.fragments {
                if let Content::Pending(numbers) = &fragment.content {
                    fragment.content = Content::Packed(Together::new(&small, numbers.clone()));
                }
            }
            group.fragments.sort_by_key(Fragment::segment);
            let first = group.fragments.first();
            let recorder = first.and_then(|first| first.header.as_ref().map(recorder_key));
            let has_ring = group.ring.is_some();
            let was_dead = has_ring && recorder.is_some() && group.dead == recorder;
            let live = group.live.filter(|_| has_ring);
            let newest_at_copy = live.and_then(|live| {
                let mut numbers = group.fragments.iter().map(Fragment::segment);
                numbers.position(|number| number >= Some(live))
            });
            Recording {
                newest_at_copy,
                ..Recording::new(group.fragments, group.ring_place, group.ring, was_dead)
            }
        };
        Ok(self.groups.into_iter().map(recording).collect())
    }
}
