//! The segments of a fragment, split into headers, plain lines and blocks.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::blocks::Block;
use super::{Damage, file_name};

/// Byte order mark, which other programs write at the start of a file. The format does not allow one.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A fragment with all its segments.
#[derive(Debug, Default)]
pub struct Fragment {
    /// File name of segment 0, without `.jsonl`.
    pub name: String,
    /// Args of the segments' `sa_fragment` records.
    pub(super) headers: Vec<Value>,
    /// Segments in order.
    pub(super) segments: Vec<Segment>,
    /// Unreadable places.
    pub(super) damage: Vec<Damage>,
}

/// A file of a fragment.
#[derive(Debug, Default)]
pub(super) struct Segment {
    /// File name.
    pub(super) name: String,
    /// Number in the header.
    pub(super) number: u64,
    /// Contents of the file.
    pub(super) bytes: Vec<u8>,
    /// Lines outside blocks, without newlines.
    pub(super) plain: Vec<Range<usize>>,
    /// Blocks in file order.
    pub(super) blocks: Vec<Block>,
}

impl Fragment {
    /// Reads the existing segments `<stem>.jsonl`, `<stem>.s1.jsonl`, ….
    pub(super) fn read(stem: &Path) -> Fragment {
        let mut fragment = Fragment {
            name: file_name(stem),
            ..Fragment::default()
        };
        for path in segment_paths(stem) {
            match fs::read(&path) {
                // Skips a segment that was being created when its process was killed.
                Ok(bytes) if !bytes.contains(&b'\n') && !fragment.headers.is_empty() => {}
                Ok(bytes) => fragment.add(Segment::split(file_name(&path), bytes)),
                Err(error) => {
                    let damage = Damage::new("unreadable", file_name(&path), error.to_string());
                    fragment.damage.push(damage);
                }
            }
        }
        fragment.drop_removed();
        fragment
    }

    /// Drops the segments that the newest report declares as removed, and the older reports of removals.
    fn drop_removed(&mut self) {
        let removals: Vec<Option<(u64, Range<usize>)>> =
            self.segments.iter().map(Segment::removal).collect();
        let Some(newest) = removals.iter().rposition(Option::is_some) else {
            return;
        };
        let first = removals[newest].as_ref().map_or(0, |removal| removal.0);
        for (segment, removal) in self.segments[..newest].iter_mut().zip(&removals) {
            let line = removal.as_ref().map(|removal| removal.1.clone());
            segment.plain.retain(|plain| Some(plain) != line.as_ref());
        }
        self.segments.retain(|segment| segment.number >= first);
        self.headers
            .retain(|header| header["segment"].as_u64() >= Some(first));
    }

    /// Returns the args of the first segment's header.
    pub fn header(&self) -> Option<&Value> {
        self.headers.first()
    }

    /// Returns true if the fragment contains the last record of a clean exit.
    pub(super) fn has_end(&self) -> bool {
        let has_end = |segment: &Segment| {
            let mut lines = segment.lines();
            lines.any(|line| named(&segment.bytes[line], "sa_end"))
        };
        self.segments.iter().any(has_end)
    }

    fn add(&mut self, segment: Segment) {
        if segment.bytes.starts_with(BYTE_ORDER_MARK) {
            let damage = Damage::new("bom", segment.name.clone(), String::new());
            self.damage.push(damage);
        }
        let first = segment.plain.first();
        let first = first.map(|line| &segment.bytes[line.clone()]);
        let record: Option<Value> = first.and_then(|line| serde_json::from_slice(line).ok());
        let header = record.filter(|record| record["name"] == "sa_fragment");
        let header = header.map(|record| record["args"].clone());
        let number = header.as_ref().map(|header| header["segment"].as_u64());
        self.headers.extend(header);
        self.segments.push(Segment {
            number: number.flatten().unwrap_or(0),
            ..segment
        });
    }
}

impl Segment {
    /// Splits a file into plain lines and blocks.
    fn split(name: String, bytes: Vec<u8>) -> Segment {
        let mut segment = Segment {
            name,
            ..Segment::default()
        };
        let has_mark = bytes.starts_with(BYTE_ORDER_MARK);
        let mut at = if has_mark { BYTE_ORDER_MARK.len() } else { 0 };
        while at < bytes.len() {
            let line = line_at(&bytes, at);
            at = line.end + 1;
            match Block::read(&bytes, &line) {
                Some(block) => {
                    at = block.range.end;
                    segment.blocks.push(block);
                }
                None if line.is_empty() => {}
                None => segment.plain.push(line),
            }
        }
        segment.bytes = bytes;
        segment
    }

    /// Returns the report of removed segments in the first lines: the number of the first remaining segment, and the line of the loss record.
    fn removal(&self) -> Option<(u64, Range<usize>)> {
        let first_block = self
            .blocks
            .first()
            .map_or(self.bytes.len(), |block| block.range.start);
        let first_lines = self.plain.iter().filter(|line| line.end < first_block);
        let args = |line: &Range<usize>, name: &str| -> Option<Value> {
            let value: Value = serde_json::from_slice(&self.bytes[line.clone()]).ok()?;
            (value["name"] == name).then(|| value["args"].clone())
        };
        let removed = first_lines
            .clone()
            .find_map(|line| args(line, "sa_removed"))?;
        let (line, loss) = first_lines
            .clone()
            .find_map(|line| Some((line, args(line, "sa_loss")?)))?;
        let first = removed["first"].as_u64()?;
        let agree = loss["first"] == first && loss["events"] == removed["events"];
        (agree && (1..=self.number).contains(&first)).then(|| (first, line.clone()))
    }

    /// Returns every line of the file except for block headers, inside and outside blocks.
    fn lines(&self) -> impl Iterator<Item = Range<usize>> {
        let blocks = self
            .blocks
            .iter()
            .flat_map(|block| lines_of(&self.bytes, block.range.clone()));
        self.plain.iter().cloned().chain(blocks)
    }
}

fn segment_paths(stem: &Path) -> Vec<PathBuf> {
    let dir = stem.parent().unwrap_or(Path::new("."));
    let front = file_name(stem) + ".s";
    let entries = fs::read_dir(dir).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut numbers: Vec<u32> = names
        .filter_map(|name| {
            name.strip_prefix(&front)?
                .strip_suffix(".jsonl")?
                .parse()
                .ok()
        })
        .collect();
    numbers.sort_unstable();
    let first = stem.with_file_name(file_name(stem) + ".jsonl");
    let others = numbers
        .into_iter()
        .map(|number| dir.join(format!("{front}{number}.jsonl")));
    std::iter::once(first)
        .filter(|path| path.exists())
        .chain(others)
        .collect()
}

/// Returns the range of the line that starts at `at`, without its newline.
pub(super) fn line_at(bytes: &[u8], at: usize) -> Range<usize> {
    let len = bytes[at..]
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(bytes.len() - at);
    at..at + len
}

/// Returns the non-empty lines inside a range, without newlines.
pub(super) fn lines_of(bytes: &[u8], range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        while at < range.end {
            let line = line_at(&bytes[..range.end], at);
            at = line.end + 1;
            if !line.is_empty() {
                return Some(line);
            }
        }
        None
    })
}

fn named(line: &[u8], name: &str) -> bool {
    line.starts_with(br#"{"ph":"M""#)
        && serde_json::from_slice::<Value>(line).is_ok_and(|value| value["name"] == name)
}
