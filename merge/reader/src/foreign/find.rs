//! Which inputs are traces of other profilers, and what the compressed ones hold.

use super::content_sum::ContentSum;
use super::gzip::{is_gzip, unpack};
use crate::base::access::Access;
use crate::base::file_id::FileId;
use crate::base::file_status::FileStatus;
use crate::base::folder::Place;
use crate::error::Error;
use crate::fragment::file::{Content, Fragment, read_header};
use crate::fragment::file_watch::FileWatch;
use crate::fragment::input::{Input, Inputs, is_fragment};
use crate::fragment::temp_folder::in_first;
use std::path::PathBuf;

/// A trace of another profiler, not yet read.
pub struct TraceCandidate {
    pub(super) path: PathBuf,
    pub(super) access: Access,
    pub(super) id: FileId,
    /// Length of the file.
    pub(super) bytes: u64,
    pub(super) is_packed: bool,
    /// What it holds, unpacked.
    pub(super) content: Content,
    /// Where unpacking had to stop, and why.
    pub(super) failure: Option<(u64, String)>,
    place: Place,
    watch: FileWatch,
}

impl TraceCandidate {
    /// Returns true if another program changed the file since it was opened. Appending is not a change. `sum` is the hash of what was read: it is
    /// compared only if the file's size or times have changed.
    pub(super) fn has_changed(&self, sum: u64) -> bool {
        if !self.content.is_watched() {
            return false;
        }
        let status = self.place.status().ok();
        let status = status.as_ref().map(FileStatus::of_stat);
        let is_moved = self.watch.has_moved(status);
        self.content.is_cut() || is_moved && ContentSum::of(&self.content) != sum
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
            Some(candidate) => match fragment(candidate) {
                Ok(fragment) => found.fragments.push(fragment),
                Err(candidate) => found.candidates.push(*candidate),
            },
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
    let open = || {
        let file = input.place.open_regular(input.named).ok()?;
        let metadata = file.metadata().ok()?;
        let front = input.place.read_front(input.named).ok()?;
        Some((file, metadata, is_gzip(&front)))
    };
    let Some((file, metadata, is_packed)) = open() else {
        return Ok(None);
    };
    let (content, failure) = if is_packed {
        let (_, unpacked) = in_first(folders, |folder| unpack(&file, folder))?;
        (Content::open(unpacked.file), unpacked.failure)
    } else {
        (Content::of_others(file), None)
    };
    let Ok(content) = content else {
        return Ok(None);
    };
    Ok(Some(TraceCandidate {
        path: input.place.path().to_owned(),
        access: Access::of(&metadata, input.place.folder().reach()).masked(),
        id: FileId::of(&metadata),
        bytes: metadata.len(),
        is_packed,
        content,
        failure,
        watch: FileWatch::of(&metadata),
        place: input.place.clone(),
    }))
}

/// A fragment that was compressed whole; any other trace is given back.
fn fragment(candidate: TraceCandidate) -> Result<Fragment, Box<TraceCandidate>> {
    if candidate.failure.is_some() {
        return Err(Box::new(candidate));
    }
    match read_header(candidate.content.bytes()) {
        Some(header) => Ok(Fragment::of(
            candidate.path,
            candidate.id,
            candidate.access,
            candidate.content,
            Some(header),
        )),
        None => Err(Box::new(candidate)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;
    use std::os::unix::fs::FileExt;
    use std::time::Duration;

    #[test]
    fn a_byte_that_is_written_over_is_a_change_and_appending_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other.json");
        let line = r#"{"ph":"X","pid":1,"tid":1,"ts":1,"dur":1,"name":"a"},"#;
        std::fs::write(&path, format!("[{}", line.repeat(5_000))).unwrap();
        // Wait until another change is sure to alter the file's times.
        while FileStatus::of(&std::fs::metadata(&path).unwrap()).is_recent() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let input = Input {
            named: true,
            ..Input::in_directory(Place::named(&path).unwrap())
        };
        let candidate = candidate(&input, &[]).unwrap().unwrap();
        let sum = ContentSum::of(&candidate.content);
        assert!(!candidate.has_changed(sum));
        assert!(!candidate.has_changed(!sum), "it was not read again");
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(line.as_bytes()).unwrap();
        assert!(!candidate.has_changed(sum));
        let file = File::options().write(true).open(&path).unwrap();
        file.write_all_at(b"b", 100_001).unwrap();
        assert!(candidate.has_changed(sum));
    }
}
