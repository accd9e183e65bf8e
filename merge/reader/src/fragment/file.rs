//! Opens and reads a fragment or a ring file.

use crate::base::access::Access;
use crate::base::file_status::{FileId, FileStatus};
use crate::base::folder::{FileLocation, Folder};
use crate::fragment::blocks::{Piece, split_range};
use crate::fragment::input::Input;
use crate::fragment::removal::{Removal, removal};
use crate::fragment::ring::{Ring, RingBytes, recover};
pub use crate::store::content::Content;
use sa_format::{Anchor, FragmentHeader, Record, VERSION, ring_name, stem_and_segment};
use std::fs::{File, Metadata};
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of lines that are searched for the first anchor of a segment. It is normally the second line.
const FIRST_LINES: usize = 16;

/// An opened fragment.
pub struct Fragment {
    /// Path as it was found.
    pub path: PathBuf,
    /// Folder that contains the file; `None` if the content was unpacked.
    pub folder: Option<Folder>,
    /// Permissions of the file.
    pub access: Access,
    /// Identity of the opened file.
    pub id: FileId,
    /// Content of the file.
    pub content: Content,
    /// The first record; `None` in files of other programs.
    pub header: Option<FragmentHeader>,
    /// Its record of removed segments.
    pub removal: Option<Removal>,
    /// The anchor that was read when the segment was begun.
    pub begin: Option<Anchor>,
    /// State of the file when it was opened, to detect changes by other programs.
    pub watch: FileWatch,
}

/// Result of reading the ring that belongs to a fragment.
pub enum RingFile {
    /// There is no ring file.
    Absent,
    /// The file is not a valid ring; contains the reason.
    Bad(String),
    /// A copy of the ring, and the identity of its file.
    Read(Ring, FileId),
}

impl Fragment {
    /// Opens a fragment and reads its header.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened or is not a regular file.
    pub fn open(input: &Input) -> io::Result<Fragment> {
        let place = &input.place;
        let file = place.open_regular(input.named)?;
        let metadata = file.metadata()?;
        let access = Access::from_file(&metadata, place.folder().access());
        let content = Content::open_watched(file)?;
        let (path, id) = (place.path().to_owned(), FileId::from_metadata(&metadata));
        Ok(Fragment {
            folder: Some(place.folder().clone()),
            watch: FileWatch::new(&metadata),
            ..Fragment::new(path, id, access, content)
        })
    }

    /// Creates a fragment from its content, for example from unpacked bytes, and reads its header.
    pub fn new(path: PathBuf, id: FileId, access: Access, content: Content) -> Fragment {
        let header = read_header(content.bytes());
        let removal = header
            .as_ref()
            .and_then(|header| removal(content.bytes(), header));
        let begin = header.as_ref().and_then(|_| first_anchor(content.bytes()));
        Fragment {
            path,
            folder: None,
            access,
            id,
            content,
            header,
            removal,
            begin,
            watch: FileWatch::default(),
        }
    }

    /// Returns true if another program may have written to the file since it was opened. The content may still be the same, or only have grown.
    pub fn may_have_changed(&self) -> bool {
        if !self.content.is_watched() {
            return false;
        }
        let status = self
            .place()
            .and_then(|place| place.status().ok())
            .as_ref()
            .map(FileStatus::from_stat);
        self.content.is_cut() || self.watch.may_have_changed(status)
    }

    /// Returns true if the blocks differ from the ones that were found first.
    pub fn blocks_have_changed(&self) -> bool {
        let Some(first_sum) = self.watch.blocks.get() else {
            return false; // the blocks were never searched for
        };
        let mut sums = BlockSums::default();
        self.pieces(|_| {}, |range, piece| sums.add(&range, piece));
        sums.sum() != *first_sum
    }

    /// Returns the segment number, if there is a header.
    pub(crate) fn segment(&self) -> Option<u32> {
        self.header.as_ref().map(|header| header.segment)
    }

    /// Returns when the segment was begun, on the recording's own clock.
    pub fn begin_ns(&self) -> Option<i64> {
        i64::try_from(self.begin?.monotonic_ns).ok()
    }

    /// Returns the location of the file; `None` if its content was unpacked.
    pub fn place(&self) -> Option<FileLocation> {
        let name = self.path.file_name()?;
        self.folder.as_ref().map(|folder| folder.place(name))
    }

    /// Returns the size of the content in bytes.
    pub fn bytes(&self) -> u64 {
        self.content.bytes().len() as u64
    }

    /// Splits the content of this file, one segment of a fragment, into pieces: blocks, and lines outside of blocks. Calls `found` for
    /// each piece, in order, and `count` with the number of bytes processed since the last call.
    pub fn pieces(&self, count: impl FnMut(usize), found: impl FnMut(Range<usize>, Piece)) {
        let bytes = self.content.bytes();
        split_range(bytes, 0..bytes.len(), count, found);
    }
}

