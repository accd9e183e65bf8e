//! What reached the disk, and the warming of page-cache memory.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use sa_recorder::format::stem_and_segment;

use crate::rounds::Plan;

/// Bytes that a child writes and removes before it starts: the file's pages then come from memory this machine has touched.
const WARM_BYTES: usize = 128 << 20;

/// Writes and removes a file beside the run directory.
pub(crate) fn warm_page_cache(directory: &Path) -> std::io::Result<()> {
    let path = directory.join("warm");
    let mut file = File::create(&path)?;
    let chunk = vec![1_u8; 1 << 20];
    for _ in 0..WARM_BYTES / chunk.len() {
        file.write_all(&chunk)?;
    }
    std::fs::remove_file(path)
}

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

/// The events that a plan records.
pub(crate) fn expected(plan: Plan) -> u64 {
    plan.spans * plan.threads as u64 * u64::from(plan.rounds + plan.warm_rounds)
}
