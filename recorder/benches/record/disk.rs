//! What reached the disk.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use sa_format::stem_and_segment;

/// Events and bytes of one file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
}

/// Counts the spans and instants of the benchmark in a file of lines.
pub(crate) fn count(path: &Path) -> std::io::Result<Written> {
    let mut reader = BufReader::with_capacity(1 << 20, File::open(path)?);
    let (mut line, mut written) = (Vec::new(), Written::default());
    loop {
        line.clear();
        let bytes = reader.read_until(b'\n', &mut line)?;
        if bytes == 0 {
            return Ok(written);
        }
        written.bytes += bytes as u64;
        let ours = line.starts_with(br#"{"ph":"X""#) || line.starts_with(br#"{"ph":"i""#);
        written.events += u64::from(ours && contains(&line, br#""cat":"bench""#));
    }
}

/// Counts them in all segments of the fragment whose first one is `path`.
pub(crate) fn count_segments(path: &Path) -> std::io::Result<Written> {
    let stem = stem_of(path);
    let mut all = Written::default();
    for entry in std::fs::read_dir(path.parent().unwrap_or(Path::new(".")))? {
        let path = entry?.path();
        if stem_of(&path).is_some() && stem_of(&path) == stem {
            let written = count(&path)?;
            all.events += written.events;
            all.bytes += written.bytes;
        }
    }
    Ok(all)
}

/// The stem of a segment's name.
fn stem_of(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    Some(stem_and_segment(name)?.0)
}

fn contains(line: &[u8], word: &[u8]) -> bool {
    line.windows(word.len()).any(|window| window == word)
}