/// Returns the anchor that was read when the segment was begun. It is among the first lines.
pub(crate) fn first_anchor(bytes: &[u8]) -> Option<Anchor> {
    let mut lines = bytes.split(|byte| *byte == b'\n').take(FIRST_LINES);
    lines.find_map(Anchor::parse)
}

/// Reads the header from the first line; `None` if there is no header of a version that is supported.
pub(crate) fn read_header(bytes: &[u8]) -> Option<FragmentHeader> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let front = &bytes[..bytes.len().min(1 << 16)];
    let line = &front[..memchr::memchr(b'\n', front)?];
    FragmentHeader::parse(line).filter(|header| header.version == VERSION)
}

/// Reads only the header of a file. A link is followed if `follow` is true.
pub(crate) fn header_at(place: &FileLocation, follow: bool) -> Option<FragmentHeader> {
    read_header(&place.read_front(follow).ok()?)
}

/// Returns where the ring of a fragment is: `<stem>.ring`, without a segment number.
pub fn ring_place(fragment: &FileLocation) -> Option<FileLocation> {
    let (stem, _) = stem_and_segment(fragment.name().to_str()?)?;
    Some(fragment.sibling(ring_name(stem)))
}

impl RingBytes for File {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Option<()> {
        self.read_exact_at(buffer, offset).ok()
    }

    fn len(&self) -> u64 {
        self.metadata().map_or(0, |metadata| metadata.len())
    }
}

/// Returns the latest records of the process's own stream from a ring, flushed or not.
pub(crate) fn own_records(ring: &FileLocation) -> Option<Vec<u8>> {
    crate::fragment::ring::own_records(&ring.open_regular(false).ok()?)
}

/// Reads a ring, which its process may still be using.
pub(crate) fn read_ring(place: &FileLocation) -> RingFile {
    let file = match place.open_regular(false) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return RingFile::Absent,
        Err(error) => return RingFile::Bad(error.to_string()),
    };
    let id = file
        .metadata()
        .map(|metadata| FileId::from_metadata(&metadata));
    match (id, recover(&file)) {
        (Ok(id), Some(ring)) => RingFile::Read(ring, id),
        (Ok(_), None) => RingFile::Bad("not a ring of version 1".to_owned()),
        (Err(error), _) => RingFile::Bad(error.to_string()),
    }
}

/// State of a file when it was opened and first read.
#[derive(Debug, Default)]
pub struct FileWatch {
    status: Option<FileStatus>,
    /// True if the file was written just before it was opened. Another change might then leave its modification time as it is.
    was_recent: bool,
    /// Hash over the blocks when they were first found.
    pub(super) blocks: OnceLock<u64>,
    /// Number of lines that were no longer valid events when they were copied to the trace.
    removed_lines: AtomicU64,
}

impl FileWatch {
    /// Creates the state of a file that was just opened.
    pub fn new(file: &Metadata) -> FileWatch {
        let status = FileStatus::from_metadata(file);
        FileWatch {
            status: Some(status),
            was_recent: status.is_recent(),
            ..FileWatch::default()
        }
    }

    /// Returns true if the file was truncated or rewritten since it was opened. A deleted file counts as unchanged, because the opened one is still complete.
    pub(crate) fn was_rewritten(&self, place: &FileLocation) -> bool {
        let now = place.status().ok().as_ref().map(FileStatus::from_stat);
        let both = now.zip(self.status);
        both.is_some_and(|(now, then)| now.was_rewritten_since(&then))
    }

    /// Returns true if the file may have been written to since it was opened, given its current status.
    pub(crate) fn may_have_changed(&self, now: Option<FileStatus>) -> bool {
        self.was_recent || now != self.status
    }

    /// Counts lines that were no longer valid events when they were copied.
    pub fn add_removed(&self, lines: u64) {
        self.removed_lines.fetch_add(lines, Ordering::Relaxed);
    }

    /// Returns the number of lines that were no longer valid events when they were copied.
    pub fn removed_lines(&self) -> u64 {
        self.removed_lines.load(Ordering::Relaxed)
    }
}

/// Hashes the positions and checksums of a fragment's blocks.
#[derive(Default)]
pub(crate) struct BlockSums(DefaultHasher);

impl BlockSums {
    pub(crate) fn add(&mut self, range: &Range<usize>, piece: Piece) {
        if let Piece::Complete(header) = piece {
            self.0.write_usize(range.start);
            self.0.write_u64(header.sum);
        }
    }

    pub(crate) fn sum(&self) -> u64 {
        self.0.finish()
    }
}
