//! The part of a growing segment that was not read yet.

use crate::base::file_status::FileId;
use crate::base::folder::FileLocation;
use crate::fragment::blocks::{Piece, split};
use memchr::memrchr;
use sa_format::BLOCK_START;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

/// Maximum length of a block or line. If a header claims a longer one, it is not waited for.
const LONGEST: usize = 32 << 20;

/// A segment, and the offset up to which it was read. It is only open while it is read, so that its disk space is freed when its recorder removes it.
#[derive(Debug)]
pub(super) struct Tail {
    place: FileLocation,
    id: FileId,
    offset: u64,
    len: u64,
    /// Length of the segment when the data after `offset` was found to be incomplete.
    waits_at: u64,
}

/// Result of reading a segment.
pub(super) struct TailPieces {
    pub(super) pieces: Vec<(Range<usize>, Piece)>,
    /// Number of bytes that were read.
    pub(super) bytes: u64,
}

impl Tail {
    /// Creates the reading state of a segment file of which nothing was read yet. `len` is its current length in bytes.
    pub(super) fn new(place: FileLocation, id: FileId, len: u64) -> Tail {
        Tail {
            place,
            id,
            offset: 0,
            len,
            waits_at: 0,
        }
    }

    /// Sets the current location and length of the segment file. Returns true if the file became shorter than the part that was read. Then
    /// reading continues at its new end.
    pub(super) fn update(&mut self, place: FileLocation, len: u64) -> bool {
        let is_cut = len < self.offset;
        if is_cut {
            self.offset = len;
        }
        if len < self.waits_at {
            self.waits_at = 0;
        }
        (self.place, self.len) = (place, len);
        is_cut
    }

    /// Returns the number of unread bytes of the segment, by its last known length. Incomplete data at its end is not counted until the file
    /// grows. `is_final` means that it will not grow, so everything counts.
    pub(super) fn unread(&self, is_final: bool) -> u64 {
        match is_final || self.len > self.waits_at {
            true => self.len.saturating_sub(self.offset),
            false => 0,
        }
    }

    /// Reads about `most` unread bytes of the segment into `buffer` and splits them into blocks and lines. It reads more if a block or line is
    /// longer. If `is_final`, the segment will not grow, and incomplete data at its end is read, too.
    ///
    /// # Errors
    /// Returns `NotFound` if the segment was removed or another file has its name.
    pub(super) fn read(
        &mut self,
        buffer: &mut Vec<u8>,
        most: usize,
        is_final: bool,
    ) -> io::Result<TailPieces> {
        let mut file = self.place.open_regular(false)?;
        if FileId::from_metadata(&file.metadata()?) != self.id {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut most = most;
        loop {
            let wanted = self.len.saturating_sub(self.offset).min(most as u64);
            buffer.clear();
            file.seek(SeekFrom::Start(self.offset))?;
            let read = (&file).take(wanted).read_to_end(buffer)?;
            // The file may have become shorter meanwhile. The next update detects that.
            let reaches_end = (read as u64) < wanted || self.offset + read as u64 >= self.len;
            let is_all = reaches_end && is_final || read >= LONGEST;
            let (pieces, used) = whole_pieces(buffer, is_all);
            if used == 0 && !reaches_end {
                most = (4 * most).min(LONGEST);
                continue;
            }
            self.offset += used as u64;
            if reaches_end {
                self.waits_at = self.len;
            }
            return Ok(TailPieces {
                pieces,
                bytes: used as u64,
            });
        }
    }
}

/// Splits bytes of a segment into pieces (blocks, and lines outside of blocks). Also returns the number of bytes up to the end of the last piece.
/// Unless `is_all`, data that is still being written is left out: a line without a newline, a block that is shorter than it claims, and a header
/// that may be torn and written again.
fn whole_pieces(bytes: &[u8], is_all: bool) -> (Vec<(Range<usize>, Piece)>, usize) {
    if is_all {
        return (split(bytes), bytes.len());
    }
    let end = memrchr(b'\n', bytes).map_or(0, |at| at + 1);
    let mut pieces = split(&bytes[..end]);
    let waits_from = match pieces.last() {
        Some((range, Piece::Broken(header))) if range.end == end => {
            let there = (end - range.start) as u64;
            let is_waited_for = there < header.len && header.len < LONGEST as u64;
            is_waited_for.then(|| line_before(bytes, range.start))
        }
        Some((range, Piece::Plain)) if range.end == end => {
            let from = line_before(bytes, end);
            let line = &bytes[from..end - 1];
            let is_header = line.starts_with(BLOCK_START) || BLOCK_START.starts_with(line);
            (is_header && !line.is_empty()).then_some(from)
        }
        _ => None,
    };
    let Some(from) = waits_from else {
        return (pieces, end);
    };
    if let Some((mut range, piece)) = pieces.pop() {
        range.end = from;
        if !range.is_empty() {
            pieces.push((range, piece));
        }
    }
    (pieces, from)
}

/// Returns the offset where the line begins whose newline is directly before offset `end`.
fn line_before(bytes: &[u8], end: usize) -> usize {
    memrchr(b'\n', &bytes[..end.saturating_sub(1)]).map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sa_format::BlockHeader;

    #[test]
    fn a_block_that_nobody_can_write_is_not_waited_for() {
        let mut header = Vec::new();
        BlockHeader {
            slot: 0,
            generation: 0,
            from: 0,
            len: u64::MAX,
            sum: 0,
        }
        .write(7, &mut header);
        header.extend_from_slice(b"a\n");
        let (pieces, used) = whole_pieces(&header, false);
        assert!(matches!(pieces[..], [(_, Piece::Broken(_))]));
        assert_eq!(used, header.len());
    }
}
