//! Where the text of an open span lies: the word of an entry that names it, and the header's fields for the areas that hold it.

use std::ops::Range;

use twox_hash::XxHash3_64;

use super::low_half;

/// Offset in a ring's header of the [`TextAreas`].
pub const TEXT_AREAS_AT: usize = 128;
/// Size of the [`TextAreas`] in a header.
pub const TEXT_AREAS_BYTES: usize = 20;
/// Offset in an entry of the u64 [`text_word`].
pub const OPEN_TEXT_AT: usize = 56;
/// Bytes of text that a writer keeps for the open spans of one thread.
pub const SLOT_TEXT_BYTES: usize = 16 << 10;
/// Bytes of text that a writer keeps for the open span of one lane.
pub const LANE_TEXT_BYTES: usize = 1 << 10;

/// Bytes of text that a writer keeps for an open span that is deeper than a thread's stack.
pub const DEEP_TEXT_BYTES: usize = 256;

/// The text of an open span in its area: the members `name` and `cat` of one without a site, and directly behind them the args without braces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanText {
    /// Where it begins.
    pub at: u32,
    /// Bytes of name and category.
    pub names: u16,
    /// Bytes of the args.
    pub args: u16,
}

/// The word that says so in an entry: one store tells of the whole text, or of none. The lengths are below 2^16.
#[inline(always)]
pub const fn text_word(at: usize, names: usize, args: usize) -> u64 {
    at as u64 | (names as u64) << 32 | (args as u64) << 48
}

impl SpanText {
    /// What a word says.
    #[inline(always)]
    pub const fn of_word(word: u64) -> SpanText {
        SpanText {
            at: (word & 0xffff_ffff) as u32,
            names: (word >> 32 & 0xffff) as u16,
            args: (word >> 48) as u16,
        }
    }

    /// Where name and category lie.
    #[inline(always)]
    pub const fn names(self) -> Range<usize> {
        self.at as usize..self.at as usize + self.names as usize
    }

    /// Where the args lie.
    #[inline(always)]
    pub const fn args(self) -> Range<usize> {
        let names_end = self.names().end;
        names_end..names_end + self.args as usize
    }
}

/// Where the areas for the text of open spans are; all 0 in a ring without them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextAreas {
    /// Size of the area that ends where a slot begins.
    pub slot_bytes: u32,
    /// Offset of the directory of the lanes' areas: entries as in the slot directory, each for several lanes.
    pub lanes_offset: u32,
    /// Entries of that directory.
    pub lanes_count: u32,
    /// Size of one lane's area.
    pub lane_bytes: u32,
}

impl TextAreas {
    /// The fields as they stand in a header, with their sum.
    pub fn fields(self) -> [u8; TEXT_AREAS_BYTES] {
        let mut fields = [0; TEXT_AREAS_BYTES];
        let values = [
            self.slot_bytes,
            self.lanes_offset,
            self.lanes_count,
            self.lane_bytes,
        ];
        let (places, _) = fields.as_chunks_mut::<4>();
        for (place, value) in places.iter_mut().zip(values) {
            *place = value.to_ne_bytes();
        }
        let sum = low_half(XxHash3_64::oneshot(&fields[..16]));
        fields[16..].copy_from_slice(&sum.to_ne_bytes());
        fields
    }

    /// What the fields of a header say; `None` if there are none, or their sum does not match.
    pub fn of_fields(fields: &[u8; TEXT_AREAS_BYTES]) -> Option<TextAreas> {
        let (values, _) = fields.as_chunks::<4>();
        let value = |at: usize| u32::from_ne_bytes(values[at]);
        let areas = TextAreas {
            slot_bytes: value(0),
            lanes_offset: value(1),
            lanes_count: value(2),
            lane_bytes: value(3),
        };
        (areas.fields() == *fields).then_some(areas)
    }
}
