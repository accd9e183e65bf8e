//! One fragment file: header, plain lines, blocks.

use super::{Damage, line};
use crate::writer::fragment::block_sum;
use serde_json::Value;

/// How block header lines start.
const HEADER_START: &[u8] = br#"{"ph":"M","name":"sa_block","pid":"#;

/// Positions of one slot's stream as the fragment holds them.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) file: String,
    pub(super) offset: u64,
    pub(super) slot: u32,
    pub(super) generation: u32,
    pub(super) from: u64,
    pub(super) len: u64,
    /// Its bytes, if it is complete.
    pub(super) content: Option<Vec<u8>>,
    /// Where it ends in the file.
    pub(super) end: u64,
    /// The whole lines of an incomplete block and what else was wrong in it.
    pub(super) saved: Vec<Value>,
}

impl Block {
    /// The position after it.
    pub(super) fn to(&self) -> u64 {
        self.from.saturating_add(self.len)
    }
}

/// What a fragment consists of.
pub(super) enum Piece {
    Line(Value),
    Block(Block),
}

/// A line's content and its place.
struct Line<'a> {
    start: usize,
    /// After the newline.
    next: usize,
    content: &'a [u8],
    ended: bool,
}

fn line_at(bytes: &[u8], start: usize) -> Line<'_> {
    match bytes[start..].iter().position(|byte| *byte == b'\n') {
        Some(len) => Line {
            start,
            next: start + len + 1,
            content: &bytes[start..start + len],
            ended: true,
        },
        None => Line {
            start,
            next: bytes.len(),
            content: &bytes[start..],
            ended: false,
        },
    }
}

/// Reads a fragment: the args of its header and its pieces in order.
pub(super) fn read(
    file: &str,
    bytes: &[u8],
    damage: &mut Vec<Damage>,
) -> (Option<Value>, Vec<Piece>) {
    let mut at = 0;
    if bytes.starts_with(b"\xef\xbb\xbf") {
        damage.push((file.into(), 0, "bom".into()));
        at = 3;
    }
    let header = line::events(line_at(bytes, at).content)
        .next()
        .filter(|value| value["name"] == "sa_fragment");
    let header = header
        .map(|value| value["args"].clone())
        .filter(|args| args["version"] == 1);
    let mut pieces = Vec::new();
    while at < bytes.len() {
        let line = line_at(bytes, at);
        at = match block_header(line.content).filter(|_| line.ended) {
            Some(fields) => read_block(file, bytes, &line, fields, &mut pieces),
            None => {
                if !is_torn_header(bytes, &line) {
                    pieces.extend(read_line(file, &line, damage).into_iter().map(Piece::Line));
                }
                line.next
            }
        };
    }
    (header, pieces)
}

fn read_line(file: &str, line: &Line, damage: &mut Vec<Damage>) -> Vec<Value> {
    let mut values = Vec::new();
    for (at, found) in line::read(line.content, line.ended) {
        match found {
            Ok(value) => values.push(value),
            Err(kind) => damage.push((file.into(), (line.start + at) as u64, kind.into())),
        }
    }
    values
}

/// The damage that a block header torn at the end of the file makes.
pub(super) fn torn_header(file: &str, bytes: &[u8]) -> Option<Damage> {
    let start = bytes.iter().rposition(|byte| *byte == b'\n')? + 1;
    let tail = &bytes[start..];
    (tail.starts_with(HEADER_START) || HEADER_START.starts_with(tail))
        .then(|| (file.into(), start as u64, "torn_tail".into()))
}

/// Whether a write was cut inside the block header, and another try follows.
fn is_torn_header(bytes: &[u8], line: &Line) -> bool {
    let is_part = !line.content.is_empty() && HEADER_START.starts_with(line.content);
    (is_part || line.content.starts_with(HEADER_START))
        && bytes[line.next..].starts_with(HEADER_START)
}

/// Reads the block whose header is `header` and returns the offset after it.
fn read_block(
    file: &str,
    bytes: &[u8],
    header: &Line,
    fields: Fields,
    pieces: &mut Vec<Piece>,
) -> usize {
    let Fields {
        slot,
        generation,
        from,
        len,
        sum,
    } = fields;
    let offset = header.start as u64;
    let mut block = Block {
        file: file.into(),
        offset,
        slot,
        generation,
        from,
        len,
        content: None,
        end: 0,
        saved: Vec::new(),
    };
    let end = usize::try_from(len)
        .ok()
        .and_then(|len| header.next.checked_add(len))
        .filter(|end| *end <= bytes.len());
    let content = end.map(|end| &bytes[header.next..end]);
    if let Some(content) = content.filter(|content| {
        content.ends_with(b"\n") && block_sum(slot, generation, from, content) == sum
    }) {
        block.content = Some(content.to_vec());
        pieces.push(Piece::Block(block));
        return header.next + content.len();
    }
    let end = end.unwrap_or(bytes.len());
    let mut at = header.next;
    while at < end {
        let line = line_at(bytes, at);
        if line.content.starts_with(HEADER_START) {
            break;
        }
        block.saved.extend(line::events(line.content));
        at = line.next;
    }
    block.end = at as u64;
    pieces.push(Piece::Block(block));
    at
}

/// The numbers of a block header.
struct Fields {
    slot: u32,
    generation: u32,
    from: u64,
    len: u64,
    sum: u64,
}

/// Takes a line apart as a block header, which has exactly one form.
fn block_header(line: &[u8]) -> Option<Fields> {
    let value: Value = serde_json::from_slice(line).ok()?;
    let (pid, args) = (value["pid"].as_u64()?, &value["args"]);
    let number = |key: &str| args[key].as_u64();
    let sum = args["sum"].as_str()?;
    let [slot, generation, from, len] = [
        number("slot")?,
        number("gen")?,
        number("from")?,
        number("len")?,
    ];
    let canonical = format!(
        r#"{{"ph":"M","name":"sa_block","pid":{pid},"tid":{pid},"args":{{"slot":{slot},"gen":{generation},"from":{from},"len":{len},"sum":"{sum}"}}}}"#
    );
    if canonical.as_bytes() != line
        || sum.len() != 16
        || sum.contains(|digit: char| !matches!(digit, '0'..='9' | 'a'..='f'))
    {
        return None;
    }
    let sum = u64::from_str_radix(sum, 16).ok()?;
    Some(Fields {
        slot: u32::try_from(slot).ok()?,
        generation: u32::try_from(generation).ok()?,
        from,
        len,
        sum,
    })
}
