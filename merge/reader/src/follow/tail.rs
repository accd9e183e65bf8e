//! What of a segment that grows was not read yet.

use crate::base::file_status::FileId;
use crate::base::folder::Place;
use crate::fragment::blocks::{Piece, split};
use memchr::memrchr;
use sa_format::BLOCK_START;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

/// No block or line is longer. One that says so is not waited for.
const LONGEST: usize = 32 << 20;

/// A segment, and up to where it was read. It is open only while some of it is read: when its recorder removes it, its room is free.
#[derive(Debug)]
pub(super) struct Tail {
    place: Place,
    id: FileId,
    offset: u64,
    len: u64,
    /// How long it was when what is there behind `offset` was not whole.
    waits_at: u64,
}

/// What was read of it.
pub(super) struct TailPieces {
    pub(super) pieces: Vec<(Range<usize>, Piece)>,
    /// How many bytes.
    pub(super) bytes: u64,
}

impl Tail {
    /// A segment that is to be read from its begin.
    pub(super) fn new(place: Place, id: FileId, len: u64) -> Tail {
        Tail {
            place,
            id,
            offset: 0,
            len,
            waits_at: 0,
        }
    }

    /// Notes how long it is now; whether it became shorter than what was read of it. Then it is read on behind its new end.
    pub(super) fn see(&mut self, place: Place, len: u64) -> bool {
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

    /// Bytes that were not read, as far as it was long when it was last looked at. What is not whole is waited for, unless nothing is added any more.
    pub(super) fn unread(&self, is_final: bool) -> u64 {
        match is_final || self.len > self.waits_at {
            true => self.len.saturating_sub(self.offset),
            false => 0,
        }
    }

    /// Reads some `most` bytes, and more where one block or line has more. Of a segment to which nothing is added any more the last bytes count as well,
    /// whole or not.
    ///
    /// # Errors
    /// `NotFound` if it was removed, or another file has its name.
    pub(super) fn read(
        &mut self,
        buffer: &mut Vec<u8>,
        most: usize,
        is_final: bool,
    ) -> io::Result<TailPieces> {
        let mut file = self.place.open_regular(false)?;
        if FileId::of(&file.metadata()?) != self.id {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut most = most;
        loop {
            let wanted = self.len.saturating_sub(self.offset).min(most as u64);
            buffer.clear();
            file.seek(SeekFrom::Start(self.offset))?;
            let read = (&file).take(wanted).read_to_end(buffer)?;
            // It may have become shorter meanwhile, which the next look tells.
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

/// The pieces that are whole, and how many bytes they and what stands between them have. What is being written waits: a line without its end, a block that has
/// not all its bytes, and a header that may be torn and written again.
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

/// Where the line begins whose newline stands before `end`.
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
