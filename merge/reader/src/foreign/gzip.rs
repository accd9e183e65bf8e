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

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::SeekFrom;

    fn packed(parts: &[&[u8]]) -> Vec<u8> {
        let mut all = Vec::new();
        for part in parts {
            let mut encoder = GzEncoder::new(&mut all, Compression::fast());
            encoder.write_all(part).unwrap();
            encoder.finish().unwrap();
        }
        all
    }

    fn unpacked(bytes: &[u8]) -> (Vec<u8>, bool) {
        let dir = tempfile::tempdir().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let mut unpacked = unpack(&file, dir.path()).unwrap();
        let mut text = Vec::new();
        unpacked.file.seek(SeekFrom::Start(0)).unwrap();
        unpacked.file.read_to_end(&mut text).unwrap();
        (text, unpacked.failure.is_some())
    }

    #[test]
    fn all_members_are_unpacked_and_what_is_left_of_a_torn_one() {
        let noise: Vec<u8> = (0..100_000_u32)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0])
            .collect();
        let whole = packed(&[&noise, b"and more"]);
        assert!(is_gzip(&whole));
        assert_eq!(
            unpacked(&whole),
            ([&noise[..], b"and more"].concat(), false)
        );
        let (text, failed) = unpacked(&whole[..whole.len() / 2]);
        assert!(failed && !text.is_empty() && noise.starts_with(&text));
        let (text, failed) = unpacked(&[&whole[..], b"behind"].concat());
        assert!(failed && text.ends_with(b"and more"));
    }
}
