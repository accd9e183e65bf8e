//! The text of a trace: mapped, so that it takes no memory of its own.

use super::temporary::Folder;
use flate2::bufread::GzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use trace_base::file_status::FileStatus;
use trace_store::content::Content;

/// The first bytes of every compressed trace.
const GZIP: &[u8] = &[0x1f, 0x8b];

/// The text of a trace.
pub(super) struct Text {
    content: Content,
    /// The file that is checked as it is, and its status when it was opened.
    opened: Option<(File, FileStatus)>,
    /// Whether it was compressed and ends too early.
    pub(super) is_cut: bool,
    /// How many compressed pieces it was in; none if it was not compressed.
    pub(super) members: u64,
}

impl Text {
    /// Opens a trace. Only a file that is not compressed is there already.
    pub(super) fn open(path: &Path, folder: &Folder) -> io::Result<Text> {
        let file = File::open(path)?;
        let mut front = [0; GZIP.len()];
        if !file.metadata()?.is_file() || file.read_at(&mut front, 0)? >= 2 && front == GZIP {
            return Text::read(file, folder);
        }
        let status = FileStatus::of(&file.metadata()?);
        Ok(Text {
            content: Content::of_others(file.try_clone()?)?,
            opened: Some((file, status)),
            is_cut: false,
            members: 0,
        })
    }

    /// Reads a trace into a temporary file without a name, and unpacks it if it is compressed.
    pub(super) fn read(mut from: impl Read, folder: &Folder) -> io::Result<Text> {
        let mut front = Vec::new();
        from.by_ref().take(2).read_to_end(&mut front)?;
        let is_packed = front == GZIP;
        let mut from = BufReader::new(Cursor::new(front).chain(from));
        let mut to = folder.file()?;
        let (is_cut, members) = if is_packed {
            unpack(&mut from, &mut to)?
        } else {
            io::copy(&mut from, &mut to)?;
            (false, 0)
        };
        let mut file = to.into_file();
        let content = file.rewind().and_then(|()| Content::open(file));
        Ok(Text {
            content: content.map_err(|error| folder.named(error))?,
            opened: None,
            is_cut,
            members,
        })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.content.bytes()
    }

    /// Returns true if the file was truncated or rewritten since it was opened.
    pub(super) fn has_changed(&self) -> bool {
        let was_rewritten = |(file, older): &(File, FileStatus)| {
            let now = file.metadata().map(|now| FileStatus::of(&now));
            now.is_ok_and(|now| now.was_rewritten_since(older))
        };
        let opened = self.opened.as_ref().filter(|_| self.content.is_watched());
        self.content.is_cut() || opened.is_some_and(was_rewritten)
    }
}

/// Unpacks one compressed piece after the other; whether the last ends too early, and how many they are.
fn unpack(from: &mut impl BufRead, to: &mut impl Write) -> io::Result<(bool, u64)> {
    let mut members = 0;
    while !from.fill_buf()?.is_empty() {
        members += 1;
        match io::copy(&mut GzDecoder::new(&mut *from), to) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Ok((true, members));
            }
            Err(error) => return Err(error),
        }
    }
    Ok((false, members))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    /// The same from a file and from a pipe that gives one byte at a time: text, whether it is cut, pieces.
    fn read(bytes: &[u8]) -> io::Result<(String, bool, u64)> {
        struct Slow<'a>(&'a [u8]);
        impl Read for Slow<'_> {
            fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
                let len = to.len().min(1);
                self.0.read(&mut to[..len])
            }
        }
        let folder = Folder::of_system();
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(bytes)?;
        let facts = |text: Text| {
            let words = String::from_utf8_lossy(text.bytes()).into_owned();
            (words, text.is_cut, text.members)
        };
        let opened = Text::open(file.path(), &folder).map(facts);
        let piped = Text::read(Slow(bytes), &folder).map(facts);
        assert_eq!(opened.is_ok(), piped.is_ok());
        if let (Ok(opened), Ok(piped)) = (&opened, &piped) {
            assert_eq!(opened, piped);
        }
        opened
    }

    #[test]
    fn reads_text_of_every_kind() {
        let (one, two) = (packed("[1,"), packed("2]"));
        let table = [
            (b"".to_vec(), "", false, 0),
            (b"[".to_vec(), "[", false, 0),
            (b"\x1f".to_vec(), "\x1f", false, 0),
            (b"[1]".to_vec(), "[1]", false, 0),
            (one.clone(), "[1,", false, 1),
            ([one.as_slice(), &two].concat(), "[1,2]", false, 2),
            (one[..one.len() - 3].to_vec(), "[1,", true, 1),
            ([one.as_slice(), &two[..5]].concat(), "[1,", true, 2),
        ];
        for (bytes, text, is_cut, members) in table {
            let read = read(&bytes).unwrap();
            assert_eq!(read, (text.to_owned(), is_cut, members), "{bytes:?}");
        }
        assert!(read(&[one.as_slice(), b"garbage of some length"].concat()).is_err());
    }
}
