//! The names of a trace's parts: `trace.1.json`, or `trace.01.json` if there are more than nine, so
//! that they sort.

use super::default_destination;
use crate::base::folder::{FileLocation, Folder};
use crate::{Error, Options, Output};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Files of the parts.
pub(crate) struct PartPlaces {
    /// Files of this trace.
    pub(crate) own: Vec<FileLocation>,
    /// Names of other files that are named like parts, perhaps from an earlier trace with more of
    /// them.
    pub(crate) others: Vec<String>,
}

/// Text before and after the number of a part.
struct Affixes {
    folder: Folder,
    prefix: Vec<u8>,
    suffix: Vec<u8>,
}

/// Returns the places of `count` parts, named after the output.
///
/// # Errors
/// Returns an error if the output has no name or is not a regular file, or if its folder cannot be
/// opened.
pub(crate) fn part_places(
    options: &Options,
    default_directory: Option<&Folder>,
    count: usize,
) -> Result<PartPlaces, Error> {
    let whole = match &options.output {
        Output::Stdout => {
            return Err(Error::Usage(
                "--split: parts cannot go to the standard output; name a file with -o".to_owned(),
            ));
        }
        Output::Default => default_destination(options.gzip, default_directory)?,
        Output::File(path) => destination_with_name(path)?,
    };
    let affixes = Affixes::new(&whole);
    let width = count.to_string().len();
    let names: Vec<OsString> = (1..=count)
        .map(|number| affixes.name(number, width))
        .collect();
    Ok(PartPlaces {
        others: affixes.others(&names),
        own: names.iter().map(|name| whole.sibling(name)).collect(),
    })
}

/// Returns a file that parts can be named after.
fn destination_with_name(whole: &Path) -> Result<FileLocation, Error> {
    let status = fs::metadata(whole).ok();
    let name = whole.file_name();
    let Some(name) = name.filter(|_| status.is_none_or(|status| status.is_file())) else {
        return Err(Error::Usage(format!(
            "--split: expected a file that parts can be named after, found {}",
            whole.display()
        )));
    };
    let folder = Folder::open(whole.parent().unwrap_or(Path::new("")));
    let folder = folder.map_err(|source| Error::from_write(whole, source))?;
    Ok(folder.place(name))
}

impl Affixes {
    fn new(whole: &FileLocation) -> Affixes {
        let name = whole.name().as_bytes();
        let unpacked = name.strip_suffix(b".gz").unwrap_or(name);
        let dot = unpacked.iter().rposition(|byte| *byte == b'.');
        let (prefix, suffix) = name.split_at(dot.filter(|at| *at > 0).unwrap_or(unpacked.len()));
        Affixes {
            folder: whole.folder().clone(),
            prefix: [prefix, b"."].concat(),
            suffix: suffix.to_owned(),
        }
    }

    fn name(&self, number: usize, width: usize) -> OsString {
        let number = format!("{number:0width$}");
        OsString::from_vec([&self.prefix, number.as_bytes(), &self.suffix].concat())
    }

    fn is_part(&self, name: &OsStr) -> bool {
        let rest = name.as_bytes().strip_prefix(self.prefix.as_slice());
        let number = rest.and_then(|rest| rest.strip_suffix(self.suffix.as_slice()));
        number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
    }

    fn others(&self, own: &[OsString]) -> Vec<String> {
        let entries = self.folder.entries().unwrap_or_default();
        let names = entries.into_iter().map(|entry| entry.name);
        let others = names.filter(|name| self.is_part(name) && !own.contains(name));
        let mut others: Vec<String> = others
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        others.sort();
        others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(whole: &str, gzip: bool) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let whole = folder.path().join(whole);
        let options = Options {
            output: Output::File(whole),
            gzip,
            ..Options::new([])
        };
        let places = part_places(&options, None, 1).unwrap();
        let name = |place: &FileLocation| {
            assert_eq!(place.path().parent(), Some(folder.path()));
            place.name().to_str().unwrap().to_owned()
        };
        places.own.iter().map(name).collect()
    }

    #[test]
    fn the_number_is_before_the_suffix() {
        for (whole, expected) in [
            ("trace.json", "trace.1.json"),
            ("out.json.gz", "out.1.json.gz"),
            ("out.gz", "out.1.gz"),
            ("a.b.trace", "a.b.1.trace"),
            ("out", "out.1"),
            (".hidden", ".hidden.1"),
        ] {
            // A name given by the user does not change.
            for gzip in [false, true] {
                assert_eq!(names(whole, gzip), [expected]);
            }
        }
    }
}
