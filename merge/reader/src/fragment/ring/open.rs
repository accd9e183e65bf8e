//! Entries of open spans in a ring: start time, name and args.

use super::{RingBytes, RingHead, RingReader, bytes_at, entry_u32, entry_u64, read_entry};
use sa_format::ring::{self as layout, SpanText};
use sa_format::visible;
use serde::de::IgnoredAny;

/// Maximum size of the site table. A larger one is rejected.
const MAX_SITES_BYTES: u64 = 16 << 20;
/// Maximum number of bytes that the names and args of a ring's open spans may have in total.
const MAX_TEXT_BYTES: usize = 64 << 20;

/// A span that was open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenSpan {
    /// Kernel tid or virtual lane.
    pub tid: u32,
    /// Start in ns of the recording process's monotonic clock.
    pub start_ns: u64,
    /// `"name":"…","cat":"…"`, valid JSON members.
    pub label: String,
    /// The args so far, as valid JSON members; empty if there are none.
    pub args: String,
}

/// The site table, and the number of bytes that may still be copied from it. Without a limit, entries of a few bytes could refer to the same long
/// text again and again.
pub(super) struct Sites {
    pub(super) table: Vec<u8>,
    pub(super) room: usize,
    /// Offsets of invalid texts.
    pub(super) bad_texts: Vec<u64>,
}

impl Sites {
    /// Reads the site table; empty if it lies outside the ring or is too large.
    pub(super) fn read(source: &dyn RingBytes, head: &RingHead) -> Sites {
        let end = head.sites.end.min(source.len());
        let len = end.saturating_sub(head.sites.start);
        let len = usize::try_from(len).ok().filter(|_| len <= MAX_SITES_BYTES);
        let mut table = vec![0; len.unwrap_or(0)];
        if source.read(head.sites.start, &mut table).is_none() {
            table.clear();
        }
        Sites {
            table,
            room: MAX_TEXT_BYTES,
            bad_texts: Vec::new(),
        }
    }

    /// Returns the members `name` and `cat` of a call site.
    pub(super) fn label(&mut self, site: u32) -> String {
        let label =
            site_label(&self.table, site).filter(|label| self.reserve(label.len()).is_some());
        label.unwrap_or_else(|| name_members(b"?", 1))
    }

    /// Subtracts the length of a text that is about to be copied from the remaining budget. Returns `None` if the budget is exhausted.
    fn reserve(&mut self, bytes: usize) -> Option<()> {
        self.room = self.room.checked_sub(bytes)?;
        Some(())
    }
}

/// Part of a ring that may contain the text of a span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) at: u64,
    pub(super) bytes: u64,
}

impl Area {
    pub(super) const NONE: Area = Area { at: 0, bytes: 0 };
}

/// An entry of a stack or of the lane table, and its text.
pub(super) struct OpenEntry {
    at: u64,
    bytes: [u8; layout::OPEN_ENTRY_BYTES],
    /// Offset of the name in `bytes`.
    name_at: usize,
    /// Offset of the text in the ring.
    text_at: u64,
    /// Name with category, and args; `None` if the entry's location for them is invalid.
    text: Option<(Vec<u8>, Vec<u8>)>,
}

impl OpenEntry {
    /// Reads an entry and its text; `None` if the entry is vacant.
    pub(super) fn read(
        ring: &mut RingReader<'_>,
        at: u64,
        name_at: usize,
        area: Area,
    ) -> Option<OpenEntry> {
        let mut entry = OpenEntry {
            at,
            bytes: bytes_at(ring.source, at)?,
            name_at,
            text_at: area.at,
            text: Some((Vec::new(), Vec::new())),
        };
        let start_ns = entry.start_ns();
        if start_ns == 0 || start_ns >> 60 != 0 {
            return None;
        }
        let text = SpanText::from_bits(entry.u64(layout::OPEN_TEXT_AT));
        if area.bytes > 0 && text.args().end > text.names().start {
            entry.text_at += u64::from(text.at);
            let inside = text.args().end as u64 <= area.bytes;
            entry.text = inside.then(|| entry.read_text(ring, text)).flatten();
        }
        Some(entry)
    }

    fn read_text(&self, ring: &mut RingReader<'_>, text: SpanText) -> Option<(Vec<u8>, Vec<u8>)> {
        let len = text.args().end - text.names().start;
        ring.sites.reserve(len)?;
        let mut names = vec![0; len];
        ring.source.read(self.text_at, &mut names)?;
        let args = names.split_off(usize::from(text.names));
        Some((names, args))
    }

    /// Returns the span, shown on the track `tid`. The text is ignored if its writer may have replaced it while it was read.
    pub(super) fn span(self, ring: &mut RingReader<'_>, tid: u32) -> Option<OpenSpan> {
        let again: [u8; layout::OPEN_ENTRY_BYTES] = bytes_at(ring.source, self.at)?;
        let mut is_bad = self.text.is_none() && again == self.bytes;
        let mut good = |text: &[u8], check: fn(&str) -> Option<String>| {
            let good = std::str::from_utf8(text).ok().and_then(check);
            is_bad |= good.is_none() && !text.is_empty();
            good.filter(|_| !text.is_empty())
        };
        let (names, args) = match &self.text {
            Some((names, args)) if again == self.bytes => {
                (good(names, parse_label), good(args, parse_args))
            }
            _ => (None, None),
        };
        if is_bad {
            ring.sites.bad_texts.push(self.text_at);
        }
        let label = match self.u32(layout::OPEN_SITE_AT) {
            0 => names.unwrap_or_else(|| self.name()),
            site => ring.sites.label(site),
        };
        Some(OpenSpan {
            tid,
            start_ns: self.start_ns(),
            label,
            args: args.unwrap_or_default(),
        })
    }

