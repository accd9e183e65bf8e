//! Processes sixteen bytes of text at a time with SSE2, which every x86-64 processor has.
#![expect(
    unsafe_code,
    reason = "vector instructions may only be called from unsafe code, although every x86-64 processor has them"
)]

use std::arch::x86_64::{
    _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
};

/// Returns the number of bytes before the first quote, backslash or control character, or 16 if there is none.
#[inline(always)]
pub fn plain_len(words: [u64; 2]) -> usize {
    // SAFETY: SSE2 is part of x86-64.
    let found = unsafe { marks(words) };
    (found | 1 << 16).trailing_zeros() as usize
}

/// Returns a bit mask of the bytes that are quotes, backslashes or control characters.
#[inline]
#[target_feature(enable = "sse2")]
fn marks([first, second]: [u64; 2]) -> u32 {
    let bytes = _mm_set_epi64x(second.cast_signed(), first.cast_signed());
    let all = |byte: u8| _mm_set1_epi8(byte.cast_signed());
    let quote = _mm_cmpeq_epi8(bytes, all(b'"'));
    let escape = _mm_cmpeq_epi8(bytes, all(b'\\'));
    let control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, all(0x1f)), bytes);
    let found = _mm_or_si128(_mm_or_si128(quote, escape), control);
    _mm_movemask_epi8(found).cast_unsigned()
}
