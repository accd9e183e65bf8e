//! A fragment or ring file, opened and read.
//!
//! A small one is read. A large one is mapped, and watched: others may cut it short while it is read. What the merge itself has written to a
//! file without a name nobody else can change.

#![expect(
    unsafe_code,
    reason = "mapping a file is the only way to read 1 GB without a copy or heap"
)]

use crate::base::access::Access;
use crate::base::file_id::FileId;
use crate::base::folder::{Folder, Place};
use crate::fragment::blocks::{Piece, split_range};
use crate::fragment::input::Input;
use crate::fragment::removal::{Removal, removal};
use crate::fragment::ring::{Ring, RingBytes, recover};
use crate::store::mapped_file::Watched;
use crate::store::spill_vec::Together;
use memmap2::{Mmap, UncheckedAdvice};
use sa_recorder::format::{
    FRAGMENT_RECORD, FragmentHeader, Metadata, RING_SUFFIX, VERSION, stem_and_segment,
};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes of a file that is read and not mapped: a process may have some 65,000 mappings.
const SMALL_BYTES: u64 = 1 << 16;

/// The bytes of a file.
pub(crate) enum Content {
    /// Mapped; a file without a name.
    Mapped(Mmap),
    /// Mapped; a file that others may write.
    Watched(Watched),
    /// On the heap.
    Owned(Vec<u8>),
    /// Where they will be among those of other files, once all are there.
    Pending(Range<usize>),
    /// Among those of other files.
    Packed(Together<u8>),
}

/// An opened fragment.
pub(crate) struct Fragment {
    pub(crate) path: PathBuf,
    /// Where it lies, if it lies there as it is.
    pub(crate) folder: Option<Folder>,
    pub(crate) access: Access,
    pub(crate) id: FileId,
    pub(crate) content: Content,
    pub(crate) header: Option<FragmentHeader>,
    /// What it says of removed segments.
    pub(crate) removal: Option<Removal>,
    /// Which of its bytes are read, if not all: stretches of whole lines and blocks, in order.
    pub(crate) extents: Option<Vec<Range<usize>>>,
}

/// What lay beside a fragment.
pub(crate) enum RingFile {
    Absent,
    Bad(String),
    Read(Ring, FileId),
}

impl Content {
    /// Maps a file without a name, or reads it where it cannot be mapped.
    pub(crate) fn open(file: File) -> io::Result<Content> {
        if file.metadata()?.len() > 0 {
            // SAFETY: the mapping is read-only, and nobody else can open the file.
            if let Ok(map) = unsafe { Mmap::map(&file) } {
                return Ok(Content::Mapped(map));
            }
        }
        Content::read(file)
    }

    /// Maps a file that others may write, or reads it if it is small or cannot be mapped. If folders are `copied` to, it is first copied to one of
    /// them, or, where none takes it, to memory.
    pub(crate) fn of_others(mut file: File, copied: Option<&[PathBuf]>) -> io::Result<Content> {
        if file.metadata()?.len() > SMALL_BYTES {
            let Some(folders) = copied else {
                return match Watched::map(&file) {
                    Some(watched) => Ok(Content::Watched(watched)),
                    None => Content::read(file),
                };
            };
            for folder in folders {
                if let Ok(copy) = copy_to(folder, &mut file) {
                    return Content::open(copy);
                }
            }
        }
        Content::read(file)
    }

    fn read(mut file: File) -> io::Result<Content> {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(Content::Owned(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Content::Mapped(map) => map,
            Content::Watched(watched) => watched.bytes(),
            Content::Owned(bytes) => bytes,
            Content::Pending(_) => &[],
            Content::Packed(bytes) => bytes,
        }
    }

    /// Whether the file is not what it was when it was opened; what was appended to it is no change.
    pub(crate) fn has_changed(&self) -> bool {
        matches!(self, Content::Watched(watched) if watched.has_changed())
    }

    /// Lets go of the pages of a range; they come back from the file when touched again.
    pub(crate) fn release(&self, start: usize, end: usize) {
        match self {
            Content::Watched(watched) => watched.release(start, end),
            Content::Mapped(map) if start < end.min(map.len()) => {
                let (advice, len) = (UncheckedAdvice::DontNeed, end.min(map.len()) - start);
                // SAFETY: a read-only mapping of a file; the pages read the same from the file again.
                let _ = unsafe { map.unchecked_advise_range(advice, start, len) };
            }
            _ => {}
        }
    }
}

/// Copies a file to one without a name.
fn copy_to(folder: &Path, file: &mut File) -> io::Result<File> {
    let mut copy = tempfile::tempfile_in(folder)?;
    file.rewind()?;
    io::copy(file, &mut copy)?;
    Ok(copy)
}

impl Fragment {
    /// Opens a fragment and reads its header.
    pub(crate) fn open(input: &Input) -> io::Result<Fragment> {
        let place = &input.place;
        let file = place.open_regular(input.named)?;
        let metadata = file.metadata()?;
        let access = Access::of(&metadata, place.folder().reach());
        let of = (place.path().to_owned(), FileId::of(&metadata), access);
        let content = Content::of_others(file, input.copied.as_deref())?;
        let header = read_header(content.bytes());
        let fragment = Fragment::of(of, content, header);
        Ok(Fragment {
            folder: Some(place.folder().clone()),
            ..fragment
        })
    }

    /// A fragment of which the header has been read.
    pub(crate) fn of(
        (path, id, access): (PathBuf, FileId, Access),
        content: Content,
        header: Option<FragmentHeader>,
    ) -> Fragment {
        let header_of = header.as_ref();
        let removal = header_of.and_then(|header| removal(content.bytes(), header));
        Fragment {
            path,
            folder: None,
            access,
            id,
            content,
            header,
            removal,
            extents: None,
        }
    }

