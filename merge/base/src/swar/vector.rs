//! Sixteen bytes of text at a time, with the instructions that every x86-64 has.
#![expect(
    unsafe_code,
    reason = "a safe function may not call instructions of vectors, though no processor lacks them"
)]

use std::arch::x86_64::{
    _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
};

/// How many bytes stand before the first quote, backslash or control character; 16 if there is none.
#[inline(always)]
pub fn plain_len(words: [u64; 2]) -> usize {
    // SAFETY: SSE2 is part of x86-64.
    let found = unsafe { marks(words) };
    (found | 1 << 16).trailing_zeros() as usize
}

/// A bit for each quote, backslash and control character.
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
