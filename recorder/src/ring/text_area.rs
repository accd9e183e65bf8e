//! The text of open spans in the mapped ring, which a reader finds after a kill.
//!
//! A word in the span's entry locates its text. The word is stored after the text, and the entry is
//! vacant while another text is written to the same place. A process that dies between two stores
//! therefore leaves the whole text of a span, or none.

use std::ops::Range;
use std::sync::atomic::{Ordering, compiler_fence};

use crate::ring::open_entry::OpenEntry;
use crate::sys::map::Map;
use crate::sys::memory::collect_or_empty;
use crate::text::encode::Line;
use crate::text::series::Member;
use sa_format::ring::{SpanText, pack_span_text};

/// Key of the arg that counts the args without room.
const CUT: &str = "sa_args_cut";
/// Room in bytes for that arg and a comma before it.
const CUT_BYTES: usize = 40;

/// A part of the mapped ring that holds texts. One thread at a time writes there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextArea(Map);

impl TextArea {
    pub(crate) fn new(map: Map) -> TextArea {
        TextArea(map)
    }

    /// Stores the text of a new span at offset `at` of the area, and that location in the span's
    /// `entry`. `text` consists of the name and category (`names` bytes, or 0 if a site names the
    /// span) and the args. Leaves out what does not fit, and then returns false.
    #[inline(always)]
    pub(crate) fn store(&self, entry: OpenEntry, at: usize, names: usize, text: &[u8]) -> bool {
        let (mut word, mut is_whole) = (pack_span_text(at, 0, 0), true);
        if !text.is_empty() {
            entry.start().store(0, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            is_whole = self.copy_in(at, text);
            word = match is_whole {
                true => pack_span_text(at, names, text.len() - names),
                false => self.store_cut(at, text.split_at(names)),
            };
            compiler_fence(Ordering::SeqCst);
        }
        entry.text().store(word, Ordering::Relaxed);
        is_whole
    }

    /// Replaces the stored args of an open span with `args`, whose first `old` bytes are already
    /// stored. The span's text must be the last one in the area, so that its args can grow. If they
    /// do not fit, leaves out some and returns false.
    pub(crate) fn store_more(&self, entry: OpenEntry, old: usize, args: &[u8]) -> bool {
        let before = SpanText::from_bits(entry.text().load(Ordering::Relaxed));
        let (from, names) = (before.at as usize, usize::from(before.names));
        let at = from + names;
        let added = args.get(old..).unwrap_or_default();
        let is_whole = usize::from(before.args) == old && self.copy_in(at + old, added);
        let word = if is_whole {
            pack_span_text(from, names, args.len())
        } else {
            // The stored args are overwritten, so the entry shows none until that is done.
            let none = pack_span_text(from, names, 0);
            entry.text().store(none, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            pack_span_text(from, names, self.copy_members(at, args))
        };
        compiler_fence(Ordering::SeqCst);
        entry.text().store(word, Ordering::Relaxed);
        is_whole
    }

    /// Appends `args` to the stored args of the open span with this `entry`. The span's text must
    /// be the last one in the area, so that its args can grow. If they do not fit, changes nothing
    /// and returns false.
    pub(crate) fn append(&self, entry: OpenEntry, args: &[u8]) -> bool {
        let text = SpanText::from_bits(entry.text().load(Ordering::Relaxed));
        let (old, at) = (usize::from(text.args), text.args().end);
        let comma = usize::from(old > 0);
        let is_whole = self.copy_in(at + comma, args) && self.copy_in(at, &b","[..comma]);
        if is_whole {
            let args = old + comma + args.len();
            let word = pack_span_text(text.at as usize, usize::from(text.names), args);
            compiler_fence(Ordering::SeqCst);
            entry.text().store(word, Ordering::Relaxed);
        }
        is_whole
    }

    /// Returns the stored args of the open span with this `entry`, as JSON without braces. Only the
    /// thread that writes to the area may call this. Returns an empty slice if the args reach
    /// beyond the area.
    #[inline(always)]
    pub(crate) fn args(&self, entry: OpenEntry) -> &[u8] {
        let range = SpanText::from_bits(entry.text().load(Ordering::Relaxed)).args();
        let rest = self.room(range.start).unwrap_or_default();
        rest.get(..range.len()).unwrap_or_default()
    }

    /// Returns a copy of the bytes in a range of the area. Returns `None` if the range is empty or
    /// reaches beyond the area.
    pub(crate) fn get(&self, range: Range<usize>) -> Option<Vec<u8>> {
        let inside = !range.is_empty() && range.end <= self.0.len();
        inside.then(|| collect_or_empty(range.map(|at| self.0.byte(at))))
    }

    /// Copies `text` to offset `at` of the area. Returns false and copies nothing if it does not
    /// fit.
    #[inline(always)]
    fn copy_in(&self, at: usize, text: &[u8]) -> bool {
        let Some(room) = self.room(at).filter(|room| text.len() <= room.len()) else {
            return false;
        };
        Line::new(room).text(text);
        true
    }

    /// Stores as much of a span's text at offset `at` as fits. Returns the word that locates it,
    /// for the span's entry.
    #[cold]
    #[inline(never)]
    fn store_cut(&self, at: usize, (names, args): (&[u8], &[u8])) -> u64 {
        let names = if self.copy_in(at, names) {
            names.len()
        } else {
            0
        };
        pack_span_text(at, names, self.copy_members(at + names, args))
    }

    /// Copies `args` to offset `at` of the area. Leaves out args that do not fit, and appends one
    /// that says how many are missing. Returns the number of bytes written.
    #[cold]
    #[inline(never)]
    fn copy_members(&self, at: usize, args: &[u8]) -> usize {
        let Some(room) = self.room(at).filter(|room| room.len() > CUT_BYTES) else {
            return 0;
        };
        let most = room.len() - CUT_BYTES;
        let (mut line, mut missing) = (Line::new(room), 0_u32);
        for member in members(args) {
            if line.len() + member.len() < most {
                comma(&mut line);
                line.text(member);
            } else {
                missing += 1;
            }
        }
        if missing > 0 {
            comma(&mut line);
            line.literal(b"\"");
            line.text(CUT.as_bytes());
            line.literal(b"\":");
            line.integer(missing);
        }
        line.len()
    }

    /// Returns the bytes from offset `at` to the end of the area, or `None` if the offset is beyond
    /// the end.
    #[inline(always)]
    #[expect(
        clippy::mut_from_ref,
        reason = "the memory belongs to the ring, and the caller is its only writer"
    )]
    fn room(&self, at: usize) -> Option<&mut [u8]> {
        // SAFETY: the caller is the only thread that writes here.
        unsafe { self.0.from(at) }
    }
}