    /// Its name in the folder it lies in, if it lies there as it is.
    pub(crate) fn place(&self) -> Option<Place> {
        let name = self.path.file_name()?;
        self.folder.as_ref().map(|folder| folder.place(name))
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> u64 {
        self.content.bytes().len() as u64
    }

    /// How much of it is read.
    pub(crate) fn bytes_read(&self) -> u64 {
        let extents = self.extents.iter().flatten();
        let read: usize = extents.map(ExactSizeIterator::len).sum();
        match self.extents {
            Some(_) => read as u64,
            None => self.bytes(),
        }
    }

    /// What is not read of it.
    pub(crate) fn holes(&self) -> Vec<Range<usize>> {
        let Some(extents) = &self.extents else {
            return Vec::new();
        };
        let (mut holes, mut at) = (Vec::new(), 0);
        for extent in extents {
            holes.push(at..extent.start);
            at = extent.end;
        }
        holes.push(at..self.content.bytes().len());
        holes.retain(|hole| !hole.is_empty());
        holes
    }

    /// Calls `found` with the pieces of what is read, in order; `count` gets the lengths of what is done.
    pub(crate) fn pieces(
        &self,
        mut count: impl FnMut(usize),
        mut found: impl FnMut(Range<usize>, Piece),
    ) {
        let bytes = self.content.bytes();
        let mut split_one =
            |extent: Range<usize>| split_range(bytes, extent, &mut count, &mut found);
        match &self.extents {
            Some(extents) => extents.iter().cloned().for_each(split_one),
            None => split_one(0..bytes.len()),
        }
    }
}

/// Reads the header from the first line; `None` if there is none that this version understands.
pub(crate) fn read_header(bytes: &[u8]) -> Option<FragmentHeader> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let front = &bytes[..bytes.len().min(1 << 16)];
    let line = &front[..memchr::memchr(b'\n', front)?];
    let record: Metadata<FragmentHeader> = serde_json::from_slice(line).ok()?;
    (record.name == FRAGMENT_RECORD && record.args.version == VERSION).then_some(record.args)
}

/// The place of the ring beside a fragment: `<stem>.ring`, without the number of the segment.
pub(crate) fn ring_place(fragment: &Place) -> Option<Place> {
    let (stem, _) = stem_and_segment(fragment.name().to_str()?)?;
    Some(fragment.beside(format!("{stem}{RING_SUFFIX}")))
}

struct OpenRing(File);

impl RingBytes for OpenRing {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Option<()> {
        self.0.read_exact_at(buffer, offset).ok()
    }

    fn len(&self) -> u64 {
        self.0.metadata().map_or(0, |metadata| metadata.len())
    }
}

/// The latest records of the process itself in a ring, flushed or not.
pub(crate) fn own_records(ring: &Place) -> Option<Vec<u8>> {
    crate::fragment::ring::own_records(&OpenRing(ring.open_regular(false).ok()?))
}

/// Reads a ring, which may be in use.
pub(crate) fn read_ring(place: &Place) -> RingFile {
    let file = match place.open_regular(false) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return RingFile::Absent,
        Err(error) => return RingFile::Bad(error.to_string()),
    };
    let metadata = match file.metadata() {
        Ok(metadata) => metadata,
        Err(error) => return RingFile::Bad(error.to_string()),
    };
    match recover(&OpenRing(file)) {
        Some(ring) => RingFile::Read(ring, FileId::of(&metadata)),
        None => RingFile::Bad("no ring of version 1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &Path) -> Place {
        Place::named(path).unwrap()
    }

    fn opened(path: &Path, named: bool) -> io::Result<Fragment> {
        let input = Input {
            named,
            ..Input::in_directory(place(path))
        };
        Fragment::open(&input)
    }

    #[test]
    fn segments_share_a_ring() {
        let dir = tempfile::tempdir().unwrap();
        let ring = |name: &str| {
            let ring = ring_place(&place(&dir.path().join(name)))?;
            Some(ring.name().to_str().unwrap().to_owned())
        };
        assert_eq!(ring("trace.7.jsonl").as_deref(), Some("trace.7.ring"));
        assert_eq!(ring("trace.7.s12.jsonl").as_deref(), Some("trace.7.ring"));
        assert_eq!(
            ring("trace.7.9f86.s1.jsonl").as_deref(),
            Some("trace.7.9f86.ring")
        );
        assert_eq!(ring("trace.7.sx.jsonl").as_deref(), Some("trace.7.sx.ring"));
        assert_eq!(ring("trace.json"), None);
    }

    #[test]
    fn a_fifo_or_directory_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        assert!(opened(dir.path(), true).is_err());
    }

    #[test]
    fn issue_19_a_changed_file_is_copied_to_the_first_folder_that_takes_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "x\n".repeat(100_000)).unwrap();
        let (none, here) = (dir.path().join("none"), dir.path().to_owned());
        let opened = |folders: &[PathBuf]| {
            let content = Content::of_others(File::open(&path).unwrap(), Some(folders)).unwrap();
            assert_eq!(content.bytes().len(), 200_000);
            content
        };
        assert!(matches!(opened(&[none.clone(), here]), Content::Mapped(_)));
        assert!(matches!(opened(&[none]), Content::Owned(_)));
    }

    #[test]
    fn a_link_is_followed_only_when_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::write(&file, "x\n").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(opened(&link, false).is_err());
        assert_eq!(opened(&link, true).unwrap().content.bytes(), b"x\n");
    }
}
