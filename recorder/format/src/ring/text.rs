//! The text of an open span: the u64 of an entry that locates it, and the header's fields for the
//! areas that hold the texts.

use std::ops::Range;

use twox_hash::XxHash3_64;

use super::low_half;

/// Offset in a ring's header of the [`TextAreas`].
pub const TEXT_AREAS_AT: usize = 128;
/// Size of the [`TextAreas`] in a header.
pub const TEXT_AREAS_BYTES: usize = 20;
/// Offset in an entry of the u64 [`pack_span_text`].
pub const OPEN_TEXT_AT: usize = 56;
/// Size in bytes of the text area for the open spans of one thread.
pub const SLOT_TEXT_BYTES: usize = 16 << 10;
/// Size in bytes of the text area for the open span of one lane.
pub const LANE_TEXT_BYTES: usize = 1 << 10;

/// Size in bytes of the text area for an open span that is deeper than its thread's stack.
pub const DEEP_TEXT_BYTES: usize = 256;

/// Location of an open span's text in its area: the members `name` and `cat` if the span has no
/// site, and directly after them the args without braces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanText {
    /// Offset of the text in the area.
    pub at: u32,
    /// Length of name and category in bytes.
    pub names: u16,
    /// Length of the args in bytes.
    pub args: u16,
}

/// Packs where an open span's text is stored into the u64 of its ring entry, so that one store
/// publishes all of the text. `at` is the offset in the text area. `names` and `args` are lengths
/// in bytes below 2^16.
#[inline(always)]
pub const fn pack_span_text(at: usize, names: usize, args: usize) -> u64 {
    at as u64 | (names as u64) << 32 | (args as u64) << 48
}

impl SpanText {
    /// Unpacks where an open span's text is stored from the u64 of its ring entry.
    #[inline(always)]
    pub const fn from_bits(word: u64) -> SpanText {
        SpanText {
            at: (word & 0xffff_ffff) as u32,
            names: (word >> 32 & 0xffff) as u16,
            args: (word >> 48) as u16,
        }
    }

    /// Returns the range of the span's name and category in the text area.
    #[inline(always)]
    pub const fn names(self) -> Range<usize> {
        self.at as usize..self.at as usize + self.names as usize
    }

    /// Returns the range of the span's args in the text area.
    #[inline(always)]
    pub const fn args(self) -> Range<usize> {
        let names_end = self.names().end;
        names_end..names_end + self.args as usize
    }
}

/// Offsets and sizes of the areas for the text of open spans; all 0 in a ring without them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextAreas {
    /// Size of the area directly before each slot.
    pub slot_bytes: u32,
    /// Offset of the directory of the lanes' areas. Its entries are laid out as in the
    /// slot directory, and each covers several lanes.
    pub lanes_offset: u32,
    /// Number of entries in that directory.
    pub lanes_count: u32,
    /// Size of one lane's area.
    pub lane_bytes: u32,
}

impl TextAreas {
    /// Encodes the locations of the text areas as the fields of a ring file's header, followed by
    /// their checksum.
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

    /// Decodes the locations of the text areas from the fields of a ring file's header. Returns
    /// `None` if their checksum does not match, as in a ring that does not have these fields.
    pub fn from_fields(fields: &[u8; TEXT_AREAS_BYTES]) -> Option<TextAreas> {
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
