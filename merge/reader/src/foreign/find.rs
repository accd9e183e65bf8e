//! Which inputs are traces of other profilers, and what the compressed ones hold.

use super::content_sum::ContentSum;
use super::gzip::{is_gzip, unpack};
use crate::base::file_id::FileId;
use crate::error::Error;
use crate::fragment::file::{Content, Fragment, read_header};
use crate::fragment::input::{Input, Inputs, is_fragment};
use crate::fragment::temp_folder::in_first;
use std::path::PathBuf;

/// A trace of another profiler, not yet read.
pub struct TraceCandidate {
    /// The file, with what it holds unpacked.
    pub(super) fragment: Fragment,
    /// Length of the file.
    pub(super) bytes: u64,
    pub(super) is_packed: bool,
    /// Where unpacking had to stop, and why.
    pub(super) failure: Option<(u64, String)>,
}

impl TraceCandidate {
    /// Returns true if another program changed the file since it was opened. Appending is not a change. `sum` is the hash of what was read: it is
    /// compared only if the file's size or times have changed.
    pub(super) fn has_changed(&self, sum: u64) -> bool {
        let content = &self.fragment.content;
        self.fragment.may_have_changed() && (content.is_cut() || ContentSum::of(content) != sum)
    }
}

/// What stood among the inputs beside fragments that lie there as they are.
#[derive(Default)]
pub struct OtherInputs {
    /// Fragments that were compressed.
    pub fragments: Vec<Fragment>,
    /// Files that may be traces.
    pub candidates: Vec<TraceCandidate>,
}

/// Takes them out of the inputs. What cannot be opened stays there, where that is told.
///
/// # Errors
/// If there is no room to unpack one.
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

/// Whether it is neither called like a fragment nor begins like one.
fn is_foreign(input: &Input) -> bool {
    if input.in_directory || is_fragment(input.place.path()) {
        return false;
    }
    let front = input.place.read_front(input.named).unwrap_or_default();
    !front.is_empty() && read_header(&front).is_none()
}

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
        let unpacked = in_first(folders, |folder| unpack(&file, folder))?;
        let Ok(content) = Content::open(unpacked.file) else {
            return Ok(None);
        };
        failure = unpacked.failure;
        let id = file
            .metadata()
            .map_or(fragment.id, |status| FileId::of(&status));
        fragment = Fragment::of(fragment.path, id, fragment.access, content);
    }
    Ok(Some(TraceCandidate {
        fragment,
        bytes,
        is_packed,
        failure,
    }))
}