fn comma(line: &mut Line<'_>) {
    if line.len() > 0 {
        line.literal(b",");
    }
}

/// Splits args (JSON without braces) into their members, such as `"key":1`.
fn members(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let next = move || {
        if text.is_empty() {
            return None;
        }
        let (member, rest) = text.split_at(Member::first(text).len);
        text = rest.get(1..).unwrap_or_default();
        Some(member)
    };
    std::iter::from_fn(next).filter(|member| !member.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::map::Map;

    const ROOM: usize = 256;

    /// Returns an entry and an area for its text.
    fn entry_and_area() -> (OpenEntry, TextArea) {
        let page = Map::wiped_by_fork().unwrap();
        let area = page.part(1024, ROOM);
        (OpenEntry::new(page, 0), TextArea::new(area))
    }

    /// Returns the names and args that a reader would find.
    fn found(entry: OpenEntry, area: TextArea) -> (String, String) {
        let text = SpanText::from_bits(entry.text().load(Ordering::Relaxed));
        let part = |range| String::from_utf8(area.get(range).unwrap_or_default()).unwrap();
        (part(text.names()), part(text.args()))
    }

    fn owned(names: &str, args: &str) -> (String, String) {
        (names.to_owned(), args.to_owned())
    }

    #[test]
    fn args_are_appended_where_they_have_room() {
        let (entry, area) = entry_and_area();
        assert!(area.store(entry, 0, 0, b""));
        assert!(area.append(entry, b"\"a\":1"));
        assert!(area.append(entry, b"\"b\":2"));
        assert_eq!(found(entry, area), owned("", "\"a\":1,\"b\":2"));
        assert_eq!(area.args(entry), b"\"a\":1,\"b\":2");
        let rest = ROOM - area.args(entry).len();
        let long = format!("\"c\":{}", "1".repeat(rest));
        for cut in [1, 3, 4, 5] {
            let args = &long.as_bytes()[..long.len() - cut];
            assert_eq!(area.append(entry, args), cut == 5, "{cut}");
        }
        assert_eq!(area.args(entry).len(), ROOM);
    }

    #[test]
    fn long_args_are_stored_as_far_as_they_fit() {
        let (entry, area) = entry_and_area();
        let prompt = format!("\"prompt\":\"{},\\\",\"", "x".repeat(ROOM));
        let args = format!("\"id\":\"a,b\",{prompt},\"list\":[1,{{\"k\":2}}],\"n\":1");
        assert!(!area.store(entry, 10, 2, format!("nn{args}").as_bytes()));
        let expected = "\"id\":\"a,b\",\"list\":[1,{\"k\":2}],\"n\":1,\"sa_args_cut\":1";
        assert_eq!(found(entry, area), owned("nn", expected));
        area.store(entry, 10, 0, b"\"id\":\"a,b\"");
        assert!(!area.store_more(entry, 10, args.as_bytes()));
        assert_eq!(found(entry, area), owned("", expected), "also later");
        let more = format!("{args},\"m\":2");
        assert!(!area.store_more(entry, args.len(), more.as_bytes()));
        let expected = expected.replace("\"sa", "\"m\":2,\"sa");
        assert_eq!(found(entry, area), owned("", &expected), "and again");
    }

    #[test]
    fn text_without_room_is_not_stored() {
        let (entry, area) = entry_and_area();
        for at in [ROOM - 2, ROOM, ROOM + 1, 1 << 20] {
            area.store(entry, at, 2, b"nn\"a\":1");
            assert_eq!(found(entry, area).1, "", "at {at}");
            area.store(entry, at, 0, b"\"a\":1");
            area.store_more(entry, 5, b"\"a\":1,\"b\":1");
            assert_eq!(found(entry, area), owned("", ""), "at {at}");
        }
    }

    #[test]
    fn texts_of_every_length_end_inside_the_area() {
        let (entry, area) = entry_and_area();
        for at in [0, 1, 100, ROOM - 50] {
            for len in 0..ROOM + 20 {
                let args = format!("\"a\":\"{}\",\"b\":1", "x".repeat(len));
                area.store(entry, at, 0, args.as_bytes());
                let (_, shown) = found(entry, area);
                let whole = args.len() + at <= ROOM;
                assert_eq!(shown == args, whole, "{len} at {at}: {shown}");
                let json = format!("{{{shown}}}");
                let json: serde_json::Value = serde_json::from_str(&json).unwrap();
                assert_eq!(json["sa_args_cut"].is_null(), whole, "{len} at {at}");
                assert_eq!(json["b"], 1, "{len} at {at}");
            }
        }
    }
}
