//! The text of a trace, mapped so that it takes no memory.
//!
//! In: a file or a pipe, compressed or not. Out: its bytes. A file that is not compressed is mapped directly. All other input is copied to a temporary file.

use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufReader, Cursor, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use trace_store::content::Content;
use trace_store::named_temporary;

/// First bytes of a compressed file.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Number of bytes that are copied at a time.
const BUFFER_BYTES: usize = 1 << 16;

/// The text of a trace.
pub(crate) struct Text {
    pub(crate) content: Content,
    /// True if the compressed data ends too early.
    pub(crate) is_cut: bool,
}

impl Text {
    /// Opens a trace.
    pub(crate) fn open(path: &Path, folder: &Path) -> io::Result<Text> {
        let file = File::open(path)?;
        let mut front = [0; GZIP.len()];
        if !file.metadata()?.is_file()
            || file.read_at(&mut front, 0)? == GZIP.len() && front == GZIP
        {
            return Text::read(file, folder);
        }
        Ok(Text {
            content: Content::open_watched(file)?,
            is_cut: false,
        })
    }

    /// Copies a trace into a temporary file in `folder`, and unpacks it if it is compressed.
    pub(crate) fn read(mut from: impl Read, folder: &Path) -> io::Result<Text> {
        let mut front = Vec::new();
        from.by_ref().take(2).read_to_end(&mut front)?;
        let is_packed = front == GZIP;
        let mut from = BufReader::new(Cursor::new(front).chain(from));
        let named = |error| named_temporary(folder, error);
        let mut file = tempfile::tempfile_in(folder).map_err(named)?;
        let is_cut = match is_packed {
            true => copy(&mut MultiGzDecoder::new(from), &mut file, folder)?,
            false => copy(&mut from, &mut file, folder)?,
        };
        let content = file.rewind().and_then(|()| Content::open(file));
        Ok(Text {
            content: content.map_err(named)?,
            is_cut,
        })
    }
}

/// Copies everything and returns true if compressed data ends too early. An error of the temporary file names its folder.
fn copy(from: &mut impl Read, to: &mut impl Write, folder: &Path) -> io::Result<bool> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(false),
            Ok(len) => to
                .write_all(&buffer[..len])
                .map_err(|error| named_temporary(folder, error))?,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(true),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
