//! Finds the inputs that are traces of other profilers, and unpacks the compressed ones.

use super::content_sum::ContentSum;
use crate::base::file_status::FileId;
use crate::error::{Error, try_folders};
use crate::fragment::file::{Content, Fragment, read_header};
use crate::fragment::input::{Input, Inputs, is_fragment};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// A trace of another profiler that has not been read yet.
pub struct TraceCandidate {
    /// The file, with its unpacked content.
    pub(super) fragment: Fragment,
    /// Length of the file in bytes.
    pub(super) bytes: u64,
    pub(super) is_packed: bool,
    /// Offset at which unpacking had to stop, and the reason.
    pub(super) failure: Option<(u64, String)>,
}

impl TraceCandidate {
    /// Returns true if another program changed the file since it was opened. Appending is not a change. `sum` is the hash of the bytes that were
    /// read; it is only compared with the file if the file's size or times have changed.
    pub(super) fn has_changed(&self, sum: u64) -> bool {
        let content = &self.fragment.content;
        self.fragment.may_have_changed()
            && (content.is_cut() || ContentSum::hash_all(content) != sum)
    }
}

/// All inputs that are not uncompressed fragments.
#[derive(Default)]
pub struct OtherInputs {
    /// Fragments that were compressed.
    pub fragments: Vec<Fragment>,
    /// Files that may be traces.
    pub candidates: Vec<TraceCandidate>,
}

/// Finds the inputs that are compressed or are not fragments, and moves them from `inputs` to the result. Unpacks compressed ones into temporary
/// files in one of the `folders`. Files that cannot be opened stay in `inputs`, because they are reported later.
///
/// # Errors
/// Returns an error if there is no room to unpack a file.
pub fn find(inputs: &mut Inputs, folders: &[PathBuf]) -> Result<OtherInputs, Error> {
    let mut found = OtherInputs::default();
    for input in std::mem::take(&mut inputs.files) {
        if !is_foreign(&input) {
            inputs.files.push(input);
            continue;
        }
        match candidate(&input, folders)? {
            None => inputs.files.push(input),
            Some(candidate)
                if candidate.failure.is_none() && candidate.fragment.header.is_some() =>
            {
                found.fragments.push(candidate.fragment);
            }
            Some(candidate) => found.candidates.push(candidate),
        }
    }
    Ok(found)
}

/// Returns true if an input has neither the name nor the first line of a fragment, so that it may be a trace of another profiler.
fn is_foreign(input: &Input) -> bool {
    if input.in_directory || is_fragment(input.place.path()) {
        return false;
    }
    let front = input.place.read_front(input.named).unwrap_or_default();
    !front.is_empty() && read_header(&front).is_none()
}

/// Opens an input file that may be a trace, and unpacks it if it is compressed. Returns `None` if it cannot be opened.
fn candidate(input: &Input, folders: &[PathBuf]) -> Result<Option<TraceCandidate>, Error> {
    let Ok(mut fragment) = Fragment::open(input) else {
        return Ok(None);
    };
    fragment.access = fragment.access.masked();
    let bytes = fragment.bytes();
    let is_packed = is_gzip(fragment.content.bytes());
    let mut failure = None;
    if is_packed {
        let Ok(file) = input.place.open_regular(input.named) else {
            return Ok(None);
        };
        let unpacked = try_folders(folders, |folder| unpack(&file, folder))?;
        let Ok(content) = Content::open(unpacked.file) else {
            return Ok(None);
        };
        failure = unpacked.failure;
        let id = file
            .metadata()
            .map_or(fragment.id, |status| FileId::from_metadata(&status));
        fragment = Fragment::new(fragment.path, id, fragment.access, content);
    }
    Ok(Some(TraceCandidate {
        fragment,
        bytes,
        is_packed,
        failure,
    }))
}

/// Number of bytes that are unpacked at a time.
const STEP_BYTES: usize = 1 << 17;

/// Unpacked content of a compressed file.
pub(super) struct Unpacked {
    pub(super) file: File,
    /// Offset at which unpacking had to stop, and the reason.
    pub(super) failure: Option<(u64, String)>,
}

/// Returns true if `front`, the first bytes of a file, shows that the file is compressed with gzip.
pub(super) fn is_gzip(front: &[u8]) -> bool {
    front.starts_with(b"\x1f\x8b\x08")
}

/// Unpacks a gzip file into a temporary file in `folder`, as far as possible. If the input is damaged, the result says where unpacking stopped.
/// Returns an error only if the temporary file cannot be written.
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
