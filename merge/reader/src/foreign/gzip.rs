//! Compressed inputs → what they hold, in a temporary file without a name.

use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;

/// Bytes unpacked at a time.
const STEP_BYTES: usize = 1 << 17;

/// What a compressed file held.
pub(super) struct Unpacked {
    pub(super) file: File,
    /// Where reading had to stop, and why.
    pub(super) failure: Option<(u64, String)>,
}

/// Tells whether these are the first bytes of a compressed file.
pub(super) fn is_gzip(front: &[u8]) -> bool {
    front.starts_with(b"\x1f\x8b\x08")
}

/// Unpacks a file as far as it can be. An error is one of the temporary file.
pub(super) fn unpack(packed: &File, folder: &Path) -> io::Result<Unpacked> {
    let mut packed = packed.try_clone()?;
    packed.rewind()?;
    let mut place = packed.try_clone()?;
    let mut decoder = MultiGzDecoder::new(BufReader::new(packed));
    let mut out = BufWriter::new(tempfile::tempfile_in(folder)?);
    let mut step = vec![0; STEP_BYTES];
    let failure = loop {
        match decoder.read(&mut step) {
            Ok(0) => break None,
            Ok(len) => out.write_all(&step[..len])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Some((place.stream_position().unwrap_or(0), error.to_string())),
        }
    };
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(Unpacked { file, failure })
}
