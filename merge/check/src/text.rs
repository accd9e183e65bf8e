//! The text of a trace, mapped so that it takes no memory.
//!
//! In: a file or a pipe, compressed or not. Out: its bytes. A file that is not compressed is mapped as it is; everything else goes into a temporary file.

use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufReader, Cursor, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use trace_store::content::Content;
use trace_store::named_temporary;

/// First bytes of a compressed file.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Bytes that are copied at a time.
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
            content: Content::of_others(file)?,
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

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    /// A pipe that gives one byte at a time.
    struct Pipe<'a>(&'a [u8]);

    impl Read for Pipe<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let len = to.len().min(1);
            self.0.read(&mut to[..len])
        }
    }

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    /// Returns the text and whether it is cut, which are the same from a file and from a pipe.
    fn read(bytes: &[u8]) -> io::Result<(String, bool)> {
        let folder = std::env::temp_dir();
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(bytes)?;
        let content = |text: Text| {
            let words = String::from_utf8_lossy(text.content.bytes()).into_owned();
            (words, text.is_cut)
        };
        let opened = Text::open(file.path(), &folder).map(content);
        let piped = Text::read(Pipe(bytes), &folder).map(content);
        assert_eq!(opened.as_ref().ok(), piped.as_ref().ok());
        opened
    }

    #[test]
    fn reads_text_of_every_kind() {
        let (one, two) = (packed("[1,"), packed("2]"));
        let table = [
            (b"".to_vec(), "", false),
            (b"[".to_vec(), "[", false),
            (b"\x1f".to_vec(), "\x1f", false),
            (b"[1]".to_vec(), "[1]", false),
            (one.clone(), "[1,", false),
            ([one.as_slice(), &two].concat(), "[1,2]", false),
            (one[..one.len() - 3].to_vec(), "[1,", true),
            ([one.as_slice(), &two[..5]].concat(), "[1,", true),
        ];
        for (bytes, text, is_cut) in table {
            assert_eq!(read(&bytes).unwrap(), (text.to_owned(), is_cut));
        }
        assert!(read(&[one.as_slice(), b"garbage of some length"].concat()).is_err());
    }
}