    /// Returns true if the line that closes the span ends at or before this position of its slot.
    pub(super) fn is_closed_at(&self, head: u64) -> bool {
        (1..=head).contains(&self.u64(layout::LANE_CLOSES_AT))
    }

    pub(super) fn start_ns(&self) -> u64 {
        self.u64(layout::OPEN_START_AT)
    }

    /// Returns the members for the name in the entry, which has no category.
    fn name(&self) -> String {
        let name = self.bytes.get(self.name_at..); // older writers leave no field after it
        name_members(name.unwrap_or_default(), self.u32(layout::OPEN_NAME_LEN_AT))
    }

    pub(super) fn u64(&self, at: usize) -> u64 {
        entry_u64(&self.bytes, at)
    }

    pub(super) fn u32(&self, at: usize) -> u32 {
        entry_u32(&self.bytes, at)
    }
}

fn name_members(name: &[u8], len: u32) -> String {
    let len = usize::try_from(len).unwrap_or(0).min(name.len());
    let text = String::from_utf8_lossy(&name[..len]);
    let text = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
    let name = serde_json::Value::from(&*visible(text));
    format!(r#""name":{name},"cat":"""#)
}

/// Returns the text of a call site if it is valid.
fn site_label(sites: &[u8], site: u32) -> Option<String> {
    let at = usize::try_from(site).ok()?.checked_sub(1)?;
    let len = usize::from(u16::from_ne_bytes(*sites.get(at..)?.first_chunk()?));
    parse_label(std::str::from_utf8(sites.get(at + 2..at + 2 + len)?).ok()?)
}

/// Returns the text if it consists of the members `name` and `cat` only.
fn parse_label(text: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Label<'a> {
        #[serde(borrow)]
        name: std::borrow::Cow<'a, str>,
        #[serde(borrow)]
        cat: std::borrow::Cow<'a, str>,
    }
    let object = format!("{{{text}}}");
    let label: Label<'_> = serde_json::from_str(&object).ok()?;
    let (name, cat) = (
        serde_json::Value::from(&*visible(&label.name)),
        serde_json::Value::from(label.cat),
    );
    Some(format!(r#""name":{name},"cat":{cat}"#))
}

/// Returns the text if it consists of JSON members on one line.
fn parse_args(text: &str) -> Option<String> {
    if text.bytes().any(|byte| byte < b' ') {
        return None;
    }
    let object = format!("{{{text}}}");
    serde_json::from_str::<IgnoredAny>(&object).ok()?;
    Some(text.to_owned())
}

/// Maximum number of entries of a chain.
const MAX_ENTRIES: u64 = 1 << 20;

/// The entries of a chain.
#[derive(Clone, Debug, Default)]
pub(super) struct Chain {
    chunks: Vec<Chunk>,
}

/// Consecutive entries, followed by the text of each.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    at: u64,
    entries: u64,
    text_bytes: u64,
}

/// Location of an entry and its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryPlace {
    pub(super) at: u64,
    pub(super) text: Area,
}

impl RingReader<'_> {
    /// Follows the chain that begins at `link`, until a link is empty or invalid, or points into a range that is already in use.
    pub(super) fn chain(&mut self, link: u64, seed: u32, text_bytes: usize) -> Chain {
        let (mut chunks, mut link, mut left) = (Vec::new(), link, MAX_ENTRIES);
        while let Some((offset, size)) = read_entry(self.source, seed, link) {
            let end = offset.checked_add(size);
            let is_inside = offset != 0 && end.is_some_and(|end| end <= self.source.len());
            let bytes = usize::try_from(size).unwrap_or(0);
            let entries = (layout::chunk_entries(bytes, text_bytes) as u64).min(left);
            if !is_inside || entries == 0 || self.claimed.claim(offset..offset + size).is_none() {
                break;
            }
            left -= entries;
            chunks.push(Chunk {
                at: offset,
                entries,
                text_bytes: text_bytes as u64,
            });
            link = offset;
        }
        Chain { chunks }
    }
}

impl Chain {
    /// Returns the locations of all entries, in order.
    pub(super) fn entries(&self) -> impl Iterator<Item = EntryPlace> {
        self.chunks.iter().flat_map(|chunk| {
            let first = chunk.at + layout::CHUNK_HEAD_BYTES as u64;
            let entry_bytes = layout::OPEN_ENTRY_BYTES as u64;
            let texts = first + chunk.entries * entry_bytes;
            (0..chunk.entries).map(move |nth| EntryPlace {
                at: first + nth * entry_bytes,
                text: Area {
                    at: texts + nth * chunk.text_bytes,
                    bytes: chunk.text_bytes,
                },
            })
        })
    }
}
